"""Runs every vector through `call` and through the typed methods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nudge
from kit import REPOSITORY, Server, clock_stands_still, nudge_binary
from vectors import Case, SessionCase

pytestmark = pytest.mark.skipif(
    not clock_stands_still(), reason="the vectors move the clock, which takes a build with the feature test-clock"
)

FILES = sorted((REPOSITORY / "tests" / "vectors").glob("*.json")) if REPOSITORY else []


def cases() -> list[Any]:
    """Lists the cases of all files."""
    return [
        pytest.param(case, id=f"{file.stem}: {case['name']}")
        for file in FILES
        for case in json.loads(file.read_text(encoding="utf-8"))
    ]


# Promise: see `main`.
@pytest.mark.parametrize("case", cases())
def test_vector(case: dict[str, Any], tmp_path: Path) -> None:
    if "needs" not in case:
        Case(case).run()
        return
    if (binary := nudge_binary()) is None:
        pytest.skip("no nudge binary: set NUDGE_BIN")
    with Server(binary, tmp_path / "run") as server, nudge.connect(server.runtime) as store:
        try:
            # A method that only test builds have is not listed.
            store.call("nudge.test_advance", {"ms": 0})
        except nudge.UnknownMethodError:
            pytest.skip("the clock of this nudge cannot be moved: NUDGE_BIN names one with the feature test-clock")
        (tmp_path / "folder").mkdir()
        SessionCase(case, store, tmp_path / "folder").run()


def test_there_are_vectors_and_most_calls_can_be_typed() -> None:
    if REPOSITORY is None:
        pytest.skip("the vectors are in the repository alone")
    assert len(FILES) > 15
    calls = typed = 0
    for file in FILES:
        for case in json.loads(file.read_text(encoding="utf-8")):
            if "needs" in case:
                continue
            running = Case(case)
            running.run()
            calls += sum("call" in step for step in case["steps"])
            typed += running.typed_calls
    assert typed > 0.95 * calls, f"{typed} of {calls}"
