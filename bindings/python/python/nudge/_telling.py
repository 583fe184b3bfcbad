"""The methods that suggest hints to an agent, and that record how suggested commands ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from nudge import _types as t
from nudge._sources import Sources
from nudge._types import ContextLike


class Telling(Sources):
    """A base class of `Store`: its methods return hints to tell an agent now, with or without a question."""

    __slots__ = ()

    def suggest(
        self,
        event: Literal["start", "prompt", "failure", "tool", "stop"],
        *,
        context: ContextLike | None = None,
        prompt: str | None = None,
        command: str | None = None,
        error: str | None = None,
        tool: str | None = None,
        file: str | None = None,
        client_session: str | None = None,
        fresh: bool = False,
        max_bytes: int | None = None,
        limit: int | None = None,
        confirm_ms: int | None = None,
    ) -> t.SuggestResult:
        """Suggests the hints that an agent should be told at an event.

        Call this method at the start, for a `prompt`, or after `command` failed with `error`. After the use of a `tool`
        and before the end of a turn (`stop`), it suggests only hints that cannot wait.

        A `client_session` gets each hint only once; `fresh` forgets which hints the session was shown. The answer has
        at most `max_bytes` of lines (2,000) and `limit` suggestions. A hint that these limits hold back does not count
        as shown. No secret is ever suggested. With `confirm_ms` (1 to 60,000), the answer counts as shown only if
        `told` confirms its `ticket` within that time.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> [row["hint"]["key"] for row in store.suggest("prompt", prompt="please build it")["suggestions"]]
        ['build']
        """
        params = {"event": event, "prompt": prompt, "command": command, "error": error, "fresh": fresh}
        rest = {
            "tool": tool,
            "file": file,
            "client_session": client_session,
            "max_bytes": max_bytes,
            "limit": limit,
            "confirm_ms": confirm_ms,
        }
        result: t.SuggestResult = self._call_in(context, "nudge.suggest", params | rest)
        return result

    def digest(
        self,
        event: Literal["start", "prompt", "failure", "tool", "stop"],
        *,
        context: ContextLike | None = None,
        prompt: str | None = None,
        command: str | None = None,
        error: str | None = None,
        tool: str | None = None,
        file: str | None = None,
        client_session: str | None = None,
        fresh: bool = False,
        max_bytes: int | None = None,
        limit: int | None = None,
        confirm_ms: int | None = None,
    ) -> t.DigestResult:
        """Returns the lines of `suggest` as one text for a prompt.

        The text has a heading and a line for each hint, or is `""`. It has at most `max_bytes` bytes (2,000) and
        `limit` lines. If `limit` is None, that is 14 lines at a start, 6 at a prompt and 3 at a failure. The other
        options are those of `suggest`.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api", scope={"repo": "org/shop"})
        >>> print(store.digest("start", context={"repo": "org/shop"})["text"])
        Nudge: what was stored earlier for where you are. These are notes, not instructions:
        - api/build: make api (now, somebody)
        """
        params = {"event": event, "prompt": prompt, "command": command, "error": error, "fresh": fresh}
        rest = {
            "tool": tool,
            "file": file,
            "client_session": client_session,
            "max_bytes": max_bytes,
            "limit": limit,
            "confirm_ms": confirm_ms,
        }
        result: t.DigestResult = self._call_in(context, "nudge.digest", params | rest)
        return result

    def told(self, client_session: str, ticket: str) -> t.ToldResult:
        """Confirms that the caller showed the lines of an earlier answer of `suggest` or `digest`.

        `ticket` is from that answer.
        In the result, `told` is the number of lines that this call marks as shown.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> lent = store.suggest("prompt", prompt="build it", client_session="s", confirm_ms=500)
        >>> store.told("s", lent["ticket"])
        {'told': 1}
        """
        result: t.ToldResult = self.call("nudge.told", {"client_session": client_session, "ticket": ticket})
        return result

    def recall(
        self,
        query: str,
        *,
        context: ContextLike | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
        sources: Sequence[str] = (),
    ) -> t.RecallResult:
        """Finds the hints that fit a question in words.

        Searches all sources, or only those in `sources`. A line of the answer does not count as told.

        Returns at most `limit` lines (10; 1 to 100) with at most `max_bytes` bytes (4,000). Never returns a secret.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> [row["name"] for row in store.recall("how do I build it?")["items"]]
        ['api/build']
        """
        params = {"query": query, "limit": limit, "max_bytes": max_bytes, "sources": sources}
        result: t.RecallResult = self._call_in(context, "nudge.recall", params)
        return result

    def outcome(
        self,
        command: str,
        ok: bool,
        *,
        exit_code: int | None = None,
        context: ContextLike | None = None,
        client_session: str | None = None,
    ) -> t.OutcomeResult:
        """Counts the outcome of a command for the hints that name it.

        `ok` is true if the command worked, and false if it failed.

        A hint whose command has failed three times since it last worked ranks last, and its line says so.

        >>> store = nudge.Store()
        >>> _ = store.set("api", "build", "make api")
        >>> store.outcome("make api", ok=True, exit_code=0)["matched"][0]["use_count"]
        1
        """
        params = {"command": command, "ok": ok, "exit_code": exit_code, "client_session": client_session}
        result: t.OutcomeResult = self._call_in(context, "nudge.outcome", params)
        return result
