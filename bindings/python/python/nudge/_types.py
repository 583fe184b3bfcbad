"""The types of arguments and results, as in JSON.

A `NotRequired` field is missing from a result when it would say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict

from nudge._nudge import Context

Os: TypeAlias = Literal["linux", "darwin", "windows"]
Sensitivity: TypeAlias = Literal["secret", "normal"]
Source: TypeAlias = Literal["user", "agent", "tool-output", "file-import"]
OneOrMany: TypeAlias = str | Sequence[str]


class ContextDict(TypedDict, total=False):
    """A context as a dict; see `Context`."""

    cwd: str | PathLike[str] | None
    repo: str | None
    branch: str | None
    os: Literal["linux", "darwin", "macos", "windows"] | None
    env: Mapping[str, str | None] | None
    files_open: Sequence[str | PathLike[str]] | None


class HasCwd(Protocol):
    """An object with the attribute `cwd`. The other attributes also count as fields of the context."""

    @property
    def cwd(self) -> str | PathLike[str] | None: ...


class HasRepo(Protocol):
    """An object with the attribute `repo`. The other attributes also count as fields of the context."""

    @property
    def repo(self) -> str | None: ...


class HasBranch(Protocol):
    """An object with the attribute `branch`. The other attributes also count as fields of the context."""

    @property
    def branch(self) -> str | None: ...


#: The types that every `context` argument accepts.
ContextLike: TypeAlias = Context | ContextDict | Mapping[str, Any] | HasCwd | HasRepo | HasBranch


class ScopeDict(TypedDict, total=False):
    """The conditions under which a hint applies. A str stands for a list with one item.

    `cwd_glob` and `branch` are globs.
    """

    cwd_glob: OneOrMany
    repo: OneOrMany
    branch: OneOrMany
    os: OneOrMany
    env_required: OneOrMany
    env_match: Mapping[str, OneOrMany]


class CommandValue(TypedDict):
    """A command line."""

    type: Literal["command"]
    cmd: str
    shell: NotRequired[Literal["bash", "sh", "powershell", "cmd", "zsh", "fish"]]


class PathValue(TypedDict):
    """An absolute path."""

    type: Literal["path"]
    abs: str
    os: NotRequired[Sequence[Os]]


class TemplateValue(TypedDict):
    """A text with holes."""

    type: Literal["template"]
    format: Literal["mustache", "handlebars", "jinja", "interpolate"]
    body: str
    defaults: NotRequired[Mapping[str, str]]


class JsonValue(TypedDict):
    """Any JSON."""

    type: Literal["json"]
    data: Any


#: The value of a hint: a string, or one of the dicts.
Value: TypeAlias = str | CommandValue | PathValue | TemplateValue | JsonValue


class Meta(TypedDict):
    """The properties of a hint besides its value."""

    ttl: str
    reason: NotRequired[str]
    tags: NotRequired[list[str]]
    priority: NotRequired[int]
    confidence: NotRequired[float]
    sensitivity: NotRequired[Sensitivity]
    scope: NotRequired[dict[str, Any]]
    source: NotRequired[Source]
    added_by: NotRequired[str]


class Hint(TypedDict):
    """A stored hint; times are RFC 3339 in UTC."""

    component: str
    key: str
    value: Value
    meta: Meta
    version: int
    created_at: str
    updated_at: str
    variant: NotRequired[str]
    last_used_at: NotRequired[str]
    use_count: NotRequired[int]
    failure_count: NotRequired[int]
    last_failed_at: NotRequired[str]


class MatchExplain(TypedDict):
    """The reasons why an item is in an answer. `parts` are the terms of `score`, under names of each source."""

    matched: bool
    score: float
    parts: dict[str, float]
    reasons: list[str]


class GetResult(TypedDict):
    """The result of `Match.to_dict`."""

    hint: Hint
    match_explain: MatchExplain


class SetResult(TypedDict):
    """The stored hint, and the number of the key's variants.

    `unchanged` is true if the value was the same before; otherwise `previous` is the replaced hint. For a hint with a
    duration, the result also says whether the hint is kept for later sessions, and if not, why. `telling` says that a
    start does not tell the hint, and what the caller can do about it.
    """

    hint: Hint
    variants: int
    unchanged: NotRequired[bool]
    previous: NotRequired[Hint]
    note: NotRequired[str]
    reach: NotRequired[str]
    kept: NotRequired[bool]
    keeping: NotRequired[str]
    telling: NotRequired[str]


class QueryRow(TypedDict):
    """A hint of a query's result."""

    hint: Hint
    score: float
    match_explain: MatchExplain


class QueryResult(TypedDict):
    """The found hints, best first."""

    hints: list[QueryRow]


class BumpResult(TypedDict):
    """The hint with its new counts."""

    hint: Hint


class DeleteResult(TypedDict):
    """The best of the deleted variants, and the number of deleted variants."""

    deleted: bool
    previous: Hint
    deleted_count: int


class ComponentCount(TypedDict):
    """A component and its size."""

    name: str
    hint_count: int


class ComponentsResult(TypedDict):
    """The components, by name."""

    components: list[ComponentCount]


class ExportResult(TypedDict):
    """The store as JSON, and the number of secret hints that were left out."""

    payload: dict[str, Any]
    omitted_secrets: int


class ImportError_(TypedDict):
    """A hint that was not imported; `reason` is the code."""

    component: str
    key: str
    reason: str


class ImportResult(TypedDict):
    """The number of stored hints, the number of skipped hints, and the errors of the wrong hints."""

    imported: int
    skipped: int
    errors: list[ImportError_]


