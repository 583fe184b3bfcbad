"""Lists each call of a Python tree with the target that jedi finds: oracle_python.py ROOT OUT.jsonl"""
import ast
import json
import os
import sys

import jedi

root = os.path.realpath(sys.argv[1])
project = jedi.Project(root, added_sys_path=[root, os.path.join(root, "src")], smart_sys_path=True)


def sites(tree):
    for node in ast.walk(tree):
        called = []
        if isinstance(node, ast.Call):
            called = [node.func]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            called = [d for d in node.decorator_list if not isinstance(d, ast.Call)]
        for f in called:
            if isinstance(f, ast.Name):
                yield f.lineno, f.col_offset, f.id
            elif isinstance(f, ast.Attribute):
                yield f.end_lineno, f.end_col_offset - len(f.attr.encode()), f.attr


def place(found):
    path = os.path.relpath(str(found.module_path), root) if found.module_path else "-"
    return path, found.line or 0, found.type


with open(sys.argv[2], "w") as out:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(d for d in folders if not d.startswith(".") and not d.endswith(".egg-info"))
        for name in sorted(files):
            if not name.endswith(".py"):
                continue
            path = os.path.join(folder, name)
            try:
                source = open(path, encoding="utf-8").read()
                tree = ast.parse(source)
            except (SyntaxError, UnicodeDecodeError):
                continue
            lines = source.split("\n")
            script = jedi.Script(source, path=path, project=project)
            for line, column, called in sites(tree):
                chars = len(lines[line - 1].encode()[:column].decode())
                try:
                    found = [place(f) for f in script.goto(line, chars, follow_imports=True, follow_builtin_imports=True)]
                except Exception as error:  # jedi fails on some code; the call then has no target.
                    found = [("!", 0, type(error).__name__)]
                out.write(json.dumps([os.path.relpath(path, root), line, column, called, found]) + "\n")
