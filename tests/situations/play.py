"""Plays one situation. Each has its own git repository, HOME, runtime directory and PRIMARY."""

import http.client
import json
import os
import random
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import events
import lines
import manifests

BIN = os.path.abspath(os.environ.get("NUDGE_BIN", "target/release/nudge"))
# The parts are joined at run time, so that no file contains a text that looks like a password.
PASSWORD = "-".join(["S3cr3t", "Blau", "77", "Kranich"])
# The extra seconds of a hint that must expire. It must still exist when it has been loaded.
LAST_SECONDS = 2.0


@dataclass(frozen=True)
class Answer:
    """The lines that one event told, and the lines that its conversation was told before."""

    text: str
    lines: list
    before: list
    readable: bool

    @property
    def all(self):
        return self.before + self.lines


class Play:
    def __init__(self, row, as_is, model=None):
        self.folder = tempfile.mkdtemp(prefix="ns-")
        self.work, self.home, self.runtime = (os.path.join(self.folder, name) for name in ("w", "home", "rt"))
        for folder in (self.work, self.home, self.runtime):
            os.mkdir(folder, 0o700)
        self.row = self.fill_in(row)
        self.env = {
            "HOME": self.home,
            "PATH": os.environ["PATH"],
            "NUDGE_RUNTIME_DIR": self.runtime,
            "LANG": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            **({"NUDGE_LEARN": "1"} if row.get("seeded") else {}),
            **self.row.get("env", {}),
        }
        self.model = model
        if model:
            self.env["NUDGE_MODEL_DIR"] = model
        # The time limit is long, because a hook prints nothing after its limit, and the machine may be busy.
        self.hook_env = self.env if as_is else {**self.env, "NUDGE_HOOK_MS": "2000"}
        self.hints = {h["id"]: {**h, "values": [lines.value_text(h["value"])]} for h in self.row["store"]}
        self.told = {}  # The lines that each conversation got since its last compaction.
        self.spoken, self.times = [], []
        self.primary = None

    def fill_in(self, row):
        """Replaces `{W}` by the folder of the repositories, and `{PASSWORD}` by a text that looks like a password."""
        text = json.dumps(row).replace("{W}", self.work).replace("{PASSWORD}", PASSWORD)
        return json.loads(text)

    def run(self):
        """Returns the answer to the row's event."""
        try:
            fixture = self.row["fixture"]
            self.base = self.repository(fixture)
            for other in fixture.get("others", []):
                self.repository(other)
            self.serve()
            if self.row.get("seeded"):
                self.seed()
            if not any(step.get("load") in ("early", "rest") for step in self.row["history"]):
                self.load(self.row["store"])
            for step in self.row["history"]:
                self.step(step)
            self.await_expiry()
            return self.event(self.row["event"])
        finally:
            self.stop()

    def stop(self):
        if self.primary:
            # Ignores errors: the server writes files until it has ended, and a file may stay on systems other than
            # Linux.
            ended = os.pidfd_open(self.primary["pid"]) if hasattr(os, "pidfd_open") else None
            subprocess.run([BIN, "stop"], env=self.env, capture_output=True)
            if ended is not None:
                select.select([ended], [], [], 5)
                os.close(ended)
        shutil.rmtree(self.folder, ignore_errors=True)

    # The repository

    def repository(self, fixture):
        path = os.path.join(self.work, fixture["dir"])
        for name in fixture.get("files", ["README.md"]):
            file = os.path.join(path, name)
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "w") as out:
                out.write("all:\n\ttrue\ntest:\n\ttrue\n" if name == "Makefile" else "# nothing\n")
        if fixture.get("branch"):
            self.git(path, "init", "-q", "-b", fixture["branch"])
            if fixture.get("remote"):
                self.git(path, "remote", "add", "origin", fixture["remote"])
            self.git(path, "add", "-A")
            self.git(path, "commit", "-q", "--allow-empty", "-m", "x")
            for branch in fixture.get("branches", []):
                self.git(path, "branch", branch)
            for folder, branch in fixture.get("worktrees", []):
                self.git(path, "worktree", "add", "-q", "../" + folder, branch)
        return path

    def git(self, where, *arguments):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        subprocess.run(command, cwd=where, env=self.env, check=True, capture_output=True)

    # The PRIMARY

    def serve(self):
        for _ in range(5):
            port = str(random.randrange(20000, 60000))
            command = [BIN, "serve", "--detach", "--port", port]
            started = subprocess.run(command, env=self.env, cwd=self.home, capture_output=True, text=True)
            if started.returncode == 0:
                with open(os.path.join(self.runtime, "server.pid")) as file:
                    self.primary = json.load(file)
                return
        raise RuntimeError(f"no PRIMARY: {started.stderr.strip()}")

    def call(self, method, params):
        connection = http.client.HTTPConnection("127.0.0.1", self.primary["port"], timeout=10)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        head = {"Content-Type": "application/json", "Authorization": "Bearer " + self.primary["token"]}
        connection.request("POST", "/", body, head)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def load(self, hints):
        # Hints are a second older than the row says. Otherwise an age of an hour could be told as 59 minutes. All hints
        # count from one moment, so equal ages stay equal.
        now = datetime.now(UTC) - timedelta(seconds=1)
        components = {}
        for hint in hints:
            component = components.setdefault(hint["component"], {"hints": {}, "variants": {}})
            if hint["key"] in component["hints"]:
                component["variants"].setdefault(hint["key"], []).append(self.exported(hint, now))
            else:
                component["hints"][hint["key"]] = self.exported(hint, now)
        document = {"schema_version": "1.0", "components": components}
        done = self.call("nudge.import", {"payload": document, "allow_secret": True})
        if done["imported"] != len(hints) or done["errors"]:
            raise RuntimeError(f"{len(hints)} hints to import, but: {done}")

    def exported(self, hint, now):
        if hint.get("expire"):  # The ttl of the hint is an hour.
            stored = now - timedelta(hours=1) + timedelta(seconds=LAST_SECONDS)
        else:
            stored = now - timedelta(hours=hint["age_h"])
        document = {"value": hint["value"], "meta": hint["meta"]}
        document["created_at"] = document["updated_at"] = events.stamp(stored)
        if hint["uses"]:
            used = stored + timedelta(hours=hint["age_h"] * 0.7)
            document |= {"use_count": hint["uses"], "last_used_at": events.stamp(min(now, used))}
        return document

    def seed(self):
        """Seeds the repository; returns by name the seeds that the row does not have."""
        manifests.write(self.base)
        command = [BIN, "seed", "--json"]
        seeded = subprocess.run(command, env=self.env, cwd=self.base, capture_output=True, text=True, check=True)
        for seed in json.loads(seeded.stdout)["seeds"]:
            name = f"seed:{seed['component']}/{seed['key']}"
            hint = {field: seed[field] for field in ("component", "key")}
            self.hints[name] = hint | {
                "id": name,
                "values": [seed["command"]],
                "meta": {"reason": seed["reason"], "scope": {"repo": "here"}},
                "age_h": 0,
            }

    def await_expiry(self):
        passing = {(h["component"], h["key"]) for h in self.row["store"] if h.get("expire")}
        deadline = time.monotonic() + 10 * LAST_SECONDS
        while passing:
            components = self.call("nudge.export", {})["payload"]["components"]
            passing = {(c, k) for c, k in passing if k in components.get(c, {}).get("hints", {})}
            if passing and time.monotonic() > deadline:
                raise RuntimeError(f"did not expire: {passing}")

    # Steps and events

    def step(self, step):
        (what,) = step
        given = step[what]
        if what == "load":
            if given in ("early", "rest"):
                self.load([h for h in self.row["store"] if bool(h.get("early")) == (given == "early")])
        elif what == "event":
            self.event(given)
        elif what == "git":
            self.git(self.base, *given)
        elif what == "set":
            self.call("nudge.set_hint", {field: given[field] for field in ("component", "key", "value", "meta")})
            self.hints[given["id"]]["values"].append(lines.value_text(given["value"]))
        elif what == "delete":
            component, key = given.split("/", 1)
            self.call("nudge.delete_hint", {"component": component, "key": key})
        else:
            raise ValueError(f"no such step: {what}")

    def await_understanding(self):
        """Waits until the model has made the vectors of the hints, which it does in the background."""
        self.call("nudge.recall", {"query": "anything", "context": {}})
        components = self.call("nudge.export", {})["payload"]["components"]
        count = sum(
            len(c.get("hints", {})) + sum(map(len, c.get("variants", {}).values())) for c in components.values()
        )
        deadline = time.monotonic() + 60
        while self.call("nudge.status", {}).get("hints_understood", -1) < count:
            if time.monotonic() > deadline:
                raise RuntimeError("the model has not read the hints")
            time.sleep(0.05)

    def event(self, event):
        if self.model and event["kind"] == "prompt":
            self.await_understanding()
        cwd = os.path.normpath(os.path.join(self.base, event.get("cwd") or ""))
        body = events.payload(event, cwd, self.home, len(self.times) + 1)
        env = {**self.hook_env, "CLAUDE_PROJECT_DIR": self.base} if event["client"] == "claude" else self.hook_env
        began = time.perf_counter()
        ran = subprocess.run([BIN, "hook"], input=json.dumps(body).encode(), capture_output=True, env=env, cwd=cwd)
        self.times.append((time.perf_counter() - began) * 1000)
        text, readable = events.told(event["client"], body, ran.stdout.decode())
        conversation = (event["session"], event.get("agent"))
        if event.get("source") == "compact":
            self.told[conversation] = []
        answer = Answer(
            text=text,
            lines=lines.read(text, self.hints),
            before=list(self.told.get(conversation, [])),
            readable=readable and ran.returncode == 0,
        )
        self.told[conversation] = answer.all
        self.spoken.append(text)
        return answer
