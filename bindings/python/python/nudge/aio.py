"""The store for `asyncio`: no call blocks the event loop.

>>> import asyncio
>>> async def story():
...     async with nudge.aio.AsyncStore(nudge.Store()) as store:
...         await store.set("api", "build", "make api")
...         return await store.get("api", "build")
>>> asyncio.run(story()).text
'make api'
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from nudge import _types as t
from nudge._namespaces import Namespace
from nudge._nudge import Patience
from nudge._store import Store
from nudge._tools import ToolAnswer, Tools

__all__ = ["AsyncStore", "AsyncTools", "connect", "tools"]

P = ParamSpec("P")
T = TypeVar("T")


async def _away(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls a function on a thread. A cancelled task stops waiting at once, and the thread then gives up the call."""
    patience = Patience()
    call = functools.partial(patience.call, functools.partial(function, *args, **kwargs))
    try:
        return await asyncio.to_thread(call)
    except asyncio.CancelledError:
        patience.end()
        raise


def _awaited(
    method: Callable[Concatenate[Store, P], T],
) -> Callable[Concatenate[AsyncStore, P], Coroutine[Any, Any, T]]:
    """Makes the awaitable form of a `Store` method, with its signature and documentation."""

    async def call(self: AsyncStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await _away(method, self.store, *args, **kwargs)

    call.__name__ = method.__name__
    call.__qualname__ = f"AsyncStore.{method.__name__}"
    call.__doc__ = method.__doc__
    call.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return call


class AsyncStore:
    """A `Store` whose methods are awaited. Names, options, results and errors are the same.

    Every call runs on a thread, so that it does not block the event loop. The synchronous store is `store`. If a task
    is cancelled while it waits for a session, the store stays usable, and the session may still carry out the call.
    `async for` goes over all hints, as a loop over a `Store` does. Other sources of a session are attributes here too:
    `await store.demo.add(name="a")`.
    """

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def store(self) -> Store:
        """The synchronous store."""
        return self._store

    @property
    def closed(self) -> bool:
        """True when the store is closed."""
        return self._store.closed

    get = _awaited(Store.get)
    set = _awaited(Store.set)
    query = _awaited(Store.query)
    bump = _awaited(Store.bump)
    delete = _awaited(Store.delete)
    list_components = _awaited(Store.list_components)
    export = _awaited(Store.export)
    import_ = _awaited(Store.import_)
    suggest = _awaited(Store.suggest)
    digest = _awaited(Store.digest)
    told = _awaited(Store.told)
    recall = _awaited(Store.recall)
    outcome = _awaited(Store.outcome)
    env_names = _awaited(Store.env_names)
    why = _awaited(Store.why)
    deletions = _awaited(Store.deletions)
    undo = _awaited(Store.undo)
    stats = _awaited(Store.stats)
    status = _awaited(Store.status)
    call = _awaited(Store.call)
    close = _awaited(Store.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[t.Hint]:
        for hint in await _away(list, self._store):
            yield hint

    if not TYPE_CHECKING:
        # Hidden from type checkers, because with this method they would accept every misspelt method as a source.
        def __getattr__(self, name: str) -> _AsyncNamespace:
            if name.startswith("_"):
                raise AttributeError(f"'AsyncStore' object has no attribute {name!r}", name=name, obj=self)
            return _AsyncNamespace(self._store, name)

    def __repr__(self) -> str:
        return f"<nudge.aio.AsyncStore of {self._store!r}>"


class _AsyncNamespace:
    """A source of a session. A call looks its method up on a thread, not on the event loop."""

    __slots__ = ("_source", "_store")

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if verb.startswith("_"):
            raise AttributeError(f"{self!r} has no attribute {verb!r}", name=verb, obj=self)

        def ask(given: dict[str, Any]) -> Any:
            source: Namespace = getattr(self._store, self._source)
            return getattr(source, verb)(**given)

        async def call(**given: Any) -> Any:
            return await _away(ask, given)

        return call

    def __repr__(self) -> str:
        return f"<nudge source {self._source} of {self._store!r}>"


class _Connecting:
    """A connection that `await` or `async with` opens."""

    __slots__ = ("_open", "_opened")

    def __init__(self, opened: Callable[[], Store]) -> None:
        self._open = opened
        self._opened: AsyncStore | None = None

    async def _connect(self) -> AsyncStore:
        return AsyncStore(await _away(self._open))

    def __await__(self) -> Generator[Any, None, AsyncStore]:
        return self._connect().__await__()

    async def __aenter__(self) -> AsyncStore:
        self._opened = await self._connect()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            await self._opened.close()


def connect(runtime_dir: str | PathLike[str] | None = None, *, name: str | None = None) -> _Connecting:
    """Opens the machine's running session as an `AsyncStore`, by `async with nudge.aio.connect() as store` or `await`.

    The options are those of `nudge.connect`.
    """
    return _Connecting(functools.partial(Store.connect, runtime_dir, name=name))


class AsyncTools:
    """`Tools` whose calls are awaited. `nudge.aio.tools` makes them."""

    __slots__ = ("_tools",)

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    @property
    def tools(self) -> Tools:
        """The synchronous tools, with their definitions."""
        return self._tools

    def anthropic(self) -> list[dict[str, Any]]:
        """Returns `Tools.anthropic`."""
        return self._tools.anthropic()

    def openai(self) -> list[dict[str, Any]]:
        """Returns `Tools.openai`."""
        return self._tools.openai()

    def responses(self) -> list[dict[str, Any]]:
        """Returns `Tools.responses`."""
        return self._tools.responses()

    async def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> ToolAnswer:
        """Does the same as `Tools.call`."""
        return await _away(self._tools.call, name, arguments)

    async def answer(self, said: Any) -> dict[str, Any] | None:
        """Does the same as `Tools.answer`."""
        return await _away(self._tools.answer, said)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __repr__(self) -> str:
        return f"<nudge.aio.AsyncTools of {self._tools.store!r}>"


async def tools(store: AsyncStore | Store | None = None, *, context: t.ContextLike | None = None) -> AsyncTools:
    """Does the same as `nudge.tools`, on a thread."""
    if isinstance(store, AsyncStore):
        store = store.store
    return AsyncTools(await _away(Tools, Store() if store is None else store, context))
