"""Tests Nudge in the real coding agents, set up as a new user does it: with `nudge init --yes`.

No server runs beforehand: each client starts its own. Every test checks the requests that the model got, because only
they show what the model reads.
"""

import itertools
import json
import os
import unittest
from collections.abc import Callable
from pathlib import Path

from brain import Brain  # noqa: F401 - it is run with the others
from capture import Capture  # noqa: F401 - it is run with the others
from case import Case
from code_index import Code  # noqa: F401 - it is run with the others
from programs import Claude, Codex, P, Program, hints, read_by_model, read_since_call, wait_for
from records import Records  # noqa: F401 - it is run with the others
from seeds import Learning, Seeds  # noqa: F401 - they are run with the others

# The repository is the plugin marketplace.
REPOSITORY = Path(__file__).parents[2]


def shared_behaviour(case: Case, agent: Program) -> None:
    """Tests the behaviour that every client with hooks must have."""
    home = case.home
    agent.wait_for_server()
    home.store()
    (request,) = agent.asked("hello there")
    told = hints(request)
    case.assertIn("- api/build: make api-dev (now, user; on dev; make alone builds all)", told)
    case.assertIn("- web/run: npm start (now, ", told)
    case.assertNotIn("release", told)
    case.assertNotIn("elsewhere", told)

    home.nudge("set", "db", "migrate", "just migrate --all")
    (request,) = agent.asked("thanks a lot")
    case.assertEqual(hints(request), told, "an irrelevant prompt adds nothing")
    (request,) = agent.asked("please migrate the tables")
    case.assertIn("- db/migrate: just migrate --all", hints(request).removeprefix(told))


def is_stopped_by(case: Case, start: Callable[[], Program], *call: object) -> None:
    """Another process tells the agent to stop while its model works. The model reads this once, with the result of its
    next tool call."""
    case.home.env["NUDGE_AGENT_ID"] = "polecat"
    agent = start()
    agent.wait_for_server()
    agent.asked("hello there")

    def at_work() -> tuple[str, dict]:
        case.home.nudge(
            "signals", "send", "polecat", "--from", "mayor", "--type", "abort", "--message", "Stop: the branch is gone."
        )
        return call

    before, after, later = agent.asked("go on", at_work, call)
    told = 'signal abort from agent mayor, just now, in its words: "Stop: the branch is gone."'
    seen = ["\n".join(read_by_model(request)).count(told) for request in (before, after, later)]
    case.assertEqual(seen, [0, 1, 1])
    (idle,) = agent.asked("hello again")
    case.assertEqual("\n".join(read_by_model(idle)).count(told), 1, "once")


class ClaudeCode(Case):
    # Promise (agents): The model reads the hints of the project after `nudge init`, and nothing more.
    def test_it_is_prepared(self) -> None:
        self.home.nudge("init", "--yes")
        shared_behaviour(self, self.start(Claude))

    def test_after_a_failing_command_the_working_one_stands_beside_the_error_and_a_success_counts(self) -> None:
        self.home.allow_commands()
        self.home.nudge("init", "--yes")
        claude = self.start(Claude)
        claude.wait_for_server()
        # The digest has come twice by now, whether or not the start found the server. So this hook has nothing to tell.
        claude.asked("hello there")
        claude.asked("hello again")
        self.home.nudge("set", "api", "test", "cargo test -p api --locked")
        failing, working = ("Bash", {"command": "cargo test -p api"}), ("Bash", {"command": "cargo test -p api --locked"})
        before, after_failure, after_success = claude.asked("go on", failing, working)
        self.assertEqual(hints(before), "")
        texts = read_by_model(after_failure)
        error = next(at for at, text in enumerate(texts) if "the lock file needs to be updated" in text)
        self.assertIn("- api/test: cargo test -p api --locked", "\n".join(texts[error:]))
        self.assertTrue(any("passed" in text for text in read_by_model(after_success)))
        hint = json.loads(self.home.nudge("get", "api", "test", "--json"))["hint"]
        self.assertEqual(hint["use_count"], 1)
        stats = json.loads(self.home.nudge("stats", "--json"))["sessions"][0]
        self.assertEqual((stats["suggestions"], stats["followed"], stats["failed"]), (1, 1, 0), stats)

    def test_a_signal_of_another_agent_comes_with_the_next_tool_call(self) -> None:
        self.home.nudge("init", "--yes")
        (self.home.shop / "notes.txt").write_text("nothing\n")
        read = "Read", {"file_path": str(self.home.shop / "notes.txt")}
        is_stopped_by(self, lambda: self.start(Claude), *read)

    def test_a_subagent_is_told(self) -> None:
        self.home.nudge("init", "--yes")
        claude = self.start(Claude)
        claude.wait_for_server()
        self.home.store()
        task = {"description": "look", "prompt": "look around", "subagent_type": "Explore"}
        claude.asked("hello there", ("Task", task))
        # The client may run the subagent in the background.
        of_subagent = lambda: next((r for r in self.home.model.requests if "look around" in read_by_model(r)), None)
        self.assertIn("- api/build: make api-dev", hints(wait_for("a subagent", of_subagent)))

    def test_who_has_forgotten_is_told_again(self) -> None:
        self.home.nudge("init", "--yes")
        claude = self.start(Claude)
        claude.wait_for_server()
        self.home.store()
        (request,) = claude.asked("hello there")
        self.assertIn("- api/build: make api-dev", hints(request))
        claude.asked("/compact")
        (request,) = claude.asked("hello again")
        self.assertNotIn("hello there", read_by_model(request), "it has forgotten")
        self.assertIn("- api/build: make api-dev", hints(request))


