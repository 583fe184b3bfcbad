"""A store as mappings: component -> key -> match."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import TYPE_CHECKING, TypeVar

from nudge._errors import InvalidError, NotFoundError
from nudge._nudge import Match

if TYPE_CHECKING:
    from nudge._store import View

T = TypeVar("T")

#: The most rows of a query.
_MOST_ROWS = 1000


class _Live(Mapping[str, T]):
    """A live mapping: other threads and processes may change its content at any time."""

    __slots__ = ("_view",)

    def __init__(self, view: View) -> None:
        self._view = view

    @abstractmethod
    def _find(self, key: str) -> T | None:
        """Returns the value of a key."""

    @abstractmethod
    def _keys(self) -> list[str]:
        """Returns the current keys."""

    def _pairs(self) -> Iterator[tuple[str, T]]:
        for key in self._keys():
            if (value := self._find(key)) is not None:
                yield key, value

    def _look(self, key: object) -> T | None:
        """Returns the value of a key. Returns None for an object that cannot be a key."""
        try:
            return self._find(key) if isinstance(key, str) else None
        except InvalidError:
            return None

    def __getitem__(self, key: str) -> T:
        if (value := self._look(key)) is None:
            raise NotFoundError("Nothing that is stored under this name fits here; list() names what does.")
        return value

    def __contains__(self, key: object) -> bool:
        return self._look(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def items(self) -> ItemsView[str, T]:
        """Returns the names with their values. Skips names that are deleted during the loop."""
        return _Items(self)

    def values(self) -> ValuesView[T]:
        """Returns the values. Skips names that are deleted during the loop."""
        return _Values(self)


class _Items(ItemsView[str, T]):
    _mapping: _Live[T]

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return self._mapping._pairs()


class _Values(ValuesView[T]):
    _mapping: _Live[T]

    def __iter__(self) -> Iterator[T]:
        return (value for _, value in self._mapping._pairs())


class Component(_Live[Match]):
    """The hints of a component that fit a context, by key. Each key has its best variant.

    The mapping is no copy: each access reads the store. A loop goes over the keys that existed when the loop began.

    >>> with nudge.Store() as store:
    ...     _ = store.set("api", "build", "make api")
    ...     api = store.components["api"]
    ...     print(api["build"].text, list(api), "test" in api)
    make api ['build'] False
    """

    __slots__ = ("_name",)

    def __init__(self, view: View, name: str) -> None:
        super().__init__(view)
        self._name = name

    @property
    def name(self) -> str:
        """The component's name."""
        return self._name

    def _find(self, key: str) -> Match | None:
        return self._view.get(self._name, key)

    def _keys(self) -> list[str]:
        store = self._view.store
        rows = store.query(component=self._name, context=self._view.context, limit=_MOST_ROWS)["hints"]
        if len(rows) < _MOST_ROWS:
            return sorted({row["hint"]["key"] for row in rows})
        # The component may have more hints than a query returns.
        components = store.export(include_secrets=True)["payload"]["components"]
        keys = components[self._name]["hints"] if self._name in components else ()
        return sorted(key for key in keys if self._find(key) is not None)

    def __repr__(self) -> str:
        return f"<nudge.Component {self._name!r}>"


class Components(_Live[Component]):
    """All components of a store by name, each with the hints that fit a context.

    >>> with nudge.Store() as store:
    ...     _ = store.set("api", "build", "make api")
    ...     for name, component in store.components.items():
    ...         print(name, component["build"].text)
    api make api
    """

    __slots__ = ()

    def _find(self, key: str) -> Component | None:
        return Component(self._view, key) if key in self._keys() else None

    def _keys(self) -> list[str]:
        return [component["name"] for component in self._view.store.list_components()["components"]]

    def _pairs(self) -> Iterator[tuple[str, Component]]:
        return ((name, Component(self._view, name)) for name in self._keys())

    def __repr__(self) -> str:
        return f"<nudge.Components of {self._view.store!r}>"
