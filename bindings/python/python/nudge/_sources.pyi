# Generated from the method tables; UPDATE=1 cargo test -p nudge-tests --test typegen writes it anew.
"""The sources as `Store` has them."""

from nudge._nudge import NativeStore

__all__ = ["Sources"]

class Sources(NativeStore):
    """What `Store` inherits: the sources besides the hints."""
