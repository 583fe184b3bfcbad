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

    `Store()` makes an empty store in this process; `nudge.connect()` returns the machine's running session. Both
    have the same methods. Any number of threads may use a store. A store is closed at the end of a `with` block, by
    `close()`, or when no variable refers to it any more.

    A store in this process has these options (None means the default):

    - `max_components` (500), `max_hints_per_component` (200), `max_hints` (5,000): the most components and hints
    - `max_bytes` (24 MiB): the most bytes of all hints in an export
    - `secret_guard` (True): refuses texts that look like credentials
    - `default_ttl` ("session"): the ttl of hints that are stored without one
    - `suggest_max` (20): the most suggestions to one client session in 10 minutes
    - `from_env` (False): reads options that are not given from environment variables (`NUDGE_MAX_COMPONENTS` ...)

    A connected store has the session's other sources as attributes: `store.demo.add(name="a")` calls
    `nudge.demo.add`. `dir(store)` lists these attributes.

    `len(store)` is the number of hints. A loop over a store goes over all hints that it had when the loop began, in
    the order of component, key and variant, whatever their scopes. The values of secrets are `"[secret]"`.

    Methods return the answers of the JSON surface as dicts; only `get` returns a `Match`. A refused call raises
    `InvalidError` or another subclass of `NudgeError`; a call of a closed store raises `UnavailableError`.

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
        """Returns the machine's running session; see `nudge.connect`."""
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
        # An empty store is true, so that `store or Store()` does not make another store.
        return True

    def __iter__(self) -> Iterator[t.Hint]:
        hints: list[t.Hint] = self._hints()
        return iter(hints)

    def view(self, context: ContextLike | None = None) -> View:
        """Returns a view: this store seen from one context, for repeated calls.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> here = store.view({"cwd": "/work/api"})
        >>> here.get("api", "build").text
        'make api'
        """
        return View(self, context)

    @property
    def components(self) -> Components:
        """All components by name. Each is a mapping of keys to matches.

        The mappings contain only hints that apply everywhere. `view(context).components` has the hints that fit a
        context.
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

        - `tags`: at most 32 tags of 1 to 64 bytes
        - `ttl`: "session", a timedelta, or a duration such as "2h" or "PT2H", counted from now
        - `scope`: where the hint applies; None means everywhere. "macos" stands for "darwin".
        - `priority`: 1 to 10 (5); `confidence`: 0 to 1 (0.5); `reason`: at most 2 KiB
        - `sensitivity`: "secret" hides the value and keeps it off the disk
        - `if_match_version`: the version that the stored hint must have; 0 means that no hint may be stored yet
        - `variant`: the variant to update; its scope stays
        - `allow_secret`: True if the secret guard's finding is a false alarm

        Raises, in this order: `InvalidError`, `ScopeInvalidError`, `SecretRejectedError`, `NotFoundError`
        (unknown `variant`), `ConflictError`, `QuotaError`.

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
        """Searches the hints that fit, and returns the best first.

        Returns at most `limit` rows (10; 1 to 1,000), without the values of secrets.

        A hint must have one of the `keys` and one of the `tags`, and every word of `text`, in any case. `regex`
        (unanchored, case-sensitive, at most 1 KiB) searches key, value and reason. `include_ineligible` adds hints
        that do not fit the context.

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
        """Counts a use of a hint, so that the hint ranks higher later.

        Adds `delta` uses (1; 1 to 1,000) to the variant that `get` returns in `context`, or to `variant`.

        Raises `NotFoundError`, and `InvalidError` when the key has several variants and neither `context` nor
        `variant` is given.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> store.bump("api", "build", 2)["hint"]["use_count"]
        2
        """
        params = {"component": component, "key": key, "delta": delta, "variant": variant}
        result: t.BumpResult = self._call_in(context, "nudge.bump", params)
        return result

    def delete(self, component: str, key: str, *, variant: str | None = None, all: bool = False) -> t.DeleteResult:
        """Deletes a hint, one of its variants, or all its variants.

        A key with several variants needs `variant` or `all`. `undo` restores deleted hints.

        Raises `NotFoundError`, and `InvalidError` when the key has several variants and neither `variant` nor `all`
        is given.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> store.delete("api", "build")["deleted_count"]
        1
        """
        params = {"component": component, "key": key, "variant": variant, "all": all}
        result: t.DeleteResult = self.call("nudge.delete_hint", params)
        return result

    def list_components(self) -> t.ComponentsResult:
        """Lists the components, each with the number of its hints.

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

        `import_` and the command `nudge import` accept the payload of the result.

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
        """Imports the payload of an export, or a payload that was written by hand.

        A payload by hand has the form `{"components": {NAME: {"hints": {KEY: value}}}}`.

        With the mode "merge" (the default), the hint with the later `updated_at` wins. "replace" empties the store
        first. A wrong hint is skipped, and the result lists it.

        Raises `InvalidError`, `SecretRejectedError` or `QuotaError`, and imports nothing in these cases.

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
        """Lists the environment variables that the scopes of the matching hints mention.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api", scope={"env_required": "CI"})
        >>> store.env_names(component="api")["names"]
        ['CI']
        """
        params = {"component": component, "key": key, "variant": variant, "keys": keys, "tags": tags}
        result: t.EnvNamesResult = self.call("nudge.env_names", params)
        return result

    def why(self, component: str, key: str, context: ContextLike | None = None) -> t.WhyResult:
        """Explains why `get` returns a certain hint, or why it returns none.

        The answer has every variant, with each condition and each term of its score.

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
        """Restores deleted or replaced hints in their earlier state.

        Restores the last deletion or replacement when `id` is None. Skips hints that were stored again or have
        expired since.

        Raises `NotFoundError`, `ConflictError` (all hints were stored again), `QuotaError`.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api"), store.delete("api", "build")
        >>> store.undo()["restored"]
        1
        """
        result: t.UndoResult = self.call("nudge.undo", {"id": id})
        return result

    def stats(self) -> t.StatsResult:
        """Returns the number of lookups and suggestions, and the outcomes.

        In a store of this process, `get` does not count as a lookup, but `call` and `query` do.

        >>> nudge.Store().stats()["suggestions"]
        0
        """
        result: t.StatsResult = self.call("nudge.stats")
        return result

    def status(self) -> t.StatusResult:
        """Returns the size and the limits of the store.

        >>> nudge.Store(max_hints=10).status()["limits"]["hints"]
        10
        """
        result: t.StatusResult = self.call("nudge.status")
        return result


class View(NativeView):
    """A store seen from one context. Make one view for each context and keep it.

    A view of a store in this process remembers which scopes fit, so repeated calls are fast. Any number of threads may
    use a view while its store is open.

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
        """The store of this view."""
        return self._store

    @property
    def components(self) -> Components:
        """All components by name. Each is a mapping of keys to the matches that fit the view's context.

        A component without a hint that fits is an empty mapping.
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
    """Returns, as a `Store`, the session that the `nudge serve` processes of this machine share.

    The session is that of `runtime_dir`, or else of the environment variable `NUDGE_RUNTIME_DIR`, or else of the
    default directory. `name` is the name of this caller, for users who later ask which client changed a hint.

    When a server dies, calls continue with the next server. A call waits at most 7 seconds, and Ctrl-C ends the wait.
    A call sends only those environment variables of its context that scopes mention.

    Raises `UnavailableError` when no session runs.
    """
    return Store.connect(runtime_dir, name=name)
