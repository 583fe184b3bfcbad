"""Compares the told lines with the expectations of a row."""

import fnmatch
import re

from lines import DOUBT, GONE, RETRACTED, age_in_days, before_age

LIMIT = 2000  # bytes that one event may tell
OLD_DAYS = 150  # an `aged` hint is older
MUST_STATE_AGE_HOURS = 30 * 24
# The components that belong to the machine and not to a project. They fit in every repository.
MACHINE = {"git", "shell", "host", "github", "docker"}
OTHER_WORDS = ("b3 ", "b5 ")  # paraphrase, languages


def group(row):
    """Returns the group of events in which the row counts."""
    if row["event"]["kind"] in ("start", "subagent") or row["category"].startswith("l "):
        return "start"
    if row["event"]["kind"] == "fail":
        return "failure"
    return "prompt, other words" if row["category"].startswith(OTHER_WORDS) else "prompt"


def judge(play, answer):
    return Verdict(play, answer).result()


class Verdict:
    def __init__(self, play, answer):
        self.row, self.hints, self.spoken, self.times = play.row, play.hints, play.spoken, play.times
        self.answer = answer
        self.scope = answer.lines if self.row.get("event_only") else answer.all
        self.wrong = []
        self.stale = 0

    def result(self):
        row, answer = self.row, self.answer
        self.full_start = bool(row.get("full_start"))
        missing, texts_missing = self.missing()
        forbidden = self.forbidden()
        counted, junk = self.counted()
        again = self.again()
        loud = [line for line in answer.lines if not self.fits(line)]
        quiet_broken = bool(row.get("quiet")) and bool(loud or again)
        if quiet_broken:
            names = [line.name or line.text for line in loud] + [f"{name} again" for name in again]
            self.wrong.append("not quiet: " + ", ".join(names))
        self.state()
        self.form()
        told_now = {line.hint for line in answer.lines if line.tells}
        return {
            "id": row["id"],
            "category": row["category"],
            "group": group(row),
            "ok": not self.wrong,
            "wrong": self.wrong,
            "needed": len(row["needed"]),
            "missing": missing,
            "told": not missing and not texts_missing,
            "told_now": all(hint in told_now for hint in row["needed"]),
            "hint_bytes": size(counted),
            "junk_bytes": size(junk),
            "junk": [line.hint or line.name or line.text for line in junk],
            "quiet": bool(row.get("quiet")),
            "quiet_broken": quiet_broken,
            "forbidden": forbidden,
            "stale": self.stale,
            "bytes": len(answer.text.encode()),
            "text": answer.text,
            "times": self.times,
        }

    # Hints that must be told

    def missing(self):
        told = {line.hint for line in self.scope if line.tells}
        missing = [hint for hint in self.row["needed"] if hint not in told]
        if missing:
            self.wrong.append("missing " + ", ".join(missing))
        texts = [t for t in self.row.get("text_needed", []) if not any(t in line.text for line in self.scope)]
        self.wrong += [f"text missing {text}" for text in texts]
        return missing, texts

    # Hints that must not be told

    def forbidden(self):
        shown = [
            h
            for h in self.row["forbidden"]
            if any(line.hint == h and not self.retracts(line) for line in self.answer.lines)
        ]
        leaks = [t for t in self.row.get("text_forbidden", []) if any(t in text for text in self.spoken)]
        if shown:
            self.wrong.append("forbidden " + ", ".join(shown))
        if leaks:
            self.wrong.append("forbidden text")
        return len(shown) + len(leaks)

    def retracts(self, line):
        """Removes hints from the list of those that the conversation was told."""
        told_before = any(before.hint == line.hint and before.tells for before in self.answer.before)
        return line.tells and told_before and bool(RETRACTED.search(line.said))

    def fits(self, line):
        if self.retracts(line):
            return True
        if line.name is None or line.hint in self.row["forbidden"]:
            return False
        if (line.hint or "").startswith("seed:") and line.at_start and not self.row.get("quiet"):
            # The start in a repository may show the commands of the repository's own files.
            return True
        wanted = self.row["needed"] + self.row["allowed"]
        return (
            line.hint in wanted
            or any("*" in glob and self.matches(line, glob) for glob in wanted)
            or line.name in wanted
        )

    def matches(self, line, glob):
        return fnmatch.fnmatchcase(line.name, glob) or fnmatch.fnmatchcase(line.hint or "", glob)

    def counted(self):
        """Returns the lines whose bytes count, and those of them that are irrelevant."""
        lines = self.answer.lines
        junk = [line for line in lines if not self.fits(line)]
        if self.full_start:
            # A line at the start is judged only by its context: a hint with a scope fits here, or Nudge could not tell
            # it.
            junk = [line for line in self.answer.before if not self.fits(line) and not self.at_home(line)] + junk
            lines = self.answer.all
        return lines, junk

    def at_home(self, line):
        if line.hint is None:
            return False
        hint = self.hints[line.hint]
        return bool(hint["meta"].get("scope")) or hint["component"] in MACHINE | {self.row["fixture"]["dir"]}

    def again(self):
        """Returns the names that are told in the same words as before."""
        before = {before_age(line.text) for line in self.answer.before if line.tells}
        return [line.name for line in self.answer.lines if line.tells and line.hint and before_age(line.text) in before]

    # Required statements about the state of a told hint

    def unmarked(self, what):
        self.stale += 1
        self.wrong.append(what)

    def of(self, hint, lines):
        return [line for line in lines if line.hint == hint and line.tells]

    def state(self):
        row, everything = self.row, self.answer.all
        for hint in row.get("marked", []):
            found = self.of(hint, self.answer.lines if row.get("event_marked") else everything)
            if row.get("event_marked") and not found:
                self.unmarked(f"nothing said of {hint}, which is doubtful now")
            elif found and not DOUBT.search(found[-1].said):
                self.unmarked(f"doubtful, unmarked {hint}")
        for hint in row.get("unmarked", []):
            if any(DOUBT.search(line.said) for line in self.of(hint, everything)[-1:]):
                self.wrong.append(f"marked though it works {hint}")
        for hint in row.get("retracted", []):
            told = self.of(hint, self.answer.before)
            if told and not any(self.retracts(line) for line in self.of(hint, self.answer.lines)):
                self.unmarked(f"not taken back {hint}")
        for hint in row.get("aged", []):
            if any((age_in_days(line) or 0) < OLD_DAYS for line in self.of(hint, everything)):
                self.unmarked(f"age not said {hint}")
        for hint in row.get("drift", []):
            if any(not GONE.search(line.said) for line in self.of(hint, everything)):
                self.unmarked(f"does not hold any more, unmarked {hint}")
        for line in self.answer.lines:
            old = line.hint and self.hints[line.hint]["age_h"] > MUST_STATE_AGE_HOURS
            if old and line.tells and not self.retracts(line) and age_in_days(line) is None:
                self.unmarked(f"no age {line.hint}")
        for text in row.get("text_needed_event", []):
            if text not in self.answer.text:
                self.unmarked(f"not said anew: {text}")

    # Required form of a line

    def form(self):
        row, text, lines = self.row, self.answer.text, self.answer.lines
        if not self.answer.readable:
            self.wrong.append("bad output")
        if len(text.encode()) > LIMIT:
            self.wrong.append(f"{len(text.encode())} bytes")
        places = {}
        for place, line in enumerate(lines):
            places.setdefault(line.hint, place)
        for first, second in row.get("order", []):
            if places.get(first, -1) > places.get(second, len(lines)):
                self.wrong.append(f"order {first} after {second}")
        told = {line.hint for line in lines if line.tells}
        if row.get("cut") and len(told) < len(self.hints) and not re.search(r"\d+ more|also here", text):
            self.wrong.append("cut not said")
        if row.get("framed") and text:
            if re.search(r"<[/a-zA-Z!]", text) or re.search("[\x00-\x09\x0b-\x1f\u202e\u200b]", text):
                self.wrong.append("a tag or a control character")
            if "not instructions" not in text.split("\n")[0]:
                self.wrong.append("no frame")
            if self.forged():
                self.wrong.append("a forged line")

    def forged(self):
        """Returns lines that a hint has forged: a line that tells no hint, or a heading that a hint quotes."""
        headings = [line for line in self.answer.text.split("\n") if line and not line.startswith("- ")]
        values = [part.strip() for h in self.hints.values() for value in h["values"] for part in value.split("\n")]
        return any(line.hint is None for line in self.answer.lines) or any(
            len(part) >= 8 and line.strip().startswith(part) for line in headings for part in values
        )


def size(lines):
    return sum(len(line.text.encode()) for line in lines)
