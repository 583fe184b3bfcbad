"""Tests `nudge.aio`, the interface for `asyncio`."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import nudge
from kit import Server
from nudge import aio
from test_session import HEARING


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


def test_it_has_every_method_with_its_options() -> None:
    other = {"closed", "components", "connect", "view"}
    methods = {name for name in dir(nudge.Store) if not name.startswith("_")} - other
    assert {name for name in dir(aio.AsyncStore) if not name.startswith("_")} == methods | {"closed", "store"}
    for name in methods:
        method, awaited = getattr(nudge.Store, name), getattr(aio.AsyncStore, name)
        assert inspect.signature(awaited) == inspect.signature(method)
        assert (awaited.__doc__, awaited.__name__) == (method.__doc__, name)
        assert inspect.iscoroutinefunction(awaited)


def test_a_store_of_this_process(store: nudge.Store) -> None:
    async def story() -> None:
        async with aio.AsyncStore(store) as own:
            assert own.store is store
            stored = await own.set("api", "build", "make", tags=["x"])
            assert stored["variants"] == 1
            found = await own.get("api", "build")
            assert found is not None
            assert found.text == "make"
            assert [hint["key"] async for hint in own] == ["build"]
            with pytest.raises(nudge.InvalidError):
                await own.set("api", "", "make")
            with pytest.raises(nudge.InvalidError):
                await own.get("api", "build", {"barnch": "dev"})
            digest = await own.digest("prompt", prompt="build it")
            assert "api/build: make" in digest["text"]
            assert repr(own) == "<nudge.aio.AsyncStore of <nudge.Store in process>>"
        assert own.closed
        with pytest.raises(nudge.UnavailableError):
            await own.get("api", "build")

    run(story)


def test_no_call_is_made_on_the_loop(store: nudge.Store) -> None:
    class Context:
        threads: set[int]

        @property
        def branch(self) -> str:
            self.threads.add(threading.get_ident())
            return "dev"

    Context.threads = set()

    async def story() -> None:
        own = aio.AsyncStore(store)
        await own.get("api", "build", Context())
        await own.query(context=Context())
        assert len(Context.threads) >= 1
        assert threading.get_ident() not in Context.threads

    run(story)


def test_a_session(server: Server) -> None:
    async def story() -> None:
        async with aio.connect(server.runtime, name="test") as store:
            await asyncio.gather(*(store.set("api", f"k{n}", "v") for n in range(20)))
            assert len((await store.query(limit=30))["hints"]) == 20
            again = await aio.connect(server.runtime)
            assert [hint["key"] async for hint in again] == sorted(f"k{n}" for n in range(20))
            await again.close()
            with pytest.raises(nudge.UnavailableError):
                await again.status()
        assert store.closed

    run(story)


def test_without_a_session(tmp_path: Any) -> None:
    async def story() -> None:
        with pytest.raises(nudge.UnavailableError):
            await aio.connect(tmp_path / "none")
        with pytest.raises(nudge.UnavailableError):
            async with aio.connect(tmp_path / "none"):
                raise AssertionError("it is not opened")

    run(story)


def test_other_sources(demo_server: Server) -> None:
    async def story() -> None:
        async with aio.connect(demo_server.runtime) as store:
            demo: Any = getattr(store, "demo")  # noqa: B009
            await demo.add(name="a", text="b")
            assert (await demo.get(name="a"))["text"] == "b"
            with pytest.raises(nudge.NotFoundError):
                await demo.get(name="none")
            with pytest.raises(AttributeError):
                await demo.nothing()
            tools = await aio.tools(store)
            assert "nudge_demo_get" in tools
            assert not (await tools.call("nudge_demo_get", {"name": "a"})).is_error
            said = {"type": "tool_use", "id": "1", "name": "nudge_list_components", "input": {}}
            answer = await tools.answer(said)
            assert answer is not None
            assert answer["tool_use_id"] == "1"
            assert tools.anthropic() == tools.tools.anthropic()

    run(story)


# Promise: see `test_ctrl_c_while_the_server_does_not_answer`.
@pytest.mark.skipif(os.name == "nt", reason="stops a process by a signal")
def test_a_task_that_is_cancelled_gives_up_and_the_store_goes_on(server: Server) -> None:
    primary = server.primary(lambda pid: True)

    async def story() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        async with aio.connect(server.runtime) as store:
            await store.set("api", "k", "v")
            os.kill(primary, signal.SIGSTOP)
            try:
                # The call `patient` is never cancelled and keeps one of the two threads; all other calls share the
                # second.
                patient = asyncio.create_task(store.get("api", "k"))
                for _ in range(3):
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(store.get("api", "k"), 0.1)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(store.set("api", "k", "w", if_match_version=7), 0.1)
                # The second thread is free again, although the server still does not answer.
                await asyncio.to_thread(int)
                assert not patient.done()
            finally:
                os.kill(primary, signal.SIGCONT)
            found = await patient
            assert found is not None
            assert found.version == 1

    run(story)


INTERRUPTED = f"""
{HEARING}
import asyncio, nudge.aio, sys, threading
async def story():
    async with nudge.aio.connect(sys.argv[1]) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        other = threading.Thread(target=lambda: store.store.get("svc", "k"))
        other.start()
        call = asyncio.create_task(store.get("svc", "k"))
        await asyncio.sleep(0.05)
        print("calling", flush=True)
        try:
            await call
        finally:
            print("before" if other.is_alive() else "after", flush=True)
try:
    asyncio.run(story())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="stops a process by a signal")
def test_ctrl_c_ends_the_loop_while_the_server_says_nothing(server: Server) -> None:
    primary = server.primary(lambda pid: True)
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, server.runtime], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    os.kill(primary, signal.SIGSTOP)
    try:
        child.stdin.write("go on\n")
        child.stdin.close()
        assert child.stdout.readline() == "calling\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "before\n"
        # The loop can end its threads: Ctrl-C has given up the call that one of them waited for.
        assert child.stdout.readline() == "interrupted\n"
    finally:
        os.kill(primary, signal.SIGCONT)
    child.stdout.close()
    assert child.wait(20) == 0
