"""Checks that the tools accept the commands that Nudge seeds from their files. Each tool tries its commands as a dry
run, or really if that is harmless.

    accepted.py SEEDS

SEEDS is the example program of the crate nudge-seed that prints the seeds of a folder. The tools are those on PATH,
where `accepted` installs them. A missing tool is named. Its seeds have another test, which compares them with expected
text (`nudge/seed/tests/fixtures`).
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap

HARMLESS = "node -e 0"
PYTHON = "python -c pass"

# The files of a repository of each kind, by path.
REPOSITORIES = {
    "make": {
        "Makefile": (
            "all: build\nbuild: ## Builds\n\ttrue\ntest: build\n\ttrue\nlint check:\n\ttrue\n"
            ".PHONY: all build test lint check\n"
        ),
    },
    "just": {
        "justfile": (
            "build:\n  true\n\n# Runs all tests\ntest filter='all': build\n  true\n\n[private]\nhidden:\n  true\n"
        )
    },
    "task": {
        "Taskfile.yml": "version: '3'\ntasks:\n  build:\n    desc: Builds\n    cmds: ['true']\n  test:unit: 'true'\n"
    },
    "npm": {
        "package.json": json.dumps(
            {"name": "x", "scripts": {"build": HARMLESS, "test": HARMLESS, "lint:fix": HARMLESS}}
        ),
        "package-lock.json": "{}",
    },
    "npm workspaces": {
        "package.json": json.dumps({"name": "x", "private": True, "workspaces": ["web"], "scripts": {"dev": HARMLESS}}),
        "web/package.json": json.dumps({"name": "web", "scripts": {"build": HARMLESS, "start": HARMLESS}}),
    },
    "pnpm": {
        "package.json": json.dumps({"name": "x", "scripts": {"test": HARMLESS, "a b": HARMLESS}}),
        "pnpm-lock.yaml": "lockfileVersion: '9.0'\n",
    },
    "yarn": {"package.json": json.dumps({"name": "x", "scripts": {"build": HARMLESS}}), "yarn.lock": ""},
    "cargo": {
        "Cargo.toml": (
            '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n[[bin]]\nname = "tool"\npath = "src/main.rs"\n'
        ),
        "src/main.rs": "fn main() {}\n",
        ".cargo/config.toml": '[alias]\ncheck-all = "check --all-targets"\n',
    },
    "cargo workspace": {
        "Cargo.toml": '[workspace]\nmembers = ["a"]\nresolver = "2"\n',
        "a/Cargo.toml": '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n',
        "a/src/lib.rs": "",
    },
    "tox": {
        "tox.ini": (
            "[tox]\nenvlist = py3,lint\nskipsdist = true\n[testenv]\nskip_install = true\n"
            "commands = python -c pass\n[testenv:lint]\ncommands = python -c pass\n"
        ),
    },
    "nox": {
        "noxfile.py": (
            "import nox\n\n\n@nox.session\ndef tests(session):\n    pass\n\n\n"
            "@nox.session(name='build-docs')\ndef docs(session):\n    pass\n"
        ),
    },
    "python": {
        "pyproject.toml": (
            '[project]\nname = "x"\nversion = "1"\n[tool.pytest.ini_options]\naddopts = "-q"\n'
            '[tool.ruff]\nline-length = 100\n[tool.mypy]\nfiles = ["x.py"]\n[tool.poe.tasks]\n'
            'check = "ruff check"\nboth = ["check"]\n'
        ),
        "x.py": "X: int = 1\n",
        "test_x.py": "def test_x():\n    pass\n",
    },
    "hatch": {
        "pyproject.toml": (
            f'[project]\nname = "x"\nversion = "1"\n[tool.hatch.envs.docs]\ndetached = true\n'
            f'[tool.hatch.envs.docs.scripts]\nbuild = "{PYTHON}"\n'
        )
    },
    "pdm": {
        "pyproject.toml": (
            f'[project]\nname = "x"\nversion = "1"\n[tool.pdm.scripts]\nstart = "{PYTHON}"\n'
            f'shell-it = {{ shell = "true" }}\n'
        )
    },
    "compose": {"compose.yaml": "services:\n  db:\n    image: postgres:16\n  web:\n    image: nginx\n"},
    "go": {"go.mod": "module example.org/x\n\ngo 1.21\n", "x.go": "package x\n"},
    "ci": {
        ".github/workflows/test.yml": (
            "on: push\njobs:\n  test:\n    runs-on: x\n    steps:\n      - run: make test\n"
            "      - run: |\n          make lint\n          make build\n"
        ),
        "Makefile": "test lint build:\n\ttrue\n.PHONY: test lint build\n",
    },
}


def dry(words):
    """Returns the command as a dry run of its tool. Returns it unchanged if it is harmless."""
    match words:
        case ["make", *rest]:
            return ["make", "-n", *rest]
        case ["just", *rest]:
            return ["just", "--dry-run", *rest]
        case ["task", *rest]:
            return ["task", "--dry", *rest]
        case ["nox", *rest]:
            return ["nox", "-l", *rest]
        case ["tox", *rest]:
            return ["tox", "--notest", *rest]
        case ["poe", *rest]:
            return ["poe", "--dry-run", *rest]
        case ["pytest", *rest]:
            return ["pytest", "--collect-only", *rest]
        case ["docker", "compose", "up", "-d", *services]:
            listed = [*compose(), "config", "--services"]
            return [
                "sh",
                "-c",
                f'for s in {shlex.join(services)}; do {shlex.join(listed)} | grep -qx "$s" || exit 1; done',
            ]
        case ["npm" | "pnpm" | "yarn" | "cargo" | "go" | "hatch" | "pdm" | "ruff" | "mypy", *_]:
            return words
    raise SystemExit(f"no dry run is known for {shlex.join(words)}; add one")


def compose():
    has = (
        shutil.which("docker") and not subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
    )
    return ["docker", "compose"] if has else ["docker-compose"]


def tool(words):
    return compose()[0] if words[0] == "docker" else words[0]


def main(seeds):
    accepted, missing, refused = 0, {}, []
    for name, files in REPOSITORIES.items():
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            for path, text in files.items():
                (top / path).parent.mkdir(parents=True, exist_ok=True)
                (top / path).write_text(text)
            listed = subprocess.run([seeds, top], capture_output=True, text=True, check=True).stdout.splitlines()
            if not listed:
                refused.append(f"{name}: nothing is seeded")
            for line in listed:
                place, key, command = line.split("\t")[:3]
                if place == "passed over":
                    refused.append(f"{name}: {line}")
                    continue
                words = shlex.split(command)
                if shutil.which(tool(words)) is None:
                    missing[tool(words)] = missing.get(tool(words), 0) + 1
                    continue
                environment = {**os.environ, "CARGO_TARGET_DIR": str(top / "target"), "NO_COLOR": "1"}
                ran = subprocess.run(
                    dry(words),
                    cwd=top / place,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                )
                if ran.returncode:
                    said = textwrap.shorten(ran.stderr + ran.stdout, 300)
                    refused.append(f"{name}: {key}: {command}: exit {ran.returncode}: {said}")
                else:
                    accepted += 1
    for name, count in sorted(missing.items()):
        print(f"{name} is not here: {count} commands not tried")
    for line in refused:
        print(f"REFUSED {line}")
    print(f"{accepted} commands of {len(REPOSITORIES)} repositories accepted by their tools, {len(refused)} refused")
    return 1 if refused or accepted < 30 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
