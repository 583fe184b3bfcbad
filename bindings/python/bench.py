"""Measures what `get` costs in Python, and compares it with the usual ways to look up values in Python.

Prints one line for each comparison, its cells separated by tabs: what is measured, the goal, the median ratio, the
peer, the median of ours and of the peer in nanoseconds. `tests/bench/run --row python` runs it and makes rows of them.
"""

from __future__ import annotations

import fnmatch
import random
import re
import statistics
import sys
import time
from collections.abc import Callable

import cachetools

import nudge

HINTS = 5_000
#: The number of keys that one agent looks up repeatedly; they are spread over the whole store.
ASKED = 64
#: The time of one slice: long enough for the clock, and short enough that the contenders change often.
SLICE_NS = 500_000
VALUE = "docker compose build --service service-12 --profile dev-00af"
SCOPE = {"cwd_glob": ["/work/mono/**"], "branch": ["feature/*"], "os": ["linux"]}
HERE = {"cwd": "/work/mono/svc-12/src", "branch": "feature/login", "os": "linux"}

#: A function that looks up every name a given number of times.
Work = Callable[[int], None]


class Scoped:
    """A scoped lookup in plain Python: conditions compiled once, a score, and reasons on request."""

    class Hint:
        """A value with its conditions and the parts of its score."""

        __slots__ = ("branch", "cwd", "os", "priority", "updated_at", "used", "value")

        def __init__(self, value: str, scope: dict[str, list[str]]) -> None:
            self.value = value
            self.cwd = [re.compile(fnmatch.translate(glob)).match for glob in scope["cwd_glob"]]
            self.branch = [re.compile(fnmatch.translate(glob)).match for glob in scope["branch"]]
            self.os = frozenset(scope["os"])
            self.priority = 5
            self.updated_at = time.time()
            self.used = 0

    class Match:
        """The result of a lookup."""

        __slots__ = ("context", "hint", "score")

        def __init__(self, hint: Scoped.Hint, score: float, context: dict[str, str]) -> None:
            self.hint = hint
            self.score = score
            self.context = context

    def __init__(self) -> None:
        self.hints: dict[tuple[str, str], list[Scoped.Hint]] = {}

    def set(self, component: str, key: str, value: str, scope: dict[str, list[str]]) -> None:
        """Adds a variant."""
        self.hints.setdefault((component, key), []).append(self.Hint(value, scope))

    def get(self, component: str, key: str, context: dict[str, str]) -> Scoped.Match | None:
        """Returns the best variant that fits."""
        best: Scoped.Match | None = None
        now = time.time()
        for hint in self.hints.get((component, key), ()):
            if not any(match(context["cwd"]) for match in hint.cwd):
                continue
            if not any(match(context["branch"]) for match in hint.branch):
                continue
            if context["os"] not in hint.os:
                continue
            recency = 2.0 ** (-(now - hint.updated_at) / 86_400.0)
            frecency = 1.0 - 2.0 ** (-hint.used / 4.0)
            score = 0.3 * frecency + 0.2 * hint.priority / 10 + 0.1 + 0.2 * 3 / 6 + 0.1 * recency
            if best is None or score > best.score:
                best = self.Match(hint, score, context)
        return best


def timed(work: Work, loops: int) -> int:
    """Returns the processor time of a given number of loops."""
    begun = time.thread_time_ns()
    work(loops)
    return time.thread_time_ns() - begun


def interleave(contenders: list[Work], calls: int, turns: int) -> list[list[float]]:
    """Returns the nanoseconds of one call, turn by turn; a loop makes `calls` calls, and the contenders take turns."""
    loops = []
    for work in contenders:
        timed(work, 3)
        loops.append(max(1, SLICE_NS * 3 // max(1, timed(work, 3))))
    rounds = [
        [timed(work, count) / (count * calls) for work, count in zip(contenders, loops, strict=True)]
        for _ in range(turns)
    ]
    return [list(column) for column in zip(*rounds, strict=True)]


def main(smoke: bool) -> None:
    """Fills the stores and compares them."""
    hints = 200 if smoke else HINTS
    order = random.Random(7).sample(range(hints), hints)
    every = [(f"service-{at % 100:02}", f"build-{at}") for at in order]
    store = nudge.Store(max_hints=hints, secret_guard=False)
    cache: cachetools.TTLCache[tuple[str, str], str] = cachetools.TTLCache(hints, 3600)
    scoped = Scoped()
    for component, key in every:
        store.set(component, key, VALUE, scope=SCOPE)
        scoped.set(component, key, VALUE, SCOPE)
        cache[component, key] = VALUE
    context = nudge.Context(cwd=HERE["cwd"], branch=HERE["branch"], os="linux")
    get, view_get, cache_get, scoped_get = store.get, store.view(context).get, cache.get, scoped.get
    for component, key in every[:ASKED]:
        for found in (get(component, key, context), view_get(component, key)):
            assert found is not None
            assert found.text == VALUE
        assert scoped_get(component, key, HERE) is not None
    asked = every[:ASKED]

    def by_context(loops: int) -> None:
        for _ in range(loops):
            for component, key in asked:
                get(component, key, context)

    def by_view(loops: int) -> None:
        for _ in range(loops):
            for component, key in asked:
                view_get(component, key)

    def by_cache(loops: int) -> None:
        for _ in range(loops):
            for component, key in asked:
                cache_get((component, key))

    def by_python(loops: int) -> None:
        for _ in range(loops):
            for component, key in asked:
                scoped_get(component, key, HERE)

    contenders: list[Work] = [by_context, by_view, by_cache, by_python]
    times = interleave(contenders, len(asked), 5 if smoke else 301)
    for what, ours in [("get from Python, reused Context", 0), ("get from Python, reused View", 1)]:
        for goal, peer, theirs in [(0.3, "cachetools.TTLCache get", 2), (0.15, "pure-Python scoped lookup", 3)]:
            ratio = statistics.median(a / b for a, b in zip(times[ours], times[theirs], strict=True))
            cells = [what, goal, ratio, peer, statistics.median(times[ours]), statistics.median(times[theirs])]
            print("\t".join(map(str, cells)))


if __name__ == "__main__":
    main("--smoke" in sys.argv[1:])
