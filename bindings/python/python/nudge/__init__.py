"""Nudge: a tiny, explainable, session-scoped memory for coding agents.

A hint is stored under a component and a key, with a scope that says where the hint applies. `Store.get` returns the
best hint for a `Context`, with the reasons.

>>> import nudge
>>> with nudge.Store() as store:
...     _ = store.set("api", "build", "make dev", scope={"branch": "dev"})
...     found = store.get("api", "build", {"branch": "dev"})
>>> found.text
'make dev'
>>> found.reasons
('branch=dev allowed',)
"""

import os as _os

from nudge import _nudge
from nudge._errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    NudgeError,
    ParamsNotObjectError,
    QuotaError,
    ScopeInvalidError,
    SecretRejectedError,
    UnavailableError,
    UnknownMethodError,
)
from nudge._mapping import Component, Components
from nudge._nudge import Context, Match, __version__, methods
from nudge._store import Store, View, connect
from nudge._tools import ToolAnswer, Tools, tools
from nudge._types import ContextDict, Hint, ScopeDict, Value

__all__ = [
    "Component",
    "Components",
    "ConflictError",
    "Context",
    "ContextDict",
    "Hint",
    "InvalidError",
    "Match",
    "NotFoundError",
    "NudgeError",
    "ParamsNotObjectError",
    "QuotaError",
    "ScopeDict",
    "ScopeInvalidError",
    "SecretRejectedError",
    "Store",
    "ToolAnswer",
    "Tools",
    "UnavailableError",
    "UnknownMethodError",
    "Value",
    "View",
    "__version__",
    "connect",
    "methods",
    "tools",
]

# Tracebacks and help show the module from which users import a name, not the file that defines it.
for _shown in (Component, Components, Store, ToolAnswer, Tools, View, connect, tools):
    _shown.__module__ = "nudge"

# Without these functions, a fork while another thread is inside a store would leave the store locked in the child.
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(
        before=_nudge.before_fork,
        after_in_parent=_nudge.after_fork_in_parent,
        after_in_child=_nudge.after_fork_in_child,
    )