class More(TypedDict):
    """The call that returns the whole item."""

    method: str
    params: dict[str, Any]


class HeldBack(TypedDict):
    """The number of a source's items that the limits held back."""

    source: str
    count: int


class Suggestion(TypedDict):
    """An item to tell. `line` is for the model, `why` is the reason to tell it now, `more` is the call for the whole.

    `strength`, from 0 to 1, is comparable between sources; it is the sum of `parts`. `paths` are the files that the
    line names, relative to the repository. Hints also have `hint` and `score`; other sources have their own members.
    """

    source: str
    name: str
    line: str
    why: str
    strength: float
    parts: dict[str, float]
    paths: list[str]
    match_explain: MatchExplain
    more: More
    hint: NotRequired[Hint]
    score: NotRequired[float]


class Changed(TypedDict):
    """An item that a client session was told and that has changed since. `line` says what is true now."""

    source: str
    name: str
    line: str


class SuggestResult(TypedDict):
    """The suggestions (best first), the told items that have changed, and the number of items beyond the limits.

    `started` is true if `client_session` has got a start before, or has asked for one twice. `held_back` is `omitted`
    by source. `late` has the sources that did not answer in time. Pass `ticket` to `told`. `notes` tell users which
    other items could be told.
    """

    suggestions: list[Suggestion]
    changes: list[Changed]
    omitted: int
    held_back: NotRequired[list[HeldBack]]
    notes: NotRequired[list[str]]
    late: NotRequired[list[str]]
    started: bool
    ticket: NotRequired[str]


class DigestResult(TypedDict):
    """The text for a prompt; `""` when there is nothing to tell. `SuggestResult` explains the other fields."""

    text: str
    omitted: int
    notes: NotRequired[list[str]]
    late: NotRequired[list[str]]
    started: bool
    ticket: NotRequired[str]


class ToldResult(TypedDict):
    """The number of suggestions that this confirmation marks as told."""

    told: int


class RecallResult(TypedDict):
    """The items, best first; the number of items beyond the limits, in all and by source; and the late sources."""

    items: list[Suggestion]
    omitted: int
    held_back: NotRequired[list[HeldBack]]
    late: NotRequired[list[str]]


class OutcomeResult(TypedDict):
    """The hints that the call changed."""

    matched: list[Hint]


class EnvNamesResult(TypedDict):
    """The environment variables that scopes mention. For the variables in `values`, scopes compare the value."""

    names: list[str]
    values: list[str]


class Condition(TypedDict):
    """A condition of a scope, compared with a context."""

    field: Literal["cwd", "repo", "branch", "os", "env"]
    met: bool
    reason: str


class WhyVariant(TypedDict):
    """A variant, each condition of its scope, and its score."""

    hint: Hint
    conditions: list[Condition]
    match_explain: MatchExplain


class WhyResult(TypedDict):
    """The variants, best first, and a sentence about the result."""

    variants: list[WhyVariant]
    verdict: str


class Deletion(TypedDict):
    """A call that deleted hints or replaced a value. Pass its `id` to `undo`."""

    id: int
    at: str
    what: Literal["deleted", "replaced"]
    count: int
    hints: list[Hint]
    by: NotRequired[str]


class DeletionsResult(TypedDict):
    """The deletions, newest first."""

    deletions: list[Deletion]


class UndoResult(Deletion):
    """The call that was undone, with the restored hints."""

    restored: int
    skipped: int


class Limits(TypedDict):
    """The limits in force."""

    components: int
    hints_per_component: int
    hints: int
    bytes: int


class Keeping(TypedDict):
    """The hints that a session keeps for later sessions: their number and file, or the reason why it keeps none."""

    on: bool
    why: NotRequired[str]
    hints: NotRequired[int]
    of_files: NotRequired[int]
    file: NotRequired[str]
    failed: NotRequired[str]
    aside: NotRequired[str]


class StatusResult(TypedDict):
    """The numbers of hints and components, and the limits.

    A session adds its server's `pid` and `port`, the number of its processes (`members`), the process ids of its other
    processes (`proxies`), the bytes of its journal (None without a journal), and the state of kept hints (`keeping`).
    """

    version: str
    session_id: str
    role: str
    started: str
    hints: int
    components: int
    limits: Limits
    uptime_s: int
    pid: NotRequired[int]
    port: NotRequired[int]
    members: NotRequired[int]
    proxies: NotRequired[list[int]]
    journal_bytes: NotRequired[int | None]
    keeping: NotRequired[Keeping]


class SessionStats(TypedDict):
    """The outcomes of the suggestions to one client session."""

    client_session: str
    suggestions: int
    bytes: int
    followed: int
    failed: int
    last_active: str


class HourStats(TypedDict):
    """The number of told lines in one hour, and the outcomes in that hour."""

    since: str
    suggestions: int
    bytes: int
    followed: int
    failed: int


class DayStats(TypedDict):
    """The number of told lines on one day, their outcomes, and the hooks that were too late."""

    day: str
    suggestions: int
    bytes: int
    followed: int
    failed: int
    late: int


class HookStats(TypedDict):
    """How many of the last hooks were too late. `note` says how to change that."""

    count: int
    late: int
    late_lately: int
    advised_ms: int
    note: NotRequired[str]


class StatsResult(TypedDict):
    """The numbers of lookups and suggestions, and the outcomes. Only a session has `hooks` and `days`."""

    hints: int
    hits: int
    suggestions: int
    bytes: int
    followed: int
    failed: int
    sessions: list[SessionStats]
    hours: list[HourStats]
    hooks: NotRequired[HookStats]
    days: NotRequired[list[DayStats]]
    days_note: NotRequired[str]
