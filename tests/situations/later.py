"""Makes later.jsonl: 75 situations of the twelve projects in worlds/*.json, of kinds that the other files lack.

    python3 later.py

The expectations of a row were written before any engine ran, and are not changed to suit an engine.
"""

import json
import os

from later_prompts import other_words, prompts
from later_quiet import accidents, broken_code, ordinary, talk
from later_rows import (
    BEVELKIT,
    GRISTMILL,
    HERE,
    HERON,
    ICEFLOE,
    LARDER,
    MOORBRAND,
    POSTERN,
    SLOTWISE,
    TESSERA,
    TOLLGATE,
    VAULTLINE,
    ZINSLAUF,
    at_home,
    failed,
    prompt,
    situation,
    start,
    store_of,
)

FILE = os.path.join(HERE, "later.jsonl")


def starts():
    return [
        situation(
            "a start",
            SLOTWISE,
            start(),
            ["slotwise/tests", "reminders/sandbox"],
            at_home(SLOTWISE),
            ["dbt/profile"],
            "how it is tested, and what reaches patients if nobody knows of it",
        ),
        situation(
            "a start",
            ZINSLAUF,
            start("codex"),
            ["zinslauf/tests", "columns/margin"],
            at_home(ZINSLAUF),
            ["addon/pack"],
            "many hints; what is lost without a word must be known",
            store=store_of(ZINSLAUF, size="large"),
        ),
        situation(
            "a start",
            HERON,
            start("cursor"),
            ["heron/test"],
            at_home(HERON),
            ["tollgate/dev"],
            "nobody gave scopes: the component is the repository",
            store=store_of(HERON, own_unscoped=True),
        ),
        situation(
            "a compaction",
            VAULTLINE,
            start(source="compact"),
            ["vault/storage", "forge/test"],
            at_home(VAULTLINE),
            why="what the start told has been forgotten",
            history=[{"event": start()}, {"event": prompt("look at Vault.sol before anything else")}],
            event_only=True,
        ),
        situation(
            "a subagent",
            TOLLGATE,
            {"kind": "subagent", "client": "claude", "cwd": None, "session": "s1", "agent": "a1"},
            ["deploy/production", "tollgate/test"],
            at_home(TOLLGATE),
            why="a subagent has seen nothing of what the session was told",
            history=[{"event": start()}],
            event_only=True,
        ),
        situation(
            "i monorepo",
            LARDER,
            start(cwd="packages/pantry_sync"),
            ["pantry_sync/test"],
            at_home(LARDER),
            ["pantry_core/test", "mobile/test"],
            "the session lies in one package of the workspace",
        ),
        situation(
            "l first prompt",
            ICEFLOE,
            prompt("good morning", "codex"),
            ["icefloe/test"],
            at_home(ICEFLOE),
            why="no server ran when the session began: all that applies comes with the first prompt",
            history=[],
            store=store_of(ICEFLOE, size="small"),
        ),
        situation(
            "l first prompt",
            MOORBRAND,
            prompt("Hallo, wir machen bei Kapitel 3 weiter"),
            ["dissertation/bauen"],
            at_home(MOORBRAND),
            why="no server ran when the session began; how the document is built",
            history=[],
        ),
    ]


