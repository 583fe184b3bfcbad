"""Runs the real coding agents, each in its own home, and sends prompts to them."""

import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from models import Model

WORK = Path(os.environ["AGENTS_WORK"])
# A script in place of `cargo`. It works only with one flag, until a test repairs it.
CARGO = """#!/bin/sh
[ -e mended ] && exit 0
case "$*" in *--locked*) echo passed;; *) echo "error: the lock file needs to be updated" >&2; exit 101;; esac
"""
# The time limit of each wait of a test, in seconds.
PATIENCE_SECONDS = 60

T = TypeVar("T")
P = TypeVar("P", bound="Program")


class Home:
    """A new home with the repository `shop` on the branch `dev`, and a model."""

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
            # The time limits are long, because the machine may be busy and the build is not optimised.
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
        """Runs a command, which must succeed; returns its output."""
        stdin = subprocess.DEVNULL
        done = subprocess.run(
            words, env=self.env, cwd=cwd or self.shop, stdin=stdin, capture_output=True, text=True, timeout=50
        )
        assert done.returncode == 0, done
        # Gemini CLI prints its list on stderr.
        return done.stdout or done.stderr

    def nudge(self, *words: str) -> str:
        return self.run("nudge", *words)

    def store(self) -> None:
        """Stores one key with a scope for each of two branches and for each of two folders, as a person would."""
        self.nudge("set", "api", "build", "make api-dev", "--scope-branch", "dev", "--reason", "make alone builds all")
        self.nudge("set", "api", "build", "make api-release", "--scope-branch", "main")
        self.nudge("set", "web", "run", "npm start", "--scope-cwd-glob", "**/shop")
        self.nudge("set", "web", "run", "npm run elsewhere", "--scope-cwd-glob", "**/elsewhere")

    def allow_commands(self) -> None:
        self.allow("Bash")

    def allow(self, *tools: str) -> None:
        settings = self.path / ".claude/settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"permissions": {"allow": tools}}))

    def wait_for_the_end(self) -> None:
        lock = "/tmp/nudge/members.lock"  # A killed process leaves its other files.
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


def living(pid: int) -> int | None:
    """Returns the process; None if it has ended or is a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return pid if state != "Z" else None


class Program:
    """A client that exchanges JSON lines and runs in `shop`."""

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

    def wait_for_process(self) -> None:
        """Waits until the server that the client has started answers."""
        file = Path("/tmp/nudge/server.pid")
        pid = wait_for("a server", lambda: living(json.loads(file.read_text())["pid"]) if file.exists() else None)
        ancestors = []
        while pid > 1:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            ancestors.append(pid)
        assert self.process.pid in ancestors, ancestors

    wait_for_server = wait_for_process

    def asked(self, prompt: str, *turns: tuple[str, dict] | Callable[[], tuple[str, dict]]) -> list[dict]:
        """Sends a prompt, for which the model plays `turns`. Returns the requests that the model got meanwhile."""
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
    """Claude Code with one conversation. Only its settings say which actions need no question."""

    def __init__(self, home: Home, *flags: str, cwd: Path | None = None) -> None:
        stream = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        super().__init__(home, "claude", "-p", *stream, "--model", "claude-sonnet-4-5", *flags, cwd=cwd)

    def wait_for_server(self) -> None:
        """Waits for the hook of the start. A hint that is stored later is then told at the first prompt."""
        for message in self.heard():
            if message.get("subtype") == "hook_response" and message["hook_event"] == "SessionStart":
                break
        self.wait_for_process()

    def ask(self, prompt: str) -> None:
        self.say({"type": "user", "message": {"role": "user", "content": prompt}})
        for message in self.heard():
            if message["type"] == "result":
                assert message["subtype"] == "success", message
                return


class Codex(Program):
    """Codex through the server that editor extensions use, with one thread. The test trusts its hooks by their hashes,
    as a user would."""

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
        """Refuses every permission: after `nudge init` the client must not ask for any."""
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
    """Returns the texts of a request in order, for the APIs of both clients."""
    return list_texts(request.get("messages") or request["input"])


def read_since_call(request: dict) -> str:
    """Returns all texts of a request after the model's last call: the tool's answer, and the client's own behind it."""
    messages = request.get("messages") or request["input"]
    is_call = [message.get("role") == "assistant" or message.get("type") == "function_call" for message in messages]
    return "\n".join(list_texts(messages[len(messages) - is_call[::-1].index(True) :]))


def list_texts(messages: list[dict]) -> list[str]:
    texts: list[str] = []
    for message in messages:
        content = message.get("content") or message.get("output") or []
        for block in [content] if isinstance(content, str) else content:
            inner = block if isinstance(block, str) else block.get("text") or block.get("content") or ""
            texts += [inner] if isinstance(inner, str) else [part.get("text", "") for part in inner]
    return texts


def hints(request: dict) -> str:
    """Returns Nudge's texts in a request. Leaves out the server's instructions and the answers of its tools."""
    return "\n".join(text for text in read_by_model(request) if "They are notes" in text or "These are notes" in text)
