"""Checks that results have the declared types."""

from __future__ import annotations

import types
import typing
from typing import Any, NotRequired, is_typeddict

import nudge
from kit import Server
from nudge import _types as t


def differences(kind: Any, value: Any, at: str) -> list[str]:
    """Lists the parts of `value` that are not of the type `kind`, in dicts and lists."""
    origin = typing.get_origin(kind)
    if origin is NotRequired:
        return differences(typing.get_args(kind)[0], value, at)
    if is_typeddict(kind) and isinstance(value, dict):
        hints = typing.get_type_hints(kind, include_extras=True)
        required = {name for name, hint in hints.items() if typing.get_origin(hint) is not NotRequired}
        out = [f"{at} has {name}" for name in value.keys() - hints.keys()]
        out += [f"{at} lacks {name}" for name in required - value.keys()]
        for name in value.keys() & hints.keys():
            out += differences(hints[name], value[name], f"{at}.{name}")
        return out
    if origin is list:
        assert isinstance(value, list), at
        return [line for item in value for line in differences(typing.get_args(kind)[0], item, f"{at}[]")]
    if origin in (typing.Union, types.UnionType):
        kinds = [one for one in typing.get_args(kind) if isinstance(one, type) and not is_typeddict(one)]
        loose = any(is_typeddict(one) for one in typing.get_args(kind))
        return [] if loose or isinstance(value, tuple(kinds)) else [f"{at} is {type(value).__name__}"]
    if isinstance(kind, type) and not is_typeddict(kind):
        return [] if isinstance(value, kind) else [f"{at} is {type(value).__name__}"]
    return []


def results(store: nudge.Store) -> dict[str, Any]:
    """Makes a result of every method, with every possible field."""
    scope: t.ScopeDict = {"branch": "dev", "env_match": {"STAGE": "test"}}
    here: t.ContextDict = {"branch": "dev", "env": {"STAGE": "test"}}
    out: dict[str, Any] = {
        "set": store.set(
            "api", "build", "make", tags=["t"], ttl="PT2H", scope=scope, priority=9, confidence=0.9, reason="r",
            source="agent", added_by="me", sensitivity="normal",
        ),
    }  # fmt: skip
    found = store.get("api", "build", here)
    assert found is not None
    out["get"] = found.to_dict()
    out["query"] = store.query(context=here)
    out["bump"] = store.bump("api", "build", context=here)
    out["suggest"] = store.suggest("start", context=here, client_session="s", confirm_ms=60_000)
    out["digest"] = store.digest("start", context=here, client_session="d", confirm_ms=60_000)
    out["told"] = store.told("s", out["suggest"]["ticket"])
    out["recall"] = store.recall("build it", context=here, limit=5, max_bytes=500, sources=["hints"])
    out["outcome"] = store.outcome("make", ok=False, exit_code=2, context=here, client_session="s")
    out["why"] = store.why("api", "build", here)
    out["env_names"] = store.env_names()
    out["list_components"] = store.list_components()
    out["export"] = store.export()
    out["status"] = store.status()
    out["stats"] = store.stats()
    out["delete"] = store.delete("api", "build")
    out["deletions"] = store.deletions()
    out["undo"] = store.undo()
    wrong = {"components": {"api": {"hints": {"bad": {"type": "no"}}}}}
    out["import_"] = store.import_(wrong)
    return out


def check(store: nudge.Store) -> None:
    methods = {name: getattr(nudge.Store, name) for name in results(nudge.Store())}
    assert len(methods) == len(nudge.methods())
    found = []
    for name, result in results(store).items():
        kind = t.GetResult if name == "get" else typing.get_type_hints(methods[name])["return"]
        assert is_typeddict(kind), name
        found += differences(kind, result, name)
    assert found == []


def test_a_store_answers_what_its_types_say(store: nudge.Store) -> None:
    check(store)


def test_a_session_answers_what_its_types_say(server: Server) -> None:
    server.start()
    with nudge.connect(server.runtime) as store:
        check(store)
        assert typing.get_type_hints(t.StatusResult).keys() == store.status().keys()


def test_the_systems_of_a_path_are_a_sequence() -> None:
    hint = typing.get_type_hints(t.PathValue)["os"]
    assert str not in typing.get_args(hint)
    with nudge.Store() as store:
        store.set("api", "k", {"type": "path", "abs": "/a", "os": ["linux"]})
        # If the type checker accepted this call, it would report the `type: ignore` comment as unused.
        try:
            store.set("api", "k", {"type": "path", "abs": "/a", "os": "linux"})  # type: ignore[arg-type]
        except nudge.InvalidError:
            return
    raise AssertionError("a string is accepted; widen the type")
