"""Computes precision and recall of the resolved calls, compared with an oracle: judge.py OURS.tsv ORACLE.jsonl [-v]
[--own] [--recall GOAL]

`--own` counts only positions at which the extractor has found a call. It is for oracles that list all references. With
`--recall` the program exits with 1 if the goal of recall or the goal of precision is missed.
"""
import collections
import json
import random
import sys

PRECISION = 0.985
NOT_CALLABLE = ("param", "statement", "Parameter", "BindingElement", "instance", "TypeParameter")
ours = {}
for line in open(sys.argv[1]):
    path, row, column, name, how, to, to_line, qual = line.rstrip("\n").split("\t")
    ours[path, int(row), int(column)] = (name, how, to, int(to_line), qual)
right, wrong, unknown, missed = (collections.Counter() for _ in range(4))
wrongs, misses, asked = [], [], set()
total = seen = 0
for line in open(sys.argv[2]):
    path, row, column, name, found = json.loads(line)
    key = (path, row, column)
    asked.add(key)
    mine = ours.get(key)
    if "--own" in sys.argv and mine is None:
        continue
    inside = [f for f in found if not f[0].startswith(("..", "/")) and f[0] not in "-!" and "node_modules" not in f[0] and f[2] not in NOT_CALLABLE]
    said = mine is not None and mine[1] not in ("-", "likely")
    if inside:
        total += 1
        seen += mine is not None
    if said and inside and any(f[0] == mine[2] and abs(f[1] - mine[3]) <= 3 for f in inside):
        right[mine[1]] += 1
    elif said and (inside or any(f[0] not in "-!" and f[2] not in NOT_CALLABLE for f in found)):
        wrong[mine[1]] += 1
        wrongs.append((key, name, mine, inside or found))
    elif said:
        unknown[mine[1]] += 1
    elif inside:
        likely = mine and mine[1] == "likely"
        missed["not seen" if mine is None else "likely" if likely else "not resolved"] += 1
        misses.append((key, name, mine, inside))
        if likely:
            hit = any(f[0] == mine[2] and abs(f[1] - mine[3]) <= 3 for f in inside)
            (right if hit else wrong)["(likely)"] += 1
    elif mine and mine[1] == "likely" and any(f[0] not in "-!" for f in found):
        wrong["(likely)"] += 1
good = sum(n for how, n in right.items() if how != "(likely)")
bad = sum(n for how, n in wrong.items() if how != "(likely)")
print(f"targets inside {total}, seen {seen}; precision {good / max(good + bad, 1):.4f} ({good}/{good + bad}), recall {good / max(total, 1):.3f} ({good}/{total}), where the oracle knows nothing {sum(unknown.values())}, where it was not asked {sum(mine[1] not in ('-', 'likely') and key not in asked for key, mine in ours.items())}")
for how in sorted(set(right) | set(wrong) | set(unknown)):
    judged = right[how] + wrong[how]
    print(f"  {how:<9} right {right[how]:>5} wrong {wrong[how]:>4} unknown {unknown[how]:>4}  precision {right[how] / max(judged, 1):.3f}")
print("  missed:", dict(missed))
if "-v" in sys.argv:
    random.seed(int(sys.argv[-1]) if sys.argv[-1].isdigit() else 1)
    for label, list_ in (("WRONG", wrongs), ("MISS", misses)):
        for entry in random.sample(list_, min(25, len(list_))):
            print(label, *entry)
if "--recall" in sys.argv:
    goal = float(sys.argv[sys.argv.index("--recall") + 1])
    precision, recall = good / max(good + bad, 1), good / max(total, 1)
    if precision < PRECISION:
        print(f"precision {precision:.4f} is below {PRECISION}", file=sys.stderr)
    if recall < goal:
        print(f"recall {recall:.3f} is below {goal}", file=sys.stderr)
    sys.exit(precision < PRECISION or recall < goal)