def failures():
    return [
        situation(
            "c failure",
            TOLLGATE,
            failed(
                'bash -lc "deno test -A tests/quota_test.ts"',
                "quota is counted once ... FAILED (4ms)\n\n ERRORS \n\n"
                "quota is counted once => ./tests/quota_test.ts:9:6\n"
                "error: TypeError: Deno.openKv is not a function\n    at openStore (file:///src/lib/kv.ts:6:21)",
            ),
            ["tollgate/test"],
            ["tollgate/*", "kv/dump"],
            why="behind a shell; an option is missing",
        ),
        situation(
            "c failure",
            HERON,
            failed(
                "zig build --fetch",
                "build.zig.zon:9:21: error: hash mismatch: manifest declares 12201a but the fetched "
                "package has 1220f4\n"
                '            .hash = "12201a",\n                    ^~~~~~~~',
            ),
            ["zon/hash"],
            ["zon/*", "zig/version"],
            why="the fix has the words of the error",
            store=store_of(HERON, size="small"),
        ),
        situation(
            "c failure",
            SLOTWISE,
            failed(
                "DJANGO_SETTINGS_MODULE=slotwise.settings.dev uv run manage.py migrate",
                "Traceback (most recent call last):\n  ...\n"
                "django.core.exceptions.ImproperlyConfigured: Error loading psycopg2 or psycopg module",
            ),
            ["psycopg/extra"],
            ["psycopg/*", "booking/migrations", "python/uv"],
            why="a variable before it; a missing module, which the fix names",
        ),
        situation(
            "c failure",
            MOORBRAND,
            failed(
                "cd kapitel && latexmk -lualatex modell.tex",
                "! Package minted Error: You must invoke LaTeX with the -shell-escape flag.\n\n"
                "See the minted package documentation for explanation.\nl.41 ",
                12,
            ),
            ["minted/shell"],
            ["minted/*", "dissertation/*", "kapitel/*"],
            why="behind a cd; the fix has the words of the error",
        ),
        situation(
            "c failure",
            TESSERA,
            failed(
                "set -o pipefail; make -j4 2>&1 | tail -20",
                "src/tessera.c:3:10: fatal error: postgres.h: No such file or directory\n"
                "    3 | #include <postgres.h>\n"
                "      |          ^~~~~~~~~~~~\ncompilation terminated.\nmake: *** [<builtin>: src/tessera.o] Error 1",
                2,
            ),
            ["server/headers"],
            ["server/*", "tessera/*"],
            why="a pipeline; the headers are missing, not the code wrong",
            store=store_of(TESSERA, size="large"),
        ),
        situation(
            "c failure",
            BEVELKIT,
            failed(
                "python -m pytest tests/test_round.py",
                "tests/test_round.py:3: in <module>\n    import bpy\nE   ModuleNotFoundError: No module named 'bpy'",
                2,
                "claude",
            ),
            ["bpy/module"],
            ["bpy/*", "blender/tests"],
            why="the wrong runner; the module is within Blender",
        ),
        situation(
            "c failure",
            POSTERN,
            failed(
                "perl -Ilib bin/postern --check etc/postern.conf",
                "Can't locate Mail/DKIM/Verifier.pm in @INC (you may need to install the Mail::DKIM::Verifier module) "
                "(@INC entries checked: lib /etc/perl /usr/share/perl5) at lib/Postern/DKIM.pm line 6.",
                2,
            ),
            ["carton/install"],
            ["carton/*", "postern/*"],
            why="a missing module; the reason has the words of the error",
        ),
        situation(
            "c failure",
            ICEFLOE,
            failed(
                "cd .. && julia --project=IceFloe.jl IceFloe.jl/scripts/ensemble.jl --members 2",
                "ERROR: LoadError: ArgumentError: Package HDF5 [f67ccb44] is required but does not seem to be "
                "installed:\n - Run `Pkg.instantiate()` to install all recorded dependencies.",
            ),
            ["pkg/instantiate"],
            ["pkg/*", "ensemble/run"],
            why="behind a cd; a missing package",
        ),
        situation(
            "c failure",
            VAULTLINE,
            failed(
                "forge test",
                "Ran 1 test for test/fork/Escrow.fork.t.sol:EscrowForkTest\n"
                "[FAIL: setup failed: environment variable SEPOLIA_RPC not found] setUp() (gas: 0)\n"
                "Encountered a total of 1 failing tests, 61 tests succeeded",
                client="gemini",
            ),
            ["forge/test"],
            ["forge/*"],
            why="Gemini CLI; the right form leaves those out",
        ),
        situation(
            "c failure",
            LARDER,
            failed("flutter pub get", "/bin/bash: line 1: flutter: command not found", 127),
            ["flutter/fvm"],
            ["flutter/*", "melos/bootstrap"],
            why="the program is behind another",
            store=store_of(LARDER, size="small"),
        ),
        situation(
            "c failure",
            ZINSLAUF,
            failed(
                "zowe jobs list jobs --owner KELLER",
                'Unable to perform this operation due to the following problem.\nRequired profile of type "zosmf" '
                "was not found.",
            ),
            ["zowe/profile"],
            ["zowe/*", "jcl/*"],
            why="the fix has the words of the error",
        ),
        situation(
            "c failure",
            GRISTMILL,
            failed(
                "timeout 600 dbt run --select fct_margin",
                "08:12:44  Running with dbt=1.8.3\n08:12:44  Encountered an error:\nRuntime Error\n"
                "  Could not find profile named 'gristmill'",
                2,
            ),
            ["dbt/profile"],
            ["dbt/*", "margin/*", "backfill/*"],
            why="behind a timeout; the fix has the words of the error",
        ),
    ]


def document():
    """Makes all rows of later.jsonl."""
    parts = {
        "s": starts(),
        "t": prompts(),
        "u": other_words(),
        "v": failures(),
        "w": accidents(),
        "x": ordinary(),
        "y": talk(),
        "z": broken_code(),
    }
    rows = []
    for letter, made in parts.items():
        rows += [{"id": f"g-{letter}{number:02}", **row} for number, row in enumerate(made, 1)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


if __name__ == "__main__":
    with open(FILE, "w") as out:
        out.write(document())
