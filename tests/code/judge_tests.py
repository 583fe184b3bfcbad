"""Computes how many of a node's tests are right, compared with a coverage run: judge_tests.py TREE NODES.jsonl COVERAGE

`NODES.jsonl` is the output of `judge TREE nodes`. `COVERAGE` is a database of coverage.py with `dynamic_context =
test_function`. A test of a node is right if it ran a line of the function's body. Only functions that some test ran
count.
"""
import collections
import json
import os
import sys

from coverage import CoverageData

tree, nodes, database = sys.argv[1:4]
data = CoverageData(database)
data.read()
# The tests that ran each line: the name of the file, and the name of the test.
ran = {}
for file in data.measured_files():
    by_line = ran[os.path.relpath(file, os.path.realpath(tree))] = collections.defaultdict(set)
    for line, contexts in data.contexts_by_lineno(file).items():
        for context in filter(None, contexts):
            by_line[line].add(context)


def is_it(context, path, qual):
    """Returns true if a context is this test: `tests.test_a.TestA.test_b`, with or without the folders."""
    whole = path.removesuffix(".py").replace("/", ".") + "." + qual
    return whole == context or whole.endswith("." + context)


functions = [json.loads(line) for line in open(nodes)]
functions = [node for node in functions if node["kind"] in ("function", "method") and node["path"] in ran]
print(f"{len(functions)} functions in {len(ran)} files")
for depth in (1, 2, 3):
    right = judged = asked = helped = 0
    first_right = first_judged = 0
    for node in functions:
        last = max(node["end_line"], node["line"] + 1)
        contexts = set().union(*(ran[node["path"]].get(line, ()) for line in range(node["line"] + 1, last + 1)))
        if not contexts:
            continue
        asked += 1
        links = [any(is_it(context, *link[:2]) for context in contexts) for link in node["tests"] if link[2] <= depth]
        right, judged = right + sum(links), judged + len(links)
        first_right, first_judged = first_right + sum(links[:5]), first_judged + len(links[:5])
        helped += any(links[:5])
    print(
        f"over at most {depth}: precision of the first five {first_right / max(first_judged, 1):.3f}"
        f" ({first_right}/{first_judged}), of all {right / max(judged, 1):.3f} ({right}/{judged});"
        f" {helped} of {asked} functions that ran have a right one"
    )
    if depth == 1 and first_right < 0.85 * first_judged:
        sys.exit("the goal is .85")
