"""Lists the last situations in which no hint should be told."""

from last_rows import ASKDESK, FENMAP, LICHEN, REEDSEQ, SNAILNET, TREMOLANT, WRENBUS
from later_rows import failed, prompt, situation, store_of


def quiet(category, world, event, allowed, why, size="middle"):
    store = store_of(world, size=size)
    return situation(category, world, event, allowed=allowed, why=why, store=store, quiet=True)


def nothing_fits(world, command, error, allowed, why, code=1, client="claude", size="middle"):
    return quiet("c failure, nothing fits", world, failed(command, error, code, client), allowed, why, size)


def accident(world, event, allowed, why, size="middle"):
    return quiet("b10 accident", world, event, allowed, why, size)


def ordinary_work(world, event, allowed, why="ordinary work that no hint concerns", size="middle"):
    return quiet("b9 nothing said", world, event, allowed, why, size)


def broken():
    return [
        nothing_fits(
            WRENBUS,
            "set -o pipefail; make -C tb TOPLEVEL=wren_dma MODULE=test_dma SIM=verilator 2>&1 | tail -12",
            "   212.00ns INFO     cocotb.regression   test_copy failed\n"
            "                     Traceback (most recent call last):\n"
            '                       File "/home/dev/wrenbus/tb/test_dma.py", line 47, in test_copy\n'
            "                         assert memory.read(0x200, 4) == b'wren'\n"
            "                     AssertionError: assert b'wre\\x00' == b'wren'\n"
            "   ** TESTS=3 PASS=2 FAIL=1 SKIP=0 **\n"
            "make: *** [Makefile:21: results.xml] Error 1",
            ["sim/one", "dma/*"],
            "an assertion, and the command is the right one",
            2,
        ),
        nothing_fits(
            LICHEN,
            "pnpm --filter @lichen/react exec vitest run Combobox 2>&1",
            " FAIL  src/Combobox.test.tsx > Combobox > filters while typing\n"
            "AssertionError: expected [ 'Oak', 'Ash', 'Elm' ] to have a length of 2 but got 3\n"
            " ❯ src/Combobox.test.tsx:33:25\n\n Test Files  1 failed (1)\n      Tests  1 failed | 8 passed (9)",
            ["lichen/test", "combobox/*"],
            "an assertion, and the command is the right one",
            size="large",
        ),
        nothing_fits(
            LICHEN,
            "cd packages/react && npx tsc --noEmit -p .",
            "src/Avatar.tsx(18,31): error TS2345: Argument of type 'string | undefined' is not assignable to parameter "
            "of type 'string'.\n  Type 'undefined' is not assignable to type 'string'.",
            [],
            "the code is wrong, not the command",
            2,
        ),
        nothing_fits(
            FENMAP,
            "uv run python -m pipeline.tiles --zoom 6-15",
            "usage: tiles.py [-h] [--zoom-min N] [--zoom-max N] [--layer NAME]\n"
            "tiles.py: error: unrecognized arguments: --zoom 6-15",
            ["tiles/*"],
            "wrong arguments, and the usage says the right ones; how tiles are made otherwise would do no harm",
            2,
            "gemini",
        ),
        nothing_fits(
            FENMAP,
            "timeout 90 curl -fsSL https://downloads.survey.example/boundaries/2024.zip -o data/boundaries.zip",
            "curl: (6) Could not resolve host: downloads.survey.example",
            [],
            "the network is away",
            6,
        ),
        nothing_fits(
            SNAILNET,
            "set -o pipefail; make -C ~/src/linux-6.6 M=$PWD modules -j4 2>&1 | tail -20",
            "/home/dev/snailnet/snail_ethtool.c: In function 'snail_get_strings':\n"
            "/home/dev/snailnet/snail_ethtool.c:77:9: error: implicit declaration of function 'ethtool_sprint'; did "
            "you mean 'ethtool_sprintf'? [-Werror=implicit-function-declaration]\n"
            "   77 |         ethtool_sprint(&p, snail_gstrings[i]);\n"
            "      |         ^~~~~~~~~~~~~~\n      |         ethtool_sprintf\n"
            "cc1: some warnings being treated as errors\n"
            "make[2]: *** [scripts/Makefile.build:243: /home/dev/snailnet/snail_ethtool.o] Error 1",
            ["kbuild/make", "ethtool/*"],
            "the code is wrong, not the command",
            2,
        ),
        nothing_fits(
            REEDSEQ,
            "micromamba run -n reedseq snakemake -n -p --configfile .test/confg.yaml",
            "Error: Config file .test/confg.yaml not found.",
            ["snakemake/dry"],
            "a typo in a path",
            client="gemini",
        ),
        nothing_fits(
            TREMOLANT,
            "cargo nextest run -p dsp wind",
            "        FAIL [   0.031s] dsp wind::tests::pressure_settles\n"
            "--- STDERR:              dsp wind::tests::pressure_settles ---\n"
            "thread 'wind::tests::pressure_settles' panicked at dsp/src/wind.rs:141:9:\n"
            "assertion `left == right` failed\n  left: 0.98\n right: 1.0\n"
            "     Summary [   0.044s] 5 tests run: 4 passed, 1 failed, 61 skipped\nerror: test run failed",
            ["dsp/test", "wind/*"],
            "an assertion, and the command is the right one",
            100,
        ),
        nothing_fits(
            TREMOLANT,
            'bash -lc "cargo xtask bundle tremolant --release 2>&1"',
            "error[E0502]: cannot borrow `self.voices` as mutable because it is also borrowed as immutable\n"
            "   --> plugin/src/lib.rs:88:13\n    |\n"
            "86  |         let held = self.voices.iter().filter(|voice| voice.held);\n"
            "    |                    ----------- immutable borrow occurs here\n"
            "88  |             self.voices.push(Voice::new(note));\n"
            "    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ mutable borrow occurs here\n\n"
            "error: could not compile `tremolant-plugin` (lib) due to 1 previous error",
            ["plugin/bundle"],
            "the code is wrong, not the command",
            101,
            size="large",
        ),
        nothing_fits(
            ASKDESK,
            "cd web && npm run build",
            "> askdesk-web@0.3.0 build\n> vite build\n\nvite v5.3.1 building for production...\n"
            "✓ 31 modules transformed.\nx Build failed in 412ms\n"
            'error during build:\nCould not resolve "./AnswerCrad" from "src/App.tsx"',
            [],
            "a typo in the code",
        ),
    ]


