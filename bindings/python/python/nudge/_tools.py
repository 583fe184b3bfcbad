"""The tools of MCP for programs that call a model themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from nudge import _types as t
from nudge._nudge import NativeTools
from nudge._store import Store


@dataclass(frozen=True)
class ToolAnswer:
    """The answer of a tool: the result, or an error that says what to do."""

    #: The result, or the error object, as JSON.
    text: str
    #: True if the call was refused.
    is_error: bool


class Tools(NativeTools):
    """The tools that a store offers to a model, with the code that answers the model's calls. `nudge.tools` makes them.

    They have the same names, descriptions and schemas as the tools of `nudge serve` over MCP. A running session adds
    the tools of its other sources in use. A refused call also gets an answer: an error that the model can correct
    raises no exception.

    >>> tools = nudge.tools()
    >>> "nudge_get_hint" in tools, len(tools)
    (True, 9)
    >>> tools.call("nudge_set_hint", {"component": "api", "key": "build", "value": "make"}).is_error
    False
    """

    __slots__ = ("_context", "_store")

    _store: Store
    _context: t.ContextLike | None

    def __new__(cls, store: Store, context: t.ContextLike | None = None) -> Self:
        tools = super().__new__(cls, store)
        tools._store = store
        # Reads the context now, so that this call reports an error in the context.
        tools._context = None if context is None else store.view(context).context
        return tools

    @property
    def store(self) -> Store:
        """The store of these tools."""
        return self._store

    def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> ToolAnswer:
        """Calls a tool. `arguments` are those of the model: an object, or its JSON text.

        If the arguments leave out a field of `context`, the context of these tools gives it. None means unknown.

        >>> answer = nudge.tools().call("nudge_get_hint", '{"component": "api", "key": "build"}')
        >>> answer.is_error, answer.text[:13]
        (True, '{"code":40401')
        """
        given = arguments if isinstance(arguments, str) else json.dumps(arguments, default=dict)
        return ToolAnswer(*self._call(self._store, self._context, name, given))

    def answer(self, said: Any) -> dict[str, Any] | None:
        """Answers a model's tool call in its provider's form. Returns None when the model uses none of these tools.

        `said` is a `tool_use` block of Anthropic, a tool call of OpenAI's chat completions, or a `function_call` of
        OpenAI's responses, as an object of the SDK or as a dict. The answer is the `tool_result` block, the message or
        the item for the next request.

        >>> nudge.tools().answer({"type": "tool_use", "id": "t1", "name": "nudge_list_components", "input": {}})
        {'content': '{"components":[]}', 'is_error': False, 'tool_use_id': 't1', 'type': 'tool_result'}
        """
        dump = getattr(said, "model_dump", None)
        plain = said if dump is None else dump(mode="json")
        answer: dict[str, Any] | None = self._answer(self._store, self._context, plain)
        return answer

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<nudge.Tools of {self._store!r}>"


def tools(store: Store | None = None, *, context: t.ContextLike | None = None) -> Tools:
    """Returns the tools of a store for a model. Without a store, makes a new store in this process.

    `context` is the context of the model. It gives the fields that the model leaves out.

    >>> tools = nudge.tools(context={"branch": "dev"})
    >>> tools.anthropic()[0]["name"], tools.openai()[0]["function"]["name"], tools.responses()[0]["name"]
    ('nudge_get_hint', 'nudge_get_hint', 'nudge_get_hint')
    """
    return Tools(Store() if store is None else store, context)
