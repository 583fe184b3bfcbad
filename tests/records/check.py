#!/usr/bin/env python3
"""Checks the evaluation sets in this folder: fields, ids, counts, and whether each question is of the kind of its
group.

    tests/records/check.py    # prints the counts; exits with 1 and names every fault
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent

KINDS = {"issue", "spec", "arch", "update"}
STATES = {"open", "resolved", "archived"}
# The counts that each set must have, and whether its half with odd ids is for tuning.
SETS = {
    "set-a": {
        "tuned": True, "records": 100, "projects": 12, "idle": {"idle.jsonl": 60, "idle-d.jsonl": 20, "idle-e.jsonl": 30}, "same": 35, "different": 35, "hard": 22,
        "groups": {"paraphrase": 110, "exact": 45, "misspelt": 20, "language": 25},
    },
    "set-b": {
        "tuned": False, "records": 50, "projects": 6, "idle": {"idle.jsonl": 30, "idle-c.jsonl": 20, "idle-d.jsonl": 20, "idle-e.jsonl": 30}, "same": 15, "different": 15, "hard": 10,
        "groups": {"paraphrase": 55, "exact": 22, "misspelt": 10, "language": 13},
    },
}
MAX_TITLE, MAX_SENTENCES, MAX_WANTED = 300, 12, 3
# A question with at most this many words is a search. A longer question is a prompt.
MAX_SEARCH = 8

# Function words by which the language of a text is decided. No word is in two rows.
LANGUAGES = {
    "de": "der das und wir nicht wie wurde wird bei ist auf eine einem einen kennen nutzer läuft gehört darf warum",
    "fr": "les est dans une pourquoi après avec sont fait comment mais seulement pas dix aux être",
    "es": "por los las qué cómo una con cuando desde hay está salen tenemos fotos",
    "pl": "przy się jest nie każdym czy między skąd podczas oraz jeśli przed",
    "en": "the and is are was what how why when does for with to of in we by some out",
}

# Patterns of credentials. Parts of a pattern are written as classes, so that this file contains nothing that looks like
# a credential.
CREDENTIALS = [
    r"A[KS]IA[0-9A-Z]{12,}",
    r"gh[pousr]_\w{16,}",
    r"github_pat_\w{16,}",
    r"glpat-[\w-]{16,}",
    r"[sr]k_(live|test)_\w+",
    r"sk-[A-Za-z0-9_-]{16,}",
    r"xox[abprs]-[\w-]+",
    r"AIza[\w-]{20,}",
    r"ey[J][\w-]{8,}\.[\w-]+",
    r"-----BEGIN [A-Z ]*PRIVATE",
    r"hvs\.\w{16,}",
    r"\b[0-9a-fA-F]{32,}\b",
    r"\w+://[^\s/:@]+:[^\s/@]+@",
    r"(?i)\b(pass(word|wd|phrase)?|secret|token|api[_-]?key)\s*[=:]\s*[\"']?[^\s\"',.;]{6,}",
    # This pattern finds a long run of letters and digits: a key of an unlisted kind.
    r"\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])(?=\w*\d\w*\d\w*\d)[A-Za-z0-9]{24,}\b",
]


class Faults(list):
    def say(self, where, what):
        self.append(f"{where}: {what}")


def read(path, fields, faults, may=()):
    """Reads a file of JSON lines. A row with a missing or unknown field is a fault and is left out."""
    rows = []
    if not path.is_file():
        faults.say(path.name, "is missing")
        return rows
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path.name}:{number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            faults.say(where, f"is no JSON ({error})")
            continue
        if not isinstance(row, dict) or set(row) - set(may) != set(fields):
            faults.say(where, f"must have the fields {', '.join(fields)} and no other")
            continue
        wrong = [name for name, kind in fields.items() if not isinstance(row[name], kind) or row[name] in ("", [])]
        if wrong:
            faults.say(where, f"{', '.join(wrong)}: empty or of the wrong type")
            continue
        rows.append(row)
    return rows


def check_ids(name, rows, letter, digits, faults):
    """Checks that ids count from 1 without a gap. Odd and even ids then make two halves."""
    for number, row in enumerate(rows, 1):
        wanted = f"{letter}{number:0{digits}}"
        if row["id"] != wanted:
            faults.say(name, f"{row['id']} stands where {wanted} must be")


def check_halves(name, what, rows, faults):
    odd = sum(map(is_odd, rows))
    if abs(2 * odd - len(rows)) > 1:
        faults.say(name, f"{what}: {odd} odd and {len(rows) - odd} even")


def check_distinct(name, texts, faults):
    for text, count in Counter(" ".join(text.lower().split()) for text in texts).items():
        if count > 1:
            faults.say(name, f"stands {count} times: {text[:80]}")


def is_odd(row):
    return int(row["id"][1:]) % 2 == 1


def text_of(record):
    return f"{record['title']}\n{record['body']}"


def sentences(text):
    """Splits a text into sentences. A sentence ends with a mark and white space, with a Japanese full stop, or with the
    line."""
    return len([part for part in re.split(r"[.!?:](?=\s)|。|\n", text + "\n") if re.search(r"\w", part)])


def words(text):
    return re.findall(r"[^\W_]+", text.lower())


def stem(word):
    """Returns a rough stem. `merge`, `merged`, `merging` and `merges` have the same stem, and so have `ship` and
    `shipping`."""
    for ending in ("ingly", "edly", "ing", "ies", "ied", "ed", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word


def identifiers(query):
    """Returns the words that a person would copy: they contain a digit or a mark, or capitals inside."""
    for token in query.split():
        token = token.strip("\"'(),;?!").rstrip(".:")
        for part in (token, *re.split(r"[.:=/]", token)):
            if re.search(r"\d|\w[_.:/=-]\w|^--|^/|[a-z][A-Z]|^[A-Z]{2,}|\w\(", part) and len(part) > 2:
                yield part


def distance(a, b):
    """Returns the number of edits from a to b. An edit adds, removes or replaces a letter, or swaps two neighbours."""
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def misspelt(query, record):
    """Returns the query's words that are not in the record, but are within two typing errors of a word in it."""
    there = set(words(text_of(record)))
    near = [word for word in there if len(word) > 3]
    return [
        word
        for word in words(query)
        if len(word) > 3 and word not in there and stem(word) not in {stem(other) for other in there}
        and any(abs(len(word) - len(other)) < 3 and 0 < distance(word, other) < 3 for other in near)
    ]


