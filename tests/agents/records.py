"""Tests records in the real Claude Code. A fix is saved and found from another project. An agent that has saved no fix
is reminded."""

import json
import subprocess

from case import Case
from programs import Claude, read_by_model, read_since_call, wait_for
from terminal import IDLE, ClaudeOnTerminal

UPSERT = "mcp__nudge__nudge_records_upsert"
FAILS, WORKS = ("Bash", {"command": "cargo test -p api"}), ("Bash", {"command": "cargo test -p api --locked"})
MENDS = ("Bash", {"command": "touch mended"})
TESTS = ("Bash", {"command": "cargo test -p mended"})
REMINDER = "the turn before made a failing command work and saved no record"
QUESTION = "this turn made a failing command work and saved no record"
PLANNED = "this turn ended with an agreed plan and saved no record"
DAY_MS = 24 * 3_600_000
RECORD = {
    "kind": "issue",
    "title": "The lock file needs to be updated when the tests are run",
    "body": "Cargo wanted to write Cargo.lock; with --locked it does not. The workspace pins it for the mirror.",
    "status": "resolved",
}
SPEC = {
    "kind": "spec",
    "title": "How the shop retries",
    "body": "With full jitter: a random time below a growing ceiling.",
}


class Records(Case):
    def prepared(self, *flags: str) -> Claude:
        self.home.allow_commands()
        self.home.nudge("init", "--yes", *flags)
        claude = self.start(Claude)
        claude.wait_for_server()
        return claude

    def next_session_elsewhere(self, claude: Claude) -> Claude:
        """Ends all processes, and starts an agent in another repository."""
        claude.close()
        self.home.wait_for_the_end()
        other = self.home.path / "other"
        other.mkdir()
        self.home.run("git", "init", "--quiet", cwd=other)
        claude = Claude(self.home, cwd=other)
        self.addCleanup(claude.close)
        claude.wait_for_server()
        return claude

    def test_what_was_fixed_is_found_from_another_project_when_all_have_ended(self) -> None:
        claude = self.prepared()
        *_, saved = claude.asked("make the tests pass", FAILS, WORKS, (UPSERT, RECORD))
        self.assertIn("saved record 1 in shop", read_since_call(saved))
        (idle,) = claude.asked("thanks, that is all")
        self.assertNotIn("saved no record", "\n".join(read_by_model(idle)))
        claude = self.next_session_elsewhere(claude)
        (idle,) = claude.asked("rename the variable, please")
        self.assertNotIn("record 1", "\n".join(read_by_model(idle)))
        (request,) = claude.asked("why does cargo say that the lock file needs to be updated?")
        self.assertIn("record 1 (issue, resolved, ", "\n".join(read_by_model(request)))
        self.assertIn(f", in {self.home.shop.name}) {RECORD['title']}: Cargo wanted", "\n".join(read_by_model(request)))

    # Promise (agents): A fix in one project is found the next day by a prompt in another.
    def test_it_is_found_the_next_day(self) -> None:
        """Moves the server's clock by a day. This needs a build with `test-clock`, whose clock moves only when the test
        moves it."""
        claude = self.prepared()
        words = ["nudge", "call", "nudge.test_advance", json.dumps({"ms": 0})]
        if subprocess.run(words, env=self.home.env, cwd=self.home.shop, capture_output=True).returncode:
            self.skipTest("the clock of this nudge cannot be moved")
        claude.asked("make the tests pass", FAILS, WORKS, (UPSERT, RECORD))
        claude = self.next_session_elsewhere(claude)
        self.home.nudge("call", "nudge.test_advance", json.dumps({"ms": DAY_MS}))
        (request,) = claude.asked("why does cargo say that the lock file needs to be updated?")
        self.assertIn("record 1 (issue, resolved, 24h ago, in shop)", "\n".join(read_by_model(request)))

    def test_a_turn_that_saved_nothing_is_reminded_of_with_the_next_prompt_once(self) -> None:
        claude = self.prepared()
        before = claude.asked("make the tests pass", TESTS, MENDS, TESTS)
        self.assertNotIn(REMINDER, str(before))
        (request,) = claude.asked("now the next thing")
        told = "\n".join(read_by_model(request))
        self.assertEqual(told.count(REMINDER), 1, told)
        self.assertIn("nudge_records_upsert keeps it", told)
        (request,) = claude.asked("and another")
        self.assertEqual("\n".join(read_by_model(request)).count(REMINDER), 1, "once")

    def test_who_reads_the_answer_by_a_program_gets_the_answer(self) -> None:
        claude = self.prepared("--records=ask")
        requests = claude.asked("make the tests pass", TESTS, MENDS, TESTS)
        self.assertEqual(len(requests), 4, "no turn but the model's own")
        self.assertNotIn(QUESTION, str(requests))

    def test_a_person_s_agent_is_asked_once_before_its_turn_ends(self) -> None:
        self.home.allow_commands()
        self.home.nudge("init", "--yes", "--records=ask")
        claude = ClaudeOnTerminal(self.home)
        self.addCleanup(claude.close)
        requests = self.home.model.requests

        def texts(at: int) -> str:
            wait_for(f"request {at}", lambda: requests[at] if len(requests) > at else None)
            return "\n".join(read_by_model(requests[at]))

        # The agent says that it is done, gets the question, and says again that it is done.
        claude.ask("make the tests pass", TESTS, MENDS, TESTS)
        self.assertEqual([texts(at).count(QUESTION) for at in range(5)], [0, 0, 0, 0, 1])
        claude.wait_for(IDLE)
        claude.ask("and the next thing")
        skipped = texts(5)
        self.assertIn("auto-persist skipped: the model saved nothing", skipped)
        self.assertEqual(skipped.count(QUESTION), 1, "once")

    # Promise (agents): An agent in the real client is asked once when its plan ends: a subagent that plans, and an
    # agent whose plan a person agreed to.
    def test_a_subagent_that_plans_is_asked_before_it_ends(self) -> None:
        self.home.allow(UPSERT)
        self.home.nudge("init", "--yes", "--records=ask")
        claude = ClaudeOnTerminal(self.home)
        self.addCleanup(claude.close)
        model = self.home.model
        model.when[PLANNED] = (UPSERT, SPEC)
        plan = {"description": "plan it", "prompt": "plan how the shop retries", "subagent_type": "Plan"}
        claude.ask("have it planned", ("Agent", plan))
        self.saved_once()

    # Promise: see `test_a_subagent_that_plans_is_asked_before_it_ends`.
    def test_a_person_s_agent_is_asked_when_its_plan_was_agreed(self) -> None:
        self.home.allow(UPSERT)
        self.home.nudge("init", "--yes", "--records=ask")
        claude = ClaudeOnTerminal(self.home, "--permission-mode", "plan")
        self.addCleanup(claude.close)
        self.home.model.when[PLANNED] = (UPSERT, SPEC)
        claude.ask("plan how the shop retries", ("ExitPlanMode", {"plan": "Retry with full jitter."}))
        claude.agree("Exit plan mode?", lambda: len(self.home.model.requests) > 1)
        self.saved_once()

    def saved_once(self) -> None:
        """The agent that gets the question saves its plan. No second question follows."""
        requests = self.home.model.requests

        def saved() -> bool | None:
            texts = (text for request in list(requests) for text in read_by_model(request))
            return any("saved record 1 in shop" in text for text in texts) or None

        wait_for("the record", saved)
        records = [json.loads(line) for line in self.home.nudge("records", "list", "--json").splitlines()]
        self.assertIn(SPEC["title"], json.dumps(records))
        asked = {text for request in list(requests) for text in read_by_model(request) if PLANNED in text}
        self.assertEqual(len(asked), 1, asked)

    def test_the_plugin_s_own_tools_are_there_under_their_names(self) -> None:
        """Sets up what a user of the Dude plugin has after the move to Nudge: a server and a permission with the
        plugin's name."""
        settings = self.home.path / ".claude/settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"permissions": {"allow": ["mcp__dude"]}}))
        self.home.run("claude", "mcp", "add", "--scope", "user", "dude", "--", "nudge", "serve", "--profile", "dude")
        claude = self.start(Claude)
        claude.wait_for_process()
        search = ("mcp__dude__search", {"query": "does the lock file need an update?"})
        _, saved, found = claude.asked("hello there", ("mcp__dude__upsert_record", RECORD), search)
        self.assertIn('"created":true', read_since_call(saved))
        (answer,) = [text for text in read_by_model(found) if '"similarity"' in text]
        self.assertIn(RECORD["title"], answer)