def accidents():
    return [
        accident(
            WRENBUS,
            prompt("put a table with the three boards that we sell into README.md, with weight and price"),
            [],
            "'board': nothing is to be flashed",
        ),
        accident(
            LICHEN,
            prompt("the focus of README.md is wrong: first whom it is for, and how to install it much later", "codex"),
            [],
            "'focus' is that of a text",
        ),
        accident(
            FENMAP,
            prompt("rename the variable edges in tests/test_tiles.py to rim and inline the helper squares"),
            ["fenmap/test", "tiles/*"],
            "no hillshade, and no seams",
        ),
        accident(
            FENMAP,
            prompt("a parcel with our stickers has not arrived; write the carrier two polite sentences", "gemini"),
            [],
            "'parcel' is one of the post",
            "large",
        ),
        accident(
            SNAILNET,
            prompt("give snailctl an option --trace that prints each ioctl before it sends it"),
            [],
            "'trace' is an option; nothing is to be recorded, no series sent",
        ),
        accident(
            SNAILNET,
            prompt("the table in Documentation/snail.rst has no key: say in one line each what the signs + and - mean"),
            [],
            "'key' and 'sign' are those of a table",
            "large",
        ),
        accident(
            REEDSEQ,
            prompt("shorten poster/abstract.md to 150 words; the report of the funder may be the model for the tone"),
            [],
            "'report' is a text to go by",
        ),
        accident(
            TREMOLANT,
            prompt("the wind was so loud that I missed half the call; what did Marta decide in docs/meeting.txt?"),
            [],
            "'wind' is the weather",
        ),
        accident(
            TREMOLANT,
            prompt("in the description of presets/flute8.toml a church pew is called a bench, correct that", "codex"),
            ["presets/*"],
            "'bench' is a pew; how presets are read would do no harm",
        ),
        accident(
            ASKDESK,
            prompt("the field model of the pydantic class Settings hides one of its base class; call it engine"),
            [],
            "'model' is a field; none is to be pulled",
        ),
    ]


def ordinary():
    talk = "plain talk: names nothing that anything is stored about"
    return [
        ordinary_work(
            WRENBUS,
            prompt("sw/probe.py mixes os.path and pathlib; make it pathlib everywhere"),
            [],
            size="small",
        ),
        ordinary_work(
            LICHEN,
            prompt("Avatar.tsx: if there is no picture, show the initials, two letters at most", "gemini"),
            ["lichen/test", "release/changeset", "tokens/names"],
        ),
        ordinary_work(
            FENMAP,
            prompt("write docstrings for the three public functions of pipeline/lidar.py"),
            ["lidar/*"],
            size="large",
        ),
        ordinary_work(
            SNAILNET,
            prompt("snail_parse_opts has three nested ifs, turn them into early returns", "codex"),
            ["snail/*", "checkpatch/run"],
        ),
        ordinary_work(
            TREMOLANT,
            prompt("plugin/src/editor.rs: the colours are spread over the whole file, make them constants at the top"),
            ["audio/realtime", "plugin/*"],
        ),
        ordinary_work(
            ASKDESK,
            prompt("translate the two German comments in askdesk/retrieve.py into English"),
            [],
            size="large",
        ),
        ordinary_work(REEDSEQ, prompt("gracias, sigue así"), [], talk),
        ordinary_work(WRENBUS, prompt("yes please", "gemini"), [], talk),
        ordinary_work(TREMOLANT, prompt("hm, not quite what I had in mind, but leave it for now", "codex"), [], talk),
        ordinary_work(ASKDESK, prompt("what have you changed so far? a short list, please"), [], talk, "large"),
    ]
