"""The store, its methods with their options, and views of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from os import PathLike, fsdecode
from types import TracebackType
from typing import Any, Literal, NoReturn, Self

from nudge import _types as t
from nudge._mapping import Components
from nudge._nudge import NativeView, __version__, own, session
from nudge._params import duration, wire_scope
from nudge._telling import Telling
from nudge._types import ContextLike


class Store(Telling):
    """A store of hints: component -> key -> the best variant for a context, and why.

    `Store()` makes an empty one in this process; `nudge.connect()` gives the machine's running session. Both
    answer the same methods. A store may be used by any number of threads; it is closed at the end of a
    `with` block, or by `close()`, or when nothing refers to it.

    Options of a store in this process (None is the default): at most `max_components` (500),
    `max_hints_per_component` (200), `max_hints` (5,000) and `max_bytes` exported (24 MiB); `secret_guard`
    (True) refuses texts that look like credentials; `default_ttl` ("session") is the ttl of hints stored
    without one; `suggest_max` (20) bounds suggestions in 10 minutes. `from_env` takes those that are not
    given from the environment variables `NUDGE_MAX_COMPONENTS` and so on.

    A connected store has the session's other sources as attributes: `store.demo.add(name="a")` is `nudge.demo.add`.
    `dir(store)` lists them.

    `len(store)` is the number of hints, and a loop over a store goes over all of them as they were when it began, by
    component, key and variant, wherever they apply; the values of secrets are `"[secret]"`.

    Methods return what the JSON surface returns, as dicts; only `get` returns a `Match`. They raise
    `InvalidError` and the other subclasses of `NudgeError`; those of a closed store `UnavailableError`.

    >>> with nudge.Store() as store:
    ...     stored = store.set("http-proxy", "build", "docker compose build router",
    ...                        scope={"cwd_glob": "**/http-proxy*"}, tags=["build"], priority=8)
    ...     here = nudge.Context(cwd="/work/http-proxy", os="linux")
    ...     found = store.get("http-proxy", "build", here)
    >>> found.text, found.reasons
    ('docker compose build router', ('cwd matched **/http-proxy*', 'priority 8/10'))
    >>> len(store := nudge.Store()), bool(store), [hint["key"] for hint in store]
    (0, True, [])
    """

    __slots__ = ("__weakref__", "_table")

    def __new__(
        cls,
        *,
        max_components: int | None = None,
        max_hints_per_component: int | None = None,
        max_hints: int | None = None,
        max_bytes: int | None = None,
        secret_guard: bool | None = None,
        default_ttl: str | timedelta | None = None,
        suggest_max: int | None = None,
        from_env: bool = False,
    ) -> Self:
        options = {
            "max_components": max_components,
            "max_hints_per_component": max_hints_per_component,
            "max_hints": max_hints,
            "max_bytes": max_bytes,
            "secret_guard": secret_guard,
            "default_ttl": duration(default_ttl),
            "suggest_max": suggest_max,
        }
        return super().__new__(cls, own(options, from_env))

    @classmethod
    def connect(cls, runtime_dir: str | PathLike[str] | None = None, *, name: str | None = None) -> Self:
        """The machine's running session; see `nudge.connect`."""
        name = f"python/{__version__}" if name is None else name
        return super().__new__(cls, session(None if runtime_dir is None else fsdecode(runtime_dir), name))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __copy__(self) -> NoReturn:
        raise TypeError(
            "a Store cannot be copied: two would not see each other's hints; share this one, also between threads"
        )

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Store cannot be pickled; share hints between processes by nudge.connect(), or send store.export()"
        )

    def __len__(self) -> int:
        return self.status()["hints"]

    def __bool__(self) -> bool:
        # An empty store is true: `store or Store()` must not take another one.
        return True

    def __iter__(self) -> Iterator[t.Hint]:
        hints: list[t.Hint] = self._hints()
        return iter(hints)

    def view(self, context: ContextLike | None = None) -> View:
        """This store seen from one place, for repeated calls.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> here = store.view({"cwd": "/work/api"})
        >>> here.get("api", "build").text
        'make api'
        """
        return View(self, context)

    @property
    def components(self) -> Components:
        """All components, by name, each a mapping of keys to matches.

        Of their hints only what applies everywhere; `view(context).components` shows what fits a context.
        """
        return View(self).components

    def set(
        self,
        component: str,
        key: str,
        value: t.Value,
        *,
        tags: Sequence[str] | None = None,
        ttl: str | timedelta | None = None,
        scope: t.ScopeDict | Mapping[str, Any] | None = None,
        priority: int | None = None,
        confidence: float | None = None,
        reason: str | None = None,
        sensitivity: t.Sensitivity | None = None,
        source: t.Source | None = None,
        added_by: str | None = None,
        if_match_version: int | None = None,
        variant: str | None = None,
        allow_secret: bool = False,
    ) -> t.SetResult:
        """Stores a hint, or updates the variant with an equal scope.

        At most 32 `tags` of 1 to 64 bytes; `ttl` is "session", a duration such as "2h" or "PT2H", or a
        timedelta, from now on; `scope` says where the hint applies (everywhere when None), and "macos" in it is
        "darwin"; `priority` 1 to 10 (5), `confidence` 0 to 1 (0.5); `reason` at most 2 KiB;
        `sensitivity="secret"` hides the value and keeps it off the disk. `if_match_version` refuses unless that
        is the stored version (0: unless there is none); `variant` updates that one and keeps its scope;
        `allow_secret` says that the secret guard's finding is a false alarm.

        Raises, in this order: `InvalidError`, `ScopeInvalidError`, `SecretRejectedError`, `NotFoundError`
        (no such `variant`), `ConflictError`, `QuotaError`.

        >>> store = nudge.Store()
        >>> stored = store.set("api", "test", "make test", tags=["test"], ttl="PT2H", scope={"branch": "dev"})
        >>> stored["hint"]["version"], stored["variants"]
        (1, 1)
        """
        meta = {
            "tags": tags,
            "ttl": duration(ttl),
            "scope": wire_scope(scope),
            "priority": priority,
            "confidence": confidence,
            "reason": reason,
            "sensitivity": sensitivity,
            "source": source,
            "added_by": added_by,
        }
        params = {"component": component, "key": key, "value": value, "meta": meta}
        rest = {"if_match_version": if_match_version, "variant": variant, "allow_secret": allow_secret}
        result: t.SetResult = self.call("nudge.set_hint", params | rest)
        return result

    def query(
        self,
        *,
        component: str | None = None,
        keys: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        regex: str | None = None,
        text: str | None = None,
        context: ContextLike | None = None,
        limit: int | None = None,
        include_ineligible: bool = False,
    ) -> t.QueryResult:
        """Searches the hints that fit, best first.

        At most `limit` rows (10; 1 to 1,000). Values of secrets are not shown.

        `keys` and `tags`: any of them. `regex` (unanchored, case-sensitive, at most 1 KiB) searches key, value and
        reason; the words of `text` all stand in the hint, in any case. `include_ineligible` adds what does not fit.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api", tags=["build"])
        >>> [row["hint"]["key"] for row in store.query(tags=["build"])["hints"]]
        ['build']
        """
        params = {"component": component, "keys": keys, "tags": tags, "regex": regex, "text": text, "limit": limit}
        result: t.QueryResult = self._call_in(
            context, "nudge.query", params | {"include_ineligible": include_ineligible}
        )
        return result

    def bump(
        self,
        component: str,
        key: str,
        delta: int | None = None,
        *,
        context: ContextLike | None = None,
        variant: str | None = None,
    ) -> t.BumpResult:
        """Counts a use of a hint, which raises it for next time.

        `delta` uses (1; 1 to 1,000) of what `get` returns in `context`, or of `variant`.

        Raises `InvalidError` when there are several variants and neither is given, `NotFoundError`.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> store.bump("api", "build", 2)["hint"]["use_count"]
        2
        """
        params = {"component": component, "key": key, "delta": delta, "variant": variant}
        result: t.BumpResult = self._call_in(context, "nudge.bump", params)
        return result

    def delete(self, component: str, key: str, *, variant: str | None = None, all: bool = False) -> t.DeleteResult:
        """Deletes a hint, one of its variants, or all of them.

        Of several variants the one named, or `all`. `undo` brings it back.

        Raises `InvalidError` when there are several variants and neither is given, `NotFoundError`.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> store.delete("api", "build")["deleted_count"]
        1
        """
        params = {"component": component, "key": key, "variant": variant, "all": all}
        result: t.DeleteResult = self.call("nudge.delete_hint", params)
        return result

    def list_components(self) -> t.ComponentsResult:
        """Lists the components with the number of their hints.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> store.list_components()
        {'components': [{'name': 'api', 'hint_count': 1}]}
        """
        result: t.ComponentsResult = self.call("nudge.list_components")
        return result

    def export(
        self, *, component: str | None = None, include_secrets: bool = False, format: Literal["json"] | None = None
    ) -> t.ExportResult:
        """Exports the store, or one component.

        The payload is what `import_` and `nudge import` take.

        Raises `NotFoundError` for an unknown component.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> nudge.Store().import_(store.export()["payload"])["imported"]
        1
        """
        params = {"component": component, "include_secrets": include_secrets, "format": format}
        result: t.ExportResult = self.call("nudge.export", params)
        return result

    def import_(
        self,
        payload: Mapping[str, Any],
        *,
        mode: Literal["merge", "replace"] | None = None,
        allow_secret: bool = False,
    ) -> t.ImportResult:
        """Imports an export, or a payload written by hand.

        By hand it is `{"components": {NAME: {"hints": {KEY: value}}}}`.

        With "merge" (the default) the later `updated_at` wins; "replace" empties the store first. A wrong hint
        is skipped and listed.

        Raises `InvalidError`, `SecretRejectedError`, `QuotaError`; then nothing is imported.

        >>> store = nudge.Store()
        >>> store.import_({"components": {"api": {"hints": {"build": "make api"}}}})
        {'imported': 1, 'skipped': 0, 'errors': []}
        """
        params = {"payload": payload, "mode": mode, "allow_secret": allow_secret}
        result: t.ImportResult = self.call("nudge.import", params)
        return result

    def env_names(
        self,
        *,
        component: str | None = None,
        key: str | None = None,
        variant: str | None = None,
        keys: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
    ) -> t.EnvNamesResult:
        """Lists the environment variables that the scopes of the candidates mention.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api", scope={"env_required": "CI"})
        >>> store.env_names(component="api")["names"]
        ['CI']
        """
        params = {"component": component, "key": key, "variant": variant, "keys": keys, "tags": tags}
        result: t.EnvNamesResult = self.call("nudge.env_names", params)
        return result

    def why(self, component: str, key: str, context: ContextLike | None = None) -> t.WhyResult:
        """Explains the result of `get`, or why there is none.

        Every variant is there, with each condition and each part of its score.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api", scope={"branch": "dev"})
        >>> [c["met"] for c in store.why("api", "build", {"branch": "main"})["variants"][0]["conditions"]]
        [False]
        """
        result: t.WhyResult = self._call_in(context, "nudge.why", {"component": component, "key": key})
        return result

    def deletions(self) -> t.DeletionsResult:
        """Lists the last deletions and replacements, newest first.

        >>> nudge.Store().deletions()
        {'deletions': []}
        """
        result: t.DeletionsResult = self.call("nudge.deletions")
        return result

    def undo(self, id: int | None = None) -> t.UndoResult:
        """Brings back deleted or replaced hints, as they were, except for hints stored anew or expired since.

        The last, when `id` is None.

        Raises `NotFoundError`, `ConflictError` (all of it is stored anew), `QuotaError`.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api"), store.delete("api", "build")
        >>> store.undo()["restored"]
        1
        """
        result: t.UndoResult = self.call("nudge.undo", {"id": id})
        return result

    def stats(self) -> t.StatsResult:
        """Tells how often hints were asked for and suggested, and the outcomes.

        In process `get` does not count as asked for; `call` and `query` do.

        >>> nudge.Store().stats()["suggestions"]
        0
        """
        result: t.StatsResult = self.call("nudge.stats")
        return result

    def status(self) -> t.StatusResult:
        """Tells the stored numbers and the limits.

        >>> nudge.Store(max_hints=10).status()["limits"]["hints"]
        10
        """
        result: t.StatusResult = self.call("nudge.status")
        return result