class CodexCli(Case):
    def test_a_signal_of_another_agent_comes_with_the_next_tool_call(self) -> None:
        self.home.nudge("init", "--yes")
        is_stopped_by(self, lambda: self.start(Codex), "exec_command", {"cmd": "true"})

    def test_it_is_prepared(self) -> None:
        self.home.nudge("init", "--yes")
        shared_behaviour(self, self.start(Codex))

    def test_who_has_forgotten_is_told_again(self) -> None:
        self.home.nudge("init", "--yes")
        codex = self.start(Codex)
        codex.wait_for_server()
        self.home.store()
        (request,) = codex.asked("hello there")
        self.assertIn("- api/build: make api-dev", hints(request))
        codex.turn("thread/compact/start", {})
        (request,) = codex.asked("hello again")
        self.assertIn("- api/build: make api-dev", hints(request))
        # The subagent's request may repeat the user's words and the first digest.
        stats = json.loads(self.home.nudge("stats", "--json"))["sessions"][0]
        self.assertEqual(stats["suggestions"], 4, "each of the two was told twice")


class GeminiCli(Case):
    def test_it_is_prepared(self) -> None:
        """Starts a session first, because the client asks for the tools only once and then ends."""
        home = self.home
        settings = home.path / ".gemini/settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
        home.nudge("init", "gemini", "--yes")
        home.env |= {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": home.model.url}
        home.env["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
        home.nudge("serve", "--detach")
        self.addCleanup(home.nudge, "stop")
        home.store()
        home.run("gemini", "--model", "gemini-2.5-flash", "-p", "hello there")
        told = json.dumps(home.model.requests[0]["contents"])
        self.assertIn("- api/build: make api-dev (now, user", told)
        self.assertNotIn("release", told)


class Together(Case):
    def test_what_one_stores_the_other_knows(self) -> None:
        self.home.nudge("init", "--yes")
        claude = self.start(Claude)
        claude.wait_for_server()
        by_claude = {"component": "mail", "key": "run", "value": "docker compose up mailhog"}
        claude.asked("hello there", ("mcp__nudge__nudge_set_hint", by_claude))
        self.assertEqual(self.home.nudge("get", "mail", "run", "--value"), "docker compose up mailhog\n")
        codex = self.start(Codex)
        by_codex = {"component": "cache", "key": "flush", "value": "redis-cli flushall"}
        first, _ = codex.asked("hello", ("mcp__nudge.nudge_set_hint", by_codex))
        self.assertIn("- mail/run: docker compose up mailhog", hints(first))
        self.assertEqual(self.home.nudge("get", "cache", "flush", "--value"), "redis-cli flushall\n")
        (request,) = claude.asked("please flush the cache")
        self.assertIn("- cache/flush: redis-cli flushall", hints(request))
        # The model now uses the tool of the other direction.
        get = ("mcp__nudge__nudge_get_hint", {"component": "cache", "key": "flush"})
        request = claude.asked("what was that", get)[-1]
        self.assertIn("cache/flush: redis-cli flushall", read_since_call(request))


class NextTime(Case):
    """A hint that the model stores still exists after all processes have ended."""

    def stored_by(self, program: type[P], tool: str) -> tuple[str, str]:
        """Returns the two texts about the hint that the model reads: in the answer of its tool, and in the first
        request of the next session."""
        self.home.nudge("init", "--yes")
        (agent := self.start(program)).wait_for_server()
        hint = {"component": "mail", "key": "run", "value": "docker compose up mailhog", "meta": {"ttl": "P30D"}}
        *_, answered = agent.asked("hello there", (tool, hint))
        agent.close()
        self.home.wait_for_the_end()
        (again := self.start(program)).wait_for_server()
        (first,) = again.asked("hello again")
        return read_since_call(answered), hints(first)

    def test_claude_code_has_it_again(self) -> None:
        self.assertIn("- mail/run: docker compose up mailhog", self.stored_by(Claude, "mcp__nudge__nudge_set_hint")[1])

    def test_codex_has_it_again(self) -> None:
        self.assertIn("- mail/run: docker compose up mailhog", self.stored_by(Codex, "mcp__nudge.nudge_set_hint")[1])

    def test_with_keep_off_it_is_gone_and_that_was_told(self) -> None:
        config = self.home.path / ".config/nudge/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text("keep = false\n")
        answer, told = self.stored_by(Claude, "mcp__nudge__nudge_set_hint")
        self.assertIn("keep is off; `nudge init` switches it on", answer)
        self.assertNotIn("mailhog", told)


class Settings(Case):
    def test_the_doctor_finds_nothing_to_mend(self) -> None:
        self.home.nudge("init", "claude", "codex", "gemini", "opencode", "--yes")
        report = self.home.nudge("doctor")
        self.assertIn("Codex asks once whether it may run the hooks", report)
        self.assertTrue(report.endswith("all is well\n"), report)
        self.start(Codex)
        report = self.home.nudge("doctor", "codex")
        self.assertNotIn("asks", report, "its user has said yes")

    def test_every_client_connects_without_a_key(self) -> None:
        for name in ["claude", "codex", "gemini", "opencode"]:
            self.home.nudge("init", name, "--yes")
        trusted = self.home.path / ".gemini/trustedFolders.json"
        trusted.write_text(json.dumps({str(self.home.shop): "TRUST_FOLDER"}))
        self.assertIn("✔ Connected", self.home.run("claude", "mcp", "list"))
        self.assertRegex(self.home.run("codex", "mcp", "list"), r"nudge +\S+/nudge +serve .*enabled")
        self.assertRegex(self.home.run("opencode", "mcp", "list"), "✓ nudge .*connected")
        self.assertRegex(self.home.run("gemini", "mcp", "list"), "✓ nudge.*Connected")

    def test_twice_is_once_and_undo_is_as_before(self) -> None:
        clients = ["claude", "codex", "gemini", "opencode"]
        self.home.nudge("init", *clients, "--yes")
        self.assertEqual(self.home.nudge("init", *clients, "--yes"), "nothing to change\n")
        self.home.nudge("init", "--undo", "--yes")
        for file in [".claude.json", ".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json"]:
            self.assertFalse((self.home.path / file).exists(), file)
        self.assertNotIn("nudge", self.home.run("claude", "mcp", "list"))
        self.assertNotIn("nudge", self.home.run("codex", "mcp", "list"))

    def test_undo_after_use_leaves_what_the_clients_have_written_since(self) -> None:
        self.home.nudge("init", "claude", "codex", "--yes")
        self.start(Claude).asked("hello there")
        self.start(Codex).asked("hello there")
        self.home.nudge("init", "--undo", "--yes")
        self.assertNotIn("nudge", self.home.run("claude", "mcp", "list"))
        self.assertNotIn("nudge", self.home.run("codex", "mcp", "list"))
        self.assertIn("trusted_hash", (self.home.path / ".codex/config.toml").read_text())
        self.assertIn("userID", (self.home.path / ".claude.json").read_text())


class Plugin(Case):
    def brings_it_all(self, client: str) -> None:
        self.home.nudge("init", client, "--yes")
        self.assertEqual(self.home.nudge("init", client, "--yes"), "nothing to change\n")
        self.assertTrue(self.home.nudge("doctor", client).endswith("all is well\n"))

    def test_claude_code_takes_the_folder(self) -> None:
        self.home.run("claude", "plugin", "validate", str(REPOSITORY))
        self.home.run("claude", "plugin", "validate", str(REPOSITORY / "cli/plugin"))
        self.home.run("claude", "plugin", "marketplace", "add", str(REPOSITORY))
        self.home.run("claude", "plugin", "install", "nudge@nudge", "--scope", "user")
        self.assertRegex(self.home.run("claude", "mcp", "list"), "plugin:nudge:nudge.*✔ Connected")
        self.brings_it_all("claude")
        shared_behaviour(self, self.start(Claude))

    def test_codex_takes_the_same_folder(self) -> None:
        (self.home.path / ".codex").mkdir()
        self.home.run("codex", "plugin", "marketplace", "add", str(REPOSITORY))
        self.home.run("codex", "plugin", "add", "nudge@nudge")
        self.brings_it_all("codex")
        shared_behaviour(self, self.start(Codex))


def load_tests(_loader: unittest.TestLoader, found: unittest.TestSuite, _pattern: str | None) -> unittest.TestSuite:
    """Loads all tests, or a part: SHARD=0/2 means every second test, SHARD=1/2 the other ones."""
    nth, of = map(int, os.environ.get("SHARD", "0/1").split("/"))
    every = itertools.chain.from_iterable(found)
    return unittest.TestSuite(itertools.islice(every, nth, None, of))


if __name__ == "__main__":
    unittest.main()
