"""Tests a new clone in the real clients. The model's first request contains the commands of the repository's own files.
A later request contains the commands that the files name then."""

from case import Case
from programs import Claude, Codex, P, hints, read_by_model

MAKEFILE = "test: ## Runs all tests\n\tpytest -q\n"
PACKAGE = '{"scripts": {"build": "vite build", "postinstall": "husky"}}\n'


class Seeds(Case):
    def told(self, program: type[P]) -> None:
        home = self.home
        (home.shop / "Makefile").write_text(MAKEFILE)
        (home.shop / "package.json").write_text(PACKAGE)
        home.nudge("init", "--yes")
        agent = self.start(program)
        agent.wait_for_server()
        (request,) = agent.asked("hello there")
        told = hints(request)
        self.assertIn("- shop/make.test: make test (", told)
        self.assertIn("- shop/npm.build: npm run build (", told)
        self.assertIn("Makefile:1: Runs all tests", told)
        self.assertNotIn("husky", told)
        (home.shop / "Makefile").write_text(MAKEFILE.replace("test:", "check:"))
        (request,) = agent.asked("now check the tests")
        later = hints(request).removeprefix(told)
        self.assertIn("make check", later)
        self.assertNotIn("make test", later)

    def test_claude_code(self) -> None:
        self.told(Claude)

    def test_codex(self) -> None:
        self.told(Codex)


class Learning(Case):
    def test_what_worked_is_there_beside_the_same_failure_in_the_next_session(self) -> None:
        home = self.home
        home.allow_commands()
        home.nudge("init", "--yes", "--learn")
        failing = "Bash", {"command": "cargo test -p api"}
        working = "Bash", {"command": "cargo test -p api --locked"}
        claude = self.start(Claude)
        claude.wait_for_server()
        claude.asked("hello there")
        claude.asked("go on", failing, working)
        claude.close()
        home.wait_for_the_end()
        claude = self.start(Claude)
        claude.wait_for_server()
        claude.asked("hello again")
        _, after = claude.asked("go on", failing)
        texts = read_by_model(after)
        error = next(at for at, text in enumerate(texts) if "the lock file needs to be updated" in text)
        self.assertIn("cargo test -p api --locked (", "\n".join(texts[error:]))
        self.assertIn("worked after `cargo test -p api` failed", "\n".join(texts[error:]))
