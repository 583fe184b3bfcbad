"""Makes others.jsonl: 40 situations of the projects in worlds/, of kinds that situations.jsonl lacks.

    python3 tests/situations/others.py

The expectations of a row were written before any engine ran, and are not changed to suit an engine.
"""

import json
import os

from worlds import (
    BEACON,
    EMBERFALL,
    HARBOUR,
    KASSE,
    LANDING,
    LUMEN,
    ORCHARD,
    PIGEONHOLE,
    QUILL,
    SPINDRIFT,
    TIDEWATER,
    TRAILMIX,
)
from worlds.hints import note
from worlds.rows import MACHINE_NAMES, failed, names, prompt, situation, start, store_of, stored

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "others.jsonl")


def starts():
    return [
        situation(
            "a start",
            BEACON,
            start(),
            ["zephyr/build", "board/flash"],
            names(BEACON) + MACHINE_NAMES,
            ["lumen/compile"],
            "how it is built and brought onto the board",
        ),
        situation(
            "a start",
            SPINDRIFT,
            start("codex"),
            ["spindrift/build"],
            names(SPINDRIFT) + MACHINE_NAMES,
            ["phone/install"],
            "nobody gave scopes: the component is the repository",
            store=store_of(SPINDRIFT, own_unscoped=True),
        ),
        situation(
            "a compaction",
            TRAILMIX,
            start(source="compact"),
            ["phone/install", "phone/unit"],
            names(TRAILMIX) + MACHINE_NAMES,
            ["quill/build"],
            "what the start told has been forgotten",
            history=[{"event": start()}, {"event": prompt("hello")}],
            event_only=True,
        ),
        situation(
            "a subagent",
            ORCHARD,
            {"kind": "subagent", "client": "claude", "cwd": None, "session": "s1", "agent": "a1"},
            ["flake/check", "pear/rollout"],
            names(ORCHARD) + MACHINE_NAMES,
            ["zephyr/build"],
            "a subagent has seen nothing of what the session was told",
            history=[{"event": start()}],
            event_only=True,
        ),
        situation(
            "i monorepo",
            PIGEONHOLE,
            start("codex", cwd="apps/smtp_gate"),
            ["smtp_gate/spec", "smtp_gate/listener"],
            names(PIGEONHOLE) + MACHINE_NAMES,
            ["inbox/spec", "inbox/oban"],
            "the session lies in one app of the umbrella",
        ),
        situation(
            "l first prompt",
            HARBOUR,
            prompt("bonjour", "gemini"),
            ["book/pdf"],
            names(HARBOUR) + MACHINE_NAMES,
            why="no server ran when the session began: all that applies comes with the first prompt",
            history=[],
            store=store_of(HARBOUR, size="small"),
        ),
    ]


def lifecycle():
    """Makes situations with hints that failed, changed or were deleted, and with hints of another branch."""
    scope = {"repo": ["lumenapp/lumen-ios"]}
    bump = note("version/bump", "", "version build number", age_h=40, uses=2)
    counting = {"value": {"type": "command", "cmd": "agvtool next-version -all"}}
    patching = {"value": {"type": "command", "cmd": "fastlane run increment_version_number bump_type:patch"}}
    on_develop = stored(bump | counting, scope | {"branch": ["develop"]}, "bump-develop")
    on_release = stored(bump | patching, scope | {"branch": ["release/*"]}, "bump-release")
    refused = failed(
        "mix phx.server 2>&1", "** (Mix) Could not start application inbox_web: node not found", session="s0"
    )
    render = "kustomize build overlays/qa --enable-helm --load-restrictor LoadRestrictionsNone"
    return [
        situation(
            "d outcomes",
            PIGEONHOLE,
            prompt("start the web server of the inbox, please"),
            ["inbox_web/detached"],
            ["inbox_web/*"],
            why="the plain command failed three times yesterday",
            history=[{"event": refused | {"call": f"s0-{n}"}} for n in range(3)] + [{"event": start()}],
            marked=["inbox_web/server"],
        ),
        situation(
            "f switch",
            LUMEN,
            prompt("bump the version"),
            ["bump-release"],
            ["version/*", "testflight/beta"],
            ["bump-develop"],
            "another branch since the start",
            history=[{"event": start()}, {"git": ["checkout", "-q", "release/4.2"]}],
            store=[*store_of(LUMEN), on_develop, on_release],
            event_only=True,
        ),
        situation(
            "e staleness",
            LANDING,
            prompt("go on"),
            ["overlays/render"],
            ["overlays/*"],
            why="corrected since the start told it",
            history=[
                {"event": start()},
                {
                    "set": {
                        "id": "overlays/render",
                        "component": "overlays",
                        "key": "render",
                        "value": {"type": "command", "cmd": render},
                        "meta": next(h for h in store_of(LANDING) if h["id"] == "overlays/render")["meta"],
                    }
                },
            ],
            event_only=True,
            text_needed_event=[render],
        ),
        situation(
            "e staleness",
            KASSE,
            prompt("und jetzt bitte die Rechnungen von gestern"),
            [],
            ["queue/restart"],
            ["invoices/render"],
            "deleted since the start told it",
            history=[{"event": start()}, {"delete": "invoices/render"}],
            retracted=["invoices/render"],
        ),
        situation(
            "e staleness",
            EMBERFALL,
            prompt("the new lanterns are drawn, pack the atlas again"),
            [],
            ["atlas/*", "art/*", "assets/*"],
            why="tools/atlas.py is not in the repository any more",
            drift=["atlas/pack"],
        ),
    ]


