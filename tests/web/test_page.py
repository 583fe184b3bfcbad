"""Tests the page as a person uses it."""

import json
import re
import subprocess
import unittest
from pathlib import Path

from kit import NUDGE, Web, assert_fits_the_width, expect, row


class Reading(Web):
    def test_what_is_known_here_and_elsewhere_and_why(self):
        self.nudge("set", "http-proxy", "build", "docker compose build router", "--tags", "build,docker", "--priority", "8",
                   "--scope-cwd-glob", "**/http-proxy*", "--scope-branch", "dev,main", "--reason", "make builds everything")
        self.nudge("set", "web", "dev", "npm run dev", "--scope-branch", "main", "--scope-os", "windows,darwin")
        self.nudge("set", "ci", "flags", "jobs=2", "--scope-env", "CI=true", "--scope-env-required", "HOME")
        page = self.open()
        expect(page.locator("#here")).to_have_text(re.compile(f"{self.project}.*github.com/minerva/shop.*dev"))
        fits = page.get_by_role("group", name="Fits here, best first")
        expect(fits.get_by_role("option")).to_have_count(1)
        expect(page.get_by_role("group", name="Elsewhere").get_by_role("option")).to_have_count(2)
        detail = page.locator("#detail")
        expect(detail.get_by_role("heading", name="http-proxy/build")).to_be_visible()
        expect(detail.locator("pre")).to_have_text("docker compose build router")
        expect(detail).to_contain_text("make builds everything")
        expect(detail.locator("ul.conditions li")).to_have_text([re.compile(r"cwd matched \*\*/http-proxy\*"), re.compile("branch=dev allowed")])
        expect(detail).to_contain_text("in a folder like **/http-proxy*")
        expect(detail).to_contain_text("on a branch named dev or main")
        # The parts of the score add up to the score.
        score = float(re.search(r"Score ([\d.]+)", detail.inner_text())[1])
        parts = [float(text) for text in detail.locator(".score td.number:not(.most)").all_inner_texts()]
        self.assertEqual(len(parts), 5)
        self.assertAlmostEqual(sum(parts), score, delta=0.03)
        row(page, "web/dev").click()
        expect(detail.get_by_role("heading", name="It does not fit here")).to_be_visible()
        expect(detail.locator("li.unmet")).to_have_text([re.compile("branch dev is not main"), re.compile("os linux is not")])
        expect(detail).to_contain_text("on macOS or Windows")
        row(page, "ci/flags").click()
        expect(detail).to_contain_text("where HOME is set")
        expect(detail).to_contain_text("where CI is true")
        expect(detail.locator("li.met")).to_have_count(1)

    def test_an_empty_session_says_what_to_do(self):
        page = self.open()
        expect(page.locator("#found")).to_contain_text('nudge set api build "make api"')
        page.keyboard.press("2")
        expect(page.locator("#view-told")).to_contain_text("nudge init")
        page.keyboard.press("3")
        expect(page.locator("#view-deleted")).to_contain_text("Nothing was deleted")

    def test_changes_appear_by_themselves(self):
        page = self.open()
        self.nudge("set", "api", "build", "make api")
        expect(row(page, "api/build")).to_be_visible()
        expect(page.locator("#detail pre")).to_have_text("make api")
        self.nudge("set", "api", "build", "make api2")
        expect(page.locator("#detail pre")).to_have_text("make api2")
        self.nudge("bump", "api", "build")
        expect(page.locator("#detail")).to_contain_text("worked once")
        self.nudge("delete", "api", "build")
        expect(page.get_by_role("option")).to_have_count(0)
        expect(page.locator("#detail")).to_be_hidden()

    def test_what_agents_were_told_and_what_came_of_it(self):
        self.nudge("set", "http-proxy", "build", "docker compose build router")
        self.nudge("set", "http-proxy", "lint", "cargo clippy")
        page = self.open()
        page.keyboard.press("2")
        self.assertIn("docker compose", self.hook("SessionStart", "agent-7", source="startup"))
        told = page.locator("#view-told")
        expect(told).to_contain_text("agent-7")
        expect(told).to_contain_text(self.project)
        line = told.locator("li").filter(has_text="docker compose build router")
        expect(line).to_contain_text("at the start")
        expect(line).to_contain_text("not run since")
        ran = {"tool_name": "Bash", "tool_input": {"command": "docker compose build router"}, "tool_response": {"stdout": "ok"}}
        self.hook("PostToolUse", "agent-7", **ran)
        expect(line).to_contain_text("run, and it worked")
        expect(told).to_contain_text("1 run and worked")
        # A click on the line opens the hint, which has the same text.
        line.get_by_role("button", name="http-proxy/build").click()
        expect(page.locator("#detail")).to_contain_text("to the session agent-7")
        expect(page.locator("#detail")).to_contain_text("run, and it worked")

    def test_it_says_that_files_of_the_session_were_removed(self):
        page = self.open()
        expect(page.locator("#put-back")).to_be_hidden()
        for file in Path(self.home, "run").iterdir():
            file.unlink()
        self.nudge("set", "http-proxy", "lint", "cargo clippy")
        expect(page.locator("#put-back")).to_contain_text("They were put back just now.")

    def test_agents_their_signals_and_open_questions(self):
        page = self.open()
        page.keyboard.press("7")
        agents = page.locator("#view-signals")
        expect(agents).to_contain_text("No agents are at work beside each other here.")
        # The agents exchange only files.
        state = Path(self.home, "shop/.chipset/state")
        (state / "hooks").mkdir(parents=True)
        hook = {"agent_id": "polecat", "status": "active", "last_activity": "2026-03-05T10:32:00Z",
                "work_item": {"bead_id": "gt-1", "title": "<img src=x onerror=alert(1)>"}}
        (state / "hooks/polecat.json").write_text(json.dumps(hook))
        row = agents.locator("li").filter(has_text="polecat")
        expect(row).to_contain_text("works on gt-1 <img src=x onerror=alert(1)>")
        expect(row).to_contain_text("no signal")
        deacon = subprocess.Popen(
            [NUDGE, "signals", "deacon", "--interval", "1s"], env=self.env, cwd=self.project, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(deacon.stdout.close)
        self.addCleanup(deacon.wait)
        self.addCleanup(deacon.terminate)
        expect(row).to_contain_text("health_check from witness")
        expect(row).to_contain_text("The sender waits for an answer.")
        expect(row).to_contain_text("it did not answer, and the mayor has mail")
        self.nudge("signals", "send", "mayor", "--from", "polecat", "--type", "sync_request")
        expect(agents.locator("li").filter(has_text="sync_request from polecat")).to_contain_text("no active work")

    def test_a_search_in_words(self):
        self.nudge("set", "db", "migrate", "sqlx migrate run", "--tags", "database,migrations")
        self.nudge("set", "web", "dev", "npm run dev")
        self.nudge("set", "other", "migrations", "rails db:migrate", "--scope-repo", "else/where")
        page = self.open()
        page.keyboard.press("/")
        expect(page.get_by_role("searchbox")).to_be_focused()
        page.keyboard.type("database migration")
        best = page.get_by_role("group", name="What this brings to mind here").get_by_role("option")
        expect(best.first).to_contain_text("db/migrate")
        expect(best.first).to_contain_text("mentions")
        page.get_by_role("searchbox").fill("rails db")
        expect(page.get_by_role("group", name="Others with these words")).to_contain_text("other/migrations")
        page.get_by_role("searchbox").fill("zebra crossing")
        expect(page.locator("#found")).to_contain_text("Nothing stored has these words")
        page.get_by_role("button", name="Leave the search").click()
        expect(page.get_by_role("option")).to_have_count(3)

    def test_of_very_many_hints_a_search_finds_those_that_are_not_listed(self):
        hints = {f"k{n}": {"value": f"make {n}", "meta": {"priority": 9}} for n in range(199)}
        components = {f"c{n}": {"hints": hints} for n in range(6)}
        components["last"] = {"hints": {"zebra(1)+": {"value": "cross here", "meta": {"priority": 1, "scope": {"branch": ["none"]}}}}}
        self.nudge("import", "-", stdin=json.dumps({"components": components}))
        page = self.open()
        expect(page.locator("#found")).to_contain_text("195 more hints rank lower")
        page.get_by_role("searchbox").fill("zebra(1)+ cross")
        expect(page.get_by_role("option")).to_have_text([re.compile("last/zebra")])
        expect(page.locator("#detail pre")).to_have_text("cross here")

    def test_from_another_place(self):
        self.nudge("set", "api", "deploy", "make deploy", "--scope-branch", "release/*", "--scope-repo", "minerva/api")
        self.nudge("set", "web", "dev", "npm run dev", "--scope-cwd-glob", "**/web")
        self.call("suggest", event="start", client_session="s", context={"cwd": "/work/web", "repo": "a/b", "branch": "x"})
        page = self.open()
        expect(page.locator("#found")).to_contain_text("Nothing that is stored fits here")
        page.get_by_role("button", name="Change", exact=True).click()
        page.get_by_label("Folder").fill("not/whole")
        page.get_by_role("button", name="Look from there").click()
        expect(page.locator("#where .problem")).to_contain_text("absolute")
        page.get_by_label("Folder").fill("/work/api")
        page.get_by_label("Repository").fill("minerva/api")
        page.get_by_label("Branch").fill("release/2")
        page.get_by_role("button", name="Look from there").click()
        expect(page.get_by_role("group", name="Fits here").get_by_role("option")).to_have_text([re.compile("api/deploy")])
        page.reload()
        expect(page.locator("#here")).to_contain_text("release/2")
        page.get_by_role("button", name="Change", exact=True).click()
        page.get_by_role("button", name="/work/web on x").click()
        expect(page.get_by_role("group", name="Fits here").get_by_role("option")).to_have_text([re.compile("web/dev")])


class Changing(Web):
    def test_an_edit_is_stored_only_if_nobody_changed_it_meanwhile(self):
        self.nudge("set", "api", "build", "make api", "--tags", "a,b", "--priority", "7", "--reason", "old")
        page = self.open()
        page.keyboard.press("e")
        value = page.get_by_label("Value", exact=True)
        expect(value).to_be_focused()
        value.fill("make mine")
        self.nudge("set", "api", "build", "make theirs", "--reason", "new")
        page.get_by_role("button", name="Store", exact=True).click()
        problem = page.locator(".problem")
        expect(problem).to_contain_text("Somebody changed it meanwhile")
        expect(problem.locator("pre")).to_have_text(["make theirs", "make mine"])
        self.assertEqual(self.hint("api", "build")["value"], "make theirs")
        page.get_by_role("button", name="Store mine over it").click()
        expect(page.locator("#toast")).to_contain_text("Stored api/build, version 3")
        expect(page.locator("#detail pre")).to_have_text("make mine")
        stored = self.hint("api", "build")
        self.assertEqual((stored["value"], stored["version"], stored["meta"]["priority"]), ("make mine", 3, 7))
        # A value that the user did not edit stays as it is stored.
        page.keyboard.press("e")
        page.get_by_label("Why it is worth knowing").fill("mine")
        self.nudge("set", "api", "build", "make others")
        page.get_by_role("button", name="Store", exact=True).click()
        page.get_by_role("button", name="Store mine over it").click()
        expect(page.locator("#toast")).to_contain_text("version 5")
        expect(page.locator("#detail .reason")).to_have_text("mine")
        self.assertEqual(self.hint("api", "build")["value"], "make mine")
        # The replaced value is restored.
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#detail pre")).to_have_text("make others")

    def test_what_was_deleted_meanwhile_is_told(self):
        self.nudge("set", "api", "build", "make api")
        page = self.open()
        page.keyboard.press("e")
        page.get_by_label("Value", exact=True).fill("make mine")
        self.nudge("delete", "api", "build")
        # The hint was deleted and stored again. The new hint has version 1 too, but counts as another hint.
        self.nudge("set", "api", "build", "another")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator(".problem")).to_contain_text("Somebody changed it meanwhile")
        page.get_by_role("button", name="Take what is stored").click()
        expect(page.get_by_label("Value", exact=True)).to_have_value("another")
        self.nudge("delete", "api", "build")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator(".problem")).to_contain_text("Somebody deleted it meanwhile")
        page.get_by_role("button", name="Store it anew").click()
        expect(page.locator("#toast")).to_contain_text("version 1")
        self.assertEqual(self.hint("api", "build")["value"], "another")

    def test_every_field_of_a_form(self):
        self.call("set_hint", component="api", key="run", value={"type": "command", "shell": "bash", "cmd": "cargo run"},
                  meta={"scope": {"env_match": {"CI": ["true"]}, "repo": ["minerva/shop"]}, "added_by": "agent:x", "source": "agent"})
        page = self.open()
        page.keyboard.press("e")
        page.get_by_label("Value", exact=True).fill("cargo run --release")
        page.get_by_label("Why it is worth knowing").fill("quick")
        page.get_by_label("Tags, with commas between").fill("run, fast")
        page.get_by_label("Priority").fill("nine")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator(".problem")).to_contain_text("not a number")
        page.get_by_label("Priority").fill("99")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator(".problem")).to_contain_text("1 to 10")
        page.get_by_label("Priority").fill("9")
        page.get_by_label("Confidence").fill("0.7")
        page.get_by_label("Lasts").fill("P2D")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator("#toast")).to_contain_text("Stored")
        found = self.call("query", include_ineligible=True)["hints"]
        self.assertEqual(len(found), 1)
        # Fields that the form does not show keep their values.
        self.assertEqual(found[0]["hint"]["value"], {"type": "command", "shell": "bash", "cmd": "cargo run --release"})
        self.assertEqual(found[0]["hint"]["meta"], {
            "reason": "quick", "tags": ["run", "fast"], "priority": 9, "confidence": 0.7, "ttl": "P2D", "source": "agent", "added_by": "agent:x",
            "scope": {"env_match": {"CI": ["true"]}, "repo": ["minerva/shop"]}})

    def test_another_scope_moves_it(self):
        self.nudge("set", "api", "build", "make api", "--scope-branch", "dev")
        page = self.open()
        page.keyboard.press("e")
        # A click elsewhere leaves an open form open.
        page.get_by_role("option").first.click()
        page.get_by_role("button", name="New hint").click()
        expect(page.locator("#toast")).to_contain_text("Store or cancel")
        page.get_by_label("Branches").fill("dev\nmain")
        page.get_by_label("Linux").check()
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator("#detail")).to_contain_text("on a branch named dev or main")
        found = self.call("query", include_ineligible=True)["hints"]
        self.assertEqual([one["hint"]["meta"]["scope"] for one in found], [{"branch": ["dev", "main"], "os": ["linux"]}])

    def test_a_new_hint(self):
        self.nudge("set", "api", "old", "x")
        page = self.open()
        page.keyboard.press("n")
        page.get_by_label("Component", exact=True).fill("api")
        page.get_by_label("Key", exact=True).fill("build")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator(".problem")).to_contain_text("Give a value")
        page.get_by_label("Value", exact=True).fill("make api")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#toast")).to_contain_text("Stored api/build, version 1")
        stored = self.hint("api", "build")
        # The folder in which `nudge ui` started decides the scope, as it does for the command line.
        self.assertEqual(stored["meta"]["scope"], {"repo": ["github.com/minerva/shop"]})
        self.assertEqual((stored["meta"]["source"], stored["meta"]["ttl"]), ("user", "P365D"))
        page.keyboard.press("n")
        page.get_by_label("Component", exact=True).fill("api")
        page.get_by_label("Key", exact=True).fill("build")
        page.get_by_label("Value", exact=True).fill("again")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator(".problem")).to_contain_text("edit that one")

    def test_deletion_and_undo(self):
        self.nudge("set", "api", "build", "make api")
        self.nudge("set", "api", "test", "make test")
        page = self.open()
        row(page, "api/test").click()
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.locator("#toast")).to_contain_text("Deleted api/test")
        expect(row(page, "api/test")).to_have_count(0)
        # The undo restores only this deletion, and not one that was made meanwhile.
        self.nudge("delete", "api", "build")
        page.get_by_role("button", name="Undo").click()
        expect(row(page, "api/test")).to_be_visible()
        self.assertIsNone(self.hint("api", "build"))
        page.keyboard.press("3")
        page.get_by_role("button", name="Bring back").click()
        expect(page.locator("#toast")).to_contain_text("Brought back 1 hint")
        self.assertEqual(self.hint("api", "build")["value"], "make api")

    def test_the_last_changes_are_listed_with_their_field_and_author(self):
        self.nudge("set", "api", "build", "make api")
        self.nudge("set", "api", "build", "make all")
        page = self.open()
        page.keyboard.press("3")
        changes = page.locator("[data-changes] li")
        expect(changes).to_have_count(1)
        for words in ("api/build", "value", "by nudge-cli"):
            expect(changes).to_contain_text(words)

    def test_keeping_is_shown_and_changed(self):
        self.nudge("set", "api", "build", "make api", "--ttl", "session")
        self.nudge("bump", "api", "build")
        page = self.open()
        expect(page.locator("#detail")).to_contain_text("It ends with this session.")
        page.get_by_role("button", name="Keep", exact=True).click()
        expect(page.locator("#detail")).to_contain_text("Kept for next time, until ")
        stored = self.hint("api", "build")
        self.assertEqual((stored["meta"]["ttl"], stored["use_count"]), ("P365D", 1), "the value is the same, so it keeps its count")
        page.get_by_role("button", name="Only this session").click()
        expect(row(page, "api/build")).to_contain_text("this session")
        page.get_by_role("button", name="Undo").click()
        expect(row(page, "api/build")).to_contain_text("kept")
        self.assertEqual(self.hint("api", "build")["meta"]["ttl"], "P365D")

    def test_what_looks_like_a_credential_is_refused_and_may_be_a_false_alarm(self):
        self.nudge("set", "api", "build", "make api")
        # The parts are joined at run time, so that no file contains a text that looks like a credential.
        made_up = "AK" + "IA" + "QW3RTYUIOP" + "4SDFGH"
        page = self.open()
        page.keyboard.press("e")
        page.get_by_label("Value", exact=True).fill(f"aws configure set id {made_up}")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator(".problem")).to_contain_text("looks like a credential")
        self.assertEqual(self.hint("api", "build")["value"], "make api")
        page.get_by_label("It is a false alarm").check()
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator("#toast")).to_contain_text("Stored")

    def test_a_secret_is_never_on_the_page(self):
        self.nudge("set", "db", "password", "open sesame", "--secret")
        page = self.open()
        expect(page.locator("#detail")).to_contain_text("The value is a secret")
        page.keyboard.press("e")
        expect(page.get_by_label("Value", exact=True)).to_have_value("")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator(".problem")).to_contain_text("Give a value")
        page.get_by_label("Value", exact=True).fill("open barley")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator("#toast")).to_contain_text("Stored")
        self.assertEqual(json.loads(self.nudge("get", "db", "password", "--json"))["hint"]["value"], "open barley")
        for view in "123":
            page.keyboard.press(view)
            self.assertNotIn("sesame", page.content())
            self.assertNotIn("barley", page.content())
        self.assertNotIn("barley", page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})"))


class NotKept(Web):
    KEEP = False

    def test_a_session_that_keeps_nothing_says_so(self):
        self.nudge("set", "api", "build", "make api", "--ttl", "P2D")
        page = self.open()
        expect(page.locator("#detail")).to_contain_text("nothing is kept here")
        expect(page.get_by_role("button", name="Keep", exact=True)).to_have_count(0)
        assert_fits_the_width(self, page)


if __name__ == "__main__":
    unittest.main()
