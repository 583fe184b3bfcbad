"""Runs sessions for the tests, and waits for conditions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

import nudge

T = TypeVar("T")

PATIENCE_S = 20.0
#: The root of the repository, if the tests are inside one.
REPOSITORY = next((up for up in Path(__file__).resolve().parents if (up / "tests" / "vectors").is_dir()), None)


def nudge_binary() -> Path | None:
    """Returns the `nudge` program: `NUDGE_BIN`, or the one that cargo built."""
    return _program("NUDGE_BIN", "nudge")


def demo_binary() -> Path | None:
    """Returns the program with the additional source `demo`: `NUDGE_DEMO_BIN`, or the one that cargo built."""
    return _program("NUDGE_DEMO_BIN", "examples/nudge-demo")


def _program(variable: str, name: str) -> Path | None:
    if named := os.environ.get(variable):
        return Path(named).resolve()
    if REPOSITORY is None:
        return None
    built = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "debug" / name
    return built.resolve() if built.exists() else None


@cache
def clock_stands_still() -> bool:
    """Returns true if this build has the feature `test-clock`."""
    try:
        nudge.Store().call("nudge.test_advance", {"ms": 0})
    except nudge.UnknownMethodError:
        return False
    return True


def wait_for(what: str, look: Callable[[], T | None]) -> T:
    """Calls a probe until it returns a value."""
    end = time.monotonic() + PATIENCE_S
    while (seen := look()) is None:
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.002)
    return seen


class Server:
    """A session: the `nudge serve` processes of one runtime directory. They end when this object ends."""

    def __init__(self, binary: Path, runtime: Path) -> None:
        self.binary = binary
        self.runtime = runtime
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            self._stdin(process).close()
        for process in self.processes:
            process.wait(PATIENCE_S)

    @staticmethod
    def _stdin(process: subprocess.Popen[bytes]) -> IO[bytes]:
        assert process.stdin is not None
        return process.stdin

    def start(self) -> int:
        """Starts another process. The first process is PRIMARY."""
        variables = os.environ | {"NUDGE_RUNTIME_DIR": str(self.runtime), "NUDGE_DATA_DIR": f"{self.runtime}-data"}
        process = subprocess.Popen(
            [self.binary, "serve", "--port", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=variables,
        )
        self.processes.append(process)
        if len(self.processes) == 1:
            self.primary(lambda pid: pid == process.pid)
        return process.pid

    def primary(self, awaited: Callable[[int], bool]) -> int:
        """Waits until the expected process is PRIMARY, and returns it."""

        def look() -> int | None:
            try:
                said: dict[str, Any] = json.loads((self.runtime / "server.pid").read_text())
            except (OSError, ValueError):
                return None
            pid = int(said["pid"])
            return pid if awaited(pid) else None

        return wait_for("server.pid", look)

    def kill(self, pid: int) -> None:
        """Kills a process with SIGKILL."""
        process = next(process for process in self.processes if process.pid == pid)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
