"""The shapes of arguments and results, as the JSON surface has them.

What is `NotRequired` in a result is left out when there is nothing to say.
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
    """An object that knows its folder; other fields are taken from it too."""

    @property
    def cwd(self) -> str | PathLike[str] | None: ...


class HasRepo(Protocol):
    """An object that knows its repository; other fields are taken from it too."""

    @property
    def repo(self) -> str | None: ...


class HasBranch(Protocol):
    """An object that knows its branch; other fields are taken from it too."""

    @property
    def branch(self) -> str | None: ...


#: The types that every `context` argument accepts.
ContextLike: TypeAlias = Context | ContextDict | Mapping[str, Any] | HasCwd | HasRepo | HasBranch


class ScopeDict(TypedDict, total=False):
    """Where a hint applies; every list may be one string. `cwd_glob` and `branch` are globs."""

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
    """What is known of a hint besides its value."""

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
    """Why something is in an answer; `parts` are the addends of `score`, and every source has names of its own."""

    matched: bool
    score: float
    parts: dict[str, float]
    reasons: list[str]


class GetResult(TypedDict):
    """As `Match.to_dict` gives it."""

    hint: Hint
    match_explain: MatchExplain


class SetResult(TypedDict):
    """The hint as stored, how many variants the key has now, whether it said the same before, and the hint that stood
    there with another value. For a hint with a duration also whether it is kept for next time, and if not, why.
    `telling` says that a start does not tell it, and what changes that."""

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
    """One hint of a query."""

    hint: Hint
    score: float
    match_explain: MatchExplain


class QueryResult(TypedDict):
    """Best first."""

    hints: list[QueryRow]


class BumpResult(TypedDict):
    """The hint with its new counts."""

    hint: Hint


class DeleteResult(TypedDict):
    """The best of the deleted variants, and how many went."""

    deleted: bool
    previous: Hint
    deleted_count: int


class ComponentCount(TypedDict):
    """A component and its size."""

    name: str
    hint_count: int


class ComponentsResult(TypedDict):
    """By name."""

    components: list[ComponentCount]


class ExportResult(TypedDict):
    """The store as JSON, and how many secret hints were left out."""

    payload: dict[str, Any]
    omitted_secrets: int


class ImportError_(TypedDict):
    """A hint that was not imported; `reason` is the code."""

    component: str
    key: str
    reason: str


class ImportResult(TypedDict):
    """How many hints were stored, how many not, and which of those are wrong."""

    imported: int
    skipped: int
    errors: list[ImportError_]


class More(TypedDict):
    """The call that gives the whole of it."""

    method: str
    params: dict[str, Any]


class HeldBack(TypedDict):
    """How much of a source the limits held back."""

    source: str
    count: int


class Suggestion(TypedDict):
    """Something worth telling: `line` is what a model reads, `why` says why now, `more` gives the whole of it.

    `strength`, 0 to 1, is what offers of all sources are compared by; `parts` sum to it. `paths` are the files that
    the line names, relative to the repository. The hints add `hint` and `score`; other sources have members of their
    own.
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
    """Something that a client session was told and that holds no more; `line` says what does."""

    source: str
    name: str
    line: str


class SuggestResult(TypedDict):
    """Best first, what changed of what was told, and how many more the limits held back.

    `started` says whether `client_session` was told a start before, or asked for one twice. `held_back` is
    `omitted` by source; sources that did not answer in time are `late`. `ticket` is for `told`. `notes` say,
    for people, what else would be told.
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
    """The text for a prompt, `""` when there is nothing to tell; the rest is as of `SuggestResult`."""

    text: str
    omitted: int
    notes: NotRequired[list[str]]
    late: NotRequired[list[str]]
    started: bool
    ticket: NotRequired[str]


class ToldResult(TypedDict):
    """How many suggestions count as told by this confirmation."""

    told: int


class RecallResult(TypedDict):
    """Best first, and how many more the limits held back, also by source; who did not answer in time is `late`."""

    items: list[Suggestion]
    omitted: int
    held_back: NotRequired[list[HeldBack]]
    late: NotRequired[list[str]]


class OutcomeResult(TypedDict):
    """The hints it changed."""

    matched: list[Hint]


class EnvNamesResult(TypedDict):
    """The environment variables that scopes mention; of `values` the value matters too."""

    names: list[str]
    values: list[str]


class Condition(TypedDict):
    """One condition of a scope, put to a context."""

    field: Literal["cwd", "repo", "branch", "os", "env"]
    met: bool
    reason: str


class WhyVariant(TypedDict):
    """One variant, each condition of its scope, and its score."""

    hint: Hint
    conditions: list[Condition]
    match_explain: MatchExplain


class WhyResult(TypedDict):
    """The variants in the order of choice, and one sentence."""

    variants: list[WhyVariant]
    verdict: str


class Deletion(TypedDict):
    """One call that deleted hints, or replaced a value; `id` is for `undo`."""

    id: int
    at: str
    what: Literal["deleted", "replaced"]
    count: int
    hints: list[Hint]
    by: NotRequired[str]


class DeletionsResult(TypedDict):
    """Newest first."""

    deletions: list[Deletion]


class UndoResult(Deletion):
    """What was deleted or replaced, with the hints that are back."""

    restored: int
    skipped: int


class Limits(TypedDict):
    """The limits in force."""

    components: int
    hints_per_component: int
    hints: int
    bytes: int


class Keeping(TypedDict):
    """What of a session is there again next time: how many hints, in which file; or why nothing is."""

    on: bool
    why: NotRequired[str]
    hints: NotRequired[int]
    of_files: NotRequired[int]
    file: NotRequired[str]
    failed: NotRequired[str]
    aside: NotRequired[str]


class StatusResult(TypedDict):
    """What is stored, by whom, and the limits.

    A session adds its server's `pid` and `port`, how many processes it has (`members`), those besides the server
    (`proxies`), the size of the journal, None when there is none, and what it keeps for next time.
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
    """What came of the suggestions to one client session."""

    client_session: str
    suggestions: int
    bytes: int
    followed: int
    failed: int
    last_active: str


class HourStats(TypedDict):
    """What was told in one hour, and the outcomes that came in it."""

    since: str
    suggestions: int
    bytes: int
    followed: int
    failed: int


class StatsResult(TypedDict):
    """How often hints were asked for and suggested, and what came of it."""

    hints: int
    hits: int
    suggestions: int
    bytes: int
    followed: int
    failed: int
    sessions: list[SessionStats]
    hours: list[HourStats]
