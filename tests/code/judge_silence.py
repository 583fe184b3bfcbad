"""Counts the nodes that Nudge tells at unrelated prompts; there must be none: judge_silence.py NUDGE TREE...

The 200 prompts are those of `unrelated.txt` and those that need no record (`tests/records/*/idle.jsonl`). Each prompt
goes to a server with a session in each tree, as a hook sends it.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.realpath(__file__))
prompts = [line.strip() for line in open(os.path.join(here, "unrelated.txt")) if line.strip()]
for name in ("a", "b"):
    rows = open(os.path.join(here, f"../records/set-{name}/idle.jsonl"))
    prompts += [json.loads(row)["query"] for row in rows]
nudge, trees = os.path.realpath(sys.argv[1]), [os.path.realpath(tree) for tree in sys.argv[2:]]
drawn = 0
for tree in trees:
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "HOME": home, "NUDGE_RUNTIME_DIR": home + "/run", "NUDGE_CACHE_DIR": home + "/caches", "NUDGE_DATA_DIR": home + "/data", "PWD": tree}
        serve = subprocess.Popen([nudge, "serve", "--port", "0"], cwd=tree, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def call(number, method, params):
            serve.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            serve.stdin.flush()
            return json.loads(serve.stdout.readline())

        start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "judge", "version": "0"}}
        call(0, "initialize", start)
        serve.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        ask = lambda *args: subprocess.run([nudge, *args, "--json"], cwd=tree, env=env, capture_output=True, text=True, check=True).stdout
        while not json.loads(ask("code", "status"))["as_of"]["complete"]:
            time.sleep(0.2)
        own = 0
        for prompt in prompts:
            event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": tree, "prompt": prompt}
            hook = {**env, "NUDGE_HOOK_MS": "5000"}
            said = subprocess.run([nudge, "hook"], cwd=tree, env=hook, input=json.dumps(event), capture_output=True, text=True).stdout
            own += len(said.encode())
            if said:
                print(f"{os.path.basename(tree)}: {prompt}: {said}")
        # The opposite check: a prompt that names code must get its node.
        name = {"flask": "_endpoint_from_view_func", "zod": "isRecursiveSchema", "ripgrep": "replace_bytes"}.get(os.path.basename(tree))
        if name:
            event["prompt"] = f"why does `{name}` fail?"
            said = subprocess.run([nudge, "hook"], cwd=tree, env=hook, input=json.dumps(event), capture_output=True, text=True).stdout
            print(f"{os.path.basename(tree)}: {len(prompts)} prompts draw {own} bytes; one that names `{name}` draws {len(said.encode())}")
        drawn += own
        serve.stdin.close()
        serve.wait()
if drawn:
    sys.exit("none should draw any")
