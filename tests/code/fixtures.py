"""Compares the small fixtures with the oracles: fixtures.py FOLDER python

typescript

rust

Writes each case of `nudge/code-index/tests/edges` into its own folder. Prints the calls for which an oracle has another
target than the fixture. If the fixture says `none` and the oracle has a target, the call is only counted."""
import json
import os
import subprocess
import sys

here = os.path.dirname(os.path.realpath(__file__))
into, language = os.path.realpath(sys.argv[1]), sys.argv[2]
text = open(os.path.join(here, "../../nudge/code-index/tests/edges", language + ".txt")).read()


def run(*command, cwd=None):
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def oracle(tree):
    out = tree + ".jsonl"
    if language == "python":
        run(sys.executable, os.path.join(here, "oracle_python.py"), tree, out)
    elif language == "typescript":
        run("node", os.path.join(here, "oracle_typescript.mjs"), tree, out, "source", cwd=os.path.join(into, ".npm"))
    else:
        if not os.path.exists(os.path.join(tree, "Cargo.toml")):
            open(os.path.join(tree, "Cargo.toml"), "w").write('[package]\nname = "case"\nedition = "2021"\n[workspace]\n')
        elif os.path.exists(os.path.join(tree, "one")):
            open(os.path.join(tree, "Cargo.toml"), "w").write('[workspace]\nmembers = ["one", "two"]\nresolver = "2"\n')
        run("rust-analyzer", "scip", tree, "--output", tree + ".scip")
        run(sys.executable, os.path.join(here, "oracle_rust.py"), tree + ".scip", out)
    return [json.loads(line) for line in open(out)]


agree = refused = silent = 0
for number, case in enumerate(text.split("### ")[1:]):
    title, *lines = case.splitlines()
    tree = os.path.join(into, "fixtures", language, str(number))
    files, wanted, path = {}, [], None
    for line in lines:
        if line.startswith("--- "):
            path = line[4:]
            files[path] = []
        elif path:
            code, _, want = line.partition("=:")
            files[path].append(code.rstrip().rstrip("/#"))
            wanted += [(path, len(files[path]), one.strip()) for one in want.split(";") if one.strip()]
    for path, content in files.items():
        os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
        open(os.path.join(tree, path), "w").write("\n".join(content) + "\n")
    places = {}
    for path, line, column, _, found in oracle(tree):
        source = files[path][line - 1].encode()[column:].decode()
        name = source[: next((i for i, c in enumerate(source) if not (c.isalnum() or c == "_")), len(source))]
        places.setdefault((path, line, name), found)
    for path, line, want in wanted:
        name, target = want.split(" -> ")
        found = [f for f in places.get((path, line, name), []) if not f[0].startswith("..") and f[0] not in "-!"]
        if target == "none":
            refused += bool(found)
            continue
        file, _, qual = target.rsplit(" ", 1)[0].rpartition(":")
        last = qual.split("#")[0].split(".")[-1]
        if not found:
            silent += 1
        elif any(f[0] == (file or path) and last in files[f[0]][f[1] - 1] for f in found):
            agree += 1
        else:
            print(f"{title}: {path}:{line}: {want}, the oracle says {found}")
print(f"{language}: {agree} agree, {silent} unknown to the oracle, {refused} refused though it knows one")
