// Plays scenarios A to E of semantics section 14 through the TypeScript SDK.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const scenarios = JSON.parse(readFileSync(new URL("scenarios.json", import.meta.url), "utf8"));
const folder = mkdtempSync(join(tmpdir(), "nudge-"));
const runtime = join(folder, "run");

const at = (value, pointer) => pointer.split("/").slice(1).reduce((inner, name) => inner?.[name], value) ?? null;

/** Moves the server's clock over HTTP, because the method is not a tool. */
async function advance(ms) {
  const { port, token } = JSON.parse(readFileSync(join(runtime, "server.pid"), "utf8"));
  const answer = await fetch(`http://127.0.0.1:${port}/`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "nudge.test_advance", params: { ms } }),
  });
  assert.ok("result" in (await answer.json()));
}

const client = new Client({ name: "nudge-tests", version: "1" });
await client.connect(
  new StdioClientTransport({
    command: process.env.NUDGE_BIN,
    args: ["serve", "--port", "0"],
    env: { NUDGE_RUNTIME_DIR: runtime, PATH: process.env.PATH },
    cwd: folder,
  }),
);
let passed = 0;
try {
  assert.ok((await client.listTools()).tools.some((tool) => tool.name === "nudge_recall"));
  for (const [name, steps] of Object.entries(scenarios)) {
    for (const step of steps) {
      if ("advance_ms" in step) {
        await advance(step.advance_ms);
        continue;
      }
      const result = await client.callTool({ name: `nudge_${step.call}`, arguments: step.params });
      assert.equal(Boolean(result.isError), "error" in step, `${name}: ${JSON.stringify(result)}`);
      if (result.isError) {
        assert.equal(JSON.parse(result.content[0].text).code, step.error, name);
      }
      for (const [pointer, expected] of Object.entries(step.expect ?? {})) {
        assert.deepEqual(at(result.structuredContent, pointer), expected, `${name} ${pointer}`);
      }
      passed += 1;
    }
  }
} finally {
  await client.close();
  rmSync(folder, { recursive: true });
}
assert.equal(passed, Object.values(scenarios).flat().filter((step) => "call" in step).length);
console.log(`typescript sdk: ${passed} steps`);
