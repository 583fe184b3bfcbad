"""Writes the first inputs of each fuzz target: seeds.py ROOT CORPUS"""

import json
import pathlib
import sqlite3
import sys
import tempfile
import zlib

ROOT, CORPUS = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
LANGUAGES = ["python", "rust", "javascript", "typescript", "tsx", "go", "java", "c", "cpp", "ruby", "c_sharp", "php"]


def seed(target, *texts):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    for at, text in enumerate(texts):
        (folder / f"seed-{at}").write_bytes(text if isinstance(text, bytes) else text.encode())


def vectors(name):
    return json.loads((ROOT / f"tests/vectors/{name}.json").read_text())


def strings(value):
    """Returns every string in a file of test vectors."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)


def calls():
    for file in sorted((ROOT / "tests/vectors").glob("*.json")):
        for case in json.loads(file.read_text()):
            for step in case.get("steps", []) if isinstance(case, dict) else []:
                if "call" in step:
                    yield step["call"], step.get("params", {})


def coverage():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "coverage"
        c = sqlite3.connect(file)
        c.executescript(
            """CREATE TABLE file(id INTEGER PRIMARY KEY, path TEXT);
            CREATE TABLE context(id INTEGER PRIMARY KEY, context TEXT);
            CREATE TABLE line_bits(file_id INTEGER, context_id INTEGER, numbits BLOB);
            INSERT INTO file VALUES(1, 'a.py'); INSERT INTO context VALUES(1, 'tests.test_a.test_f');
            INSERT INTO line_bits VALUES(1, 1, x'06');"""
        )
        c.close()
        yield b"\0" + file.read_bytes()
    yield b'\1{"files": {"a.py": {"executed_lines": [1, 2], "contexts": {"2": ["t.test_f|run", ""]}}}}'
    yield b"\2TN:t\nSF:a.py\nDA:1,1\nDA:2,3\nend_of_record\n"


def fields(name):
    """Returns the first strings of a file of test vectors, as short lines."""
    return sorted({one for one in strings(vectors(name)) if len(one) < 2_000})


request = {
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": f"nudge.{name}", "params": params}) for name, params in calls()
}
seed("request", *sorted(request)[:2_000], "[]", json.dumps([json.loads(one) for one in sorted(request)[:5]]))
globs = [one for one in fields("globs") if "/" in one or "*" in one]
seed("glob", *[f"{one}\n/work/mono/svc-12/src" for one in globs])
seed("repo", *fields("repo"))
seed("ttl", *fields("ttl"), "P1DT2H3M4.5S")
seed("words", *fields("recall"), "warum schlägt der Login fehl?", "客户端 最大 上传")
seed(
    "command",
    "make -C api test FOO=1 && npm run build:prod -- --watch\nmake test",
    "cd x; (a | b) > out 2>&1 <<E\nE\n",
    *[line for line in (ROOT / "tests/seeds/judged.tsv").read_text().replace("\t", "\n").splitlines() if " " in line][
        :300
    ],
)
payloads = [params["payload"] for name, params in calls() if name == "import" and "payload" in params]
seed("import", (ROOT / "tests/fixtures/export-1.0.json").read_text(), *[json.dumps(one) for one in payloads])
head = "ref: refs/heads/main\n"
config = '[remote "origin"]\n\turl = https://u:p@github.com/a/b.git\n[include]\n\tpath = x\n[core]\n\tworktree = ../c\n'
seed("git", b"\0" + head.encode(), b"\1" + config.encode(), b"\2# pack-refs\n", b"\3../x\n", b"\4gitdir: ../real\n")
seed(
    "guard", *fields("guard"), "-----BEGIN " + "PRIVATE KEY-----\nabc\n-----END " + "PRIVATE KEY-----\n", "password = x"
)


def database(*rows):
    """Returns the bytes of a database of a session with these rows: kind, name and body."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "session.db"
        connection = sqlite3.connect(path)
        connection.executescript(
            """CREATE TABLE row(
  source TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL,
  PRIMARY KEY (source, kind, name)) STRICT, WITHOUT ROWID;
PRAGMA application_id = 0x4E554447; PRAGMA user_version = 1;"""
        )
        for row in rows:
            checksum = zlib.crc32("\0".join(["hints", *row]).encode())
            connection.execute("INSERT INTO row VALUES ('hints', ?, ?, ?, ?)", (*row, checksum))
        connection.commit()
        connection.close()
        return path.read_bytes()


