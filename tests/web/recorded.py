"""Makes sessions with records, and finds the records on the page."""

import json
import os
import subprocess

from kit import NUDGE, Web, expect

MODEL = os.environ.get("NUDGE_TEST_MODEL_DIR")


class Records(Web):
    def setUp(self):
        super().setUp()
        self.env["XDG_DATA_HOME"] = f"{self.home}/data"
        self.nudge("stop")
        self.serve()

    def save(self, title, body="", kind="issue", **more):
        """Saves a record in this project, or in the project that `fields` names; returns the record's number."""
        project = {"create_project": True} if "project" in more else {"context": {"repo": "github.com/minerva/shop"}}
        params = {"kind": kind, "title": title, "body": body, "distinct": True, **project, **more}
        return self.call("nudge.records.upsert", **params)["record"]["id"]

    def record(self, id, **more):
        return self.call("nudge.records.get", id=id, **more)

    def gone(self, id):
        return "was deleted" in json.loads(self.refusal("call", "nudge.records.get", json.dumps({"id": id})))["message"]

    def refusal(self, *words):
        done = subprocess.run([NUDGE, *words, "--json"], env=self.env, cwd=self.project, text=True, capture_output=True, check=False)
        self.assertNotEqual(done.returncode, 0, words)
        return done.stderr

    def records_page(self, **options):
        page = self.open(**options)
        page.keyboard.press("4")
        expect(page.locator("#view-records .bar")).to_be_visible()
        return page


def rows(page):
    return page.locator(".records [role=option]")


def names(page):
    return page.locator(".records [role=option] .name")


def detail(page):
    return page.locator("article.record")
