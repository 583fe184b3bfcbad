"""Runs the language-neutral vectors of `tests/vectors`; `tests/README.md` says what they may hold.

Each case runs through `Store.call`. In a second store, typed methods make each call that they can express; their answer
must be the same.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nudge
from nudge import _types as t

CODES = {
    "E_INVALID": 40001,
    "E_SECRET_REJECTED": 40002,
    "E_SCOPE_INVALID": 40003,
    "E_NOT_FOUND": 40401,
    "E_CONFLICT": 40901,
    "E_QUOTA": 42901,
    "E_UNAVAILABLE": 50301,
}
TOLERANCE = 1e-4 + 2.3e-16
ABSENT = object()


def text(value: Any) -> str:
    """Writes compact JSON and keeps the order of keys."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def resolve(value: Any, saved: dict[str, Any]) -> Any:
    """Replaces builders with their values."""
    if isinstance(value, list):
        return [resolve(item, saved) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1 or not (operator := next(iter(value))).startswith("$"):
        return {key: resolve(item, saved) for key, item in value.items()}
    argument = resolve(value[operator], saved)
    if operator == "$join":
        return "".join(argument)
    if operator == "$repeat":
        return argument[0] * argument[1]
    if operator == "$list":
        return [f"{argument[0]}{n}" for n in range(1, argument[1] + 1)]
    if operator == "$map":
        return {f"{argument[0]}{n}": argument[2] for n in range(1, argument[1] + 1)}
    if operator == "$nest":
        nested: list[Any] = []
        for _ in range(argument - 1):
            nested = [nested]
        return nested
    return saved[argument] if operator == "$ref" else {operator: argument}


def match(expected: Any, actual: Any, at: str = "", exact: bool = False) -> None:
    """Applies the subset match."""
    if isinstance(expected, dict) and len(expected) == 1 and next(iter(expected)).startswith("$"):
        operator, argument = next(iter(expected.items()))
        return match_operator(operator, argument, actual, at, exact)
    assert actual is not ABSENT, f"{at}: expected {text(expected)}, but it is absent"
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            match(value, actual.get(key, ABSENT), f"{at}/{key}", exact)
        assert not exact or not (actual.keys() - expected.keys()), f"{at}: must not hold more"
    elif isinstance(expected, list) and isinstance(actual, list):
        assert len(expected) == len(actual), f"{at}: expected {len(expected)} elements, got {text(actual)}"
        for index, (want, have) in enumerate(zip(expected, actual, strict=True)):
            match(want, have, f"{at}/{index}", exact)
    elif is_number(expected) and is_number(actual):
        assert abs(expected - actual) <= TOLERANCE, f"{at}: expected {expected}, got {actual}"
    else:
        same = type(expected) is type(actual) and expected == actual
        assert same, f"{at}: expected {text(expected)}, got {text(actual)}"
    return None


def is_number(value: Any) -> bool:
    """Returns true for a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def match_operator(operator: str, argument: Any, actual: Any, at: str, exact: bool) -> None:
    """Applies an operator of the matcher."""
    if operator == "$exact":
        return match(argument, actual, at, True)
    got = "nothing" if actual is ABSENT else text(actual)
    if operator == "$has":
        assert isinstance(actual, list), f"{at}: got {got}"
        for want in argument:
            assert any(matches(want, item, exact) for item in actual), f"{at}: none is {text(want)}: {got}"
        return None
    holds: dict[str, Callable[[], bool]] = {
        "$any": lambda: actual is not ABSENT,
        "$absent": lambda: actual is ABSENT,
        "$len": lambda: isinstance(actual, list) and len(actual) == argument,
        "$contains": lambda: isinstance(actual, str) and argument in actual,
    }
    assert holds[operator](), f"{at}: expected {operator} {text(argument)}, got {got}"
    return None


def matches(expected: Any, actual: Any, exact: bool) -> bool:
    """Returns true if the value matches."""
    try:
        match(expected, actual, "", exact)
    except AssertionError:
        return False
    return True


def pointed(value: Any, pointer: str) -> Any:
    """Returns the value at an RFC 6901 pointer."""
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


class Case:
    """The state of a running case."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.saved: dict[str, Any] = {}
        self.typed_calls = 0
        self.begin()

    def begin(self) -> None:
        """Makes fresh, empty stores."""
        self.by_name = nudge.Store(**self.case.get("config", {}))
        self.typed = nudge.Store(**self.case.get("config", {}))

    def run(self) -> None:
        """Runs every step in order."""
        for number, step in enumerate(self.case["steps"], 1):
            try:
                self.step(step)
            except AssertionError as wrong:
                raise AssertionError(f"step {number}: {wrong}\n  why: {self.case['why']}") from wrong

    def step(self, step: dict[str, Any]) -> None:
        """Makes a call, moves the clock, or starts again."""
        if "advance_ms" in step:
            for store in (self.by_name, self.typed):
                store.call("nudge.test_advance", {"ms": step["advance_ms"]})
        elif "restart" in step:
            self.begin()
        else:
            raw = step.get("params_raw")
            params = resolve(step["params"], self.saved) if raw is None else raw
            answer = outcome(lambda: self.by_name.call(f"nudge.{step['call']}", params))
            self.compare(step["call"], params, answer)
            self.judge(step, answer)

    def compare(self, method: str, params: Any, answer: Any) -> None:
        """Makes the same call with the typed method, if the method can express it."""
        said = typed(self.typed, method, params)
        # The typed `set` accepts `macos`, which the table refuses.
        if said is None or (method == "set_hint" and '"scope":{"os":"macos"}' in text(params)):
            outcome(lambda: self.typed.call(f"nudge.{method}", params))
            return
        self.typed_calls += 1
        try:
            mine = outcome(said)
        except TypeError:
            # Python raises a TypeError for an argument that is not a string.
            assert answer.get("error", {}).get("code") == CODES["E_INVALID"]
            return
        if mine == {"result": None}:
            assert method == "get_hint"
            # `get` returns no data about a miss. It therefore does less work than the call, which may exceed a limit.
            refused = [answer["error"]["data"]["reason"], answer["error"]["data"].get("limit")]
            assert refused in (["E_NOT_FOUND", None], ["E_QUOTA", "steps"]), f"None for {text(answer)}"
        elif "error" in answer and "error" in mine and method != "set_hint":
            # The context is checked first.
            assert answer["error"]["code"] == mine["error"]["code"], f"{text(answer)} but typed {text(mine)}"
        else:
            assert anonymous(answer) == anonymous(mine), f"{text(answer)} but typed {text(mine)}"

    def judge(self, step: dict[str, Any], answer: dict[str, Any]) -> None:
        """Compares an answer with the expectation."""
        got = answer.get("result", answer.get("error"))
        if "error" in step:
            assert "error" in answer, f"expected {text(step['error'])}, got {text(got)}"
            judge_error(resolve(step["error"], self.saved), answer["error"])
        else:
            assert "result" in answer, f"expected no error, got {text(got)}"
            if "expect" in step:
                match(resolve(step["expect"], self.saved), got)
            for pointer, name in step.get("same_text", {}).items():
                assert text(pointed(got, pointer)) == text(self.saved[name]), f"{pointer} differs from {name}"
            for name, pointer in step.get("save", {}).items():
                self.saved[name] = pointed(got, pointer)
        whole = text(got)
        for part in resolve(step.get("text_has", []), self.saved):
            assert part in whole, f"{part} is not in {whole}"
        for part in resolve(step.get("text_lacks", []), self.saved):
            assert part not in whole, f"{part} is in {whole}"


class SessionCase(Case):
    """A case about a source that a store of this process does not have: only `call` runs, because a second call would
    count."""

    def __init__(self, case: dict[str, Any], store: nudge.Store, folder: Path) -> None:
        self.session = store
        super().__init__(case)
        self.saved["folder"] = str(folder.resolve())

    def begin(self) -> None:
        """Starts the session."""
        self.by_name = self.typed = self.session

    def step(self, step: dict[str, Any]) -> None:
        """Moves the clock only once."""
        if "advance_ms" in step:
            self.session.call("nudge.test_advance", {"ms": step["advance_ms"]})
        elif "write" in step:
            file = Path(self.saved["folder"], step["write"])
            file.parent.mkdir(parents=True, exist_ok=True)
            if "text" in step:
                file.write_text(resolve(step["text"], self.saved))
            else:
                file.unlink()
        else:
            super().step(step)

    def compare(self, method: str, params: Any, answer: Any) -> None:
        """Checks that the store's attribute gives the same answer as the call."""
        source, _, verb = method.rpartition(".")
        if source and verb in ("check", "list"):
            said = outcome(lambda: getattr(getattr(self.session, source), verb)(**params))
            assert anonymous(answer) == anonymous(said), f"{text(answer)} but typed {text(said)}"


def judge_error(expected: Any, error: dict[str, Any]) -> None:
    """Compares an error object with a reason or an object."""
    assert error["message"], "an error has a message"
    assert "\n" not in error["message"], "a message is one line"
    if isinstance(expected, str):
        expected = {"code": CODES[expected], "data": {"reason": expected}}
    assert expected.get("message_contains", "") in error["message"], error["message"]
    match({key: expected[key] for key in ("code", "data") if key in expected}, error)


def outcome(call: Callable[[], Any]) -> dict[str, Any]:
    """Returns the result of a call, or its error in JSON form."""
    try:
        return {"result": call()}
    except nudge.NudgeError as error:
        return {"error": {"code": error.code, "message": str(error), "data": error.data}}


def anonymous(answer: Any) -> Any:
    """Removes random fields from an answer, and the hit counts, which a typed `get` in this process does not
    increase."""
    if isinstance(answer, dict):
        return {key: anonymous(value) for key, value in answer.items() if key not in ("session_id", "hits")}
    return [anonymous(item) for item in answer] if isinstance(answer, list) else answer


def typed(store: nudge.Store, method: str, params: Any) -> Callable[[], Any] | None:
    """Returns the call of the typed method for the same params, if there is one."""
    name = python_name(f"nudge.{method}")
    function = getattr(store, name, None)
    if function is None or not isinstance(params, dict):
        return None
    context = params.get("context")
    if isinstance(context, dict) and context.get("os") == "macos":
        # Python accepts `macos` as a name of darwin; the JSON call does not.
        return None
    if isinstance(context, dict) and not context.keys() <= t.ContextDict.__annotations__.keys():
        # The JSON call ignores unknown fields, because newer callers may send them.
        return None
    options = dict(params)
    if method == "set_hint":
        meta = options.pop("meta", None) or {}
        if not isinstance(meta, dict) or meta.keys() & options.keys():
            return None
        options |= meta
    try:
        inspect.signature(function).bind(**options)
    except TypeError:
        return None
    if method == "get_hint":

        def get() -> Any:
            found = function(**options)
            return found and found.to_dict()

        return get
    return lambda: function(**options)


def python_name(method: str) -> str:
    """Returns the Python name of a method."""
    name = method.removeprefix("nudge.").removesuffix("_hint")
    return f"{name}_" if name == "import" else name
