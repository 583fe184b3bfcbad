"""Tests the tools for a model, and their answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

import nudge
from kit import Server
from nudge import _nudge


def use(name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t1", "name": name, "input": given}


def test_they_are_the_tools_of_the_table() -> None:
    tools = nudge.tools()
    assert list(tools) == [tool["name"] for tool in tools.anthropic()]
    assert (len(tools), "nudge_status" in tools, 5 in tools) == (9, False, False)
    for name, one, chat, response in zip(tools, tools.anthropic(), tools.openai(), tools.responses(), strict=True):
        schema = _nudge.params_schema(name.replace("_", ".", 1))
        described = one["description"]
        assert one == {"name": name, "description": described, "input_schema": schema}
        assert chat == {
            "type": "function",
            "function": {"name": name, "description": described, "parameters": schema},
        }
        assert response == {
            "type": "function",
            "name": name,
            "description": described,
            "parameters": schema,
            "strict": False,
        }


def test_a_model_uses_them(store: nudge.Store) -> None:
    tools = nudge.tools(store, context={"branch": "dev"})
    assert tools.store is store
    given = {"component": "api", "key": "build", "value": "make", "meta": {"scope": {"branch": "dev"}}}
    assert json.loads(tools.call("nudge_set_hint", given).text)["variants"] == 1
    # The arguments are a JSON text, as some providers send them.
    found = tools.call("nudge_get_hint", '{"component": "api", "key": "build"}')
    assert (found.is_error, json.loads(found.text)["hint"]["value"]) == (False, "make")
    elsewhere = tools.call("nudge_get_hint", {"component": "api", "key": "build", "context": {"branch": None}})
    assert (elsewhere.is_error, json.loads(elsewhere.text)["code"]) == (True, 40401)
    assert tools.call("nudge_list_components").text == '{"components":[{"name":"api","hint_count":1}]}'
    assert repr(tools) == "<nudge.Tools of <nudge.Store in process>>"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("nudge_get_hint", {}),
        ("nudge_get_hint", "{"),
        ("nudge_get_hint", "[]"),
        ("nudge_get_hint", {"component": "a", "key": "k", "context": {"cwd": "relative"}}),
        ("nudge_set_hint", {"component": "a", "key": "k", "value": "v", "meta": {"source": "user"}}),
        ("nudge_bump", {"component": "a", "key": "none"}),
        ("nudge_shutdown", {}),
        ("", None),
    ],
)
def test_a_refusal_is_an_answer(store: nudge.Store, name: str, given: Any) -> None:
    answer = nudge.tools(store).call(name, given)
    assert answer.is_error
    assert json.loads(answer.text)["message"]
    assert len(store) == 0


def test_a_closed_store_is_an_error_of_the_program(store: nudge.Store) -> None:
    tools = nudge.tools(store)
    store.close()
    with pytest.raises(nudge.UnavailableError):
        tools.call("nudge_list_components")
    with pytest.raises(nudge.UnavailableError):
        nudge.tools(store)


def test_what_is_said_is_answered_in_its_form(store: nudge.Store) -> None:
    tools = nudge.tools(store)
    text = '{"components":[]}'
    assert tools.answer(use("nudge_list_components")) == {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": text,
        "is_error": False,
    }
    function = {"name": "nudge_list_components", "arguments": "{}"}
    assert tools.answer({"type": "function", "id": "c1", "function": function}) == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": text,
    }
    assert tools.answer({"type": "function_call", "call_id": "f1", **function}) == {
        "type": "function_call_output",
        "call_id": "f1",
        "output": text,
    }
    others: list[Any] = [{"type": "text", "text": "hi"}, use("get_weather"), {}, [], "text", None]
    for other in others:
        assert tools.answer(other) is None


def test_those_of_a_session(demo_server: Server) -> None:
    with nudge.connect(demo_server.runtime) as store:
        store.call("nudge.demo.add", {"name": "a", "text": "b"})
        tools = nudge.tools(store)
        assert {"nudge_get_hint", "nudge_demo_get"} <= set(tools)
        assert json.loads(tools.call("nudge_demo_get", {"name": "a"}).text)["text"] == "b"
        refused = tools.call("nudge_demo_get", {"name": "none"})
        assert refused.is_error


def test_with_the_sdk_of_anthropic(store: nudge.Store) -> None:
    types: Any = pytest.importorskip("anthropic.types", reason="needs the package anthropic")
    pydantic = pytest.importorskip("pydantic")
    tools = nudge.tools(store)
    adapter = pydantic.TypeAdapter(list[types.ToolParam])
    assert adapter.validate_python(tools.anthropic()) == tools.anthropic()
    block = types.ToolUseBlock(type="tool_use", id="t1", name="nudge_list_components", input={})
    answer = tools.answer(block)
    assert pydantic.TypeAdapter(types.ToolResultBlockParam).validate_python(answer) == answer
    assert tools.answer(types.TextBlock(type="text", text="hi")) is None


def test_with_the_sdk_of_openai(store: nudge.Store) -> None:
    chat: Any = pytest.importorskip("openai.types.chat", reason="needs the package openai")
    responses: Any = pytest.importorskip("openai.types.responses")
    pydantic = pytest.importorskip("pydantic")
    tools = nudge.tools(store)

    def fits(kind: Any, value: Any) -> None:
        assert pydantic.TypeAdapter(kind).validate_python(value) == value

    fits(list[chat.ChatCompletionToolParam], tools.openai())
    fits(list[responses.FunctionToolParam], tools.responses())
    function = {"name": "nudge_list_components", "arguments": "{}"}
    fits(
        chat.ChatCompletionToolMessageParam,
        tools.answer(chat.ChatCompletionMessageToolCall(id="c1", type="function", function=function)),
    )
    fits(
        responses.response_input_item_param.FunctionCallOutput,
        tools.answer(responses.ResponseFunctionToolCall(type="function_call", call_id="f1", **function)),
    )
