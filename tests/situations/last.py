"""Makes last.jsonl: 66 situations of the seven projects in worlds/*.json, of kinds that the other files lack.

    python3 last.py

The expectations of a row were written before any engine ran, and are not changed to suit an engine.
"""

import json
import os
from collections import Counter
from fnmatch import fnmatchcase

from last_failures import failures
from last_prompts import prompts
from last_quiet import accidents, broken, ordinary
from later_rows import HERE

FILE = os.path.join(HERE, "last.jsonl")
PARTS = {"p": prompts, "f": failures, "q": broken, "a": accidents, "o": ordinary}
COUNTS = {"p": 16, "f": 20, "q": 10, "a": 10, "o": 10}


def document():
    """Makes all rows of last.jsonl."""
    rows = []
    for letter, make in PARTS.items():
        rows += [{"id": f"h-{letter}{number:02}", **row} for number, row in enumerate(make(), 1)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def faults(rows):
    """Returns the faults in the rows: unknown ids and names, globs without a match, wrong counts."""
    found = [f"{name}: {count} times" for name, count in Counter(row["id"] for row in rows).items() if count > 1]
    for row in rows:
        ids = [one["id"] for one in row["store"]]
        names = {*ids, *(f"{one['component']}/{one['key']}" for one in row["store"])}
        if len(set(ids)) < len(ids):
            found.append(f"{row['id']}: two hints of one id")
        for field in ("needed", "allowed", "forbidden"):
            found += [
                f"{row['id']}: {field} {want} is not stored"
                for want in row[field]
                if not any(fnmatchcase(name, want) for name in names)
            ]
        if bool(row["needed"]) == bool(row.get("quiet")):
            found.append(f"{row['id']}: must either need something or be quiet")
        if row["event"]["kind"] == "fail" and row["event"]["client"] not in ("claude", "gemini"):
            found.append(f"{row['id']}: {row['event']['client']} tells of no failure")
        if row["event"]["client"] == "cursor":
            found.append(f"{row['id']}: cursor cannot be simulated here")
    counts = Counter(row["id"][2] for row in rows)
    return found + [f"{letter}: {counts[letter]} rows" for letter, count in COUNTS.items() if counts[letter] != count]


if __name__ == "__main__":
    with open(FILE, "w") as out:
        out.write(document())
    with open(FILE) as written:
        wrong = faults([json.loads(line) for line in written])
    print("\n".join(wrong) or "every line parses, ids are unique, names resolve")
    raise SystemExit(bool(wrong))
