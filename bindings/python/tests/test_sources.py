"""Tests the other sources of a session, which are attributes of a connected store."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest

import nudge
from kit import Server, demo_binary, wait_for
from nudge._namespaces import _method


def attribute(thing: Any, *names: str) -> Any:
    """Reads an attribute that type checkers cannot find, because the demo is not part of the package."""
    for name in names:
        thing = getattr(thing, name)
    return thing


class Counting(nudge.Store):
    """Counts how often the methods are requested from the session."""

    asked = 0

    def call(self, method: str, params: Any = None) -> Any:
        type(self).asked += method == "nudge.methods"
        return super().call(method, params)


# Promise (bindings): Every source is called from Python, Node and C, typed, without code of its own there.
def test_a_source_is_an_attribute_and_its_verbs_are_methods(demo_server: Server) -> None:
    with nudge.connect(demo_server.runtime) as store:
        demo = attribute(store, "demo")
        note = {"name": "a", "text": "b", "tags": ["c"], "urgent": False}
        assert demo.add(name="a", text="b", tags=["c"], urgent=None) == {"note": note, "count": 1}
        assert demo.get(name="a") == note
        assert demo.list() == {"notes": [note]}
        assert repr(demo) == "<nudge source demo of <nudge.Store of the session>>"
        assert {"add", "get", "list", "wait"} <= set(dir(demo))
        assert {"demo", "get", "query"} <= set(dir(store))
        assert "Keeps a note." in demo.add.__doc__
        assert "`tags`: Words to find it by." in demo.add.__doc__
        assert demo.add.__name__ == "add"
        with pytest.raises(nudge.NotFoundError):
            demo.get(name="nothing")
        with pytest.raises(nudge.InvalidError):
            demo.add(name="a", txet="b")
        with pytest.raises(TypeError):
            demo.get("a")
        assert copy.copy(demo).get(name="a") == note


def test_what_other_sources_know_is_recalled(demo_server: Server) -> None:
    with nudge.connect(demo_server.runtime) as store:
        attribute(store, "demo").add(name="kettle", text="put the kettle on")
        store.set("kettle", "boil", "kettle --boil")
        found = store.recall("where is the kettle?")
        rows = {row["source"]: row for row in found["items"]}
        assert rows.keys() == {"demo", "hints"}
        assert set(rows["demo"]["match_explain"]["parts"]) == {"note", "word"}
        more = rows["demo"]["more"]
        assert store.call(more["method"], more["params"])["text"] == "put the kettle on"
        only = store.recall("where is the kettle?", sources=["hints"], context=nudge.Context(cwd="/work"))
        assert [row["source"] for row in only["items"]] == ["hints"]
        told = store.suggest("prompt", prompt="the kettle", limit=1)
        assert (len(told["suggestions"]), told["omitted"]) == (1, 1)
        assert sum(held["count"] for held in told["held_back"]) == 1


def test_a_context_travels_as_in_the_other_calls(demo_server: Server) -> None:
    # The method of the demo takes no context, so `context` is an unknown param.
    with nudge.connect(demo_server.runtime) as store:
        with pytest.raises(nudge.InvalidError, match="context"):
            attribute(store, "demo").get(name="a", context={"cwd": "/work"})
        row = next(row for row in store.call("nudge.methods")["methods"] if row["name"] == "nudge.query")
        query = _method(store, "hints.query", row)
        store.set("api", "build", "make dev", scope={"branch": "dev", "env_required": "CI"})
        for here in (nudge.Context(branch="dev", env={"CI": "1"}), {"branch": "dev", "env": {"CI": "1"}}):
            assert len(query(context=here)["hints"]) == 1
        assert query(context=None)["hints"] == []


def test_what_is_not_there_is_an_attribute_error_that_says_what_is(demo_server: Server) -> None:
    with nudge.connect(demo_server.runtime) as store:
        with pytest.raises(AttributeError, match=r"'nothing'.* hints: demo\. .*own has hints alone"):
            attribute(store, "nothing")
        with pytest.raises(AttributeError, match=r"demo has no method 'nothing'.* add, get, hang, list, wait"):
            attribute(store, "demo", "nothing")
        assert not hasattr(store, "hints")


def test_a_store_of_this_process_has_hints_alone(store: nudge.Store) -> None:
    with pytest.raises(AttributeError, match=r"hints: none\. .*own has hints alone"):
        attribute(store, "demo")
    assert "demo" not in dir(store)
    assert "query" in dir(store)


def test_the_session_is_asked_once_and_again_for_what_is_not_known(demo_server: Server) -> None:
    Counting.asked = 0
    with Counting.connect(demo_server.runtime) as store:
        store.status()
        for name in ("__wrapped__", "_private", "__deepcopy_", "_repr_html_"):
            assert not hasattr(store, name)
        inspect.unwrap(attribute(store, "set"))
        with pytest.raises(TypeError):
            copy.copy(store)
        assert Counting.asked == 0
        for _ in range(3):
            assert attribute(store, "demo").list() == {"notes": []}
        dir(store)
        assert Counting.asked == 1
        for name in ("__len__", "_verb"):
            assert not hasattr(attribute(store, "demo"), name)
        assert Counting.asked == 1
        assert not hasattr(store, "nothing")
        assert Counting.asked == 2
        assert not hasattr(attribute(store, "demo"), "nothing")
        assert Counting.asked == 3


def test_a_promotion_may_bring_others(server: Server) -> None:
    with_demo = demo_binary()
    if with_demo is None:
        pytest.skip("no nudge with the demo source: set NUDGE_DEMO_BIN")
    first = server.primary(lambda pid: True)
    with nudge.connect(server.runtime) as store:
        assert not hasattr(store, "demo")
        server.binary = with_demo
        second = server.start()
        wait_for("the second", lambda: store.status()["proxies"] or None)
        server.kill(first)
        server.primary(lambda pid: pid == second)
        assert attribute(store, "demo").list() == {"notes": []}


def test_the_names_of_a_closed_store_are_its_own(demo_server: Server) -> None:
    with nudge.connect(demo_server.runtime) as store:
        store.close()
        assert "query" in dir(store)
        with pytest.raises(nudge.UnavailableError):
            attribute(store, "demo")
