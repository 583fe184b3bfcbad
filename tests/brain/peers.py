#!/usr/bin/env python3
"""Runs the full-text engines tantivy and bm25s on the questions of a set. `evaluate-brain` does the same with Nudge.

    peers.py FOLDER    # a folder that `build.py` has made

Both engines read whole notes with stemming, and any word may match. bm25s leaves out English stop words, as its
documentation does. The figures are nDCG@10, hit@1, R@5 and R@10, for the half for tuning and for the other half.
"""

import json
import math
import re
import sys
from pathlib import Path

import bm25s
import Stemmer
import tantivy

LIMIT = 10


def units(root):
    """Returns the ids and texts of all notes, without frontmatter."""
    for path in sorted(root.rglob("*.md")):
        text = path.read_text()
        head, mark, body = text.partition("\n---\n") if text.startswith("---\n") else ("", "", text)
        yield str(path.relative_to(root).with_suffix("")), body if mark else text


def by_tantivy(all_units):
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for name, text in all_units:
        writer.add_document(tantivy.Document(id=name, text=text))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def ask(question):
        words = " ".join(re.findall(r"\w+", question)).lower()
        query = index.parse_query(words, ["text"]) if words else None
        hits = searcher.search(query, LIMIT).hits if query else []
        return [searcher.doc(address)["id"][0] for _, address in hits]

    return ask


def by_bm25s(all_units):
    stemmer = Stemmer.Stemmer("english")
    tokens = lambda texts: bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
    engine = bm25s.BM25()
    engine.index(tokens([text for _, text in all_units]), show_progress=False)

    def ask(question):
        found, scores = engine.retrieve(tokens([question]), k=LIMIT, show_progress=False)
        return [all_units[at][0] for at, score in zip(found[0], scores[0]) if score > 0]

    return ask


def figures(questions, ask):
    gain = first = fifth = tenth = 0
    for question in questions:
        found = ask(question["query"])
        if question["wanted"] in found:
            rank = found.index(question["wanted"])
            gain += 1 / math.log2(rank + 2)
            first += rank == 0
            fifth += rank < 5
            tenth += 1
    return " ".join(f"{sum_ / len(questions):.3f}" for sum_ in (gain, first, fifth, tenth))


def main():
    place = Path(sys.argv[1])
    questions = [json.loads(line) for line in (place / "questions.jsonl").read_text().splitlines()]
    halves = [[one for one in questions if one["held_out"] == held] for held in (False, True)]
    all_units = list(units(place / "brain"))
    for name, engine in (("tantivy", by_tantivy), ("bm25s", by_bm25s)):
        ask = engine(all_units)
        print(f"{name:<34} " + "         ".join(figures(half, ask) for half in halves))


main()
