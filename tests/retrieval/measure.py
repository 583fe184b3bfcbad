"""Finds the documents of public sets with Nudge and with the methods beside it: measure.py NUDGE FOLDER SET... [--check]

Prints for each set and method the share of the wanted documents among the first one, five and ten (R@1, R@5, R@10), the
mean reciprocal rank, nDCG@10, and the share of questions without any answer. `+20` and `+80` put so many words of
unrelated prompts before each question. `--check` fails below the floors of floors.json.
"""
import json
import math
import os
import random
import re
import sqlite3
import sys

from session import Session
from sets import CLONES, HERE, read_set

DEPTH = 50
BEFORE = (0, 20, 80)
STEMMED = "porter unicode61 remove_diacritics 2"


def measure(ranking, wanted):
    hits = [doc in wanted for doc in ranking[:10]]
    gain = sum(hit / math.log2(place + 2) for place, hit in enumerate(hits))
    most = sum(1 / math.log2(place + 2) for place in range(min(len(wanted), 10)))
    return {
        "R@1": sum(hits[:1]) / len(wanted),
        "R@5": sum(hits[:5]) / len(wanted),
        "R@10": sum(hits) / len(wanted),
        "MRR": next((1 / place for place, hit in enumerate(hits, 1) if hit), 0.0),
        "nDCG@10": gain / most,
        "none": not ranking,
    }


def groups(docs, questions):
    """Yields the documents among which a question is asked, with the numbers of such questions."""
    for project in dict.fromkeys(question["project"] for question in questions):
        among = [doc for doc in docs if project in (None, doc["project"])]
        yield among, [number for number, question in enumerate(questions) if question["project"] == project]


def fts5(docs, questions):
    """SQLite's full-text search with all words of the question."""
    out = [[] for _ in questions]
    for among, numbers in groups(docs, questions):
        db = sqlite3.connect(":memory:")
        db.execute(f"CREATE VIRTUAL TABLE doc USING fts5(title, body, tokenize='{STEMMED}')")
        db.executemany("INSERT INTO doc(rowid, title, body) VALUES(?, ?, ?)", [(n, doc["title"], doc["body"]) for n, doc in enumerate(among)])
        for number in numbers:
            words = dict.fromkeys(re.findall(r"\w+", questions[number]["text"]))
            match = " OR ".join(f'"{word}"' for word in words)
            rows = db.execute("SELECT rowid FROM doc WHERE doc MATCH ? ORDER BY bm25(doc) LIMIT ?", (match, DEPTH)) if match else []
            out[number] = [among[row]["id"] for (row,) in rows]
    return out


def bm25s(docs, questions):
    """The library bm25s, with its English stop words and stems; None if it is not installed."""
    try:
        import bm25s as library
        import Stemmer
    except ImportError:
        return None
    stemmer, out = Stemmer.Stemmer("english"), [[] for _ in questions]
    split = lambda texts, **more: library.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False, **more)
    for among, numbers in groups(docs, questions):
        index = library.BM25()
        index.index(split([f"{doc['title']} {doc['body']}" for doc in among]), show_progress=False)
        for number in numbers:
            words = split([questions[number]["text"]], return_ids=False)
            if words[0]:
                found, scores = index.retrieve(words, k=min(DEPTH, len(among)), show_progress=False)
                out[number] = [among[place]["id"] for place, score in zip(found[0], scores[0]) if score > 0]
    return out


def ask_nudge(session, of, questions):
    out = []
    for question in questions:
        where = {"project": question["project"], "only": True} if question["project"] else {"project": "*"}
        found = session.call("nudge.records.search", query=question["text"][:8000], limit=DEPTH, **where)["results"]
        out.append([doc for record in found for doc in of.get(record["id"], [])])
    return out


def fuse(first, second):
    """Reciprocal rank fusion, k = 60."""
    out = []
    for rankings in zip(first, second):
        scores = {}
        for ranking in rankings:
            for place, doc in enumerate(ranking, 1):
                scores[doc] = scores.get(doc, 0) + 1 / (60 + place)
        out.append(sorted(scores, key=lambda doc: -scores[doc]))
    return out


def with_words_before(questions, count):
    lines = open(f"{HERE}/../code/unrelated.txt").read().split()
    draw = random.Random(5)
    begin = lambda: draw.randrange(len(lines) - max(BEFORE))
    return [question | {"text": " ".join(lines[(at := begin()) : at + count] + [question["text"]])} for question in questions]


def run_set(nudge, model, name, folder):
    """Yields the words before the questions, the method, and its means."""
    docs, questions = read_set(name, folder)
    print(f"\n{name}: {len(docs)} documents, {len(questions)} questions")
    for with_model in [None, model] if model else [None]:
        with Session(nudge, with_model) as session:
            of = session.load(docs)
            if with_model:
                session.wait_for_vectors()
            for count in BEFORE:
                asked = with_words_before(questions, count)
                if with_model:
                    yield count, "Nudge with a model", questions, ask_nudge(session, of, asked)
                    continue
                yield count, "FTS5", questions, fts5(docs, asked)
                if (ranking := bm25s(docs, asked)) is not None:
                    yield count, "bm25s", questions, ranking
                yield count, "Nudge by words", questions, ask_nudge(session, of, asked)


def main():
    nudge, folder, *rest = sys.argv[1:]
    names = [name for name in rest if not name.startswith("--")]
    model = os.environ.get("NUDGE_TEST_MODEL_DIR")
    floors = json.load(open(f"{HERE}/floors.json")) if "--check" in rest else {}
    low = []
    for name in names or CLONES:
        missing = [clone for clone in CLONES[name] if not os.path.isdir(f"{folder}/{clone.split('/')[1]}")]
        if missing:
            print(f"\n{name} is left out: clone {' and '.join(f'https://github.com/{clone}' for clone in missing)} into {folder}")
            continue
        for count, method, questions, rankings in run_set(nudge, model, name, folder):
            rows = [measure(ranking, question["wanted"]) for ranking, question in zip(rankings, questions)]
            means = {column: sum(row[column] for row in rows) / len(rows) for column in rows[0]}
            print(f"  +{count:<3} {method:<19}" + "  ".join(f"{column} {value:.3f}" for column, value in means.items()), flush=True)
            floor = floors.get(f"{name} +{count} {method}")
            if floor and means["nDCG@10"] < floor:
                low.append(f"{name} +{count} {method}: nDCG@10 {means['nDCG@10']:.3f} is below {floor}")
    sys.exit("\n".join(low) or None)


if __name__ == "__main__":
    main()
