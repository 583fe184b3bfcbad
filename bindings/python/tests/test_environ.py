"""Tests that calls read `os.environ`, even while other threads change it, and that only one interpreter is allowed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import nudge
from kit import Server


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with a time limit."""
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


# `setenv` may free memory that `getenv` reads in another thread. In an earlier version, this ended the process.
CHANGED = """
import os, sys, threading
import nudge

def work():
    while not over:
        try:
            what()
        except nudge.UnavailableError:
            pass

over = []
what = {
    "detect": lambda: nudge.Context.detect("/"),
    "connect": lambda: nudge.connect(),
    "connect to": lambda: nudge.connect(sys.argv[2]),
    "store": lambda: nudge.Store(from_env=True),
}[sys.argv[1]]
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(20_000 if sys.argv[1] == "detect" else 5_000):
    os.environ[f"NX{number}"] = "x"
over.append(True)
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("what", ["detect", "connect", "connect to", "store"])
def test_it_may_change_while_it_is_read(tmp_path: Path, what: str) -> None:
    done = run(CHANGED, what, str(tmp_path / "none"))
    assert done.returncode == 0, done.stderr[-2000:]


def test_connecting_to_a_session_while_it_changes(server: Server) -> None:
    done = run(CHANGED, "connect to", str(server.runtime))
    assert done.returncode == 0, done.stderr[-2000:]


def test_it_is_that_of_os_environ(monkeypatch: pytest.MonkeyPatch) -> None:
    # A dict that replaces `os.environ` does not change the environment of C.
    replaced = {"STAGE": "test", "NUDGE_MAX_HINTS": "7", "BAD": "\ud800"}
    monkeypatch.setattr(os, "environ", replaced)
    assert nudge.Context.detect("/").getenv("STAGE") == "test"
    assert nudge.Context.detect("/").getenv("PATH") is None
    assert nudge.Store(from_env=True).status()["limits"]["hints"] == 7


def test_the_runtime_directory_is_that_of_os_environ(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setattr(os, "environ", {"NUDGE_RUNTIME_DIR": str(server.runtime)})
    assert nudge.connect().status()["role"] == "PRIMARY"


@pytest.mark.skipif(os.name == "nt", reason="variables are Unicode there")
def test_what_is_not_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGE", "caf\udce9")
    assert nudge.Context.detect("/").getenv("STAGE") == "caf\ufffd"
    monkeypatch.setenv("NUDGE_MAX_HINTS", "\udce9")
    assert nudge.Store(from_env=True).status()["limits"]["hints"] == 5000


def test_other_interpreters_are_refused() -> None:
    code = """
import sys
if len(sys.argv) > 1:
    import nudge
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
refused = '''
try:
    import nudge
except ImportError as error:
    assert "interpreter" in str(error), error
else:
    raise AssertionError("imported")
'''
other = interpreters.create(isolated=False) if sys.version_info < (3, 13) else interpreters.create("legacy")
failed = interpreters.run_string(other, "import nudge" if len(sys.argv) == 1 else refused)
assert not failed, failed
if len(sys.argv) == 1:
    try:
        import nudge
    except ImportError:
        pass
    else:
        raise AssertionError("imported")
else:
    # The first one goes on, and may import it again.
    nudge.Store().set("api", "k", "v")
    for name in [name for name in sys.modules if name.startswith("nudge")]:
        del sys.modules[name]
    import nudge
    nudge.Store().set("api", "k", "v")
"""
    for arguments in (["first"], []):
        done = run(code, *arguments)
        assert done.returncode == 0, done.stderr
