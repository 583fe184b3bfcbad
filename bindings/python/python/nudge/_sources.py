"""The base class of `Store` with the sources; type checkers read the generated `_sources.pyi` instead."""

from nudge._namespaces import Namespaces as Sources

__all__ = ["Sources"]
