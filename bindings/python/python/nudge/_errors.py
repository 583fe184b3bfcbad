"""The exceptions of refused calls: one class for each kind of the error model.

A refused call has changed nothing. Only after `UnavailableError` it may have made its change.
"""

from __future__ import annotations

from typing import Any


class NudgeError(Exception):
    """The base class of all errors. `str()` of an error is a plain sentence that says what to do.

    An error of a kind that only a newer server has is of this class, with the server's `code` and `reason`.

    >>> try:
    ...     nudge.Store().delete("api", "build")
    ... except nudge.NudgeError as error:
    ...     print(error.code, error.reason, isinstance(error, KeyError))
    40401 E_NOT_FOUND True
    """

    #: The JSON-RPC error code, such as 40401.
    code: int = 0
    #: The stable name, such as `E_NOT_FOUND`.
    reason: str = ""
    #: The fields of this kind of error (`near_misses`, `limit`, `current_version`, ...), and also `reason` and `field`.
    data: dict[str, Any]

    def __init__(self, message: str = "", data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.data = data if data is not None else {"reason": self.reason}

    @property
    def field(self) -> str | None:
        """The path of the refused field in the params, such as `meta.priority`."""
        field: str | None = self.data.get("field")
        return field

    def __str__(self) -> str:
        # The method of KeyError would put the sentence in quotes.
        return str(self.args[0]) if self.args else ""


class NotFoundError(NudgeError, KeyError):
    """The component, key or variant does not exist, or no variant fits the context.

    `data` may have `near_misses` (the failed conditions of each variant) and `missing_context` (fields to pass).
    `Store.get` returns None instead.
    """

    code = 40401
    reason = "E_NOT_FOUND"


class InvalidError(NudgeError, ValueError):
    """A type, size, range or schema rule is broken."""

    code = 40001
    reason = "E_INVALID"


class ConflictError(NudgeError):
    """`if_match_version` differs from the stored version, which is `data["current_version"]`."""

    code = 40901
    reason = "E_CONFLICT"


class SecretRejectedError(NudgeError, ValueError):
    """A text looks like a credential: `data` has `rule` and `path`, never the text."""

    code = 40002
    reason = "E_SECRET_REJECTED"


class ScopeInvalidError(NudgeError, ValueError):
    """A glob is illegal, or a path could lead out of its folder (`..`)."""

    code = 40003
    reason = "E_SCOPE_INVALID"


class QuotaError(NudgeError):
    """A limit of the store is reached: `data` has `limit` and `max`."""

    code = 42901
    reason = "E_QUOTA"


class UnavailableError(NudgeError, ConnectionError):
    """The store is closed, or no session runs, or the session cannot be reached.

    If a server did not answer in time, it may have carried out the call, or may do so later. Before you repeat a call
    that must not be carried out twice, check whether it was carried out, or pass `if_match_version`.
    """

    code = 50301
    reason = "E_UNAVAILABLE"


class UnknownMethodError(NudgeError, LookupError):
    """The method does not exist."""

    code = -32601
    reason = "E_UNKNOWN_METHOD"


class ParamsNotObjectError(InvalidError, TypeError):
    """The params of a call are not an object."""

    code = -32602
    reason = "E_INVALID"


_KINDS: dict[int, type[NudgeError]] = {
    kind.code: kind
    for kind in (
        NotFoundError,
        InvalidError,
        ConflictError,
        SecretRejectedError,
        ScopeInvalidError,
        QuotaError,
        UnavailableError,
        UnknownMethodError,
        ParamsNotObjectError,
    )
}


# Tracebacks show the module from which users import a class, not the file that defines it.
for _kind in (NudgeError, *_KINDS.values()):
    _kind.__module__ = "nudge"


def refusal(code: int, message: str, data: dict[str, Any]) -> NudgeError:
    """Makes the exception for an error object. With an unknown code, the exception keeps the code and the data."""
    kind = _KINDS.get(code)
    if kind is not None:
        return kind(message, data)
    error = NudgeError(message, data)
    error.code, error.reason = code, str(data.get("reason", ""))
    return error
