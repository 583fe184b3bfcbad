"""Compares the binding with the method table and the error model. Fails if a new method or error is missing here."""

from __future__ import annotations

import inspect
import subprocess

import pytest

import nudge
from kit import nudge_binary
from nudge import _nudge
from vectors import python_name

#: The members of `Store` besides the methods of the table.
BESIDES = {"call", "close", "closed", "components", "connect", "view"}


def test_methods_are_those_of_the_table() -> None:
    public = {name for name in dir(nudge.Store) if not name.startswith("_")}
    assert public - BESIDES == {python_name(method) for method in nudge.methods()}


@pytest.mark.parametrize("method", nudge.methods())
def test_every_method_documents_its_options(method: str) -> None:
    function = getattr(nudge.Store, python_name(method))
    assert function.__doc__
    signature = inspect.signature(function)
    assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in signature.parameters.values())


@pytest.mark.parametrize("method", nudge.methods())
def test_every_param_is_an_option(method: str) -> None:
    known = dict(_nudge.params_schema(method).get("properties", {}))
    if method == "nudge.set_hint":
        known |= known.pop("meta")["properties"]
        # `reach` and `context` are for programs that know where their caller works. The library does not have them.
        del known["reach"], known["context"]
    if method == "nudge.env_names":
        # The method accepts and ignores these fields, for callers that pass on all the fields that they got.
        ignored = {"regex", "text", "context", "limit", "include_ineligible"}
        known = {name: known[name] for name in known.keys() - ignored}
    options = inspect.signature(getattr(nudge.Store, python_name(method))).parameters
    assert set(known) == set(options) - {"self"}
    required = {name for name, option in options.items() if option.default is option.empty} - {"self"}
    assert set(_nudge.params_schema(method).get("required", ())) == required


def test_every_kind_of_refusal_has_its_class() -> None:
    for name, code, reason in _nudge.error_kinds():
        error = getattr(nudge, name)
        assert issubclass(error, nudge.NudgeError)
        assert (error.code, error.reason) == (code, reason)
        assert name in nudge.__all__
    classes = {name for name in nudge.__all__ if name.endswith("Error")} - {"NudgeError"}
    assert classes == {name for name, _, _ in _nudge.error_kinds()}


def test_everything_public_is_documented() -> None:
    for name in nudge.__all__:
        thing = getattr(nudge, name)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            assert thing.__doc__, name
        if inspect.isclass(thing) and thing.__module__.startswith("nudge"):
            for attribute, value in vars(thing).items():
                if not attribute.startswith("_") and not isinstance(value, str | int):
                    described = value.__func__ if isinstance(value, classmethod) else value
                    assert getattr(described, "__doc__", None), f"{name}.{attribute}"


def test_the_version_is_the_program_s() -> None:
    binary = nudge_binary()
    if binary is None:
        pytest.skip("no nudge binary: set NUDGE_BIN")
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split()[1] == nudge.__version__
