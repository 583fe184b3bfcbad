"""Converts arguments to JSON params."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any


def duration(ttl: str | timedelta | None) -> str | None:
    """Converts a timedelta to ISO 8601, in seconds. The store refuses a duration that is not positive."""
    return f"PT{ttl.total_seconds():.3f}S" if isinstance(ttl, timedelta) else ttl


def wire_scope(scope: Any) -> Any:
    """Converts a scope to params: replaces "macos" with "darwin", its name in the method table."""
    if is_dataclass(scope) and not isinstance(scope, type):
        scope = {field.name: getattr(scope, field.name) for field in fields(scope)}
    return {**scope, "os": _system(scope["os"])} if isinstance(scope, Mapping) and "os" in scope else scope


def _system(name: Any) -> Any:
    if isinstance(name, list | tuple):
        return [_system(one) if isinstance(one, str) else one for one in name]
    return "darwin" if isinstance(name, str) and name == "macos" else name
