"""Makes fresh.jsonl: 54 situations of the sixteen projects in worlds.FRESH, of kinds that the other files lack.

    python3 tests/situations/fresh.py

The expectations of a row were written before any engine ran, and are not changed to suit an engine.
"""

import json
import os

from fresh_prompts import prompts
from worlds import (
    ANVIL,
    COPPERWORKS,
    FERNWEH,
    FURROW,
    LAPTOP,
    LINDEN,
    MILLRACE,
    MINNOW,
    NORDWIND,
    SNIPBAR,
    STEADING,
    SWITCHYARD,
    TAPIR,
    TIDYFLORA,
    WARDGATE,
)
from worlds.hints import command
from worlds.rows import failed, names, prompt, situation, start, store_of, stored

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fresh.jsonl")
LAPTOP_NAMES = [hint["name"] for hint in LAPTOP]


def at_home(world):
    """Returns the hints that are harmless in any session of the project."""
    return names(world) + LAPTOP_NAMES


def starts():
    return [
        situation(
            "a start",
            FERNWEH,
            start(),
            ["rspec/run", "rails/server"],
            at_home(FERNWEH),
            ["vitest/run"],
            "how it is tested and run; both have a wrong way that works badly",
        ),
        situation(
            "a start",
            MINNOW,
            start("cursor"),
            ["dune/runtest", "solutions/secret"],
            at_home(MINNOW),
            ["testscript/run"],
            "46 hints; a push of the wrong branch cannot be undone",
            store=store_of(MINNOW, size="large"),
        ),
        situation(
            "a start",
            TIDYFLORA,
            start("codex"),
            ["tidyflora/test"],
            at_home(TIDYFLORA),
            ["fabric/client"],
            "nobody gave scopes: the component is the repository",
            store=store_of(TIDYFLORA, own_unscoped=True),
        ),
        situation(
            "a compaction",
            SWITCHYARD,
            start(source="compact"),
            ["rebar3/ct", "upgrade/appup"],
            at_home(SWITCHYARD),
            ["topology/test"],
            "what the start told has been forgotten",
            history=[{"event": start()}, {"event": prompt("read sip_txn.erl first")}],
            event_only=True,
        ),
        situation(
            "a subagent",
            COPPERWORKS,
            {"kind": "subagent", "client": "claude", "cwd": None, "session": "s1", "agent": "a1"},
            ["fabric/gametest"],
            at_home(COPPERWORKS),
            ["dune/runtest"],
            "a subagent has seen nothing of what the session was told",
            history=[{"event": start()}],
            event_only=True,
        ),
        situation(
            "i monorepo",
            FURROW,
            start("codex", cwd="src/camera_rig"),
            ["camera_rig/test"],
            at_home(FURROW),
            ["drive_base/test", "row_planner/test"],
            "the session lies in one package of the workspace",
        ),
        situation(
            "i monorepo",
            FURROW,
            prompt("run the tests", cwd="src/row_planner"),
            ["row_planner/test"],
            ["row_planner/*", "colcon/*", "ros/*"],
            ["drive_base/test", "camera_rig/test"],
            "'the tests' are those of the package",
            history=[{"event": start(cwd="src/row_planner")}],
        ),
        situation(
            "l first prompt",
            WARDGATE,
            prompt("moin", "codex"),
            ["dotnet/build", "dotnet/tests"],
            at_home(WARDGATE),
            ["actes/generer"],
            why="no server ran when the session began: all that applies comes with the first prompt",
            history=[],
            store=store_of(WARDGATE, size="small"),
        ),
    ]


def lifecycle():
    """Makes situations with hints that failed, changed or were deleted, and with hints of another branch."""
    unreachable = failed(
        "scripts/topics apply --env local 2>&1",
        "%3|1718000000.123|FAIL|rdkafka#producer-1| [thrd:localhost:9092/bootstrap]: Connect to ipv4#127.0.0.1:9092 "
        "failed: Connection refused",
        session="s0",
    )
    lab = "ansible-playbook -i inventories/lab site.yml --diff --skip-tags reboot"
    corrected = next(hint for hint in store_of(STEADING) if hint["id"] == "playbook/lab")
    scope = {"repo": ["snipbar/snipbar"]}
    pack = command("extension/pack", "pnpm build && pnpm web-ext build -s dist", "zip package", age_h=60, uses=2)
    pack_mv2 = command(
        "extension/pack", "pnpm build:mv2 && zip -r snipbar.zip dist-mv2", "zip package", age_h=500, uses=1
    )
    return [
        situation(
            "d outcomes",
            MILLRACE,
            prompt("create the topics, I want to see it run"),
            ["topics/rpk"],
            ["topics/*", "broker/*"],
            why="the script failed three times yesterday; the other way is by hand",
            history=[{"event": unreachable | {"call": f"s0-{n}"}} for n in range(3)] + [{"event": start()}],
            marked=["topics/create"],
        ),
        situation(
            "e staleness",
            STEADING,
            prompt("good, next one please"),
            [],
            ["playbook/*"],
            why="corrected since the start told it: the lab must not be rebooted",
            history=[
                {"event": start()},
                {"set": corrected | {"value": {"type": "command", "cmd": lab}}},
            ],
            event_only=True,
            text_needed_event=[lab],
        ),
        situation(
            "e staleness",
            NORDWIND,
            prompt("the org is empty, fill it with the sample data", "codex"),
            [],
            ["scratch/*"],
            ["sampledata/import"],
            "deleted since the start told it",
            history=[{"event": start("codex")}, {"delete": "sampledata/import"}],
            retracted=["sampledata/import"],
        ),
        situation(
            "e staleness",
            TAPIR,
            prompt("sync has two more flags now, make the man pages again"),
            [],
            ["manpages/*", "completion/*", "testscript/*"],
            why="internal/docgen is not in the repository any more",
            drift=["manpages/make"],
        ),
        situation(
            "f switch",
            SNIPBAR,
            prompt("package it for the store"),
            ["pack-mv2"],
            ["extension/*", "sign/*", "permissions/*"],
            ["pack-main"],
            "another branch since the start",
            history=[{"event": start()}, {"git": ["checkout", "-q", "mv2-maintenance"]}],
            store=[
                *store_of(SNIPBAR),
                stored(pack, scope | {"branch": ["main"]}, "pack-main"),
                stored(pack_mv2, scope | {"branch": ["mv2-*"]}, "pack-mv2"),
            ],
            event_only=True,
        ),
    ]


