"""Writes the manifests of a situation's repository for `--seeded`, with the usual commands of their kind. Without this
option the manifests are empty, so that Nudge can tell only the row's own hints."""

import json
import os

SCRIPTS = {
    "dev": "vite",
    "build": "vite build",
    "test": "vitest run",
    "lint": "eslint .",
    "format": "prettier --write .",
}
CONTENTS = {
    "Makefile": (
        ".PHONY: all build test lint clean\n"
        "all: build\n"
        "build: ## Builds everything\n\t./configure && cc -o out/all src/*.c\n"
        "test: build ## Runs all tests\n\t./out/all --self-test\n"
        "lint:\n\tclang-format --dry-run src/*\n"
        "clean:\n\trm -rf out\n"
    ),
    "package.json": json.dumps({"name": "x", "scripts": SCRIPTS}, indent=2) + "\n",
    "pyproject.toml": (
        '[project]\nname = "x"\nversion = "1"\n[project.scripts]\nx-admin = "x.admin:main"\n'
        '[tool.pytest.ini_options]\naddopts = "-q"\n[tool.ruff]\nline-length = 100\n'
        '[tool.poe.tasks]\ncheck = "ruff check"\ndocs = "mkdocs build"\n'
    ),
    "Cargo.toml": (
        '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2024"\n[[bin]]\nname = "x-cli"\npath = "src/main.rs"\n'
    ),
    "go.mod": "module example.org/x\n\ngo 1.23\n",
    "compose.yaml": "services:\n  db:\n    image: postgres:16\n  web:\n    build: .\n",
}
CONTENTS["docker-compose.yml"] = CONTENTS["compose.yaml"]
CI = (
    "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n"
    "      - uses: actions/checkout@v4\n      - run: ./scripts/lint.sh\n      - run: ./scripts/test.sh --all\n"
)


def write(repository):
    """Writes the files of the repository, and a workflow of its CI."""
    for folder, folders, files in os.walk(repository):
        folders[:] = [name for name in folders if name != ".git"]
        for name in files:
            if name in CONTENTS:
                with open(os.path.join(folder, name), "w") as out:
                    out.write(CONTENTS[name])
    workflows = os.path.join(repository, ".github", "workflows")
    os.makedirs(workflows, exist_ok=True)
    with open(os.path.join(workflows, "test.yml"), "w") as out:
        out.write(CI)
