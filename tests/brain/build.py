#!/usr/bin/env python3
"""Makes an evaluation set from texts of other authors: the manuals of five Debian packages as notes, and the questions
of their FAQs. A question is the heading of its answer, so the note of the answer lacks that heading.

    build.py FOLDER [COUNT]    # reads FOLDER/text, writes FOLDER/brain/**.md and FOLDER/questions.jsonl

With COUNT, the set has only COUNT notes, because vectors take long to make. The answers stay in the set.
"""

import hashlib
import html
import json
import re
import sys
from pathlib import Path

MIN_CHARS, MAX_CHARS = 80, 6000
MAX_BYTES = 60_000  # of a page of the library reference: longer ones are lists of functions
UNDERLINE = re.compile(r"^([=\-~^\"*#'+.])\1{2,}\s*$")
OVERLINE = re.compile(r"^([=\-~^\"*#])\1{2,}\s*$")
SQLITE = """whentouse lang_transaction wal isolation foreignkeys fts5 json1 lockingv3 fileformat2 limits datatype3
    autoinc pragma optoverview queryplanner rescode howtocorrupt inmemorydb tempfiles threadsafe uri vtab withoutrowid cli
    backup undoredo nulls""".split()


class Set:
    def __init__(self):
        self.units, self.questions = [], []

    def add(self, group, chapter, title, text, links=(), question=None):
        text = text[:MAX_CHARS]
        if len(text) < MIN_CHARS:
            return None
        number = len(self.units)
        path = f"{group}/{number:04}"
        self.units.append({"path": path, "chapter": chapter, "title": "" if question else title, "text": text, "links": list(links)})
        if question:
            self.questions.append({"query": " ".join(question.split()), "group": group, "unit": number})
        return number


def rst(text):
    """Removes roles and directives of reStructuredText."""
    text = re.sub(r":[a-z:]+:`([^`<]*?)(?:\s*<[^`>]*>)?`", r"\1", text)
    text = re.sub(r"`([^`<]+?)\s*<[^`>]*>`_+", r"\1", text)
    text = re.sub(r"^\.\. [a-z-]+::.*$", "", text, flags=re.M)
    text = re.sub(r"^\.\. _.*$", "", text, flags=re.M).replace("``", "`")
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def rst_sections(text):
    lines, sections, at = text.split("\n"), [["", []]], 0
    while at < len(lines):
        line, below = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
        is_title = line.strip() and not line.startswith(" ") and not OVERLINE.match(line)
        if is_title and UNDERLINE.match(below) and len(below.strip()) >= len(line.strip()) - 1:
            sections.append([line.strip(), []])
            at += 2
        else:
            if not re.match(r"^([=*#])\1{3,}\s*$", line):
                sections[-1][1].append(line)
            at += 1
    return [(title, "\n".join(body)) for title, body in sections]


def plain(markup):
    markup = re.sub(r"<(script|style).*?</\1>", "", markup, flags=re.S)
    return html.unescape(re.sub(r"[ \t]+", " ", re.sub(r"<[^>]+>", " ", markup))).strip()


def page_title(markup):
    found = re.search(r"<title>(.*?)</title>", markup, flags=re.S)
    return plain(found.group(1)) if found else ""


def python(made, folder):
    labels, pages = {}, []
    for part in ("faq", "tutorial", "howto", "reference", "using", "library"):
        for page in sorted((folder / part).glob("*.rst.txt")):
            if part == "library" and page.stat().st_size > MAX_BYTES:
                continue
            text = page.read_text()
            pages.append(text)
            sections = rst_sections(text)
            chapter = next((rst(title) for title, _ in sections if title), "")
            for title, body in sections:
                is_question = part == "faq" and title.endswith("?")
                if part == "faq" and not is_question:
                    continue
                links = re.findall(r":(?:ref|doc)?:?`[^`]*?<([a-z0-9/_.-]+)>`", body)
                links += re.findall(r":ref:`([a-z0-9_.-]+)`", body)
                links += ["mod:" + name for name in re.findall(r":mod:`[~!.]?([a-z0-9_.]+)`", body)]
                number = made.add("python", chapter, rst(title), rst(body), links, rst(title) if is_question else None)
                if number is not None:
                    for name in re.findall(r"^\.\. module:: ([a-z0-9_.]+)", body, flags=re.M):
                        labels["mod:" + name] = number
    titles = {}
    for number, unit in enumerate(made.units):
        titles.setdefault(unit["title"], number)
    label = re.compile(r'^\.\. _([a-z0-9_.-]+):\s*\n\s*\n(?:\.\. .*\n|\s*\n)*([^\n]+)\n([=\-~^"*])\3{2,}', flags=re.M)
    for text in pages:
        for found in label.finditer(text):
            if rst(found.group(2)) in titles:
                labels.setdefault(found.group(1), titles[rst(found.group(2))])
    return labels