def language(text):
    if re.search(r"[\u3040-\u30ff]", text):
        return "ja"
    there = words(text)
    counts = {name: sum(word in row.split() for word in there) for name, row in LANGUAGES.items()}
    for name, letters in {"pl": "ąęłńśźż", "de": "äöüß", "es": "¿ñ", "fr": "çêè"}.items():
        counts[name] += sum(letter in letters for letter in text.lower())
    return max(counts, key=counts.get) if any(counts.values()) else "?"


def check_records(rows, want, faults):
    check_ids("records.jsonl", rows, "r", 3, faults)
    check_distinct("records.jsonl", [row["title"] for row in rows], faults)
    if len(rows) != want["records"]:
        faults.say("records.jsonl", f"{len(rows)} records, {want['records']} are wanted")
    for row in rows:
        if row["kind"] not in KINDS:
            faults.say(row["id"], f"kind {row['kind']}")
        if row["status"] not in STATES:
            faults.say(row["id"], f"status {row['status']}")
        if len(row["title"]) > MAX_TITLE or "\n" in row["title"]:
            faults.say(row["id"], f"the title is one line of at most {MAX_TITLE} characters")
        if not 1 <= sentences(row["body"]) <= MAX_SENTENCES:
            faults.say(row["id"], f"{sentences(row['body'])} sentences")
    projects = {row["project"] for row in rows}
    if len(projects) != want["projects"] or not any("/" not in project for project in projects):
        wanted = f"{want['projects']} are wanted, one of them a bare folder"
        faults.say("records.jsonl", f"{len(projects)} projects; {wanted}")


