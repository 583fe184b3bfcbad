"""Runs the examples of the documentation."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nudge
from kit import REPOSITORY
from nudge import _errors, _mapping, _nudge, _store, _telling, _tools, aio

HERE = Path(__file__).resolve().parent.parent


def is_ours(thing: Any) -> bool:
    return (getattr(thing, "__module__", None) or "nudge").startswith("nudge")


def documented() -> Iterator[tuple[str, str]]:
    """Collects every docstring. Includes native classes and their members, which doctest does not find."""
    modules: list[Any] = [nudge, _nudge, _errors, _mapping, _store, _telling, _tools, aio]
    for module in modules:
        yield module.__name__, module.__doc__ or ""
        for name, thing in vars(module).items():
            # The documentation of an imported name is in its own module.
            if not (inspect.isclass(thing) or inspect.isroutine(thing)) or not is_ours(thing):
                continue
            yield f"{module.__name__}.{name}", thing.__doc__ or ""
            if inspect.isclass(thing):
                for member, value in vars(thing).items():
                    value = getattr(value, "__func__", value)
                    yield f"{module.__name__}.{name}.{member}", getattr(value, "__doc__", None) or ""


EXAMPLES = {text: name for name, text in documented() if isinstance(text, str) and ">>>" in text}


@pytest.mark.parametrize("text", EXAMPLES, ids=EXAMPLES.values())
def test_docstring(text: str) -> None:
    name = EXAMPLES[text]
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(text), {"nudge": nudge}, name, None, None)
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(report)


def test_most_of_it_has_an_example() -> None:
    without = {name for name in dir(nudge.Store) if not name.startswith("_")} - {
        name.split(".")[-1] for name in EXAMPLES.values()
    }
    assert without == {"close", "closed", "components", "connect"}


README = HERE / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the README is not here")
def test_the_readme_s_examples() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        if "nudge.connect" not in block:
            done = subprocess.run(
                [sys.executable, "-W", "error", "-c", block], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            shown = re.findall(r"print\(.*?\)\s*# (.*)", block)
            assert done.stdout.splitlines() == shown


@pytest.mark.skipif(not README.exists(), reason="the README is not here")
def test_the_readme_lists_what_there_is() -> None:
    text = README.read_text(encoding="utf-8")
    for name in dir(nudge.Store):
        if not name.startswith("_"):
            assert f"`{name}" in text or f".{name}(" in text, f"Store.{name} is missing"
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    for name, code, reason in _nudge.error_kinds():
        bases = [f"`{base.__name__}`" for base in getattr(nudge, name).__bases__ if base is not nudge.NudgeError]
        row = " | ".join([f"| `{name}`", ", ".join(bases), str(code), f"`{reason}` |"]).replace("|  |", "| |")
        assert row in rows, f"{row} is missing"


@pytest.mark.skipif(REPOSITORY is None, reason="the examples are in the repository alone")
def test_the_example_tells_the_story() -> None:
    assert REPOSITORY is not None
    script = REPOSITORY / "examples" / "python" / "agent.py"
    done = subprocess.run([sys.executable, "-W", "error", script], capture_output=True, text=True, check=True)
    assert done.stdout == (REPOSITORY / "examples" / "expected.txt").read_text(encoding="utf-8")
    assert done.stderr == ""
