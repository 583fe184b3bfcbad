"""Plays scenarios A to E of semantics section 14 through the Python SDK, in both protocol eras."""

import asyncio
import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path

from mcp import Client, StdioServerParameters

BIN = os.environ["NUDGE_BIN"]
SCENARIOS = json.loads(Path(__file__).with_name("scenarios.json").read_text())
ANNOTATIONS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]


def at(value: object, pointer: str) -> object:
    """Returns the value at a JSON pointer, or None."""
    for name in pointer.split("/")[1:]:
        if isinstance(value, list):
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def advance(runtime: str, ms: int) -> None:
    """Moves the server's clock over HTTP, because the method is not a tool."""
    server = json.loads(Path(runtime, "server.pid").read_text())
    body = {"jsonrpc": "2.0", "id": 1, "method": "nudge.test_advance", "params": {"ms": ms}}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server['token']}"}
    request = urllib.request.Request(f"http://127.0.0.1:{server['port']}/", json.dumps(body).encode(), headers)
    assert "result" in json.load(urllib.request.urlopen(request, timeout=10))


async def run(mode: str) -> int:
    """Plays every scenario in one MCP session; returns the number of steps that passed."""
    passed = 0
    with tempfile.TemporaryDirectory() as folder:
        runtime = os.path.join(folder, "run")
        env = {"NUDGE_RUNTIME_DIR": runtime, "PATH": os.environ["PATH"]}
        server = StdioServerParameters(command=BIN, args=["serve", "--port", "0"], env=env, cwd=folder)
        async with Client(server, mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert any(tool.name == "nudge_recall" for tool in tools), [tool.name for tool in tools]
            for tool in tools:
                hints = tool.annotations.model_dump(by_alias=True)
                assert all(hints[name] is not None for name in ANNOTATIONS), tool.name
                assert hints["openWorldHint"] is False
            for name, steps in SCENARIOS.items():
                for step in steps:
                    if "advance_ms" in step:
                        advance(runtime, step["advance_ms"])
                        continue
                    result = await client.call_tool("nudge_" + step["call"], step["params"])
                    if "error" in step:
                        assert result.is_error, (name, result)
                        assert json.loads(result.content[0].text)["code"] == step["error"]
                    else:
                        assert not result.is_error, (name, result)
                        for pointer, expected in step["expect"].items():
                            actual = at(result.structured_content, pointer)
                            assert actual == expected, (name, pointer, actual, expected)
                    passed += 1
            version = client.protocol_version
    print(f"python mcp, {mode}, {version}: {passed} steps")
    return passed


expected = sum("call" in step for steps in SCENARIOS.values() for step in steps)
for mode, era in [("auto", "2026-07-28"), ("legacy", "2025-11-25")]:
    if asyncio.run(run(mode)) != expected:
        sys.exit(f"{mode}: steps are missing")
