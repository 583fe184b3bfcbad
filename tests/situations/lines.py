"""Reads what Nudge wrote: which line tells which hint, how old it says the hint is, what it says of its state."""

import json
import re
from dataclasses import dataclass, replace

ALSO = "- also here: "
# `(set 3h ago by codex; ...` and `(3h, codex, 4x; ...`: the age is the first thing in the parentheses.
AGE = re.compile(r"\((?:set )?(?:(?:just )?now|(\d+) ?(s|mo|m|h|d|w|y)[a-z]*(?: ago)?)(?=[ ,;)])")
DAYS = {"s": 0, "m": 0, "h": 1 / 24, "d": 1, "w": 7, "mo": 30, "y": 365}
DOUBT = re.compile(r"fail|doubt|broken|did not work|not working", re.I)
GONE = re.compile(r"stale|missing|gone|no longer|not (there|found)|does not exist|outdated|changed since|⚠", re.I)
RETRACTED = re.compile(r"no longer|deleted|removed|withdrawn|expired|forgotten|gone|not valid|does not hold", re.I)


@dataclass(frozen=True)
class Line:
    text: str
    name: str | None  # component/key
    hint: str | None  # the id of the hint in the row; None when it is none of them
    tells: bool  # its value; a name in a list of names tells nothing
    said: str  # the text without what the hint itself says
    at_start: bool = False  # under the heading of what a start tells


def value_text(value):
    """As the list of a session shows a value."""
    if isinstance(value, str):
        return value
    field = {"command": "cmd", "path": "abs", "template": "body"}.get(value["type"])
    return value[field] if field else json.dumps(value["data"], separators=(",", ":"))


def plain(text):
    """Letters and digits of the first line: white space, marks and what a renderer may change do not count."""
    return re.sub(r"[\W_]+", "", text.split("\n")[0])[:60].lower()


def shown_name(hint):
    """The name as it is written where a `<` must not begin a tag."""
    return re.sub(r"<(?=[a-zA-Z/!?])", "< ", f"{hint['component']}/{hint['key']}")


def read(text, hints):
    """The hint lines of an answer. `hints`: id -> the hint with `values`, all it has had, and its reason."""
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
    """The variant whose value the line begins with, else the one whose value it names, else the only one."""
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
    """What the line says of the hint: a value or reason that says "fails" marks nothing."""
    for words in [*hint["values"], hint["meta"].get("reason") or ""]:
        words = words.split("\n")[0]
        while len(words) > 12 and words not in rest:
            words = words[:-1]
        rest = rest.replace(words, "", 1)
    return rest


def age_in_days(line):
    """None when the line states no age."""
    age = AGE.search(line.said)
    if age is None:
        return None
    return int(age[1]) * DAYS[age[2]] if age[1] else 0


def before_age(text):
    """A line up to its age, by which two lines are the same although time has passed."""
    return AGE.split(text)[0]
