"""Passes wrong input of every kind. The error must be right, and the store must stay unchanged."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import nudge
from vectors import python_name

#: Values that a text argument must refuse.
NO_TEXT: list[Any] = [None, 5, 1.5, True, b"bytes", [], {}, object(), nudge.Store]
#: Texts that a name must refuse.
NO_NAME = ["", "a\0b", "a\nb", "x" * 257, "x" * 10_000_000, "\ud800", "a\udfffb"]


#: Options of a store that are counts.
COUNTS = ("max_components", "max_hints_per_component", "max_hints", "max_bytes", "suggest_max")


class Odd(Mapping[str, Any]):
    """A mapping that returns prepared answers."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def items(self) -> Any:
        return self._items


class Failing(Odd):
    """A mapping whose reads fail."""

    def items(self) -> Any:
        raise RuntimeError("not now")


def cyclic() -> list[Any]:
    """Makes a list that contains itself."""
    out: list[Any] = []
    out.append(out)
    return out


#: Values that JSON cannot hold.
NO_JSON: list[Any] = [
    object(), {1, 2}, b"bytes", 1j, float("nan"), float("inf"), 2**64, -(2**70), 10**5000, "\ud800", {1: 2}, {None: 1},
    {"a": {("t",): 1}}, {"\udfff": 1}, cyclic(), [[[object()]]], nudge.Store, lambda: None, Odd([(1, 2)]), range(3),
]  # fmt: skip


@pytest.fixture
def filled(store: nudge.Store) -> Iterator[nudge.Store]:
    """Gives a filled store, and checks after the test that it is unchanged."""
    store.set("api", "k", "v", tags=["t"])
    before = store.export(include_secrets=True)
    yield store
    assert store.export(include_secrets=True) == before


@pytest.mark.parametrize("wrong", NO_TEXT, ids=repr)
def test_what_is_no_text(filled: nudge.Store, wrong: Any) -> None:
    for call in (
        lambda: filled.get(wrong, "k"),
        lambda: filled.get("api", wrong),
        lambda: filled.view().get(wrong, "k"),
        lambda: filled.view().get("api", wrong),
        lambda: filled.call(wrong),
    ):
        with pytest.raises(TypeError, match="must be a str"):
            call()
    for call in (
        lambda: filled.set(wrong, "k", "v"),
        lambda: filled.set("api", wrong, "v"),
        lambda: filled.delete(wrong, "k"),
        lambda: filled.bump("api", wrong),
        lambda: filled.why(wrong, "k"),
        lambda: filled.outcome(wrong, True),
        lambda: filled.suggest(wrong),
    ):
        with pytest.raises(nudge.InvalidError):
            call()


@pytest.mark.parametrize("wrong", NO_NAME, ids=lambda wrong: repr(wrong)[:20])
def test_what_is_no_name(filled: nudge.Store, wrong: str) -> None:
    for call in (
        lambda: filled.get(wrong, "k"),
        lambda: filled.get("api", wrong),
        lambda: filled.view().get(wrong, "k"),
        lambda: filled.view().get("api", wrong),
        lambda: filled.set(wrong, "k", "v"),
        lambda: filled.set("api", wrong, "v"),
        lambda: filled.delete("api", wrong),
        lambda: filled.bump(wrong, "k"),
        lambda: filled.why("api", wrong),
        lambda: filled.query(component=wrong),
        lambda: filled.export(component=wrong),
    ):
        with pytest.raises(nudge.InvalidError) as refused:
            call()
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize("wrong", NO_JSON, ids=lambda wrong: type(wrong).__name__)
def test_what_has_no_place_in_json(filled: nudge.Store, wrong: Any) -> None:
    for method in nudge.methods():
        function = getattr(filled, python_name(method))
        parameters = inspect.signature(function).parameters
        required = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
        for option in parameters:
            if option == "context" or (method == "nudge.get_hint" and option in ("component", "key", "variant")):
                continue
            others: dict[str, Any] = dict.fromkeys(required, "v")
            if option == "component" and wrong == "\ud800":
                others = {}
            with pytest.raises((nudge.InvalidError, TypeError)) as refused:
                function(**(others | {option: wrong}))
            assert isinstance(refused.value, nudge.InvalidError) or not others, f"{method} {option}: {refused.value!r}"
    with pytest.raises(nudge.InvalidError):
        filled.call("nudge.query", {"limit": wrong})
    with pytest.raises(nudge.InvalidError):
        filled.call("nudge.query", wrong if not isinstance(wrong, Odd) else {"tags": wrong})


def test_a_mapping_that_fails_is_heard(filled: nudge.Store) -> None:
    with pytest.raises(RuntimeError, match="not now"):
        filled.set("api", "x", Failing([]))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="not now"):
        filled.call("nudge.query", Failing([]))
    for items in ([1], [(1,)], [(1, 2, 3)], 5):
        with pytest.raises((nudge.NudgeError, TypeError, ValueError)):
            filled.set("api", "x", Odd(items))  # type: ignore[arg-type]


