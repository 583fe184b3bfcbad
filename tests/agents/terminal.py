"""Claude Code on a terminal, where a person sits: a hook knows by that whether somebody reads a further turn."""

import fcntl
import json
import os
import re
import struct
import subprocess
import termios
import threading

from programs import Home, wait_for

ROWS, COLUMNS = 40, 120
# The title of its window while it waits for a prompt.
IDLE = "\N{EIGHT SPOKED ASTERISK} Claude Code"


class ClaudeOnTerminal:
    """Its user has answered the questions of a first start."""

    def __init__(self, home: Home) -> None:
        self.home = home
        file = home.path / ".claude.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        known |= {"hasCompletedOnboarding": True, "theme": "dark"}
        known["customApiKeyResponses"] = {"approved": [home.env["ANTHROPIC_API_KEY"]], "rejected": []}
        known.setdefault("projects", {})[str(home.shop)] = {"hasTrustDialogAccepted": True}
        file.write_text(json.dumps(known))
        self.person, end = os.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        words = ["claude", "--model", "claude-sonnet-4-5"]
        self.process = subprocess.Popen(
            words, env=home.env, cwd=home.shop, stdin=end, stdout=end, stderr=end, start_new_session=True
        )
        os.close(end)
        self._said = bytearray()
        threading.Thread(target=self._read, daemon=True).start()
        self.wait_for("for shortcuts")

    def _read(self) -> None:
        try:
            while part := os.read(self.person, 1 << 16):
                self._said += part
        except OSError:  # It has ended.
            pass

    def said(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self._said.decode(errors="replace"))

    def wait_for(self, text: str) -> None:
        wait_for(text, lambda: True if text in self.said() else None)

    def ask(self, prompt: str, *turns: tuple[str, dict]) -> None:
        """Types a prompt; the model does `turns`."""
        self.home.model.turns.extend(turns)
        self._said.clear()
        os.write(self.person, prompt.encode())
        self.wait_for(prompt.split()[-1])
        os.write(self.person, b"\r")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.person)
