"""Refusals as exceptions."""

from __future__ import annotations

import copy
import pickle

import pytest

import nudge

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


def test_what_they_carry(store: nudge.Store) -> None:
    store.set("api", "k", "v", scope={"branch": "dev"})
    with pytest.raises(KeyError) as caught:
        store.call("nudge.get_hint", {"component": "api", "key": "k"})
    error = caught.value
    assert isinstance(error, nudge.NotFoundError)
    assert (error.code, error.reason) == (40401, "E_NOT_FOUND")
    assert error.data["missing_context"] == ["branch"]
    # A KeyError of Python's own would show its argument's repr.
    assert str(error) == error.args[0]
    assert str(error).startswith("One variant is stored")
    with pytest.raises(nudge.UnknownMethodError):
        store.call("nudge.no_such_method")
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