def test_a_dict_that_changes_while_it_is_read(filled: nudge.Store) -> None:
    class Greedy(Odd):
        def items(self) -> Any:
            params.update({str(n): None for n in range(100)})
            return ()

    params: dict[str, Any] = {"component": Greedy([]), "key": "k"}
    with pytest.raises(nudge.InvalidError):
        filled.call("nudge.delete_hint", params)


def test_numbers(filled: nudge.Store) -> None:
    wrongs: dict[str, list[Any]] = {
        "priority": [0, 11, -1, 5.0, True, "5"],
        "confidence": [-0.1, 1.1, "1"],
        "if_match_version": [-1, 0.5],
        "allow_secret": [1, "yes"],
        "tags": ["t", [1], ["x"] * 33, [""]],
        "reason": ["x" * 3000, 1],
        "scope": [{"cwd": "/"}, "dev"],
        "sensitivity": ["top"],
        "source": ["me"],
        "variant": [5],
        "added_by": ["x" * 300],
    }
    for option, wrong in [(option, wrong) for option, values in wrongs.items() for wrong in values]:
        options: dict[str, Any] = {option: wrong}
        with pytest.raises(nudge.InvalidError):
            filled.set("api", "k", "v2", **options)
    for delta in (0, -1, 1001, 1.0, "1", True):
        with pytest.raises(nudge.InvalidError):
            filled.bump("api", "k", delta)  # type: ignore[arg-type]
    for limit in (0, -1, 1001, 1.5, float("nan"), 2**63):
        with pytest.raises(nudge.InvalidError):
            filled.query(limit=limit)  # type: ignore[arg-type]
    for wrong_id in (-1, 1.5, "1"):
        with pytest.raises(nudge.InvalidError):
            filled.undo(wrong_id)  # type: ignore[arg-type]


def test_values_that_are_too_large(filled: nudge.Store) -> None:
    for value in ("x" * 70_000, {"type": "json", "data": "x" * 70_000}, {"type": "command", "cmd": "x" * 20_000_000}):
        with pytest.raises(nudge.InvalidError) as refused:
            filled.set("api", "k", value)  # type: ignore[arg-type]
        assert "xxx" not in str(refused.value)
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(nudge.InvalidError, match="nested"):
        filled.set("api", "k", {"type": "json", "data": deep})
    with pytest.raises(nudge.InvalidError):
        filled.call("nudge.query", "[" * 1_000_000)
    # Frees the levels one by one, because Python would overflow its stack.
    while isinstance(deep, list):
        deep = deep.pop()


def test_text_that_is_no_json(filled: nudge.Store) -> None:
    for wrong in ("", " ", "{", "{}x", "nul", "{'a':1}", '{"a":1', "\ud800", "\0", '{"a":NaN}'):
        with pytest.raises(nudge.InvalidError):
            filled.call("nudge.query", wrong)
    for wrong in ("[]", "5", '"x"', "null"):
        with pytest.raises(nudge.ParamsNotObjectError):
            filled.call("nudge.query", wrong)
    assert filled.call("nudge.query", ' {"limit": 1} ')["hints"]
    for name in ("", "nudge.", "get", "nudge.get_hint ", "x" * 1_000_000, "nudge.shutdown", "\0"):
        with pytest.raises(nudge.UnknownMethodError):
            filled.call(name)


@pytest.mark.parametrize(
    ("option", "wrong"),
    [(name, wrong) for name in COUNTS for wrong in (-1, 1.0, "1", True, 2**70, float("nan"))]
    + [("secret_guard", 1), ("secret_guard", "no")]
    + [("default_ttl", wrong) for wrong in ("", "soon", "\ud800")],
)
def test_options_of_a_store(option: str, wrong: Any) -> None:
    options: dict[str, Any] = {option: wrong}
    with pytest.raises(nudge.InvalidError):
        nudge.Store(**options)


def test_calls_that_do_not_fit_a_signature(filled: nudge.Store) -> None:
    attempts: list[Any] = [
        lambda: filled.get(),  # type: ignore[call-arg]
        lambda: filled.get("api", "k", None, ""),  # type: ignore[call-arg]
        lambda: filled.set("api", "k"),  # type: ignore[call-arg]
        lambda: filled.set("api", "k", "v", priorty=3),  # type: ignore[call-arg]
        lambda: filled.get("api", "k", variant=5),  # type: ignore[arg-type]
        lambda: nudge.Store(max_hint=3),  # type: ignore[call-arg]
        lambda: nudge.Store(default_ttl=5),  # type: ignore[arg-type]
        lambda: nudge.View("store"),  # type: ignore[arg-type]
        lambda: nudge.Match(),
        lambda: nudge.Context(env={}).getenv(5),  # type: ignore[arg-type]
        lambda: nudge.connect(5),  # type: ignore[arg-type]
        lambda: nudge.connect(name=5),  # type: ignore[arg-type]
    ]
    for attempt in attempts:
        with pytest.raises(TypeError):
            attempt()
