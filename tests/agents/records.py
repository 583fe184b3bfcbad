"""Records in the real Claude Code: what was fixed is saved, found from another project, and missed when it was not."""

import json

from case import Case
from programs import Claude, read_by_model, wait_for
from terminal import IDLE, ClaudeOnTerminal

UPSERT = "mcp__nudge__nudge_records_upsert"
FAILS, WORKS = ("Bash", {"command": "cargo test -p api"}), ("Bash", {"command": "cargo test -p api --locked"})
MENDS = ("Bash", {"command": "touch mended"})
TESTS = ("Bash", {"command": "cargo test -p mended"})
REMINDER = "the turn before made a failing command work and saved no record"
QUESTION = "this turn made a failing command work and saved no record"
RECORD = {
    "kind": "issue",
    "title": "The lock file needs to be updated when the tests are run",
    "body": "Cargo wanted to write Cargo.lock; with --locked it does not. The workspace pins it for the mirror.",
    "status": "resolved",
}


class Records(Case):
    def prepared(self, *flags: str) -> Claude:
        self.home.allow_commands()
        self.home.nudge("init", "--yes", *flags)
        claude = self.start(Claude)
        claude.wait_for_server()
        return claude

    def test_what_was_fixed_is_found_from_another_project_when_all_have_ended(self) -> None:
        claude = self.prepared()
        *_, saved = claude.asked("make the tests pass", FAILS, WORKS, (UPSERT, RECORD))
        self.assertIn('"created":true', read_by_model(saved)[-1])
        (idle,) = claude.asked("thanks, that is all")
        self.assertNotIn("saved no record", "\n".join(read_by_model(idle)))
        claude.close()
        self.home.wait_for_the_end()

        other = self.home.path / "other"
        other.mkdir()
        self.home.run("git", "init", "--quiet", cwd=other)
        claude = Claude(self.home, cwd=other)
        self.addCleanup(claude.close)
        claude.wait_for_server()
        (idle,) = claude.asked("rename the variable, please")
        self.assertNotIn("record 1", "\n".join(read_by_model(idle)))
        (request,) = claude.asked("why does cargo say that the lock file needs to be updated?")
        self.assertIn("record 1 (issue, resolved, ", "\n".join(read_by_model(request)))
        self.assertIn(f", in {self.home.shop.name}) {RECORD['title']}: Cargo wanted", "\n".join(read_by_model(request)))

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

        # It says that it is done, is asked, and says so again.
        claude.ask("make the tests pass", TESTS, MENDS, TESTS)
        self.assertEqual([texts(at).count(QUESTION) for at in range(5)], [0, 0, 0, 0, 1])
        claude.wait_for(IDLE)
        claude.ask("and the next thing")
        skipped = texts(5)
        self.assertIn("auto-persist skipped: the model saved nothing", skipped)
        self.assertEqual(skipped.count(QUESTION), 1, "once")

    def test_the_plugin_s_own_tools_are_there_under_their_names(self) -> None:
        """As its user has it who moves over from the plugin: server and permission by its name."""
        settings = self.home.path / ".claude/settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"permissions": {"allow": ["mcp__dude"]}}))
        self.home.run("claude", "mcp", "add", "--scope", "user", "dude", "--", "nudge", "serve", "--profile", "dude")
        claude = self.start(Claude)
        claude.wait_for_process()
        search = ("mcp__dude__search", {"query": "does the lock file need an update?"})
        _, saved, found = claude.asked("hello there", ("mcp__dude__upsert_record", RECORD), search)
        self.assertIn('"created":true', read_by_model(saved)[-1])
        (answer,) = [text for text in read_by_model(found) if '"similarity"' in text]
        self.assertIn(RECORD["title"], answer)
