"""Compares Nudge's complexity of functions with radon's: judge_complexity.py TREE NODES.jsonl. `judge TREE nodes`
prints the nodes."""
import json
import os
import sys

from radon.visitors import ComplexityVisitor

tree, nodes = sys.argv[1:3]
ours = {}
for node in map(json.loads, open(nodes)):
    if node["kind"] in ("function", "method") and node["path"].endswith(".py"):
        ours.setdefault(node["path"], {})[node["line"]] = node


def functions(found):
    """Returns every function, also in classes and in functions. A function does not include its inner functions."""
    for block in found:
        if type(block).__name__ == "Function":
            yield block
            yield from functions(block.closures)
        else:
            yield from functions(block.methods + block.inner_classes)


same = near = asked = 0
for path, by_line in sorted(ours.items()):
    source = open(os.path.join(tree, path), encoding="utf-8").read()
    try:
        visitor = ComplexityVisitor.from_code(source)
    except SyntaxError:
        continue
    for block in functions(visitor.functions + visitor.classes):
        found = by_line.get(block.lineno)
        if found is None:
            continue
        complexity = block.complexity
        asked += 1
        same += found["complexity"] == complexity
        near += abs(found["complexity"] - complexity) <= 1
        if "-v" in sys.argv and found["complexity"] != complexity:
            print(f"{path}:{block.lineno} {found['qual']}: {found['complexity']}, radon {complexity}")
print(f"{asked} functions: {same} as radon has it, {near} within one")
if near < 0.99 * asked:
    sys.exit("the goal is .99 within one")
