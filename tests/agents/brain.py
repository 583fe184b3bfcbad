"""Tests the brain in the real Claude Code: the model asks the brain before its work, and reads the answer."""

import json

from case import Case
from programs import Claude, read_since_call, wait_for

NOTES = {
    "domains/coding/retry.md": """---
id: retry
type: pattern
related: [{id: backoff, type: uses}]
---
# Retry with full jitter

Clients that fail together must not retry together: wait a random time below the ceiling.
""",
    "domains/coding/backoff.md": """---
id: backoff
---
# Exponential waiting

Each pause is twice the last, up to 40 seconds.
""",
    "domains/fashion/linen.md": "# Linen\n\nLinen creases; iron it damp.\n",
}
TASK = "How should the clients of the shop retry?"
NUGGET = "mcp__nugget__get_relevant_context"
CONTEXT = "mcp__nudge__nudge_brain_context"
EDIT = "clients.py"


class Brain(Case):
    def setUp(self) -> None:
        super().setUp()
        self.brain = self.home.path / "my notes"
        for path, text in NOTES.items():
            file = self.brain / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def tearDown(self) -> None:
        for path, text in NOTES.items():
            self.assertEqual((self.brain / path).read_text(), text, "nobody writes into the notes")

    def test_by_the_profile_it_has_one_tool_asks_it_and_writes_what_it_says(self) -> None:
        self.home.allow("Write", NUGGET)
        self.home.nudge("brain", "use", str(self.brain))
        self.home.run("claude", "mcp", "add", "--scope", "user", "nugget", "--", "nudge", "serve", "--profile", "nugget")
        claude = self.start(Claude)
        claude.wait_for_process()
        answer: dict = {}

        def write() -> tuple[str, dict]:
            """Makes the model's next command from the answer. The model has no other source about retries."""
            # Claude Code may add its own text below.
            said, _ = json.JSONDecoder().raw_decode(read_since_call(self.home.model.requests[-1]))
            answer.update(said)
            (section,) = answer["units"][0]["sections"]
            text = f"# {answer['units'][0]['path']}:{section['lines']}\n# {section['text'].splitlines()[-1]}\n"
            return "Write", {"file_path": str(self.home.shop / EDIT), "content": text}

        first, *_ = claude.asked("make the clients retry", (NUGGET, {"task_description": TASK}), write)
        offered = [tool["name"] for tool in first["tools"] if "nugget" in tool["name"] or "nudge" in tool["name"]]
        self.assertEqual(offered, [NUGGET])
        self.assertIn("Always check the brain for relevant context before answering questions.", json.dumps(first))
        self.assertEqual([unit["id"] for unit in answer["units"]], ["retry"])
        self.assertEqual([(unit["id"], unit["via"]) for unit in answer["related"]], [("backoff", "retry")])
        written = (self.home.shop / EDIT).read_text()
        self.assertIn("domains/coding/retry.md:6-8", written)
        self.assertIn("wait a random time below the ceiling", written)

    def test_among_the_other_tools_it_is_asked_and_follows_the_files(self) -> None:
        self.home.allow(CONTEXT)
        self.home.nudge("brain", "use", str(self.brain))
        self.home.nudge("init", "--yes")
        claude = self.start(Claude)
        claude.wait_for_server()
        ask = (CONTEXT, {"task_description": TASK})
        *_, answered = claude.asked("what do my notes say of retries?", ask)
        self.assertIn("must not retry together", read_since_call(answered))
        status = lambda: json.loads(self.home.nudge("status", "--json"))["brain"]
        (self.brain / "budget.md").write_text("# Retry budget\n\nAt most one retry in ten calls of the clients.\n")
        wait_for("the note to be read", lambda: status()["units"] == len(NOTES) + 1 or None)
        *_, answered = claude.asked("and now?", ask)
        self.assertIn("At most one retry in ten calls", read_since_call(answered))
        (self.brain / "budget.md").unlink()
        *_, answered = claude.asked("and now?", ask)
        self.assertNotIn("At most one retry in ten calls", read_since_call(answered))

    def test_who_has_no_brain_is_told_how_to_make_one(self) -> None:
        self.home.allow(NUGGET)
        self.home.run("claude", "mcp", "add", "--scope", "user", "nugget", "--", "nudge", "serve", "--profile", "nugget")
        claude = self.start(Claude)
        claude.wait_for_process()
        *_, answered = claude.asked("make the clients retry", (NUGGET, {"task_description": TASK}))
        self.assertIn("`nudge brain init DIR` makes one", read_since_call(answered))
