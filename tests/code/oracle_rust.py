"""Lists each reference of a Rust tree with its target in an index of rust-analyzer: oracle_rust.py INDEX.scip OUT.jsonl

`rust-analyzer scip ROOT --output INDEX.scip` makes the index: https://github.com/sourcegraph/scip.
"""
import json
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = {1: 8, 5: 4}[kind]
            value, at = data[at : at + size], at + size
        yield tag >> 3, value


def packed(data):
    at, out = 0, []
    while at < len(data):
        value, at = varint(data, at)
        out.append(value)
    return out


def occurrences(document):
    for number, value in fields(document):
        if number == 2:
            found = {}
            for field, content in fields(value):
                found[field] = content
            yield packed(found.get(1, b"")), found.get(2, b"").decode(), found.get(3, 0)


documents = []
for number, value in fields(open(sys.argv[1], "rb").read()):
    if number == 2:
        path = next(v for n, v in fields(value) if n == 1).decode()
        documents.append((path, list(occurrences(value))))
defined = {}
for path, found in documents:
    for span, symbol, roles in found:
        if roles & 1 and not symbol.startswith("local"):
            defined.setdefault(symbol, []).append((path, span[0] + 1, "def"))
with open(sys.argv[2], "w") as out:
    for path, found in documents:
        for span, symbol, roles in found:
            if roles & 1:
                continue
            # For `Self` the index names the surrounding `impl` block, not the type.
            outside = [("-", 0, "param")] if symbol.startswith("local") or symbol.endswith("]") else [("../x", 1, "foreign")]
            out.write(json.dumps([path, span[0] + 1, span[1], symbol, defined.get(symbol, outside)]) + "\n")