def git(made, folder):
    labels = {}
    for page in sorted(folder.glob("git*.txt")):
        name, text = page.stem, page.read_text(errors="replace")
        linked = lambda body: ["man:" + other for other in re.findall(r"linkgit:([a-z-]+)\[", body)]
        clean = lambda body: re.sub(r"linkgit:([a-z-]+)\[\d\]", r"\1", body)
        if name == "gitfaq":
            for part in re.split(r"\n(?=\[\[)", text):
                found = re.match(r"\[\[[^\]]*\]\]\n(.+?)::\n(.*)", part, flags=re.S)
                if found:
                    body = re.sub(r"^\t", "", found.group(2), flags=re.M)
                    body = re.split(r"\n[A-Z][A-Za-z ]+\n-{4,}", body)[0]
                    made.add("git", "Git FAQ", "", clean(body), linked(body), found.group(1))
            continue
        for part in re.split(r"\n(?=[A-Z][^\n]{2,70}\n[-~^]{4,}\n)", text):
            found = re.match(r"([^\n]+)\n[-=~^]{3,}\n(.*)", part, flags=re.S)
            if found and found.group(1).strip() not in ("GIT", "SEE ALSO", "SYNOPSIS", "NAME"):
                title = found.group(1).strip().capitalize()
                number = made.add("git", name, title, clean(found.group(2)), linked(part))
                if number is not None:
                    labels.setdefault("man:" + name, number)
    return labels


def debian(made, faq, policy):
    for page in sorted(faq.glob("*.en.html")):
        text = page.read_text(errors="replace")
        section = r'<h2 class="title"[^>]*>(.*?)</h2>(.*?)(?=<h2 class="title"|<div class="navfooter")'
        for found in re.finditer(section, text, flags=re.S):
            title = re.sub(r"^[\d.]+\s*", "", plain(found.group(1)).replace("\xa0", " "))
            made.add("debian", page_title(text), title, plain(found.group(2)), (), title if title.endswith("?") else None)
    for page in sorted(policy.glob("*.rst.txt")):
        sections = rst_sections(page.read_text())
        chapter = next((title for title, _ in sections if title), "")
        for title, body in sections:
            made.add("policy", chapter, rst(title), rst(body))


def sqlite(made, folder):
    text = (folder / "faq.html").read_text(errors="replace")
    answer = r'<a name="q(\d+)"></a><p><b>\(\d+\)\s*(.*?)</b></p>\s*<blockquote>(.*?)</blockquote>'
    for found in re.finditer(answer, text, flags=re.S):
        made.add("sqlite", "SQLite FAQ", "", plain(found.group(3)), (), plain(found.group(2)))
    for name in SQLITE:
        page = folder / f"{name}.html"
        if page.exists():
            text = page.read_text(errors="replace")
            for found in re.finditer(r"<h[1-3][^>]*>(.*?)</h[1-3]>(.*?)(?=<h[1-3]|</body|$)", text, flags=re.S):
                title = re.sub(r"^[\d.]+\s*", "", plain(found.group(1)))
                made.add("sqlite", page_title(text), title, plain(found.group(2)))


def chosen(made, count):
    """Chooses the notes of answers, the notes linked with them, and every n-th of the other notes."""
    answers = [question["unit"] for question in made.questions]
    kept = set(answers).union(*(made.units[number]["links"] for number in answers))
    others = [number for number in range(len(made.units)) if number not in kept]
    missing = max(0, count - len(kept))
    return kept | {others[at * len(others) // missing] for at in range(missing)}


def main():
    target = Path(sys.argv[1])
    docs = target / "text/usr/share/doc"
    made = Set()
    labels = python(made, docs / "python3.11-doc/html/_sources")
    labels.update(git(made, docs / "git-doc"))
    debian(made, docs / "debian/FAQ", docs / "debian-policy/policy.html/_sources")
    sqlite(made, docs / "sqlite3")
    paths = [unit["path"] for unit in made.units]
    for number, unit in enumerate(made.units):
        unit["links"] = sorted({labels[name] for name in unit["links"] if labels.get(name, number) != number})
    kept = chosen(made, int(sys.argv[2])) if len(sys.argv) > 2 else set(range(len(made.units)))
    links = 0
    for number in sorted(kept):
        unit = made.units[number]
        unit["links"] = [paths[other] for other in unit["links"] if other in kept]
        links += len(unit["links"])
        related = "".join(f"- {{id: {other}, type: see_also}}\n" for other in unit["links"])
        head = f"---\nrelated:\n{related}---\n" if related else ""
        heading = f"# {unit['chapter']}\n\n" + (f"## {unit['title']}\n\n" if unit["title"] else "")
        path = target / "brain" / f"{unit['path']}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + heading + unit["text"] + "\n")
    with (target / "questions.jsonl").open("w") as out:
        for question in made.questions:
            unit = made.units[question.pop("unit")]
            held_out = hashlib.sha256(question["query"].encode()).digest()[0] % 2 == 0
            row = question | {"wanted": unit["path"], "linked": unit["links"], "held_out": held_out}
            out.write(json.dumps(row) + "\n")
    print(f"{len(kept)} units, {links} relations, {len(made.questions)} questions")


main()
