"""The sources as `Store` has them; `_sources.pyi`, which is generated, tells type checkers which there are."""

from nudge._namespaces import Namespaces as Sources

__all__ = ["Sources"]
