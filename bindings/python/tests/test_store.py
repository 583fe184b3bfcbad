"""Tests a store of this process through its public interface."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import weakref
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import nudge
from nudge import _types as t


def test_get_returns_a_match_that_tells_why(store: nudge.Store) -> None:
    assert store.get("api", "build") is None
    value: nudge.Value = {"type": "command", "cmd": "make dev", "shell": "bash"}
    stored = store.set("api", "build", value, scope={"branch": ["dev"]}, priority=9, confidence=0.9, tags=("a", "b"))
    assert stored["variants"] == 1
    assert stored["hint"]["meta"]["tags"] == ["a", "b"]
    found = store.get("api", "build", {"branch": "dev"})
    assert found is not None
    assert (found.value, found.text, found.version) == (value, "make dev", 1)
    assert found.variant == stored["hint"]["variant"] == found.hint["variant"]
    assert found.reasons == ("branch=dev allowed", "priority 9/10", "confidence 0.9")
    assert found.score == pytest.approx(sum(found.parts.values()))
    assert found.to_dict() == store.call(
        "nudge.get_hint", {"component": "api", "key": "build", "context": {"branch": "dev"}}
    )
    assert found.hint == stored["hint"]
    # The match returns a copy.
    found.hint["version"] = 7
    assert found.hint["version"] == 1
    for name in ("text", "score", "anything"):
        with pytest.raises(AttributeError):
            setattr(found, name, 1)


def test_a_match_stays_as_it_was(store: nudge.Store) -> None:
    store.set("api", "build", "make 1")
    found = store.get("api", "build")
    store.set("api", "build", "make 2")
    store.delete("api", "build")
    store.close()
    assert found is not None
    assert (found.text, found.version) == ("make 1", 1)


def test_values_of_every_kind(store: nudge.Store) -> None:
    values: list[tuple[nudge.Value, str]] = [
        ("plain", "plain"),
        ("žluťoučký 🐎", "žluťoučký 🐎"),
        ({"type": "path", "abs": "/etc/hosts"}, "/etc/hosts"),
        ({"type": "template", "format": "jinja", "body": "{{ a }}", "defaults": {"a": "1"}}, "{{ a }}"),
        ({"type": "json", "data": {"z": [1, 2.5, None, True], "a": {}}}, '{"z":[1,2.5,null,true],"a":{}}'),
    ]
    for value, text in values:
        store.set("api", "k", value)
        found = store.get("api", "k")
        assert found is not None
        assert (found.value, found.text) == (value, text)
        last: Any = found.value
    assert json.dumps(last["data"]) == '{"z": [1, 2.5, null, true], "a": {}}'


def test_values_may_be_any_mapping_and_hold_paths(store: nudge.Store) -> None:
    store.set("api", "k", MappingProxyType({"type": "path", "abs": Path("/a/b")}))  # type: ignore[arg-type]
    found = store.get("api", "k")
    assert found is not None
    assert found.text == "/a/b"

    @dataclass
    class Command:
        cmd: str
        shell: str | None = None
        type: str = "command"

    store.set("api", "k", Command("make"))  # type: ignore[arg-type]
    found = store.get("api", "k")
    assert found is not None
    assert found.value == {"type": "command", "cmd": "make"}


def test_durations(store: nudge.Store) -> None:
    rights: list[tuple[str | timedelta | None, str]] = [
        (timedelta(hours=2), "PT7200.000S"),
        ("PT2H", "PT2H"),
        ("2h", "PT2H"),
        (None, "session"),
    ]
    for ttl, stored in rights:
        hint = store.set("api", "k", "v", ttl=ttl)["hint"]
        assert hint["meta"]["ttl"] == stored
    wrongs: list[str | timedelta] = [timedelta(0), timedelta(seconds=-1), "1x", "P1M"]
    for wrong in wrongs:
        with pytest.raises(nudge.InvalidError):
            store.set("api", "k", "v", ttl=wrong)
    with nudge.Store(default_ttl=timedelta(minutes=1)) as short:
        assert short.set("api", "k", "v")["hint"]["meta"]["ttl"] == "PT60.000S"


def test_options_of_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    with nudge.Store(max_hints=1) as store:
        store.set("api", "a", "v")
        with pytest.raises(nudge.QuotaError) as full:
            store.set("api", "b", "v")
        assert full.value.data == {"reason": "E_QUOTA", "limit": "hints", "max": 1}
    monkeypatch.setenv("NUDGE_MAX_HINTS", "2")
    assert nudge.Store().status()["limits"]["hints"] == 5000
    assert nudge.Store(from_env=True).status()["limits"]["hints"] == 2
    assert nudge.Store(from_env=True, max_hints=3).status()["limits"]["hints"] == 3
    monkeypatch.setenv("NUDGE_MAX_HINTS", "two")
    with pytest.raises(nudge.InvalidError, match="NUDGE_MAX_HINTS"):
        nudge.Store(from_env=True)


def test_systems_of_a_scope(store: nudge.Store) -> None:
    @dataclass
    class Where:
        os: str
        branch: str | None = None

    scopes: list[Any] = [{"os": "macos"}, {"os": ["linux", "macos"]}, {"os": ("macos",)}, Where("macos")]
    for number, scope in enumerate(scopes):
        before = copy.deepcopy(scope)
        store.set("api", f"k{number}", "v", scope=scope)
        assert scope == before
        assert store.get("api", f"k{number}", {"os": "macos"}) is not None
        assert store.get("api", f"k{number}", {"os": "darwin"}) is not None
        assert store.get("api", f"k{number}", {"os": "windows"}) is None
    for wrong in ({"os": "beos"}, {"os": 5}, {"os": [5]}, {"os": [["macos"]]}, {"os": {"macos": 1}}):
        with pytest.raises(nudge.InvalidError):
            store.set("api", "wrong", "v", scope=wrong)


def test_a_context_is_a_param_of_a_call(store: nudge.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        monkeypatch.setenv(f"MANY_{number}", "x")
    monkeypatch.setenv("STAGE", "test")
    store.set("api", "k", "v", scope={"env_match": {"STAGE": "test"}, "branch": "dev"})
    here = nudge.Context(branch="dev", env={"STAGE": "test"})
    params = {"component": "api", "key": "k", "context": here}
    assert store.call("nudge.get_hint", params)["hint"]["value"] == "v"
    assert store.call("nudge.get_hint", MappingProxyType(params))["hint"]["value"] == "v"
    assert params["context"] is here
    with pytest.raises(nudge.NotFoundError):
        store.call("nudge.get_hint", params | {"context": nudge.Context(branch="dev")})
    store.set("api", "detected", "v", scope={"env_match": {"STAGE": "test"}})
    found = store.call(
        "nudge.get_hint", {"component": "api", "key": "detected", "context": nudge.Context.detect(), "variant": None}
    )
    assert found["hint"]["value"] == "v"
    assert len(store.call("nudge.query", {"context": nudge.Context.detect("/")})["hints"]) == 1
    with pytest.raises(nudge.InvalidError):
        store.call("nudge.get_hint", {"component": "api", "key": here})
    with pytest.raises(nudge.InvalidError):
        store.call("nudge.list_components", {"context": here, "surplus": here})


def test_conflicts_variants_and_undo(store: nudge.Store) -> None:
    store.set("api", "k", "1", if_match_version=0)
    with pytest.raises(nudge.ConflictError) as conflict:
        store.set("api", "k", "2", if_match_version=0)
    assert conflict.value.data["current_version"] == 1
    variant = store.set("api", "k", "dev", scope={"branch": "dev"})["hint"]["variant"]
    store.set("api", "k", "dev 2", variant=variant)
    there: nudge.ContextDict = {"branch": "dev"}
    found = store.get("api", "k", there, variant=variant)
    assert found is not None
    assert (found.text, found.version) == ("dev 2", 2)
    assert store.get("api", "k", variant=variant) is None
    unscoped = store.get("api", "k", there, variant="")
    assert unscoped is not None
    assert unscoped.text == "1"
    with pytest.raises(nudge.InvalidError):
        store.delete("api", "k")
    assert store.delete("api", "k", all=True)["deleted_count"] == 2
    assert store.undo()["restored"] == 2


def test_export_and_import(store: nudge.Store) -> None:
    store.set("api", "k", "v", tags=["t"])
    payload = store.export()["payload"]
    with nudge.Store() as other:
        assert other.import_(payload)["imported"] == 1
        assert other.import_(payload, mode="replace")["imported"] == 1
        assert other.export()["payload"]["components"] == payload["components"]


def test_a_closed_store_refuses(store: nudge.Store) -> None:
    store.set("api", "k", "v")
    view, components = store.view(), store.components
    api = components["api"]
    assert not store.closed
    store.close()
    store.close()
    assert store.closed
    calls: list[Any] = [
        lambda: store.get("api", "k"),
        lambda: store.set("api", "k", "v"),
        lambda: store.call("nudge.status"),
        store.query,
        store.view,
        lambda: view.get("api", "k"),
        lambda: list(components),
        lambda: api["k"],
        lambda: "k" in api,
        lambda: "api" in components,
        lambda: api.get("k"),
        lambda: api.get(""),
    ]
    for call in calls:
        with pytest.raises(nudge.UnavailableError, match="The store is closed; open a new one"):
            call()
    assert repr(store) == "<nudge.Store in process, closed>"


def test_a_store_is_freed(store: nudge.Store) -> None:
    other = nudge.Store()
    gone = weakref.ref(other)
    view = other.view()
    del other
    gc.collect()
    assert gone() is not None, "the view needs it"
    del view
    gc.collect()
    assert gone() is None


def test_copying_and_pickling_are_refused(store: nudge.Store) -> None:
    store.set("api", "k", "v")
    for thing in (store, store.view()):
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=r"cannot be (copied|pickled).*; "):
                attempt(thing)
    context, found = nudge.Context(cwd="/a"), store.get("api", "k")
    for unchanging in (context, found):
        assert copy.copy(unchanging) is unchanging
        assert copy.deepcopy(unchanging) is unchanging
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(unchanging)
    with pytest.raises(TypeError):
        pickle.dumps(store.components)


def test_stores_may_be_subclassed() -> None:
    class Mine(nudge.Store):
        def build(self) -> str:
            found = self.get("api", "build")
            return found.text if found else "none"

    with Mine(max_hints=3) as store:
        assert isinstance(store, Mine)
        store.set("api", "build", "make")
        assert store.build() == "make"


def test_secrets_are_shown_by_get_alone(store: nudge.Store) -> None:
    secret = "hunter" + "2" * 20
    stored = store.set("api", "token", secret, sensitivity="secret")
    found = store.get("api", "token")
    assert found is not None
    assert found.text == found.value == secret
    shown = [
        stored,
        store.query(),
        store.bump("api", "token"),
        store.export(),
        found,
        store,
        store.view(),
        store.components,
    ]
    assert secret not in "".join(map(repr, shown)) + "".join(map(str, shown))
    refused = "AKIA" + "IOSFODNN7" + "QQQQQQQ"
    for key, value in [("k", refused), (refused, "v")]:
        with pytest.raises(nudge.SecretRejectedError) as error:
            store.set("api", key, value)
        assert refused not in str(error.value) + repr(error.value) + repr(error.value.data)
        assert error.value.data["rule"]


def test_a_match_shows_what_it_found(store: nudge.Store) -> None:
    def shown(value: Any, **options: Any) -> str:
        store.set("api", "k", value, **options)
        return repr(store.get("api", "k"))

    assert shown("make") == "Match(component='api', key='k', value='make', score=0.3000)"
    assert shown({"type": "command", "cmd": "make"}).startswith(
        "Match(component='api', key='k', value={'type': 'command', 'cmd': 'make'}, score="
    )
    assert shown("it's\n\x1b[31m").startswith("Match(component='api', key='k', value=\"it's\\n\\x1b[31m\", score=")
    assert len(shown("ü" * 20_000)) < 300
    secret = shown("open sesame", sensitivity="secret")
    assert "open sesame" not in secret
    assert "value='[secret]'" in secret
    found = store.get("api", "k")
    assert found is not None
    assert (found.component, found.key) == ("api", "k")


def listed(store: nudge.Store) -> list[tuple[str, str, t.Value]]:
    return [(hint["component"], hint["key"], hint["value"]) for hint in store]


def test_a_store_has_a_length_and_is_gone_over(store: nudge.Store) -> None:
    assert (len(store), listed(store), bool(store)) == (0, [], True)
    store.set("web", "build", "npm run build")
    store.set("api", "build", "make dev", scope={"branch": "dev"})
    store.set("api", "build", "make")
    store.set("api", "token", "open sesame", sensitivity="secret")
    whole = [
        ("api", "build", "make"),
        ("api", "build", "make dev"),
        ("api", "token", "[secret]"),
        ("web", "build", "npm run build"),
    ]
    assert (len(store), listed(store)) == (4, whole)
    # A hint that is stored during the loop appears in the next loop.
    for hint in store:
        store.set("more", hint["key"], "v")
    assert len(store) == 6
    assert store.query(component="web")["hints"][0]["hint"] in list(store)
    store.close()
    for call in (lambda: len(store), lambda: list(store)):
        with pytest.raises(nudge.UnavailableError):
            call()
    assert store
