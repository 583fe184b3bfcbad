"""Records two sessions of the real Claude Code, one after the other, and draws the picture in the README.

The model is no language model but `Guesser`, a rule of four lines: it runs the command that it reads, or it guesses a
command. All else is real: the client, its hooks and tools as `nudge init` sets them up, the texts that the model gets,
and the results of the commands. `run --picture` draws the picture. `run --picture --check` checks that the picture is
unchanged.
"""

import html
import re
import sys
from pathlib import Path

from models import Model, Turn
from programs import Claude, Home, hints

PICTURE = Path(__file__).parents[2] / "nudge/docs/agent.svg"
PROMPT = "run the tests"
FIX = "cargo test --locked"


class Guesser(Model):
    """Runs the command that a hint names. Without a hint it guesses a command, reads the error, and stores the command
    that worked."""

    def next(self, request: dict) -> tuple[int, Turn]:
        if not request.get("tools"):
            return 0, None
        self.requests.append(request)
        done = [step for step in steps(request) if step[0] in ("call", "result", "error")]
        known = re.search(r"^- \S+/test: (.+?) \(", hints(request), re.MULTILINE)
        match done[-2:]:
            case []:
                turn = bash(known[1] if known else "cargo test")
            case [_, ("error", _)]:
                turn = bash(FIX)
            case [("call", call), ("result", _)] if call == f"Bash({FIX})" and not known:
                value = {"type": "command", "cmd": FIX}
                meta = {"reason": "CI refuses a changed lock file", "tags": ["test", "tests"]}
                hint = {"component": "shop", "key": "test", "value": value, "meta": meta}
                turn = ("mcp__nudge__nudge_set_hint", hint)
            case _:
                turn = None
        return len(self.requests), turn


def bash(command: str) -> Turn:
    return "Bash", {"command": command}


def steps(request: dict) -> list[tuple[str, str]]:
    """Returns the steps since the prompt: lines of Nudge, calls, answers and failures."""
    found: list[tuple[str, str]] = []
    context: list[tuple[str, str]] = []
    for message in request["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text" and PROMPT == block["text"].strip():
                found.append(("prompt", PROMPT))
            elif block["type"] == "text" and "These are notes" in block["text"]:
                # The client puts the text before the prompt. The speed of the server decides which hook tells it: the
                # hook of the start or the hook of the prompt.
                told = re.findall(r"^- .*", block["text"], re.MULTILINE)
                context.append(("told", "what the model reads before it begins:\n" + "\n".join(told)))
            elif block["type"] == "tool_use":
                words = block["input"].get("command") or f"{block['input']['component']}/{block['input']['key']}, ..."
                found.append(("call", f"{block['name'].rpartition('__')[2]}({words})"))
            elif block["type"] == "tool_result":
                inner = block["content"]
                text = inner if isinstance(inner, str) else "\n".join(part.get("text", "") for part in inner)
                failed = block.get("is_error") or text.startswith("Exit code")
                # Clients add their own texts.
                said = re.sub(r"<system-reminder>.*?</system-reminder>", "", text, flags=re.DOTALL).strip()
                found.append(("error" if failed else "result", said))
    return found[:1] + context + found[1:]


def recorded() -> list[tuple[str, list[tuple[str, str]]]]:
    """Records each session with its steps. All processes end between the two sessions."""
    home = Home()
    home.model.close()
    home.model = Guesser()
    home.env["ANTHROPIC_BASE_URL"] = home.model.url
    try:
        home.allow_commands()
        home.nudge("init", "--yes")
        sessions = []
        for name in ["a first session guesses, and remembers what worked", "the next session, all closed in between"]:
            home.wait_for_the_end()
            claude = Claude(home)
            claude.wait_for_server()
            claude.ask(PROMPT)
            claude.close()
            sessions.append((name, steps(home.model.requests[-1])))
        return sessions
    finally:
        home.wait_for_the_end()
        home.close()


# The sizes of columns and rows of the picture, in pixels.
COLUMN, ROW, LEFT, TOP = 8.43, 21, 24, 30
COLOURS = {"head": "#8b949e", "prompt": "#e6edf3", "call": "#79c0ff", "result": "#7ee787", "error": "#ff7b72", "told": "#e3b341"}
MARKS = {"prompt": "> ", "call": "● ", "result": "  ", "error": "  ", "told": "│ "}


def lines(sessions: list[tuple[str, list[tuple[str, str]]]]) -> list[tuple[str, str]]:
    """Returns the lines of the picture, each with its kind."""
    out: list[tuple[str, str]] = []
    for name, found in sessions:
        out += [("head", f"$ claude   # {name}")]
        for kind, text in found:
            shown = text.splitlines()
            if text.startswith("stored "):
                # The lines below say where it applies, by the folder of this run.
                del shown[1:]
            if kind == "error":
                shown = [line for line in shown if line.startswith("error")]
            out += [(kind, MARKS[kind] + line) for line in shown]
        out += [("head", "")]
    return out[:-1]


def drawn(rows: list[tuple[str, str]]) -> str:
    width, height = 800, TOP + len(rows) * ROW + 12
    label = "Claude Code guesses in its first session, stores what worked, and knows it in the next one."
    texts = "\n".join(
        f'<text x="{LEFT}" y="{TOP + at * ROW}" fill="{COLOURS[kind]}">{html.escape(line)}</text>'
        for at, (kind, line) in enumerate(rows)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n'
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" style="white-space:pre">\n'
        f"{texts}\n</g>\n</svg>\n"
    )


def main() -> None:
    rows = lines(recorded())
    longest = max(len(line) for _, line in rows)
    assert LEFT * 2 + longest * COLUMN <= 800, f"{longest} columns do not fit"
    picture = drawn(rows)
    if "--check" not in sys.argv:
        PICTURE.write_text(picture)
    elif picture != PICTURE.read_text():
        sys.exit(f"{PICTURE} shows something else than what happens now; draw it anew by `run --picture`:\n{picture}")
    print("\n".join(line for _, line in rows))


if __name__ == "__main__":
    main()
