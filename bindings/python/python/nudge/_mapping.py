"""A store as mappings: component -> key -> match."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import TYPE_CHECKING

from nudge._errors import InvalidError, NotFoundError
from nudge._nudge import Match

if TYPE_CHECKING:
    from nudge._store import View

#: Most rows of a query.
_MOST_ROWS = 1000


class Component(Mapping[str, Match]):
    """The hints of a component that fit a context, by key; the best variant of each.

    It is no copy: it shows what the store has when it is asked. Iterating goes over the keys there were
    when it began.

    >>> with nudge.Store() as store:
    ...     _ = store.set("api", "build", "make api")
    ...     api = store.components["api"]
    ...     print(api["build"].text, list(api), "test" in api)
    make api ['build'] False
    """

    __slots__ = ("_view", "name")

    def __init__(self, view: View, name: str) -> None:
        self._view = view
        #: The component's name.
        self.name = name

    def __getitem__(self, key: str) -> Match:
        found = self._view.get(self.name, key)
        if found is None:
            raise NotFoundError("Nothing that is stored under this key fits here; list() names the keys that do.")
        return found

    def __contains__(self, key: object) -> bool:
        try:
            return isinstance(key, str) and self._view.get(self.name, key) is not None
        except InvalidError:
            if self._view.store.closed:
                raise
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def items(self) -> ItemsView[str, Match]:
        """Keys with their matches; what is deleted meanwhile is passed over."""
        return _Items(self)

    def values(self) -> ValuesView[Match]:
        """The matches; what is deleted meanwhile is passed over."""
        return _Values(self)

    def _keys(self) -> list[str]:
        store = self._view.store
        rows = store.query(component=self.name, context=self._view.context, limit=_MOST_ROWS)["hints"]
        if len(rows) < _MOST_ROWS:
            return sorted({row["hint"]["key"] for row in rows})
        # There may be more than a query lists.
        payload = store.export(component=self.name, include_secrets=True)["payload"]
        keys = payload["components"][self.name]["hints"]
        return sorted(key for key in keys if self._view.get(self.name, key) is not None)

    def __repr__(self) -> str:
        return f"<nudge.Component {self.name!r}>"


class _Items(ItemsView[str, Match]):
    _mapping: Component

    def __iter__(self) -> Iterator[tuple[str, Match]]:
        for key in self._mapping:
            if (found := self._mapping.get(key)) is not None:
                yield key, found


class _Values(ValuesView[Match]):
    _mapping: Component

    def __iter__(self) -> Iterator[Match]:
        for _, found in self._mapping.items():
            yield found


class Components(Mapping[str, Component]):
    """The components of a store, by name, as they are seen from a context.

    >>> with nudge.Store() as store:
    ...     _ = store.set("api", "build", "make api")
    ...     for name, component in store.components.items():
    ...         print(name, dict(component.items())["build"].text)
    api make api
    """

    __slots__ = ("_view",)

    def __init__(self, view: View) -> None:
        self._view = view

    def __getitem__(self, name: str) -> Component:
        if name not in self._names():
            raise NotFoundError("No such component is stored; list() names them.")
        return Component(self._view, name)

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def _names(self) -> list[str]:
        return [component["name"] for component in self._view.store.list_components()["components"]]

    def __repr__(self) -> str:
        return f"<nudge.Components of {self._view.store!r}>"
