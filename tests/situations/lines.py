"""Parses Nudge's output: the hint of each line, and the age and the state that the line states."""

import json
import re
from dataclasses import dataclass, replace

ALSO = "- also here: "
# In `(set 3h ago by codex; ...` and `(3h, codex, 4x; ...` the age comes first.
AGE = re.compile(r"\((?:set )?(?:(?:just )?now|(\d+) ?(s|mo|m|h|d|w|y)[a-z]*(?: ago)?)(?=[ ,;)])")
DAYS = {"s": 0, "m": 0, "h": 1 / 24, "d": 1, "w": 7, "mo": 30, "y": 365}
DOUBT = re.compile(r"fail|doubt|broken|did not work|not working", re.I)
GONE = re.compile(r"stale|missing|gone|no longer|not (there|found)|does not exist|outdated|changed since|⚠", re.I)
RETRACTED = re.compile(r"no longer|deleted|removed|withdrawn|expired|forgotten|gone|not valid|does not hold", re.I)


@dataclass(frozen=True)
class Line:
    text: str
    name: str | None  # component/key
    hint: str | None  # the id of the hint in the row; None if it is none of the row's hints
    tells: bool  # Is true if the line has the value; a name in a list of names has none
    said: str  # the text without the hint's own words
    at_start: bool = False  # Is true below the heading of a start


def value_text(value):
    """Formats a value as the session's list does."""
    if isinstance(value, str):
        return value
    field = {"command": "cmd", "path": "abs", "template": "body"}.get(value["type"])
    return value[field] if field else json.dumps(value["data"], separators=(",", ":"))


def plain(text):
    """Returns the letters and digits of the first line. White space, marks and characters that a renderer adds do not
    count."""
    return re.sub(r"[\W_]+", "", text.split("\n")[0])[:60].lower()


def shown_name(hint):
    """Formats a name for outputs in which `<` must not begin a tag."""
    return re.sub(r"<(?=[a-zA-Z/!?])", "< ", f"{hint['component']}/{hint['key']}")


def read(text, hints):
    """Parses the hint lines of an answer. `hints` has for each id the hint: `values` with all its past values, and its
    reason."""
    named = {}
    for hint in hints.values():
        named.setdefault(shown_name(hint), []).append(hint)
    found = []
    at_start = False
    for line in text.split("\n"):
        if line.startswith("Nudge: "):
            at_start = "stored earlier for where you are" in line
        if line.startswith(ALSO):
            for name in line.removeprefix(ALSO).rsplit(" (", 1)[0].split(", "):
                hint = named[name][0]["id"] if name in named else None
                found.append(Line(name + ", ", name, hint, False, ""))
        elif line.startswith("- "):
            found.append(replace(read_line(line, named), at_start=at_start))
    return found


def read_line(line, named):
    name = max((n for n in named if line.startswith((f"- {n}: ", f"- {n} "))), key=len, default=None)
    if name is None:
        return Line(line, None, None, True, line)
    rest = line[len(name) + 2 :].lstrip(": ")
    hint = which(rest, named[name])
    if hint is None:
        return Line(line, name, None, True, rest)
    return Line(line, name, hint["id"], True, without_own_words(rest, hint))


def which(rest, variants):
    """Finds the variant of a line: its value begins the line or is in the line, or it is the only variant."""
    shown = plain(rest.split(" ⏎ ")[0])
    beginnings = [(plain(value)[:30], hint) for hint in variants for value in hint["values"]]
    for begins, hint in beginnings:
        if shown.startswith(begins):
            return hint
    whole = re.sub(r"[\W_]+", "", rest).lower()
    for begins, hint in beginnings:
        if begins in whole:
            return hint
    return variants[0] if len(variants) == 1 else None


def without_own_words(rest, hint):
    """Removes the hint's own words from the line: a value that says "fails" is not Nudge's statement."""
    for words in [*hint["values"], hint["meta"].get("reason") or ""]:
        words = words.split("\n")[0]
        while len(words) > 12 and words not in rest:
            words = words[:-1]
        rest = rest.replace(words, "", 1)
    return rest


def age_in_days(line):
    """Returns the age in days; None if the line states none."""
    age = AGE.search(line.said)
    if age is None:
        return None
    return int(age[1]) * DAYS[age[2]] if age[1] else 0


def before_age(text):
    """Returns the part of a line before its age. Two lines with equal parts are equal, even if time has passed."""
    return AGE.split(text)[0]
