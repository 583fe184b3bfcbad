# Generated from the method tables; UPDATE=1 cargo test -p nudge-tests --test typegen writes it anew.
"""The sources as `Store` has them."""

from typing import Any, Literal, type_check_only

from nudge._nudge import NativeStore
from nudge._types import ContextLike

__all__ = ["Sources"]

@type_check_only
class SignalsSource:
    """Agents beside you: nudge_signals_send tells one to stop or asks if it is alive; answer with
    nudge_signals_respond.
    """

    def send(
        self,
        *,
        agent: str,
        type: Literal["health_check", "stall_warning", "priority_change", "abort", "sync_request", "nudge_response"],
        message: str | None = None,
        from_: str | None = None,
        requires_response: bool | None = None,
        context: ContextLike | None = None,
    ) -> dict[str, Any]:
        """Tell another agent one urgent thing, such as stop; it replaces the signal it had.

        `agent`: Whom it is for.
        `type`: What it asks for.
        `message`: What it says, at most 4 KiB. Absent: the usual words of its type.
        `from_`: Who sends it. Absent: `NUDGE_AGENT_ID`.
        `requires_response`: Wait for an answer.
        `context`: Where the sender is.
        """

    def check(
        self,
        *,
        agent: str | None = None,
        last_seen: str | None = None,
        context: ContextLike | None = None,
    ) -> dict[str, Any]:
        """The signal for you, if it is newer than the one you saw last.

        `agent`: Whose signal. Absent: `NUDGE_AGENT_ID`.
        `last_seen`: The `last_seen` of the last answer.
        `context`: Where the agent is.
        """

    def respond(
        self,
        *,
        agent: str | None = None,
        message: str | None = None,
        context: ContextLike | None = None,
    ) -> dict[str, Any]:
        """Answer the signal for you; due at once where it has requires_response.

        `agent`: Who answers. Absent: `NUDGE_AGENT_ID`.
        `message`: What you are at. Absent: that it was received.
        `context`: Where the agent is.
        """

    def list(
        self,
        *,
        context: ContextLike | None = None,
    ) -> dict[str, Any]:
        """Every agent with a signal or with work: what its signal says, what it works on, which question is open.

        `context`: Where the caller is.
        """

class Sources(NativeStore):
    """What `Store` inherits: the sources besides the hints."""

    @property
    def signals(self) -> SignalsSource: ...