def check_questions(rows, records, want, faults):
    check_ids("questions.jsonl", rows, "q", 3, faults)
    check_distinct("questions.jsonl", [row["query"] for row in rows], faults)
    projects = {record["project"] for record in records.values()}
    for row in rows:
        wanted = row["wanted"]
        unknown = [name for name in wanted if name not in records]
        if unknown or len(set(wanted)) != len(wanted) or len(wanted) > MAX_WANTED:
            faults.say(row["id"], f"wanted: {', '.join(map(str, wanted))}")
            continue
        if row["project"] not in projects:
            faults.say(row["id"], f"no record is of the project {row['project']}")
        check_group(row, [records[name] for name in wanted], faults)
    for group, count in want["groups"].items():
        of_group = [row for row in rows if row["group"] == group]
        if len(of_group) != count:
            faults.say("questions.jsonl", f"{len(of_group)} of the group {group}, {count} are wanted")
        check_halves("questions.jsonl", group, of_group, faults)
    hard = [row for row in rows if "hard" in row]
    if len(hard) != want["hard"]:
        faults.say("questions.jsonl", f"{len(hard)} hard ones, {want['hard']} are wanted")
    check_halves("questions.jsonl", "hard ones", hard, faults)
    check_halves("questions.jsonl", "all", rows, faults)


def check_group(row, wanted, faults):
    """Checks that a question is of the kind of its group."""
    query = row["query"]
    if "hard" in row and (row["hard"] is not True or row["group"] != "paraphrase"):
        faults.say(row["id"], "only a paraphrase is hard, and says so by true or not at all")
    if row["group"] == "paraphrase":
        # These questions may share any number of words with the record, because people ask freely.
        if len(query.split()) < 3:
            faults.say(row["id"], f"fewer than three words: {query}")
    elif row["group"] == "exact":
        if not any(token in text_of(record) for record in wanted for token in identifiers(query)):
            faults.say(row["id"], f"no identifier of it stands in a record it wants: {query}")
    elif row["group"] == "misspelt":
        if not any(misspelt(query, record) for record in wanted):
            faults.say(row["id"], f"no word of it is a misspelt one of its record: {query}")
    elif row["group"] == "language":
        spoken = language(query)
        if any(language(text_of(record)) == spoken for record in wanted):
            faults.say(row["id"], f"asked in the language of its record ({spoken}): {query}")
    else:
        faults.say(row["id"], f"group {row['group']}")


def check_near(rows, questions, records, faults):
    """Checks that every record is similar to a wanted record and is not wanted itself."""
    wanted = [set(row["wanted"]) for row in questions]
    distracts = set()
    for row in rows:
        names = row["records"]
        if len(set(names)) != len(names) or len(names) < 2 or any(name not in records for name in names):
            faults.say("near.jsonl", f"{row['topic']}: {', '.join(names)}")
        for name in names:
            others = set(names) - {name}
            if any(row & others and name not in row for row in wanted):
                distracts.add(name)
    for name in sorted(set(records) - distracts):
        faults.say(name, "lies beside no record that a question wants without it")
    for name in sorted(set(records) - set().union(*wanted)):
        faults.say(name, "no question wants it")


def check_idle(idle, questions, records, want, faults):
    projects = {record["project"] for record in records.values()}
    for name, rows in idle.items():
        check_ids(name, rows, "i", 2, faults)
        if len(rows) != want["idle"][name]:
            faults.say(name, f"{len(rows)} prompts, {want['idle'][name]} are wanted")
        for row in rows:
            if row["project"] not in projects:
                faults.say(f"{name} {row['id']}", f"no record is of the project {row['project']}")
    for name, rows in idle.items():
        check_distinct(name, [row["query"] for row in rows + questions], faults)


