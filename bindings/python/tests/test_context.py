"""Tests every form of a context."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, TypedDict

import pytest

import nudge


@pytest.fixture(autouse=True)
def _hints(store: nudge.Store) -> None:
    scope = {"cwd_glob": "/work/**", "branch": "dev", "os": "darwin", "repo": "org/r", "env_match": {"STAGE": "test"}}
    store.set("api", "k", "v", scope=scope)


@dataclass(frozen=True, slots=True)
class Here:
    cwd: Path = Path("/work/api")
    branch: str = "dev"
    os: str = "macos"
    repo: str = "https://example.com/org/r.git"
    env: dict[str, str] = field(default_factory=lambda: {"STAGE": "test"})


class Place(NamedTuple):
    cwd: str = "/work/api"
    branch: str = "dev"
    os: str = "darwin"
    repo: str = "org/r"
    env: Mapping[str, str] = MappingProxyType({"STAGE": "test"})


class Mine(TypedDict):
    cwd: str
    branch: str
    os: str
    repo: str
    env: dict[str, str]


FIELDS: Mine = {
    "cwd": "/work/api/",
    "branch": "dev",
    "os": "macos",
    "repo": "git@example.com:org/r",
    "env": {"STAGE": "test"},
}


def forms() -> list[Any]:
    """Writes the same context in all forms."""
    context = nudge.Context(
        cwd=Path("/work/api"),
        branch="dev",
        os="macos",
        repo="https://example.com/org/r",
        env={"STAGE": "test", "GONE": None},
    )
    return [FIELDS, MappingProxyType(FIELDS), Here(), Place(), SimpleNamespace(**FIELDS), context]


@pytest.mark.parametrize("form", forms(), ids=lambda form: type(form).__name__)
def test_forms(store: nudge.Store, form: Any) -> None:
    found = store.get("api", "k", form)
    assert found is not None
    assert len(found.reasons) == 5
    view = store.view(form)
    again = view.get("api", "k")
    assert again is not None
    assert again.reasons == found.reasons
    assert len(store.query(context=form)["hints"]) == 1
    assert store.bump("api", "k", context=form)["hint"]["use_count"] == 1
    assert store.why("api", "k", form)["variants"][0]["match_explain"]["matched"]
    assert store.outcome("v", True, context=form)["matched"]
    assert store.suggest("start", context=form)["suggestions"]


def test_nothing_known_fits_nothing(store: nudge.Store) -> None:
    nothings: list[Any] = [
        None,
        {},
        nudge.Context(),
        {"cwd": None, "env": {}, "files_open": []},
        SimpleNamespace(cwd=None),
    ]
    for nothing in nothings:
        assert store.get("api", "k", nothing) is None
        assert store.view(nothing).get("api", "k") is None


def test_a_context_tells_what_it_holds() -> None:
    context = nudge.Context(
        cwd="/a//b/",
        repo="https://me:pw@h.example/o/r.git",
        branch="x'y",
        os="windows",
        env={"Path": "p"},
        files_open=[Path("/f"), "g"],
    )
    assert (context.cwd, context.repo, context.branch, context.os) == ("/a/b", "h.example/o/r", "x'y", "windows")
    assert (context.files_open, context.getenv("PATH"), context.getenv("NO")) == (("/f", "g"), "p", None)
    assert repr(context) == "Context(cwd='/a/b', branch=\"x'y\", os='windows', repo='h.example/o/r')"
    assert repr(nudge.Context()) == "Context()"
    with pytest.raises(AttributeError):
        context.cwd = "/b"  # type: ignore[misc]


class Angry:
    """A mapping whose reads fail."""

    @property
    def cwd(self) -> str:
        raise RuntimeError("not now")


@pytest.mark.parametrize(
    "wrong",
    [
        {"cwd": "relative"},
        {"cwd": "/a/../b"},
        {"cwd": 5},
        {"cwd": b"/a"},
        {"cwd": "/a\0b"},
        {"cwd": "/" + "x" * 5000},
        {"cwd": "/\ud800"},
        {"repo": 1},
        {"repo": "https://"},
        {"branch": ["dev"]},
        {"branch": "a\nb"},
        {"os": "beos"},
        {"os": 1},
        {"env": "A=1"},
        {"env": {"A": 1}},
        {"env": {1: "a"}},
        {"env": {str(n): "x" for n in range(257)}},
        {"env": {"A": "x" * 40_000}},
        {"env": {"A": "\udfff"}},
        {"files_open": "/a"},
        {"files_open": [1]},
        {"files_open": ["x"] * 257},
        5,
        "dev",
        b"dev",
        ["dev"],
        object(),
        Here,
        dict,
        float("nan"),
    ],
    ids=lambda wrong: repr(wrong)[:40],
)
def test_what_cannot_be_a_context(store: nudge.Store, wrong: Any) -> None:
    before = store.export()
    for call in (
        lambda: store.get("api", "k", wrong),
        lambda: store.view(wrong),
        lambda: store.query(context=wrong),
        lambda: store.bump("api", "k", context=wrong),
        lambda: store.why("api", "k", wrong),
        lambda: store.outcome("v", True, context=wrong),
        lambda: store.suggest("start", context=wrong),
    ):
        with pytest.raises(nudge.InvalidError) as refused:
            call()
        assert "xxxx" not in str(refused.value)
    if isinstance(wrong, dict):
        with pytest.raises(nudge.InvalidError):
            nudge.Context(**wrong)
    assert store.export() == before


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"barnch": "dev"}, "There is no context field `barnch`; did you mean `branch`?"),
        ({"branch": "dev", "CWD": "/a"}, "There is no context field `CWD`; did you mean `cwd`?"),
        (MappingProxyType({"filesOpen": []}), "There is no context field `filesOpen`; did you mean `files_open`?"),
        (
            {"machine": 1},
            "There is no context field `machine`; there are `cwd`, `repo`, `branch`, `os`, `env` and `files_open`.",
        ),
        ({5: "dev"}, "The fields of a context have names that are strings."),
    ],
)
# Promise (hints): The context tolerates unknown fields on the wire, and a binding refuses a misspelt field.
def test_an_unknown_field_is_refused(store: nudge.Store, given: Any, said: str) -> None:
    store.set("api", "k", "everywhere")
    before = store.export()
    for call in (
        lambda: store.get("api", "k", given),
        lambda: store.get("api", "k", given, variant=""),
        lambda: store.view(given),
        lambda: store.query(context=given),
        lambda: store.bump("api", "k", context=given),
        lambda: store.why("api", "k", given),
        lambda: store.outcome("v", True, context=given),
        lambda: store.suggest("start", context=given),
        lambda: store.digest("start", context=given),
        lambda: store.recall("k", context=given),
        lambda: nudge.tools(store, context=given),
    ):
        with pytest.raises(nudge.InvalidError) as refused:
            call()
        assert str(refused.value) == said
    assert store.export() == before
    # The JSON call ignores an unknown field, because a newer caller may send one.
    found = store.call("nudge.get_hint", {"component": "api", "key": "k", "context": {"barnch": "dev"}})
    assert found["hint"]["value"] == "everywhere"


def test_an_object_may_have_other_attributes(store: nudge.Store) -> None:
    assert store.get("api", "k", SimpleNamespace(**FIELDS, barnch="x", colour="red")) is not None


def test_what_a_context_of_the_caller_s_raises_is_raised(store: nudge.Store) -> None:
    with pytest.raises(RuntimeError, match="not now"):
        store.get("api", "k", Angry())


def test_arguments_of_a_context_have_names() -> None:
    with pytest.raises(TypeError):
        nudge.Context("/a")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        nudge.Context(folder="/a")  # type: ignore[call-arg]


def test_detect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
    for command in (
        ["init", "-q", "-b", "trunk"],
        ["remote", "add", "origin", "https://example.com/o/r.git"],
        [*who, "commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setenv("STAGE", "test")
    context = nudge.Context.detect(tmp_path)
    assert (context.cwd, context.repo, context.branch) == (str(tmp_path), "example.com/o/r", "trunk")
    assert context.os in ("linux", "darwin", "windows")
    assert context.getenv("STAGE") == "test"
    monkeypatch.chdir(tmp_path)
    assert nudge.Context.detect().cwd == os.getcwd()
    with pytest.raises(nudge.InvalidError):
        nudge.Context.detect("relative")
    with pytest.raises(TypeError):
        nudge.Context.detect(5)  # type: ignore[arg-type]


def test_detect_takes_an_environment_of_any_size(monkeypatch: pytest.MonkeyPatch, store: nudge.Store) -> None:
    for number in range(300):
        monkeypatch.setenv(f"N{number}", "x")
    store.set("env", "k", "v", scope={"env_required": "N299"})
    assert store.get("env", "k", nudge.Context.detect()) is not None
    assert store.query(component="env", context=nudge.Context.detect())["hints"]
