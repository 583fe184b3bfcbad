"""Tests that refused calls raise the right exceptions."""

from __future__ import annotations

import copy
import inspect
import pickle
import traceback
from typing import is_typeddict

import pytest

import nudge
from nudge import _nudge
from nudge._errors import refusal

BUILTINS = {
    nudge.NotFoundError: KeyError,
    nudge.InvalidError: ValueError,
    nudge.SecretRejectedError: ValueError,
    nudge.ScopeInvalidError: ValueError,
    nudge.UnavailableError: ConnectionError,
    nudge.UnknownMethodError: LookupError,
    nudge.ParamsNotObjectError: TypeError,
}


def test_they_are_what_python_calls_them() -> None:
    for error, builtin in BUILTINS.items():
        assert issubclass(error, builtin)
        assert issubclass(error, nudge.NudgeError)
    assert issubclass(nudge.ParamsNotObjectError, nudge.InvalidError)


def test_they_are_shown_as_they_are_imported() -> None:
    with pytest.raises(nudge.InvalidError) as caught:
        nudge.Context(cwd="relative")
    last = traceback.format_exception_only(caught.value)[-1]
    assert last == "nudge.InvalidError: `context.cwd` must be an absolute folder without `..`.\n"
    for name in nudge.__all__:
        thing = getattr(nudge, name)
        if inspect.isclass(thing) and not is_typeddict(thing):
            assert thing.__module__ == "nudge", name


def test_what_they_carry(store: nudge.Store) -> None:
    store.set("api", "k", "v", scope={"branch": "dev"})
    with pytest.raises(KeyError) as caught:
        store.call("nudge.get_hint", {"component": "api", "key": "k"})
    error = caught.value
    assert isinstance(error, nudge.NotFoundError)
    assert (error.code, error.reason) == (40401, "E_NOT_FOUND")
    assert error.data["missing_context"] == ["branch"]
    assert error.field == "branch"
    with pytest.raises(nudge.InvalidError, match=r"`limit` must be a whole number from 1 to 1000") as refused:
        store.call("nudge.query", {"limit": 0})
    assert refused.value.field == "limit"
    # The text of a KeyError would be the repr of its argument.
    assert str(error) == error.args[0]
    assert str(error).startswith("One variant is stored")
    with pytest.raises(nudge.UnknownMethodError):
        store.call("nudge.no_such_method")
    with pytest.raises(nudge.UnknownMethodError, match=r"did you mean `nudge\.get_hint`"):
        store.call("get_hint")
    with pytest.raises(nudge.ParamsNotObjectError):
        store.call("nudge.query", "[]")
    with pytest.raises(nudge.ScopeInvalidError):
        store.set("api", "k", "v", scope={"cwd_glob": "a/../b"})


@pytest.mark.parametrize("kind", [*BUILTINS, nudge.ConflictError, nudge.QuotaError])
def test_they_travel_between_processes(kind: type[nudge.NudgeError]) -> None:
    error = kind("Do something else.", {"reason": kind.reason, "limit": 3})
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(same) is kind
        assert (str(same), same.code, same.reason, same.data) == (str(error), error.code, error.reason, error.data)
    assert str(kind()) == ""
    assert kind().data == {"reason": kind.reason}


def test_a_kind_that_only_a_newer_server_knows_is_a_refusal_and_keeps_what_it_said() -> None:
    error = refusal(41801, "Put the kettle on.", {"reason": "E_TEAPOT", "more": 1})
    for same in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(same) is nudge.NudgeError
        assert (str(same), same.code, same.reason) == ("Put the kettle on.", 41801, "E_TEAPOT")
        assert same.data == {"reason": "E_TEAPOT", "more": 1}
    assert (nudge.NudgeError.code, nudge.NudgeError.reason) == (0, "")


def test_every_code_has_its_class() -> None:
    for name, code, reason in _nudge.error_kinds():
        error = refusal(code, "Do that.", {"reason": reason})
        assert (type(error).__name__, error.code, error.reason) == (name, code, reason)
