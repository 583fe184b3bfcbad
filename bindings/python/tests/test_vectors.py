"""Every vector, through `call` and through the typed methods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kit import REPOSITORY, clock_stands_still
from vectors import Case

pytestmark = pytest.mark.skipif(
    not clock_stands_still(), reason="the vectors move the clock, which takes a build with the feature test-clock"
)

FILES = sorted((REPOSITORY / "tests" / "vectors").glob("*.json")) if REPOSITORY else []


def cases() -> list[Any]:
    """Every case of every file."""
    return [
        pytest.param(case, id=f"{file.stem}: {case['name']}")
        for file in FILES
        for case in json.loads(file.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("case", cases())
def test_vector(case: dict[str, Any]) -> None:
    Case(case).run()


def test_there_are_vectors_and_most_calls_can_be_typed() -> None:
    if REPOSITORY is None:
        pytest.skip("the vectors are in the repository alone")
    assert len(FILES) > 15
    calls = typed = 0
    for file in FILES:
        for case in json.loads(file.read_text(encoding="utf-8")):
            running = Case(case)
            running.run()
            calls += sum("call" in step for step in case["steps"])
            typed += running.typed_calls
    assert typed > 0.95 * calls, f"{typed} of {calls}"
