#!/usr/bin/env python3
"""Computes how well a plain BM25 answers the questions in this folder, as a baseline. It tests no engine.

    tests/records/baseline.py    # MRR and hit@1 by group, for all and for each half

A word is a run of letters and digits in lower case, in the title or the body. There are no stems, stop words, synonyms
or corrections, and a Japanese sentence is one word. The search covers the records of all projects. A record without a
word of the question is not found. With equal scores the lower id comes first.
"""

import json
import math
import re
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent

K1, B = 1.2, 0.75


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def words(text):
    return re.findall(r"[^\W_]+", text.lower())


class Index:
    def __init__(self, records):
        self.counts = {row["id"]: Counter(words(f"{row['title']}\n{row['body']}")) for row in records}
        self.lengths = {name: sum(counts.values()) for name, counts in self.counts.items()}
        self.mean = sum(self.lengths.values()) / len(self.lengths)
        self.records_with = Counter(word for counts in self.counts.values() for word in counts)

    def score(self, query, name):
        counts, total = self.counts[name], 0.0
        norm = K1 * (1 - B + B * self.lengths[name] / self.mean)
        for word in set(query):
            if counts[word]:
                have = self.records_with[word]
                rarity = math.log(1 + (len(self.counts) - have + 0.5) / (have + 0.5))
                total += rarity * counts[word] * (K1 + 1) / (counts[word] + norm)
        return total

    def search(self, text):
        """Returns the ids of the found records, best first."""
        query = words(text)
        scores = {name: self.score(query, name) for name in self.counts}
        return sorted((name for name in scores if scores[name] > 0), key=lambda name: (-scores[name], name))


def reciprocal_rank(found, wanted):
    """Returns the reciprocal rank of the best wanted record; 0 if none was found."""
    return max((1 / rank for rank, name in enumerate(found, 1) if name in wanted), default=0.0)


def figures(ranks):
    """Formats MRR and hit@1 as columns."""
    if not ranks:
        return f"{'-':>8}{'-':>8}"
    return f"{sum(ranks) / len(ranks):8.3f}{sum(rank == 1 for rank in ranks) / len(ranks):8.0%}"


def tell(folder):
    index = Index(read(folder / "records.jsonl"))
    rows = read(folder / "questions.jsonl")
    ranks = {row["id"]: reciprocal_rank(index.search(row["query"]), row["wanted"]) for row in rows}
    parts = {}
    for group in dict.fromkeys(row["group"] for row in rows):
        parts[group] = of_group = [row for row in rows if row["group"] == group]
        hard = [row for row in of_group if "hard" in row]
        if hard:
            parts["  hard ones"] = hard
            parts["  the others"] = [row for row in of_group if "hard" not in row]
    parts["all"] = rows

    print(f"{folder.name:14}{'':>10}{'all ids':>16}{'odd ids':>16}{'even ids':>16}")
    print(f"{'':14}{'questions':>10}" + f"{'MRR':>8}{'hit@1':>8}" * 3)
    for part, of_part in parts.items():
        halves = [[row for row in of_part if int(row["id"][1:]) % 2 == rest] for rest in (1, 0)]
        columns = [figures([ranks[row["id"]] for row in some]) for some in (of_part, *halves)]
        print(f"{part:14}{len(of_part):10}" + "".join(columns))


if __name__ == "__main__":
    for path in sorted(HERE.glob("set-*")):
        tell(path)
