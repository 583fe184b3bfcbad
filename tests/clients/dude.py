"""Tests `nudge serve --profile dude` with the Python SDK, in the current and the legacy version of the MCP protocol.
The server runs alone, and beside an ordinary server."""

import asyncio
import contextlib
import json
import os
import tempfile

from mcp import Client, StdioServerParameters

BIN = os.environ["NUDGE_BIN"]
TOOLS = ["search", "upsert_record", "get_record", "list_records", "delete_record", "list_projects"]


async def told(client: Client, tool: str, **arguments: object) -> object:
    """Returns the answer of a tool. The answer is one JSON text."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result)
    [text] = result.content
    return json.loads(text.text)


async def run(mode: str, beside: bool) -> None:
    """Calls the six tools with a client that checks answers against the protocol."""
    with tempfile.TemporaryDirectory() as folder:
        env = {"NUDGE_RUNTIME_DIR": f"{folder}/run", "NUDGE_DATA_DIR": f"{folder}/data", "PATH": os.environ["PATH"]}

        def server(*args: str) -> StdioServerParameters:
            return StdioServerParameters(command=BIN, args=["serve", "--port", "0", *args], env=env, cwd=folder)

        async with contextlib.AsyncExitStack() as stack:
            if beside:
                await stack.enter_async_context(Client(server(), mode=mode))
            client = await stack.enter_async_context(Client(server("--profile", "dude"), mode=mode))
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
            saved = await told(client, "upsert_record", kind="issue", title="Uploads fail with 413", body="nginx")
            found = await told(client, "search", query="uploads fail")
            assert [set(hit) for hit in found] == [
                {"id", "project", "kind", "title", "body", "status", "similarity"}
            ], found
            assert (await told(client, "get_record", id=saved["id"]))["body"] == "nginx"
            assert [row["id"] for row in await told(client, "list_records")] == [saved["id"]]
            assert len(await told(client, "list_projects")) == 1
            refused = await client.call_tool("get_record", {"id": 99})
            assert refused.is_error and json.loads(refused.content[0].text)["code"] == 40401, refused
            await told(client, "delete_record", id=saved["id"])
            assert await told(client, "search", query="uploads fail") == []


for mode in ["auto", "legacy"]:
    for beside in [False, True]:
        asyncio.run(run(mode, beside))
    print(f"python mcp, {mode}: the profile dude, alone and beside an ordinary server")
