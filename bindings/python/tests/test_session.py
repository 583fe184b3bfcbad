"""Tests the machine's running session through the same interface."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import nudge
from kit import Server, wait_for


def test_a_session_answers_as_a_store_of_this_process(server: Server) -> None:
    scope: nudge.ScopeDict = {"env_match": {"STAGE": "test"}, "env_required": ["CI"]}
    here = nudge.Context(cwd="/work/svc", env={"STAGE": "test", "CI": "yes", "OTHER": "x"}, files_open=["/work/svc/a"])
    elsewhere: nudge.ContextDict = {"cwd": "/work/svc", "env": {"STAGE": "prod", "CI": "yes"}}
    answers: list[list[Any]] = []
    with nudge.Store() as own, nudge.connect(server.runtime) as session:
        assert (repr(own), repr(session)) == ("<nudge.Store in process>", "<nudge.Store of the session>")
        for store in (own, session):
            seen: list[Any] = [store.get("svc", "k", here)]
            store.set("svc", "k", "make", tags=["t"])
            scoped = store.set("svc", "k", {"type": "command", "cmd": "make ci"}, scope=scope)["hint"]["variant"]
            view = store.view(here)
            for found in (
                store.get("svc", "k", here),
                view.get("svc", "k"),
                store.get("svc", "k", elsewhere),
                store.get("svc", "k", here, variant=""),
                store.get("svc", "k", here, variant=scoped),
            ):
                assert found is not None
                assert found.hint["key"] == "k"
                assert found.score == pytest.approx(sum(found.parts.values()), abs=1e-3)
                seen.append(
                    (found.text, found.value, found.variant, found.version, found.reasons, found.to_dict().keys())
                )
            seen.append(store.get("svc", "k", elsewhere, variant=scoped))
            seen.append(store.bump("svc", "k", context=here)["hint"]["use_count"])
            seen.append([row["hint"]["value"] for row in store.query(context=here)["hints"]])
            seen.append([row["hint"]["value"] for row in store.query(context=elsewhere)["hints"]])
            seen.append({name: list(component) for name, component in view.components.items()})
            seen.append(store.why("svc", "k", here)["verdict"])
            seen.append(store.env_names())
            # A context without an environment does not mean an empty environment.
            for silent in (None, {"cwd": "/work/svc"}, nudge.Context(cwd="/work/svc"), nudge.Context()):
                only = {"component": "svc", "key": "k", "variant": scoped, "context": silent}
                seen.append(refusal(store, "nudge.get_hint", only))
                why = store.why("svc", "k", silent)
                seen.append([why["verdict"], [row["conditions"] for row in why["variants"]]])
            seen.append(store.call("nudge.query", {"context": here, "limit": 1})["hints"][0]["hint"]["value"])
            seen.append(
                store.bump("svc", "k", context=nudge.Context(env={"STAGE": "test", "CI": "1"}))["hint"]["value"]
            )
            seen.append(store.list_components())
            seen.append([refusal(store, *call) for call in REFUSED])
            seen.append(store.delete("svc", "k", all=True)["deleted_count"])
            seen.append(store.undo()["restored"])
            answers.append(seen)
        assert answers[0] == answers[1]
        assert own.status()["role"] == "LIBRARY"
        assert session.status()["role"] == "PRIMARY"


REFUSED: list[tuple[str, Any]] = [
    ("nudge.no_such_method", {}),
    *(("nudge.query", params) for params in ("[]", " null ", "5", '"x"')),
    *(("nudge.list_components", params) for params in ("[]", "null", "5")),
    ("nudge.query", {"limit": 0}),
    ("nudge.get_hint", {"component": "no", "key": "k"}),
    ("nudge.set_hint", {"component": "c", "key": "k", "value": "v", "if_match_version": 3}),
    ("nudge.set_hint", {"component": "c", "key": "k", "value": "v", "meta": {"scope": {"cwd_glob": "../a"}}}),
    ("nudge.set_hint", {"component": "c", "key": "k", "value": "AKIA" + "IOSFODNN7" + "QQQQQQQ"}),
]


def refusal(store: nudge.Store, method: str, params: Any) -> tuple[str, int, str, Any]:
    """Returns the error that a call raises."""
    with pytest.raises(nudge.NudgeError) as refused:
        store.call(method, params)
    return type(refused.value).__name__, refused.value.code, str(refused.value), refused.value.data


def test_of_the_environment_only_what_is_asked_for_travels(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(500):
        monkeypatch.setenv(f"MANY_{number}", "x" * 1000)
    monkeypatch.setenv("STAGE", "test")
    store = nudge.connect(server.runtime)
    store.set("svc", "k", "v", scope={"env_match": {"STAGE": "test"}})
    here = nudge.Context.detect()
    assert store.get("svc", "k", here) is not None
    assert store.call("nudge.get_hint", {"component": "svc", "key": "k", "context": here})["hint"]["value"] == "v"


def test_who_deleted_is_known(server: Server) -> None:
    for name, shown in [("my-agent/1", "my-agent/1"), (None, f"python/{nudge.__version__}")]:
        store = nudge.connect(server.runtime, name=name)
        store.set("svc", "k", "v")
        store.delete("svc", "k")
        assert store.deletions()["deletions"][0]["by"] == shown


def test_the_runtime_directory_of_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUDGE_RUNTIME_DIR", str(server.runtime))
    with nudge.connect() as store:
        assert store.list_components() == {"components": []}

    class Mine(nudge.Store):
        pass

    assert isinstance(Mine.connect(), Mine)


def test_without_a_session(tmp_path: Path) -> None:
    for runtime in (tmp_path / "none", tmp_path):
        with pytest.raises(nudge.UnavailableError, match="nudge serve") as refused:
            nudge.connect(runtime)
        assert isinstance(refused.value, ConnectionError)
        assert refused.value.code == 50301
    with pytest.raises((nudge.UnavailableError, ValueError)):
        nudge.connect("a\0b")


def test_a_closed_connection_refuses(server: Server) -> None:
    with nudge.connect(server.runtime) as store:
        view = store.view()
    for call in (lambda: store.get("a", "b"), lambda: view.get("a", "b"), store.status):
        with pytest.raises(nudge.UnavailableError, match="The store is closed; open a new one"):
            call()
    assert repr(store) == "<nudge.Store of the session, closed>"


def test_the_next_primary_has_every_hint(server: Server) -> None:
    first = server.primary(lambda pid: True)
    server.start()
    wait_for("the second member", lambda: True if len(list(members(server))) > 1 else None)
    store = nudge.connect(server.runtime)
    store.set("svc", "k", "v")
    server.kill(first)
    found = store.get("svc", "k")
    assert found is not None
    assert found.text == "v"
    assert server.primary(lambda pid: pid != first)


def members(server: Server) -> list[Any]:
    """Returns the other processes of the session, as its PRIMARY reports them."""
    with nudge.connect(server.runtime) as store:
        return [0, *store.status().get("proxies", [])]


def test_a_server_that_is_killed_and_replaced(server: Server) -> None:
    store = nudge.connect(server.runtime)
    view = store.view()
    store.set("svc", "k", "v")
    first = server.primary(lambda pid: True)
    server.kill(first)
    begun = time.monotonic()
    with pytest.raises(nudge.UnavailableError, match="nudge serve"):
        store.get("svc", "k")
    assert time.monotonic() - begun < 10
    server.start()
    server.primary(lambda pid: pid != first)
    # The old session had no member left, so this is a new, empty session.
    assert view.get("svc", "k") is None
    store.set("svc", "k", "v2")
    found = view.get("svc", "k")
    assert found is not None
    assert found.text == "v2"


def test_threads_share_a_connection(server: Server) -> None:
    store = nudge.connect(server.runtime)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(50):
                store.set("svc", f"k{number}", str(number))
                found = store.get("svc", f"k{number}")
                assert found is not None
                assert found.text == str(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert store.status()["hints"] == 8


# The child must react to SIGINT: a background process of a shell ignores it, and its children inherit that.
HEARING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"

INTERRUPTED = f"""
{HEARING}
import nudge, sys, time
store = nudge.connect(sys.argv[1])
store.set("svc", "k", "v")
end = time.monotonic() + 60
try:
    print("ready", flush=True)
    while time.monotonic() < end:
        store.get("svc", "k")