def failures():
    return [
        situation(
            "c failure",
            BEACON,
            failed(
                "set -o pipefail; west build -b beacon_v2 app 2>&1 | tail -40",
                "usage: west [-h] [-z ZEPHYR_BASE] <command> ...\n"
                'west: unknown command "build"; do you need to run this inside a workspace?',
                2,
            ),
            ["sdk/env"],
            ["sdk/*", "zephyr/*"],
            why="a pipeline; the fix has the words of the error",
        ),
        situation(
            "c failure",
            TIDEWATER,
            failed(
                "timeout 600 dvc pull data/raw.dvc",
                "ERROR: unexpected error - SSL validation failed for https://minio.oceanlab.example/gauges "
                "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate",
                255,
            ),
            ["dataset/ca"],
            ["dataset/*"],
            why="behind a timeout; what mends it is a certificate",
        ),
        situation(
            "c failure",
            LANDING,
            failed(
                "kubectl get pods -n payments -o wide",
                "error: You must be logged in to the server (Unauthorized)",
            ),
            ["kube/login"],
            ["kube/*"],
            why="tagged with the program; no command is like it",
        ),
        situation(
            "c failure",
            EMBERFALL,
            failed(
                "godot --headless --export-release Web build/web/index.html",
                "/bin/bash: line 1: godot: command not found",
                127,
            ),
            ["web/export"],
            ["web/*", "gut/*", "hub/*", "assets/*"],
            why="the same line, but the program has another name here",
        ),
        situation(
            "c failure",
            KASSE,
            failed(
                'bash -lc "vendor/bin/phpunit --filter CartTest"',
                "PHP Fatal error:  Uncaught Error: Call to undefined function it() in tests/Feature/CartTest.php:9",
                255,
            ),
            ["pest/run"],
            ["pest/*", "sail/artisan"],
            why="the wrong runner; the fix names it",
        ),
        situation(
            "c failure",
            PIGEONHOLE,
            failed(
                "cd apps/inbox && mix test",
                "** (Mix) Could not find Hex, which is needed to build dependency :oban",
            ),
            ["hex/local"],
            ["hex/*", "inbox/*"],
            why="behind a cd; the error names the component",
        ),
        situation(
            "c failure",
            HARBOUR,
            failed(
                "pdflatex -halt-on-error main.tex > /dev/null",
                "! Fatal Package fontspec Error: The fontspec package requires either XeTeX or LuaTeX.",
            ),
            ["book/pdf"],
            ["book/*", "fonts/*"],
            why="the wrong program for this book",
            store=store_of(HARBOUR, size="small"),
        ),
        situation(
            "c failure",
            TRAILMIX,
            failed(
                "./gradlew testStagingDebugUnitTest --tests '*TileCache*'",
                "> Task :feature:map:compileStagingDebugKotlin FAILED\ne: java.lang.OutOfMemoryError: Metaspace",
                client="gemini",
            ),
            ["gradle/heap"],
            ["gradle/*", "phone/unit"],
            why="Gemini CLI; the fix has the word of the error",
        ),
        situation(
            "c failure, nothing fits",
            QUILL,
            failed(
                "cabal build quill-core",
                "quill-core/src/Quill/Parser.hs:41:17: error: [GHC-83865]\n"
                "    Couldn't match expected type `Text' with actual type `String'",
            ),
            allowed=["quill/build"],
            why="the code is wrong, not the command",
            quiet=True,
        ),
        situation(
            "c failure, nothing fits",
            LANDING,
            failed("grep -rn 'imagePullPolicy: Always' overlays base", ""),
            why="nothing was found: that is an answer",
            quiet=True,
        ),
        situation(
            "c failure, nothing fits",
            TRAILMIX,
            failed("git diff --exit-code --stat -- phone/build.gradle.kts", " phone/build.gradle.kts | 2 +-"),
            allowed=["trailmix/commits"],
            why="asks whether a file has changed",
            quiet=True,
        ),
    ]


