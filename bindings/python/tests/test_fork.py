"""Tests the state of stores after a fork, as the README describes it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import nudge
from kit import PATIENCE_S, Server

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    # Python warns about a fork of a process with threads, which these tests need.
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


def in_child(work: Callable[[], None]) -> None:
    """Runs a function in a forked child. A child that hangs is killed, and the test fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(int(PATIENCE_S))
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_store_in_process_is_the_child_s_own_copy(store: nudge.Store) -> None:
    store.set("api", "k", "before")
    view = store.view()
    view.get("api", "k")

    def child() -> None:
        for found in (store.get("api", "k"), view.get("api", "k")):
            assert found is not None
            assert found.text == "before"
        store.set("api", "k", "the child's")
        assert store.query()["hints"]
        store.close()

    in_child(child)
    found = store.get("api", "k")
    assert found is not None
    assert found.text == "before"


def test_a_fork_while_other_threads_are_inside_the_store(store: nudge.Store) -> None:
    store.set("api", "k", "v")
    stop = threading.Event()

    def busy(number: int) -> None:
        view = store.view()
        while not stop.is_set():
            store.set("api", f"k{number}", "v")
            store.query(component="api")
            assert view.get("api", "k") is not None

    threads = [threading.Thread(target=busy, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()

    def child() -> None:
        for number in range(20):
            store.set("api", f"c{number}", "v")
            assert store.get("api", f"c{number}") is not None
            assert store.export()["payload"]

    try:
        for _ in range(30):
            in_child(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_forks_from_several_threads(store: nudge.Store) -> None:
    def forks() -> None:
        for _ in range(10):
            in_child(lambda: store.set("api", "k", "v") and None)
            store.set("api", "k", "v")

    threads = [threading.Thread(target=forks) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S * 2)
    assert not any(thread.is_alive() for thread in threads)


def test_a_child_of_a_child(store: nudge.Store) -> None:
    store.set("api", "k", "v")
    in_child(lambda: in_child(lambda: in_child(lambda: store.set("api", "k", "v2") and None)))


def test_a_pool_of_forks(store: nudge.Store) -> None:
    store.set("api", "k", "v")
    global _shared
    _shared = store
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(look_up, ["k", "k", "none"]) == ["v", "v", None]
            with pytest.raises(nudge.NotFoundError, match="No such hint"):
                pool.map(remove, ["none"])


_shared: nudge.Store


def look_up(key: str) -> str | None:
    """Runs in a process of the pool."""
    found = _shared.get("api", key)
    return found.text if found else None


def remove(key: str) -> None:
    """Runs in a process of the pool."""
    _shared.delete("api", key)


def test_a_connected_store_goes_on_in_the_child(server: Server) -> None:
    store = nudge.connect(server.runtime)
    store.set("api", "k", "v")
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            assert store.get("api", "k") is not None

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()

    def child() -> None:
        for number in range(5):
            store.set("api", f"k{number}", "the child's")
            found = store.get("api", f"k{number}")
            assert found is not None
            assert found.text == "the child's"
        store.close()

    try:
        for _ in range(10):
            in_child(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    found = store.get("api", "k4")
    assert found is not None
    assert found.text == "the child's"


def test_a_child_that_closes_or_forgets_leaves_the_parent_connected(server: Server) -> None:
    store = nudge.connect(server.runtime)
    store.set("api", "k", "v")
    in_child(store.close)

    def forget() -> None:
        nonlocal store
        del store

    in_child(forget)
    assert store.get("api", "k") is not None


def test_the_child_connects_to_the_same_directory(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(server.runtime.parent)
    store = nudge.connect("run")
    store.set("api", "k", "v")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def child() -> None:
        os.chdir(elsewhere)
        assert store.get("api", "k") is not None

    in_child(child)
