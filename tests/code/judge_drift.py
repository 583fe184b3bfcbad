"""Computes how many flags on documentation are right: judge_drift.py LABELS NODES.jsonl...

Each NODES.jsonl is the output of `judge TREE nodes` for one release, with the name PACKAGE-VERSION.jsonl. LABELS has
every flag of the rules R1, R2 and R3 that any version of Nudge has shown and a person has judged: package, definition,
rule, detail and verdict. The verdict is `right`, `wrong`, or `deliberate`: the contradiction exists and is intended. A
flag counts once, even if several releases have it.
"""
import collections
import json
import os
import sys

labels = {}
for line in open(sys.argv[1]):
    if line.strip() and not line.startswith("#"):
        *key, verdict = line.rstrip("\n").split("\t")
        labels[tuple(key)] = verdict
seen, documented = collections.OrderedDict(), 0
for name in sorted(sys.argv[2:]):
    package, version = os.path.basename(name).removesuffix(".jsonl").rsplit("-", 1)
    for node in map(json.loads, open(name)):
        documented += node["doc"] is not None
        for rule, detail in node["drift"]:
            if rule != "R4":
                key = (package, node["qual"].split("#")[0], rule, detail)
                seen.setdefault(key, []).append((version, node["signature"]))
unread = [key for key in seen if key not in labels]
for key in unread:
    print("not read yet:", *key, "|", seen[key][0][0], seen[key][0][1], sep="\t")
for rule in ("R1", "R2", "R3"):
    verdicts = collections.Counter(labels[key] for key in seen if key[2] == rule and key in labels)
    judged = sum(verdicts.values())
    so = judged - verdicts["wrong"]
    print(f"{rule}: {judged} flags, {so / max(judged, 1):.3f} are so;", dict(verdicts))
judged = [labels[key] for key in seen if key in labels]
so = sum(verdict != "wrong" for verdict in judged)
print(f"{len(sys.argv) - 2} releases, {documented} documented definitions: {len(judged)} flags, {so / max(len(judged), 1):.3f} are so")
if unread or so < 0.9 * len(judged):
    sys.exit("each flag must have been read, and .9 of them be so")
