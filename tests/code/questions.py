"""Counts the questions whose definition Nudge finds: questions.py NUDGE TREES QUESTIONS.tsv [--missed]

A line of QUESTIONS.tsv has the folder of a tree in TREES, a question, and the definitions (`path:Owner.name`) that a
person would open. `nudge code search` and `nudge recall` answer each question. A definition is right if its file and
its bare name are those of a wanted one.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

MOST = 50


def is_right(node, wanted):
    path, _, name = node.removeprefix("node:").rpartition(":")
    last = lambda name: name.split("#")[0].rsplit(".", 1)[-1]
    return any((path, last(name)) == (want.rpartition(":")[0], last(want.rpartition(":")[2])) for want in wanted)


def rank(found, is_hit):
    return next((place for place, each in enumerate(found, 1) if is_hit(each)), None)


def read_questions(file):
    by_tree = collections.defaultdict(list)
    for line in open(file):
        tree, question, wanted = line.rstrip("\n").split("\t")
        by_tree[tree].append((question, wanted.split(" ")))
    return by_tree


def ask_tree(nudge, tree, questions):
    """Yields for each question the ranks of the definition and of its file in `search`, and of the definition in `recall`."""
    with tempfile.TemporaryDirectory() as home:
        folders = {"NUDGE_RUNTIME_DIR": home + "/run", "NUDGE_CACHE_DIR": home + "/caches", "NUDGE_DATA_DIR": home + "/data"}
        env = {**os.environ, **folders, "HOME": home, "PWD": tree}
        serve = subprocess.Popen([nudge, "serve", "--port", "0"], cwd=tree, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ask = lambda *args: json.loads(subprocess.run([nudge, *args, "--json"], cwd=tree, env=env, capture_output=True, check=True).stdout)
        try:
            while not ask("code", "status")["as_of"]["complete"]:
                time.sleep(0.2)
            for question, wanted in questions:
                nodes = [node["id"] for node in ask("code", "search", question, "--limit", str(MOST))["nodes"]]
                files = list(dict.fromkeys(node.removeprefix("node:").rpartition(":")[0] for node in nodes))
                items = ask("recall", question)["items"]
                recalled = [item["node"] for item in items if item.get("source") == "code"]
                yield (
                    rank(nodes, lambda node: is_right(node, wanted)),
                    rank(files, lambda file: any(file == want.rpartition(":")[0] for want in wanted)),
                    rank(recalled, lambda node: is_right(node, wanted)),
                )
        finally:
            serve.stdin.close()
            serve.terminate()
            serve.wait()


def main():
    nudge, trees, file = (os.path.realpath(arg) for arg in sys.argv[1:4])
    ranks = []
    for tree, questions in read_questions(file).items():
        for (question, wanted), row in zip(questions, ask_tree(nudge, os.path.join(trees, tree), questions)):
            ranks.append(row)
            if "--missed" in sys.argv and not (row[0] and row[0] <= 5):
                print(f"{tree}: {question}: {', '.join(wanted)} is number {row[0]}")
    for name, column in zip(("definition, search", "file, search", "definition, recall"), zip(*ranks)):
        among = lambda most: sum(place is not None and place <= most for place in column)
        mrr = sum(1 / place for place in column if place) / len(column)
        print(f"{name:<20} first {among(1)}, among five {among(5)}, among ten {among(10)} of {len(column)}, MRR {mrr:.3f}")


if __name__ == "__main__":
    main()