def prompts():
    log = "\n".join(
        f'{{"level":"info","time":"2024-05-14T07:{n:02}:11Z","caller":"smoke/check.go:{80 + n}","msg":"checked",'
        f'"path":"/api/v2/orders/{1000 + n * 37}","status":200,"took_ms":{30 + n * 7 % 40}}}'
        for n in range(22)
    )
    log += (
        '\n{"level":"error","time":"2024-05-14T07:22:12Z","caller":"smoke/check.go:131","msg":"gave up","error":"Get '
        "https://shop.qa.northgate.example: tls: failed to verify certificate: x509: certificate has expired or is "
        'not yet valid: current time 2024-05-14T07:22:12Z is after 2024-05-13T23:59:59Z"}'
    )
    return [
        situation(
            "b1 direct",
            ORCHARD,
            prompt("deploy pear to the test machine"),
            ["pear/rollout"],
            ["pear/*"],
        ),
        situation(
            "b2 forms",
            QUILL,
            prompt("the printer changed on purpose, so the goldens need re-accepting", "codex"),
            ["golden/accept"],
            ["golden/*"],
        ),
        situation(
            "b4 typos",
            KASSE,
            prompt("resatrt the wrokers, they still run what was there yesterday", "codex"),
            ["queue/restart"],
            ["queue/*"],
        ),
        situation("b4 typos", ORCHARD, prompt("pls upadte the flaek"), ["flake/update"], ["flake/*"]),
        situation(
            "b3 paraphrase",
            EMBERFALL,
            prompt("testers say she falls off cliffs although they pressed in time; be a little more forgiving"),
            ["hero/ledge"],
            ["hero/*"],
        ),
        situation(
            "b5 languages",
            KASSE,
            prompt("Die Mehrwertsteuer im Warenkorb stimmt um einen Cent nicht"),
            ["cart/vat"],
            ["cart/*", "invoices/*"],
        ),
        situation(
            "b5 languages",
            BEACON,
            prompt("把新固件烧录到板子上,然后看一下串口输出"),
            ["board/flash", "board/console"],
            ["board/*", "zephyr/build"],
            why="tagged by the agent that stored it in the words of its user",
        ),
        situation(
            "b5 languages",
            TIDEWATER,
            prompt("vuelve a entrenar solo el modelo, sin repetir todo lo demás"),
            ["fit/repro"],
            ["fit/*", "slurm/submit"],
        ),
        situation(
            "b5 languages",
            SPINDRIFT,
            prompt("reprends le calcul d'hier là où il s'est arrêté", "gemini"),
            ["spindrift/restart"],
            ["spindrift/*"],
        ),
        situation(
            "b5 languages",
            LUMEN,
            prompt("シミュレータが起動しなくなったので直して"),
            ["simulator/erase"],
            ["simulator/*"],
        ),
        situation(
            "b6 pasted",
            LANDING,
            prompt("the smoke test of qa ended like this, what now?\n\n" + log),
            ["ingress/wildcard"],
            ["ingress/*"],
            why="the last of 23 lines says it",
        ),
        situation(
            "b7 paths",
            BEACON,
            prompt("why does @app/src/ble_adv.c send twice as often as it should?"),
            ["ble/interval"],
            ["ble/*", "zephyr/*"],
        ),
        situation(
            "b8 identifiers",
            LUMEN,
            prompt(
                "SyncKit loses the last batch when it is sent to the background; write a spec that shows it", "codex"
            ),
            ["sync-kit/spec"],
            ["sync-kit/*"],
        ),
        situation(
            "b10 accident",
            TIDEWATER,
            prompt(
                "explain the difference between a data frame and a matrix in one paragraph, with a small plot of each"
            ),
            why="a question of knowledge; nothing is to be pulled, run or compared",
            quiet=True,
        ),
        situation(
            "b10 accident",
            HARBOUR,
            prompt("a better word than 'build', please: they build harbours of hope and run for shelter at every test"),
            allowed=["prose/vale"],
            why="'build', 'run' and 'test' are words of a sentence",
            quiet=True,
        ),
        situation(
            "b10 accident",
            LUMEN,
            prompt("what do you call a colour between teal and navy?", "gemini"),
            why="a question of language; the palette is not touched",
            quiet=True,
        ),
        situation(
            "b10 accident",
            LANDING,
            prompt("a limerick about a captain who drained his secret cask and silenced the alert crew"),
            why="'drain', 'secret', 'silence' and 'alert' are of the poem",
            quiet=True,
        ),
        situation(
            "b9 nothing said",
            EMBERFALL,
            prompt("Sehr gut, weiter so!", "gemini"),
            why="names nothing: nothing is worth its bytes",
            quiet=True,
        ),
    ]


def document():
    """Makes all rows of others.jsonl."""
    rows = []
    for letter, made in (("s", starts()), ("t", lifecycle()), ("u", failures()), ("v", prompts())):
        rows += [{"id": f"o-{letter}{number:02}", **row} for number, row in enumerate(made, 1)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


if __name__ == "__main__":
    with open(FILE, "w") as out:
        out.write(document())
