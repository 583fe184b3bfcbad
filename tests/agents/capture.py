"""Tests capture with the real clients. When a session ends, its knowledge becomes a pull request. After the merge the
next session has the knowledge. The user's own Claude Code is the model that reads the session."""

import json
import os
import signal
import subprocess
from pathlib import Path

from case import Case
from programs import PATIENCE_SECONDS, Claude, Codex, read_since_call, wait_for

# The number of sessions that end one after another. Each must make one capture, and no capture may start another.
COUNT = int(os.environ.get("AGENTS_CAPTURES", "6"))
CONTEXT = "mcp__nudge__nudge_brain_context"
QUOTE = "clients that fail together must not retry together"
UNIT = {
    "type": "pattern",
    "title": "Retry with full jitter",
    "body": "Clients that fail together must not retry together. Wait a random time between zero and a growing ceiling, "
    "and cap the ceiling; the load of a whole fleet then spreads by itself.",
    "domain": "coding",
    "tags": ["retry"],
    "confidence": 0.8,
    "scope": "general",
    "durable": True,
    "why": "It holds for every fleet.",
    "quote": QUOTE,
    "related": [],
    "updates": None,
}
# A script in place of GitHub's command. It stores the pull request and prints an address.
GH = """#!/usr/bin/env python3
import json, sys
if sys.argv[1:3] == ["pr", "create"]:
    named = dict(zip(sys.argv[3::2], sys.argv[4::2]))
    json.dump(named | {"body": sys.stdin.read()}, open("FILE", "w"))
    print("https://github.test/o/brain/pull/1")
"""


class Capture(Case):
    def setUp(self) -> None:
        super().setUp()
        home = self.home
        self.brain, self.hub = home.path / "brain", home.path / "hub.git"
        self.request = home.path / "request.json"
        gh = home.path / "bin/gh"
        gh.write_text(GH.replace("FILE", str(self.request)))
        gh.chmod(0o755)
        home.env |= {"NUDGE_CAPTURE": "1"}
        home.run("git", "config", "--global", "user.name", "t")
        home.run("git", "config", "--global", "user.email", "t@t")
        home.run("git", "init", "--quiet", "--bare", "--initial-branch", "main", str(self.hub))
        home.run("git", "clone", "--quiet", str(self.hub), str(self.brain))
        home.nudge("brain", "init", str(self.brain))
        home.nudge("brain", "use", str(self.brain))
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", "x")
        self.git("push", "--quiet", "origin", "HEAD:main")

    def git(self, *words: str, cwd: Path | None = None) -> str:
        return self.home.run("git", *words, cwd=cwd or self.brain)

    def jobs(self) -> list[dict]:
        lines = self.home.nudge("brain", "jobs", "--json").splitlines()
        return [job for job in map(json.loads, lines) if "id" in job]

    def ended(self, count: int) -> list[dict]:
        """Waits until this many jobs exist and all have ended; returns them."""
        waiting = ("waiting", "asked", "committed", "branched", "pushed")

        def all_done() -> list[dict] | None:
            jobs = self.jobs()
            return jobs if len(jobs) >= count and not any(job["state"] in waiting for job in jobs) else None

        return wait_for("the jobs to end", all_done)

    def talk(self, agent: Claude | Codex) -> None:
        long = "The fleet came back at once and failed again, as every client waited for the same time. " * 9
        for at in range(3):
            agent.asked(f"{at}: {long} So: {QUOTE}.")

    def test_what_a_session_of_claude_code_was_worth_is_there_in_the_next_one(self) -> None:
        home = self.home
        home.allow(CONTEXT)
        home.nudge("init", "claude", "--yes")
        claude = self.start(Claude)
        claude.wait_for_server()
        self.talk(claude)
        before = len(home.model.requests)
        home.model.turns.append(("StructuredOutput", {"units": [UNIT]}))
        claude.close()
        (job,) = self.ended(1)
        self.assertEqual((job["state"], job["calls"][0]["engine"]), ("proposed", "claude"), job)
        (asked,) = home.model.requests[before:]
        # The engine has no tool that changes anything. The other tool stands for tools that could be loaded, and there
        # are none.
        tools = {tool["name"] for tool in asked["tools"]}
        self.assertLessEqual(tools, {"StructuredOutput", "DeferredToolPlaceholder"})
        self.assertIn(QUOTE, json.dumps(asked))
        request = json.loads(self.request.read_text())
        self.assertEqual((request["--head"], request["--base"]), (job["branch"], "main"))
        self.assertRegex(request["--title"], "^Knowledge from session 20")
        self.assertIn("Retry with full jitter", request["body"])
        self.assertEqual(self.git("status", "--porcelain"), "")
        # A person reviews the pull request.
        self.git("fetch", "--quiet")
        self.git("merge", "--quiet", f"origin/{job['branch']}")

        home.wait_for_the_end()
        claude = self.start(Claude)
        claude.wait_for_server()
        *_, answered = claude.asked("make them retry", (CONTEXT, {"task_description": "how should the clients retry?"}))
        self.assertIn("then spreads by itself", read_since_call(answered))
        claude.close()
        # No further capture has started: the engine's session was not the user's, and the last session was too short.
        # The proposal of the first capture has been merged.
        jobs = self.ended(2)
        self.assertEqual(sorted(job["state"] for job in jobs), ["reviewed", "skipped"])

    def test_a_session_of_codex_is_captured_too(self) -> None:
        home = self.home
        home.nudge("init", "codex", "--yes")
        codex = self.start(Codex)
        codex.wait_for_server()
        self.talk(codex)
        home.model.turns.append(("StructuredOutput", {"units": [UNIT]}))
        codex.close()
        (job,) = self.ended(1)
        self.assertEqual((job["state"], job["agent"], len(job["units"])), ("proposed", "codex", 1), job)
        self.assertEqual(json.loads(self.request.read_text())["--head"], job["branch"])

    def test_an_engine_is_never_captured_itself(self) -> None:
        """Claude Code and Codex read many sessions one after another. Each session makes exactly one job."""
        home = self.home
        home.nudge("init", "claude", "codex", "--yes")
        signal.alarm(COUNT * 10 + PATIENCE_SECONDS)
        codex = self.start(Codex)
        codex.wait_for_server()
        self.talk(codex)
        home.model.turns.append(("StructuredOutput", {"units": []}))
        codex.close()
        (first,) = self.ended(1)
        self.assertEqual(first["state"], "empty", first)
        transcript = Path(first["transcript"]).read_bytes()
        for at in range(1, COUNT):
            engine = home.env["NUDGE_BRAIN_LLM"] = ["claude", "codex"][at % 2]
            if engine == "claude":
                home.model.turns.append(("StructuredOutput", {"units": []}))
            copy = home.path / f"copy-{at}.jsonl"
            copy.write_bytes(transcript)
            before = len(home.model.requests)
            self.hook({"hook_event_name": "SessionEnd", "session_id": copy.stem, "transcript_path": str(copy)})

            def tried() -> dict | None:
                jobs = [job for job in self.jobs() if job["session"] == copy.stem]
                return next((job for job in jobs if job["state"] == "empty" or "note" in job), None)

            job = wait_for("an answer", tried)
            self.assertGreater(len(home.model.requests), before, job)
        self.assertEqual(len(self.jobs()), COUNT)

    def hook(self, event: dict) -> None:
        words = ["nudge", "hook"]
        subprocess.run(words, env=self.home.env, cwd=self.home.shop, input=json.dumps(event), text=True, check=True)
