"""Puts the pages of the repository into one folder, as mkdocs wants them: `gather.py REPOSITORY FOLDER`.

What links to another page leads to that page of the site then, and what links to anything else in the repository to its
address on the web.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
import tomllib
from pathlib import Path

DOCS = "nudge/docs"
# All pages of the site lie in one folder, so the name of each of these begins with a word of its own.
DECISIONS = f"{DOCS}/decisions"
# Pages from elsewhere, by what they are called on the site.
ELSEWHERE = {
    "README.md": "readme.md",
    "bindings/python/README.md": "python.md",
    "bindings/node/README.md": "node.md",
    "bindings/c/README.md": "c.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changes.md",
}
# A link, where it stands or at the page's end; not what has a scheme, and not a place on the same page.
LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )(?![a-z]+:|#)([^)\s#]+)", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def gather(root: Path, out: Path) -> None:
    """Writes the pages, and the files beside them that are linked."""
    web = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["repository"]
    pages = {f"{DOCS}/{page.name}": page.name for page in sorted((root / DOCS).glob("*.md"))} | ELSEWHERE
    pages |= {f"{DECISIONS}/{page.name}": f"decision-{page.name}" for page in sorted((root / DECISIONS).glob("*.md"))}
    files = {f"{DOCS}/{file.name}": file.name for kind in ("*.svg", "*.json") for file in (root / DOCS).glob(kind)}
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for file, name in files.items():
        shutil.copy(root / file, out / name)
    shutil.copytree(root / DOCS / "schemas", out / "schemas")
    for page, name in pages.items():

        def led(link: re.Match[str], page: str = page) -> str:
            to = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[2]))
            if not (root / to).exists():
                sys.exit(f"{page} links to {link[2]}, which there is not")
            kind = "tree" if (root / to).is_dir() else "blob"
            return link[1] + ((pages | files).get(to) or f"{web}/{kind}/main/{to}")

        text = (root / page).read_text()
        # What stands in a block of code is no link.
        parts = FENCED.split(text)
        blocks = FENCED.findall(text)
        told = [LINK.sub(led, part) for part in parts]
        whole = "".join(part + block for part, block in zip(told, [*blocks, ""], strict=True))
        (out / name).write_text(whole)


if __name__ == "__main__":
    gather(Path(sys.argv[1]), Path(sys.argv[2]))
