"""The base class of `Store` that has the sources. Type checkers read the generated `_sources.pyi` instead."""

from nudge._namespaces import Namespaces as Sources

__all__ = ["Sources"]