except KeyboardInterrupt:
    assert store.get("svc", "k").text == "v"
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_between_calls(server: Server) -> None:
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED, server.runtime], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "interrupted\n"
    child.stdout.close()
    assert child.wait(20) == 0


STOPPED = f"""
{HEARING}
import nudge, sys, threading
store, other = nudge.connect(sys.argv[1]), nudge.connect(sys.argv[1])
def call():
    try:
        other.get("svc", "k")
    except nudge.UnavailableError:
        pass
first = threading.Thread(target=call)
try:
    print("ready", flush=True)
    sys.stdin.readline()
    first.start()
    print("calling", flush=True)
    store.get("svc", "k")
    print("answered", flush=True)
except KeyboardInterrupt:
    print("interrupted", "before" if first.is_alive() else "after", flush=True)
first.join()
assert store.get("svc", "k") is None
"""


# Promise (bindings): Ctrl-C and a cancelled task end a call that the session does not answer.
@pytest.mark.skipif(os.name == "nt", reason="stops a process by a signal")
def test_ctrl_c_while_the_server_does_not_answer(server: Server) -> None:
    primary = server.primary(lambda pid: True)
    child = subprocess.Popen(
        [sys.executable, "-c", STOPPED, server.runtime], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    os.kill(primary, signal.SIGSTOP)
    try:
        child.stdin.write("go on\n")
        child.stdin.close()
        assert child.stdout.readline() == "calling\n"
        wait_for("the call", lambda: True if waits(child.pid) else None)
        child.send_signal(signal.SIGINT)
        # The server is suspended, so an earlier call of another thread still waits for its longer time limit.
        assert child.stdout.readline() == "interrupted before\n"
    finally:
        os.kill(primary, signal.SIGCONT)
    assert child.stdout.read() == ""
    child.stdout.close()
    assert child.wait(20) == 0


def waits(pid: int) -> bool:
    """Returns true while a process waits for an answer."""
    try:
        return "poll" in Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return True
