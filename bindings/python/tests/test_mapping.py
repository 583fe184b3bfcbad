"""Tests components as mappings."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import nudge


def test_components_are_mappings(store: nudge.Store) -> None:
    components = store.components
    assert isinstance(components, Mapping)
    assert (len(components), list(components), "api" in components) == (0, [], False)
    store.set("api", "build", "make")
    store.set("api", "test", "make test", scope={"branch": "dev"})
    store.set("web", "build", "npm run build")
    assert list(components) == ["api", "web"]
    assert components.get("none") is None
    with pytest.raises(KeyError):
        components["none"]
    api = components["api"]
    assert isinstance(api, Mapping)
    assert api.name == "api"
    # Without a context, a component has the hints that apply everywhere.
    assert (list(api), len(api)) == (["build"], 1)
    assert api["build"].text == "make"
    assert ("build" in api, "test" in api, "none" in api) == (True, False, False)
    with pytest.raises(nudge.NotFoundError):
        api["test"]
    dev = store.view({"branch": "dev"}).components["api"]
    assert {key: found.text for key, found in dev.items()} == {"build": "make", "test": "make test"}
    assert [found.text for found in dev.values()] == ["make", "make test"]
    assert repr(dev) == "<nudge.Component 'api'>"
    assert repr(components) == "<nudge.Components of <nudge.Store in process>>"


def test_what_no_key_can_be_is_no_key(store: nudge.Store) -> None:
    store.set("api", "build", "make")
    api = store.components["api"]
    for key in ("", "a\nb", "x" * 300, "\ud800", 5, None):
        assert key not in api
        assert key not in store.components
        for mapping in (api, store.components):
            assert mapping.get(key) is None  # type: ignore[arg-type]
            assert mapping.get(key, "default") == "default"  # type: ignore[arg-type]
            with pytest.raises(nudge.NotFoundError):
                mapping[key]  # type: ignore[index]


def test_every_component_is_listed_whatever_fits(store: nudge.Store) -> None:
    store.set("api", "build", "make", scope={"branch": "dev"})
    components = store.view({"branch": "main"}).components
    assert list(components) == ["api"]
    assert list(components["api"]) == []


def test_a_mapping_is_no_copy(store: nudge.Store) -> None:
    store.set("api", "a", "1")
    store.set("api", "b", "2")
    api = store.components["api"]
    seen = []
    for key, found in api.items():
        store.delete("api", "b")
        seen.append((key, found.text))
    assert seen == [("a", "1")]
    store.delete("api", "a")
    assert (len(api), "api" in store.components) == (0, False)


def test_a_component_larger_than_a_query() -> None:
    with nudge.Store(max_hints_per_component=2000) as store:
        hints = {f"k{n:04}": "v" for n in range(1500)}
        store.import_({"components": {"api": {"hints": hints}}})
        store.set("api", "dev", "v", scope={"branch": "dev"})
        store.set("api", "secret", "v", sensitivity="secret")
        assert list(store.components["api"]) == [*hints, "secret"]
        assert len(store.view({"branch": "dev"}).components["api"]) == 1502