hint = ["a", "k", {"value": "x", "meta": {"ttl": "P1D"}}]
seed(
    "rows",
    database(),
    database(("hint", "a\nk\n", json.dumps(hint)), ("last_deletion", "", "1"), ("extra", "", '{"theme":"dark"}')),
    database(
        ("deletion", "1", json.dumps({"at": 1, "what": "deleted", "hints": [hint]})), ("call", "0", '{"key":"s"}')
    ),
)
seed(
    "session",
    json.dumps({"id": "a", "created_at": 1, "port": 8765, "token": "TOKEN-OF-A-SEED", "keep": True}),
    json.dumps({"port": 1, "pid": 2, "token": "TOKEN-OF-A-SEED", "session": "a"}),
)
event = {"session_id": "s", "cwd": "/work", "transcript_path": "/t.jsonl"}
names = (
    "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure Stop SubagentStop SessionEnd PreCompact BeforeAgent"
)
seed(
    "event",
    *[
        json.dumps(
            event
            | {"hook_event_name": name, "prompt": "why", "source": "startup", "tool_name": "Bash"}
            | {"tool_input": {"command": "make"}, "tool_response": {"stdout": "", "stderr": "no", "exit_code": 2}}
        )
        for name in names.split()
    ],
)
seed(
    "settings",
    b'\0{\n  // mine\n  "servers": {"other": {"command": "x"},},\n}\n',
    b"\0{}",
    b'\1# mine\n[servers.other]\ncommand = "x"\n\n[[hooks.Stop]]\n',
    b"\1servers = {}\n",
)
signal = {
    "from": "a",
    "message": "stop",
    "requires_response": True,
    "timestamp": "2026-11-25T08:00:00Z",
    "type": "stop",
}
seed("signal", json.dumps(signal), json.dumps(signal | {"to": "b", "timestamp": "2026-11-25T08:00:00.123+02:00"}))
note = (
    "---\nid: a\ntitle: 'A b'  # c\ntags: [x, y]\nrelations:\n  - target: b\n    type: uses\n---\n# H\n\nText [[b]].\n"
)
seed("front", note, "\ufeff---\r\nid: a\r\n---\r\nx\r\n", "no fence\n", "---\n...\n")
pages = sorted((ROOT / "nudge/docs").glob("*.md"))
seed("chunks", note, *[page.read_text()[:16_000] for page in pages])
turns = [
    {"type": "user", "sessionId": "s", "cwd": "/w", "message": {"role": "user", "content": "fix it"}},
    {
        "type": "assistant",
        "sessionId": "s",
        "message": {"content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "make"}}]},
    },
    {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "1", "content": "no", "is_error": True}]},
    },
]
codex = [
    {"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}},
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
    },
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}'}},
]
seed("transcript", *["\n".join(json.dumps(line) for line in lines) for lines in (turns, codex)])
seed("search", "client_max_body_size", 'a AND "b" NEAR(c, 2) * ^ col:x', "migratoin", "客户端")
manifests = [
    '{"scripts": {"build": "tsc -p .", "test": "vitest"}, "workspaces": ["a"]}',
    ".PHONY: test\ntest: build ## run them\n\tgo test ./...\n",
    "default := 'x'\ntest arg='1': build\n  cargo test {{arg}}\n",
    "version: '3'\ntasks:\n  build:\n    desc: b\n    cmds: [make]\n",
    '[package]\nname = "a"\n[alias]\nx = "run"\n[[bin]]\nname = "b"\n',
    '[project]\nname = "a"\n[tool.poe.tasks]\ntest = "pytest"\n[tool.pdm.scripts]\nx = {cmd = "y"}\n',
    "[tox]\nenvlist = py311\n[testenv:lint]\ncommands = ruff check\n",
    "import nox\n@nox.session(name='t')\ndef tests(session):\n    session.run('pytest')\n",
    "module x\n",
    '[tasks.build]\nrun = "make"\n',
    '{"scripts": {"test": ["phpunit", "@x"]}}',
    "plugins { id 'java' }\ntask x {}\n",
    "<project><modelVersion>4.0.0</modelVersion><artifactId>a</artifactId></project>",
    "services:\n  db:\n    image: x\n",
    "on: push\njobs:\n  t:\n    steps:\n      - run: make test\n",
    "project(x)\nadd_test(NAME t COMMAND t)\n",
]
seed("seeds", *[bytes([at]) + text.encode() for at, text in enumerate(manifests)])
facts = [(ROOT / f"nudge/code-index/tests/facts/{name}.txt").read_bytes() for name in LANGUAGES]
seed("source", *[bytes([at]) + text for at, text in enumerate(facts)])
seed("coverage", *coverage())
body = '{"jsonrpc":"2.0","id":1,"method":"nudge.status"}'
post = (
    f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\n"
    f"Content-Length: {len(body)}\r\n\r\n{body}"
)
chunked = (
    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3\r\n{}\n\r\n0\r\n\r\n"
)
seed(
    "server",
    *[bytes([way]) + text.encode() for way in (0, 1) for text in (post, chunked, "GET /health HTTP/1.1\r\n\r\n")],
)