def check_pairs(rows, want, faults):
    check_ids("pairs.jsonl", rows, "p", 2, faults)
    for row in rows:
        for side in (row["a"], row["b"]):
            if set(side) != {"title", "body"} or not all(isinstance(text, str) and text for text in side.values()):
                faults.say(row["id"], "a side has a title and a body and no other field")
        if row["a"] == row["b"]:
            faults.say(row["id"], "both sides are the same text")
    check_distinct("pairs.jsonl", [json.dumps([row["a"], row["b"]]) for row in rows], faults)
    for same, count in ((True, want["same"]), (False, want["different"])):
        of_kind = [row for row in rows if row["same"] is same]
        if len(of_kind) != count:
            faults.say("pairs.jsonl", f"{len(of_kind)} with same={same}, {count} are wanted")
        check_halves("pairs.jsonl", f"same={same}", of_kind, faults)


def check_credentials(faults):
    for path in sorted(HERE.rglob("*")):
        if path.suffix not in (".jsonl", ".md", ".py"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if path.samefile(__file__) and re.match(r'\s+r"', line):
                continue
            for pattern in CREDENTIALS:
                found = re.search(pattern, line)
                if found:
                    faults.say(f"{path.name}:{number}", f"looks like a credential: {found.group()[:6]}...")


def check_set(folder, want, faults):
    record_fields = dict.fromkeys(("id", "project", "kind", "title", "body", "status"), str)
    question_fields = {**dict.fromkeys(("id", "group", "project", "query"), str), "wanted": list}
    pair_fields = {"id": str, "a": dict, "b": dict, "same": bool, "why": str}
    rows = read(folder / "records.jsonl", record_fields, faults)
    questions = read(folder / "questions.jsonl", question_fields, faults, may=["hard"])
    near = read(folder / "near.jsonl", {"topic": str, "records": list}, faults)
    prompt_fields = dict.fromkeys(("id", "project", "query"), str)
    idle = {name: read(folder / name, prompt_fields, faults) for name in want["idle"]}
    pairs = read(folder / "pairs.jsonl", pair_fields, faults)
    records = {row["id"]: row for row in rows}

    check_records(rows, want, faults)
    check_questions(questions, records, want, faults)
    check_near(near, questions, records, faults)
    check_idle(idle, questions, records, want, faults)
    check_pairs(pairs, want, faults)

    tell(folder.name, want, rows, questions, near, idle, pairs, records)


def tell(name, want, rows, questions, near, idle, pairs, records):
    def counted(values):
        return ", ".join(f"{count} {value}" for value, count in Counter(values).most_common())

    elsewhere = sum(all(records[name]["project"] != row["project"] for name in row["wanted"]) for row in questions)
    paraphrases = [row for row in questions if row["group"] == "paraphrase"]
    searches = sum(len(row["query"].split()) <= MAX_SEARCH for row in paraphrases)
    hard = sum("hard" in row for row in paraphrases)
    print(f"{name}: {len(rows)} records ({counted(row['kind'] for row in rows)})")
    print(f"  of {len({row['project'] for row in rows})} projects; {counted(row['status'] for row in rows)}")
    print(f"  in {counted(language(text_of(row)) for row in rows)}")
    print(f"  {len(questions)} questions: {counted(row['group'] for row in questions)}")
    tuned = sum(map(is_odd, questions)) if want["tuned"] else 0
    print(f"  {tuned} to tune with, {len(questions) - tuned} held out")
    several = sum(len(row["wanted"]) > 1 for row in questions)
    print(f"  {elsewhere} want a record of another project, {several} more than one")
    print(f"  paraphrases: {searches} searches, {len(paraphrases) - searches} prompts; {hard} hard ones among them")
    print(f"  {len(near)} topics of near records, {sum(map(len, idle.values()))} idle prompts, {len(pairs)} pairs")


def main():
    faults = Faults()
    folders = sorted(path for path in HERE.glob("set-*") if path.is_dir())
    if not folders:
        faults.say(HERE.name, "no set is there")
    for folder in folders:
        if folder.name not in SETS:
            faults.say(folder.name, "how much it must have is not in SETS")
            continue
        try:
            check_set(folder, SETS[folder.name], faults)
        except KeyError as error:
            faults.say(folder.name, f"a row names {error}, which is not there")
    check_credentials(faults)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(faults)} faults" if faults else "no fault", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