class View(NativeView):
    """A store seen from one place; make one per context and keep it.

    In this process it remembers which scopes fit, so that repeated calls cost little. It may be used by any
    number of threads, and as long as its store is open.

    >>> store = nudge.Store()
    >>> _ = store.set("api", "build", "make dev", scope={"branch": "dev"})
    >>> view = store.view(nudge.Context(branch="dev"))
    >>> view.get("api", "build").text, view.get("api", "test")
    ('make dev', None)
    """

    __slots__ = ("_store",)

    _store: Store

    def __new__(cls, store: Store, context: ContextLike | None = None) -> Self:
        view = super().__new__(cls, store, context)
        view._store = store
        return view

    @property
    def store(self) -> Store:
        """The store it looks at."""
        return self._store

    @property
    def components(self) -> Components:
        """All components, by name, each a mapping of keys to the matches that fit here.

        A component in which nothing fits is an empty mapping.
        """
        return Components(self)

    def __repr__(self) -> str:
        return f"<nudge.View of {self._store!r} from {self.context!r}>"

    def __copy__(self) -> NoReturn:
        raise TypeError("a View cannot be copied; share it, also between threads")

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a View cannot be pickled; make one in each process from its store")


def connect(runtime_dir: str | PathLike[str] | None = None, *, name: str | None = None) -> Store:
    """The session that the `nudge serve` processes of this machine share, as a `Store`.

    It is found through `runtime_dir`, else the environment variable `NUDGE_RUNTIME_DIR`, else the default
    directory. `name` says who calls, for people who ask later who did what.

    Calls go on with the next server when one dies. They wait 7 seconds at the most, and Ctrl-C is heard
    meanwhile. Of the environment in a context only what scopes mention is sent.

    Raises `UnavailableError` when no session runs.
    """
    return Store.connect(runtime_dir, name=name)
