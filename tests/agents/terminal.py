"""Runs Claude Code on a terminal. There the hooks know that a person reads the next turn."""

import fcntl
import json
import os
import re
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable

from programs import Home, wait_for

ROWS, COLUMNS = 40, 120
# The title of the terminal's window while Claude Code waits for a prompt.
IDLE = "\N{EIGHT SPOKED ASTERISK} Claude Code"


class ClaudeOnTerminal:
    """Claude Code after its user has answered the questions of the first start."""

    def __init__(self, home: Home, *flags: str) -> None:
        self.home = home
        file = home.path / ".claude.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        known |= {"hasCompletedOnboarding": True, "theme": "dark"}
        known["customApiKeyResponses"] = {"approved": [home.env["ANTHROPIC_API_KEY"]], "rejected": []}
        known.setdefault("projects", {})[str(home.shop)] = {"hasTrustDialogAccepted": True}
        file.write_text(json.dumps(known))
        self.person, end = os.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        words = ["claude", "--model", "claude-sonnet-4-5", *flags]
        self.process = subprocess.Popen(
            words, env=home.env, cwd=home.shop, stdin=end, stdout=end, stderr=end, start_new_session=True
        )
        os.close(end)
        self._said = bytearray()
        threading.Thread(target=self._read, daemon=True).start()
        self.wait_for("plan mode on" if "plan" in flags else "for shortcuts")

    def _read(self) -> None:
        try:
            while part := os.read(self.person, 1 << 16):
                self._said += part
        except OSError:  # The program has ended.
            pass

    def said(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self._said.decode(errors="replace"))

    def wait_for(self, text: str) -> None:
        wait_for(text, lambda: True if text in self.said() else None)

    def ask(self, prompt: str, *turns: tuple[str, dict]) -> None:
        """Types a prompt, for which the model plays `turns`."""
        self.home.model.turns.extend(turns)
        self._said.clear()
        os.write(self.person, prompt.encode())
        self.wait_for(prompt.split()[-1])
        self.press_enter()

    def press_enter(self) -> None:
        os.write(self.person, b"\r")

    def agree(self, question: str, has_heard: Callable[[], bool]) -> None:
        """Chooses the first answer to a question. The question is on the screen before it accepts a key, so this
        repeats the key until the question is answered. A further press at the empty prompt does nothing."""
        self.wait_for(question)
        pressed = 0.0

        def heard() -> bool | None:
            nonlocal pressed
            if time.monotonic() > pressed + 1:
                pressed = time.monotonic()
                self.press_enter()
            return has_heard() or None

        wait_for(f"an end of {question}", heard)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.person)
