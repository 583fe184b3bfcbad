"""Runs many threads on one store, for 5 seconds or NUDGE_HAMMER_SECONDS."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import nudge
from kit import REPOSITORY

SECONDS = float(os.environ.get("NUDGE_HAMMER_SECONDS", "5"))
THREADS = 8
# Calls of every method of the hints, which the tests of other languages also make.
CALLS = json.loads((REPOSITORY / "tests/fixtures/hammered.json").read_text()) if REPOSITORY else {}
KEYS = 16


class Hammer:
    """Makes one thread's random calls and checks every answer."""

    def __init__(self, store: nudge.Store, number: int) -> None:
        self.store = store
        self.random = random.Random(number)
        self.count: Counter[str] = Counter()
        self.bumped: Counter[str] = Counter()
        self.here = nudge.Context(branch="dev")
        self.view = store.view(self.here)

    def key(self) -> str:
        return f"k{self.random.randrange(KEYS)}"

    def get(self) -> None:
        for _ in range(50):
            key = self.key()
            for found in (self.store.get("api", key, self.here), self.view.get("api", key)):
                # A value names the key under which it was set.
                assert found is None or found.text.startswith(f"{key} ")
                assert found is None or found.reasons[0] in ("branch=dev allowed", "no scope: applies everywhere")

    def set(self) -> None:
        key = self.key()
        scope: nudge.ScopeDict | None = {"branch": "dev"} if self.random.random() < 0.5 else None
        stored = self.store.set("api", key, f"{key} {self.random.random()}", scope=scope, tags=["t"])
        assert 1 <= stored["variants"] <= 2

    def delete(self) -> None:
        with suppress(nudge.NotFoundError):
            assert self.store.delete("api", self.key(), all=True)["deleted"]

    def query(self) -> None:
        rows = self.store.query(component="api", tags=["t"], context=self.here, limit=50)["hints"]
        assert all(row["hint"]["value"].startswith(row["hint"]["key"]) for row in rows)  # type: ignore[union-attr]
        assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)

    def bump(self) -> None:
        key = f"stays{self.random.randrange(4)}"
        self.store.bump("counted", key)
        self.bumped[key] += 1

    def look(self) -> None:
        for name, component in self.view.components.items():
            for key, found in component.items():
                assert found.text.startswith({"api": f"{key} ", "counted": "v", "any": "make "}[name])

    def carry(self) -> None:
        payload = self.store.export(component="counted")["payload"]
        assert self.store.import_(payload)["imported"] == 0

    def any(self) -> None:
        for method, params in CALLS.items():
            with suppress(nudge.NotFoundError, nudge.ConflictError):
                assert isinstance(self.store.call(method, params), dict)

    def new_view(self) -> None:
        self.view = self.store.view(self.here)
        assert self.view.get("counted", "stays0") is not None

    def run(self, end: float) -> None:
        """Makes calls until `end`."""
        acts: list[Callable[[], None]] = [
            self.get, self.get, self.set, self.set, self.delete,
            self.query, self.bump, self.look, self.carry, self.new_view, self.any,
        ]  # fmt: skip
        while time.monotonic() < end:
            act = self.random.choice(acts)
            act()
            self.count[act.__name__] += 1


def test_threads_hammer_one_store(capsys: Any) -> None:
    store = nudge.Store()
    for number in range(4):
        store.set("counted", f"stays{number}", "v")
    # All threads try to undo this deletion.
    store.set("any", "k", "make it")
    store.delete("any", "k")
    hammers = [Hammer(store, number) for number in range(THREADS)]
    failures: list[BaseException] = []
    end = time.monotonic() + SECONDS

    def work(hammer: Hammer) -> None:
        try:
            hammer.run(end)
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=work, args=(hammer,)) for hammer in hammers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS + 60)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert not failures
    total: Counter[str] = sum((hammer.count for hammer in hammers), Counter())
    bumped: Counter[str] = sum((hammer.bumped for hammer in hammers), Counter())
    for key, count in bumped.items():
        found = store.get("counted", key)
        assert found is not None
        assert found.hint["use_count"] == count, "no use is lost"
    with capsys.disabled():
        print(f"\nhammered for {SECONDS:g} s by {THREADS} threads: {dict(total)}")


def test_a_call_into_python_holds_no_lock() -> None:
    """During the call that reads a mapping, the mapping makes other calls, also from other threads."""
    store = nudge.Store()
    store.set("api", "k", "v")

    class Curious(dict[str, Any]):
        def items(self) -> Any:
            others = [threading.Thread(target=store.set, args=("api", f"k{n}", "v")) for n in range(4)]
            for other in others:
                other.start()
            for other in others:
                other.join(10)
            assert not any(other.is_alive() for other in others)
            assert store.get("api", "k3") is not None
            return super().items()

    class Place:
        @property
        def branch(self) -> str:
            store.set("api", "from a property", "v")
            return "dev"

        @property
        def env(self) -> Any:
            return Curious(STAGE="x")

    assert store.get("api", "k", Place()) is not None
    assert store.get("api", "from a property") is not None


def test_other_threads_run_meanwhile() -> None:
    """While one thread makes a long import, another thread continues."""
    hints = {f"k{n}": "make " + "x" * 200 for n in range(5_000)}
    text = {"components": {"api": {"hints": hints}}}
    store = nudge.Store(max_hints=30_000, max_hints_per_component=30_000)
    store.set("other", "k", "v")
    done = threading.Event()

    def load() -> None:
        store.import_(text)
        done.set()

    thread = threading.Thread(target=load)
    thread.start()
    gets = 0
    while not done.is_set():
        assert store.get("other", "k") is not None
        gets += 1
    thread.join()
    assert gets > 100
    assert store.status()["hints"] == 5_001