def failures():
    return [
        situation(
            "c failure",
            ANVIL,
            failed(
                "cd build/relwithdeb && ctest -R gui --output-on-failure",
                "qt.qpa.xcb: could not connect to display\n"
                'qt.qpa.plugin: Could not load the Qt platform plugin "xcb" in "" even though it was found.\n'
                "0% tests passed, 14 tests failed out of 14",
                8,
            ),
            ["gui/offscreen"],
            ["gui/*", "kernel/tests"],
            why="behind a cd; the same tests with a variable before them",
        ),
        situation(
            "c failure",
            FERNWEH,
            failed(
                "set -o pipefail; bundle install --jobs 4 2>&1 | tail -15",
                'Your bundle only supports platforms ["arm64-darwin-23"] but your local platform is x86_64-linux. '
                "Add the current platform to the lockfile with "
                "`bundle lock --add-platform x86_64-linux` and try again.",
                16,
            ),
            ["bundler/platform"],
            ["bundler/*", "rails/setup"],
            why="a pipeline; the fix has the words of the error",
        ),
        situation(
            "c failure",
            NORDWIND,
            failed(
                "timeout 300 sf project deploy validate -x manifest/package.xml -o nw-uat",
                "Error (INVALID_SESSION_ID): Session expired or invalid",
            ),
            ["sfdx/login"],
            ["sfdx/*", "uat/*", "scratch/*"],
            why="behind a timeout; the fix is tagged with the program",
        ),
        situation(
            "c failure",
            SWITCHYARD,
            failed(
                'bash -lc "rebar3 ct --suite apps/sip_edge/test/sip_edge_SUITE"',
                "===> Running Common Test suites...\n%%% sip_edge_SUITE ==> init_per_suite: FAILED\n"
                '{error,{exit,not_alive,[{peer,start_it,2,[{file,"peer.erl"}]}]}}',
            ),
            ["rebar3/ct"],
            ["rebar3/*", "epmd/*", "sip_edge/*"],
            why="behind a shell; an option is missing",
        ),
        situation(
            "c failure",
            LINDEN,
            failed("wp cache flush", "/bin/bash: line 1: wp: command not found", 127),
            ["wpenv/cli"],
            ["wpenv/*"],
            why="the program is in a container",
            store=store_of(LINDEN, size="small"),
        ),
        situation(
            "c failure",
            MINNOW,
            failed(
                "dune build ./bin/minnowc.exe",
                'File "lib/dune", line 4, characters 12-21:\n4 |  (libraries menhirLib)\n'
                'Error: Library "menhirLib" not found.',
            ),
            ["opam/switch"],
            ["opam/*", "dune/*"],
            why="tagged with the program; the error shares no word with it",
            store=store_of(MINNOW, size="small"),
        ),
        situation(
            "c failure",
            SNIPBAR,
            failed(
                "npx jest src/content/highlighter.test.ts",
                "Jest encountered an unexpected token\n\n    import { expect, it } from 'vitest';\n    ^^^^^^\n\n"
                "    SyntaxError: Cannot use import statement outside a module",
            ),
            ["vitest/run"],
            ["vitest/*", "playwright/*", "highlighter/*"],
            why="the wrong runner; the error names the right one",
        ),
        situation(
            "c failure",
            COPPERWORKS,
            failed(
                "./gradlew build",
                "FAILURE: Build failed with an exception.\n* What went wrong:\n"
                "BUG! exception in phase 'semantic analysis' in source unit '_BuildScript_' "
                "Unsupported class file major version 65",
                client="gemini",
            ),
            ["jdk/seventeen"],
            ["jdk/*", "loom/*", "fabric/*"],
            why="Gemini CLI; the fix is tagged with the program",
        ),
        situation(
            "c failure, nothing fits",
            ANVIL,
            failed(
                "cmake --build --preset relwithdeb -j6",
                "src/kernel/boolean.cpp:212:18: error: 'splt_edges' was not declared in this scope; "
                "did you mean 'split_edges'?\nninja: build stopped: subcommand failed.",
            ),
            allowed=["anvil/compile"],
            why="the code is wrong, not the command",
            quiet=True,
            store=store_of(ANVIL, size="large"),
        ),
        situation(
            "c failure, nothing fits",
            TIDYFLORA,
            failed("test -d vignettes/figures", ""),
            why="there is no such folder: that is an answer",
            quiet=True,
        ),
    ]


def document():
    """Makes all rows of fresh.jsonl."""
    rows = []
    for letter, made in (("s", starts()), ("t", lifecycle()), ("u", failures()), ("v", prompts())):
        rows += [{"id": f"f-{letter}{number:02}", **row} for number, row in enumerate(made, 1)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


if __name__ == "__main__":
    with open(FILE, "w") as out:
        out.write(document())
