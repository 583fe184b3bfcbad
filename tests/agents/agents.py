"""Nudge in the real coding agents, as a new user has it after `nudge init --yes`.

No server is started beforehand: the client's own is the only one. What the model gets to read is what counts, so
every test asserts on the requests that it was sent.
"""

import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from models import Model

WORK = Path(os.environ["AGENTS_WORK"])
PLUGIN = Path(__file__).parents[2] / "cli/plugin"
# What `cargo` does in the tests: it works with one flag only.
CARGO = """#!/bin/sh
case "$*" in *--locked*) echo passed;; *) echo "error: the lock file needs to be updated" >&2; exit 101;; esac
"""
# No test may take longer.
PATIENCE_SECONDS = 60

T = TypeVar("T")
P = TypeVar("P", bound="Program")


class Home:
    """A fresh home with a repository `shop` on the branch `dev`, and a model."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(dir=WORK, prefix="home-"))
        self.shop = self.path / "shop"
        self.model = Model()
        bin_ = self.path / "bin"
        bin_.mkdir()
        (bin_ / "cargo").write_text(CARGO)
        (bin_ / "cargo").chmod(0o755)
        self.env = {
            "HOME": str(self.path),
            "PATH": f"{bin_}:{WORK / 'bin'}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            # A busy machine, and a build that is not optimised.
            "NUDGE_HOOK_MS": "10000",
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",
        }
        self.shop.mkdir()
        self.run("git", "init", "--quiet", "--initial-branch", "dev")
        self.run("git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--allow-empty", "-m", "x")

    def run(self, *words: str, cwd: Path | None = None) -> str:
        """What a command prints; it must end well."""
        stdin = subprocess.DEVNULL
        done = subprocess.run(
            words, env=self.env, cwd=cwd or self.shop, stdin=stdin, capture_output=True, text=True, timeout=50
        )
        assert done.returncode == 0, done
        # Gemini CLI lists to stderr.
        return done.stdout or done.stderr

    def nudge(self, *words: str) -> str:
        return self.run("nudge", *words)

    def store(self) -> None:
        """One key for two branches and one for two folders, as a person stores them."""
        self.nudge("set", "api", "build", "make api-dev", "--scope-branch", "dev", "--reason", "make alone builds all")
        self.nudge("set", "api", "build", "make api-release", "--scope-branch", "main")
        self.nudge("set", "web", "run", "npm start", "--scope-cwd-glob", "**/shop")
        self.nudge("set", "web", "run", "npm run elsewhere", "--scope-cwd-glob", "**/elsewhere")

    def allow_commands(self) -> None:
        settings = self.path / ".claude/settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"permissions": {"allow": ["Bash"]}}))

    def wait_for_the_end(self) -> None:
        lock = "/tmp/nudge/members.lock"  # Whoever is killed leaves its other files.
        wait_for("the end", lambda: not os.path.exists(lock) or self.run("flock", "-nE0", lock, "echo", "free") or None)

    def close(self) -> None:
        self.model.close()
        shutil.rmtree(self.path, ignore_errors=True)


def wait_for(what: str, found: Callable[[], T | None]) -> T:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        if (value := found()) is not None:
            return value
        time.sleep(0.02)
    raise TimeoutError(what)


class Program:
    """A client that speaks JSON lines, in `shop`."""

    def __init__(self, home: Home, *words: str, cwd: Path | None = None) -> None:
        pipe = subprocess.PIPE
        self.home = home
        self.process = subprocess.Popen(
            words, env=home.env, cwd=cwd or home.shop, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )
        self._said: queue.Queue[dict | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            if line.startswith("{"):
                self._said.put(json.loads(line))
        self._said.put(None)

    def say(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def heard(self) -> Iterator[dict]:
        while (message := self._said.get(timeout=PATIENCE_SECONDS)) is not None:
            yield message
        raise EOFError(f"{self.process.args[0]} has ended")

    def wait_for_server(self) -> None:
        """Waits until the client's own server answers."""
        file = Path("/tmp/nudge/server.pid")
        living = lambda pid: pid if os.path.exists(f"/proc/{pid}") else None
        pid = wait_for("a server", lambda: living(json.loads(file.read_text())["pid"]) if file.exists() else None)
        ancestors = []
        while pid > 1:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            ancestors.append(pid)
        assert self.process.pid in ancestors, ancestors

    def asked(self, prompt: str, *turns: tuple[str, dict] | Callable[[], tuple[str, dict]]) -> list[dict]:
        """Asks the agent; the model does `turns`. The requests that the model got meanwhile."""
        self.home.model.turns.extend(turns)
        before = len(self.home.model.requests)
        self.ask(prompt)
        assert not self.home.model.turns, "the model was not asked often enough"
        return self.home.model.requests[before:]

    def ask(self, prompt: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Claude(Program):
    """Claude Code, with one conversation. What it may do without asking stands in its settings alone."""

    def __init__(self, home: Home, *flags: str, cwd: Path | None = None) -> None:
        stream = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        super().__init__(home, "claude", "-p", *stream, "--model", "claude-sonnet-4-5", *flags, cwd=cwd)

    def wait_for_server(self) -> None:
        """Waits for the hook of its start as well: what is stored before that is told by it, or by the first prompt."""
        for message in self.heard():
            if message.get("subtype") == "hook_response" and message["hook_event"] == "SessionStart":
                break
        super().wait_for_server()

    def ask(self, prompt: str) -> None:
        self.say({"type": "user", "message": {"role": "user", "content": prompt}})
        for message in self.heard():
            if message["type"] == "result":
                assert message["subtype"] == "success", message
                return


class Codex(Program):
    """Codex by the server that its editor extensions use, with one thread. Its hooks are trusted as its user would:
    by their hashes."""

    def __init__(self, home: Home) -> None:
        config = home.path / ".codex/config.toml"
        provider = f'name = "fake"\nbase_url = "{home.model.url}/v1"\nwire_api = "responses"\n'
        text = config.read_text() if config.exists() else ""
        if "model_provider" not in text:
            config.write_text(
                f'model_provider = "fake"\nmodel = "gpt-5"\n[model_providers.fake]\n{provider}\n{text}'
            )
        super().__init__(home, "codex", "app-server")
        self._calls = 0
        self.call("initialize", {"clientInfo": {"name": "test", "version": "1"}})
        self.say({"method": "initialized"})
        self.trust()
        self.thread = self.call("thread/start", {"cwd": str(home.shop)})["thread"]["id"]

    def hooks(self) -> list[dict]:
        return self.call("hooks/list", {"cwds": [str(self.home.shop)]})["data"][0]["hooks"]

    def trust(self) -> None:
        hooks = self.hooks()
        assert hooks, "no hooks"
        state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
        edit = {"keyPath": "hooks.state", "mergeStrategy": "upsert", "value": state}
        self.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
        assert all(hook["trustStatus"] == "trusted" for hook in self.hooks())

    def call(self, method: str, params: dict) -> dict:
        self._calls += 1
        self.say({"id": self._calls, "method": method, "params": params})
        for message in self.heard():
            if message.get("id") == self._calls and "method" not in message:
                return message["result"]
            self.answer(message)
        raise AssertionError

    def answer(self, message: dict) -> None:
        """Allows nothing: after `nudge init` the client need not ask."""
        if "method" in message and "id" in message:
            self.say({"id": message["id"], "result": {"action": "decline"}})

    def ask(self, prompt: str) -> None:
        self.turn("turn/start", {"input": [{"type": "text", "text": prompt}]})

    def turn(self, method: str, params: dict) -> None:
        self.call(method, {"threadId": self.thread} | params)
        for message in self.heard():
            self.answer(message)
            if message.get("method") == "turn/completed":
                assert message["params"]["turn"]["status"] == "completed", message
                return


def read_by_model(request: dict) -> list[str]:
    """The texts of a request, in order, of both APIs."""
    texts: list[str] = []
    for message in request.get("messages") or request["input"]:
        content = message.get("content") or message.get("output") or []
        for block in [content] if isinstance(content, str) else content:
            inner = block if isinstance(block, str) else block.get("text") or block.get("content") or ""
            texts += [inner] if isinstance(inner, str) else [part.get("text", "") for part in inner]
    return texts


def hints(request: dict) -> str:
    """What of ours stands in a request, but for the instructions of the server and the answers of its tools."""
    return "\n".join(text for text in read_by_model(request) if "They are notes" in text or "These are notes" in text)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        signal.signal(signal.SIGALRM, lambda *_: self.fail(f"over {PATIENCE_SECONDS} s"))
        signal.alarm(PATIENCE_SECONDS)
        self.addCleanup(signal.alarm, 0)
        self.home = Home()
        self.addCleanup(self.home.close)
        self.home.wait_for_the_end()

    def start(self, program: type[P], *flags: str) -> P:
        started = program(self.home, *flags)
        self.addCleanup(started.close)
        return started


def shared_behaviour(case: Case, agent: Program) -> None:
    """What holds in every client that has hooks."""
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
    """Another process tells the agent to stop while its model is at work; it reads that with the result of the next
    tool call, whatever tool that is, and once."""
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
    def test_it_is_prepared(self) -> None:
        self.home.nudge("init", "--yes")
        shared_behaviour(self, self.start(Claude))

    def test_after_a_failing_command_the_working_one_stands_beside_the_error_and_a_success_counts(self) -> None:
        self.home.allow_commands()
        self.home.nudge("init", "--yes")
        claude = self.start(Claude)
        claude.wait_for_server()
        # Whether or not its start found the server: the digest, which has nothing to tell, has come twice now.
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
        # It may go on in the background.
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
        # It may have kept its user's words, and the first digest with them.
        stats = json.loads(self.home.nudge("stats", "--json"))["sessions"][0]
        self.assertEqual(stats["suggestions"], 4, "each of the two was told twice")


class GeminiCli(Case):
    def test_it_is_prepared(self) -> None:
        """It asks once and ends, so a session runs already."""
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
        # The other way round by its tool.
        get = ("mcp__nudge__nudge_get_hint", {"component": "cache", "key": "flush"})
        request = claude.asked("what was that", get)[-1]
        self.assertIn("redis-cli flushall", read_by_model(request)[-1])


class NextTime(Case):
    """A hint that the model stores, after all processes have ended."""

    def stored_by(self, program: type[P], tool: str) -> tuple[str, str]:
        """What the model reads of its hint: in the answer of the tool, and in the first request of the next start."""
        self.home.nudge("init", "--yes")
        (agent := self.start(program)).wait_for_server()
        hint = {"component": "mail", "key": "run", "value": "docker compose up mailhog", "meta": {"ttl": "P30D"}}
        *_, answered = agent.asked("hello there", (tool, hint))
        agent.close()
        self.home.wait_for_the_end()
        (again := self.start(program)).wait_for_server()
        (first,) = again.asked("hello again")
        return read_by_model(answered)[-1], hints(first)

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
        self.home.run("claude", "plugin", "validate", str(PLUGIN))
        self.home.run("claude", "plugin", "marketplace", "add", str(PLUGIN))
        self.home.run("claude", "plugin", "install", "nudge@nudge", "--scope", "user")
        self.assertRegex(self.home.run("claude", "mcp", "list"), "plugin:nudge:nudge.*✔ Connected")
        self.brings_it_all("claude")
        shared_behaviour(self, self.start(Claude))

    def test_codex_takes_the_same_folder(self) -> None:
        (self.home.path / ".codex").mkdir()
        self.home.run("codex", "plugin", "marketplace", "add", str(PLUGIN))
        self.home.run("codex", "plugin", "add", "nudge@nudge")
        self.brings_it_all("codex")
        shared_behaviour(self, self.start(Codex))


if __name__ == "__main__":
    unittest.main()
