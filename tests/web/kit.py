"""Gives each test its own session, and opens the page in a real browser."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

NUDGE = os.environ["NUDGE_BIN"]
ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]
PATIENCE_MS = 30_000
expect.set_options(timeout=PATIENCE_MS)


class Web(unittest.TestCase):
    """A test with a session and a browser. An unexpected error in the browser's console fails the test."""

    KEEP = True

    @classmethod
    def setUpClass(cls):
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=FLAGS)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="nudge-web-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.project = f"{self.home}/shop/services/http-proxy"
        os.makedirs(self.project)
        git = ["git", "-C", f"{self.home}/shop"]
        subprocess.run([*git, "init", "--quiet", "--initial-branch", "dev"], check=True)
        subprocess.run([*git, "remote", "add", "origin", "https://github.com/minerva/shop"], check=True)
        self.env = {
            "HOME": self.home, "PATH": os.environ["PATH"], "PWD": self.project, "NUDGE_RUNTIME_DIR": f"{self.home}/run",
            "XDG_STATE_HOME": f"{self.home}/state", "LANG": "C.UTF-8",
            # The time limit is long, because a hook prints nothing after its limit, and the machine may be busy.
            "NUDGE_HOOK_MS": "10000",
        }
        self.port = 0
        self.serve()
        self.addCleanup(self.nudge, "stop", ok=None)
        self.complaints = []
        # The errors in the console that the test expects.
        self.expected = []

    def tearDown(self):
        unexpected = [said for said in self.complaints if not any(re.search(part, said) for part in self.expected)]
        self.assertEqual(unexpected, [])

    def write(self, files):
        """Writes files of the project. Each argument has a file's path and text."""
        for name, text in files.items():
            path = Path(self.home, "shop", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def open_view(self, key, view, **options):
        """Opens the page, and presses the key that opens a view."""
        page = self.open(**options)
        page.keyboard.press(key)
        expect(page.locator(f"#view-{view} .bar")).to_be_visible()
        return page

    def serve(self):
        """Starts a server on the port of the previous server."""
        printed = self.nudge("serve", "--detach", "--port", str(self.port), *(["--keep"] if self.KEEP else []))
        self.port = int(re.search(r":(\d+) ", printed)[1])

    def nudge(self, *words, stdin=None, ok=True):
        """Runs a command in the folder of the project; returns its stdout."""
        done = subprocess.run([NUDGE, *words], env=self.env, cwd=self.project, input=stdin, text=True, capture_output=True, check=False)
        if ok is not None:
            self.assertEqual(done.returncode == 0, ok, f"{words}: {done.stderr}")
        return done.stdout

    def call(self, method, **params):
        return json.loads(self.nudge("call", method, "-", stdin=json.dumps(params)))

    def hook(self, name, session, **more):
        """Runs a hook with the event of a coding agent."""
        event = {"hook_event_name": name, "session_id": session, "cwd": self.project, **more}
        return self.nudge("hook", stdin=json.dumps(event))

    def hint(self, component, key, **query):
        """Returns a stored hint, whether or not it fits here. Returns None if there is none."""
        found = self.call("query", component=component, keys=[key], include_ineligible=True, **query)["hints"]
        return found[0]["hint"] if found else None

    def address(self):
        return self.nudge("ui", "--no-open").strip()

    def tab(self, **options):
        """Opens an empty tab in a browser without any data."""
        context = self.browser.new_context(**options)
        self.addCleanup(context.close)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        return page

    def open(self, **options):
        """Opens the page of the session. Waits until the page has loaded and follows changes."""
        page = self.tab(**options)
        page.goto(self.address())
        expect(page.locator("#live[data-kind=live]")).to_be_visible()
        return page


def row(page, name):
    """Returns the row of a hint in the list."""
    return page.get_by_role("option").filter(has=page.locator(".name", has_text=re.compile(f"^{re.escape(name)}$")))


def assert_fits_the_width(test, page):
    """Checks that the page is no wider than the window."""
    test.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), page.viewport_size["width"])
