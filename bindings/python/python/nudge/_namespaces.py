"""Sources other than the hints: `store.demo.add(name="a")` calls `nudge.demo.add`.

The session decides which sources exist, so this file names none. Type checkers read `_sources.pyi`, which is generated
from the same method table.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from nudge._errors import NudgeError, UnknownMethodError
from nudge._nudge import NativeStore

#: The row of a method, as `nudge.methods` returns it.
Row: TypeAlias = dict[str, Any]
#: The rows by source and verb. Both have the names of Python attributes.
Table: TypeAlias = dict[str, dict[str, Row]]


def _attribute(name: str) -> str:
    """Converts a name of the method table to a Python name: `add-many` becomes `add_many`, and `import` becomes
    `import_`."""
    name = name.replace("-", "_").replace(".", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def _ask(store: NativeStore) -> Table:
    """Reads the methods of the session's sources."""
    try:
        told = store.call("nudge.methods")
    except UnknownMethodError:
        # A store of this process has only hints, and no such method.
        return {}
    table: Table = {}
    for row in told["methods"]:
        source = row.get("source")
        # Methods of the hints have no prefix. They are methods of the store itself.
        if source and (verb := row["name"].removeprefix(f"nudge.{source}.")) != row["name"]:
            table.setdefault(_attribute(source), {})[_attribute(verb)] = row
    return table


class Namespaces(NativeStore):
    """Gives `Store` an attribute for each source of the session."""

    __slots__ = ()

    #: The sources that the session last reported. `Store` has the slot for this attribute.
    _table: Table

    if not TYPE_CHECKING:
        # Hidden from type checkers, because with this method they would accept every misspelt method as a source.
        def __getattr__(self, name: str) -> Namespace:
            return self._namespace(name)

    def __dir__(self) -> list[str]:
        try:
            sources = list(self._sources())
        except NudgeError:
            sources = []
        return [*super().__dir__(), *sources]

    def _sources(self, *, again: bool = False) -> Table:
        """Returns the sources of the session. Asks the session only once, or again if `again` is true."""
        table: Table | None = None if again else getattr(self, "_table", None)
        if table is None:
            table = self._table = _ask(self)
        return table

    def _verbs(self, source: str, wanted: str | None = None) -> dict[str, Row]:
        """Returns the rows of a source. Asks the session again if the source or the wanted verb is unknown: a new
        server may have it."""
        verbs = self._sources().get(source, {})
        if not verbs or (wanted is not None and wanted not in verbs):
            verbs = self._sources(again=True).get(source, {})
        return verbs

    def _namespace(self, name: str) -> Namespace:
        # Python, copy and pickle look up names that begin with `_`. No source has such a name.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        if not self._verbs(name):
            there = ", ".join(sorted(self._sources())) or "none"
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}, and there is no such source. Sources here, "
                f"besides the hints: {there}. A store of this process's own has hints alone.",
                name=name,
                obj=self,
            )
        return Namespace(self, name)


class Namespace:
    """A source of the session. It has the methods of the method table, with keyword arguments only.

    A method returns its answer as dicts and lists, and raises its errors. None means "not given".
    """

    __slots__ = ("_source", "_store")

    def __init__(self, store: Namespaces, source: str) -> None:
        self._store = store
        self._source = source

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(f"'Namespace' object has no attribute {name!r}", name=name, obj=self)
        verbs = self._store._verbs(self._source, name)
        if name not in verbs:
            there = ", ".join(sorted(verbs)) or "none"
            raise AttributeError(
                f"The source {self._source} has no method {name!r}. It has: {there}.", name=name, obj=self
            )
        return _method(self._store, f"{self._source}.{name}", verbs[name])

    def __dir__(self) -> list[str]:
        try:
            verbs = list(self._store._verbs(self._source))
        except NudgeError:
            verbs = []
        return [*super().__dir__(), *verbs]

    def __repr__(self) -> str:
        return f"<nudge source {self._source} of {self._store!r}>"


def _method(store: NativeStore, name: str, row: Row) -> Callable[..., Any]:
    """Makes a function for a method of the table."""
    schemas: dict[str, Row] = row["params"].get("properties", {})
    options = {_attribute(param): param for param in schemas}
    takes_context = row["context"] != "none"

    def method(**given: Any) -> Any:
        params = {options.get(option, option): value for option, value in given.items() if value is not None}
        context = params.pop("context", None) if takes_context else None
        return store._call_in(context, row["name"], params)

    described = [
        f"`{option}`: {schemas[param].get('description', '')}".rstrip(": ") for option, param in options.items()
    ]
    method.__name__ = name.rpartition(".")[2]
    method.__qualname__ = name
    method.__doc__ = "\n".join([row["description"], *([""] if described else []), *described])
    return method
