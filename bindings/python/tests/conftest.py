"""Shares fixtures among the tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import nudge
from kit import Server, clock_stands_still, demo_binary, nudge_binary


@pytest.fixture
def store() -> Iterator[nudge.Store]:
    """An empty store of this process."""
    with nudge.Store() as store:
        yield store


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ("NUDGE_BIN", "NUDGE_DEMO_BIN", "NUDGE_HAMMER_SECONDS")
    for name in [name for name in os.environ if name.startswith("NUDGE_") and name not in kept]:
        monkeypatch.delenv(name)


def _served(binary: Path | None, folder: Path, missing: str) -> Iterator[Server]:
    if binary is None:
        pytest.skip(missing)
    with Server(binary, folder / "run") as server:
        yield server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A `nudge serve` in its own runtime directory."""
    yield from _served(nudge_binary(), tmp_path, "no nudge binary: set NUDGE_BIN")


@pytest.fixture
def demo_server(tmp_path: Path) -> Iterator[Server]:
    """A `nudge serve` with the additional source `demo`."""
    yield from _served(demo_binary(), tmp_path, "no nudge with the demo source: set NUDGE_DEMO_BIN")


def pytest_report_header() -> str:
    """Shows the tested package and program in the head of the report."""
    binary = nudge_binary()
    version = (
        subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        if binary
        else "none"
    )
    clock = "standing still" if clock_stands_still() else "the system's"
    return f"nudge {nudge.__version__} from {Path(nudge.__file__).parent}; clock: {clock}; server: {version}"
