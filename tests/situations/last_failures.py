"""Lists the failed commands of the last situations for which a stored hint helps."""

from last_rows import ASKDESK, FENMAP, LICHEN, REEDSEQ, SNAILNET, TREMOLANT, WRENBUS
from later_rows import failed, situation, store_of


def helped(world, command, error, needed, allowed, why, code=1, client="claude", size="middle"):
    event = failed(command, error, code, client)
    return situation("c failure", world, event, [needed], allowed, why=why, store=store_of(world, size=size))


def failures():
    return [*hardware(), *components(), *maps(), *driver(), *sequences(), *sound(), *answers()]


def hardware():
    return [
        helped(
            WRENBUS,
            'bash -lc "verilator --binary --timing -Irtl rtl/wren_pkg.sv tb/top.sv"',
            "%Error: Invalid Option: --binary\n%Error: Exiting due to 1 error(s)",
            "verilator/version",
            ["verilator/*", "sim/one"],
            "behind a shell; the program is too old, and its name alone says so",
        ),
        helped(
            WRENBUS,
            "sudo openFPGALoader -b ulx3s syn/build/wren.bit",
            "empty\nunable to open ftdi device: -4 (usb_open() failed)\n"
            "JTAG init failed with: unable to open ftdi device",
            "board/usb",
            ["board/*"],
            "behind sudo; the fix has the words of the error",
            client="gemini",
        ),
    ]


def components():
    return [
        helped(
            LICHEN,
            "cd packages/react && pnpm vitest run Dialog",
            "bash: line 1: pnpm: command not found",
            "node/corepack",
            ["node/*", "lichen/test"],
            "the program is not there; how it comes is stored",
            127,
        ),
        helped(
            LICHEN,
            "set -o pipefail && npx playwright test e2e/dialog.spec.ts --reporter=line 2>&1 | tail -20",
            "  1) [chromium] › e2e/dialog.spec.ts:8:5 › returns the focus ──────\n\n"
            "    Error: browserType.launch: Executable doesn't exist at "
            "/home/dev/.cache/ms-playwright/chromium_headless_shell-1148/chrome-linux/headless_shell\n"
            "    ╔═════════════════════════════════════════════════════════════════════════╗\n"
            "    ║ Looks like Playwright Test or Playwright was just installed or updated. ║\n"
            "    ║ Please run the following command to download new browsers:              ║\n"
            "    ╚═════════════════════════════════════════════════════════════════════════╝\n\n"
            "  1 failed",
            "playwright/browsers",
            ["playwright/*"],
            "by npx; the reason has the words of the error",
        ),
        helped(
            LICHEN,
            "timeout 600 pnpm --filter @lichen/docs build-storybook",
            "info => Building manager..\ninfo => Building preview..\n"
            "<--- Last few GCs --->\n"
            "[4121:0x6b3e0]    88214 ms: Mark-Compact 2041.3 (2083.9) -> 2040.8 (2084.4) MB, 1903.2 / 0.0 ms\n"
            "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n"
            "----- Native stack trace -----\nAborted (core dumped)\n ELIFECYCLE  Command failed with exit code 134.",
            "storybook/memoire",
            ["storybook/memoire"],
            "behind a timeout; the fix has the words of the error, the rest of it is French",
            134,
            size="large",
        ),
        helped(
            LICHEN,
            "cd packages/react && npx tsc --noEmit",
            "src/Dialog.tsx(4,24): error TS2307: Cannot find module '@lichen/tokens' or its corresponding type "
            "declarations.\n"
            "src/Combobox.tsx(3,28): error TS2307: Cannot find module '@lichen/tokens' or its corresponding type "
            "declarations.",
            "tokens/build",
            ["tokens/build"],
            "what is missing must be built; the reason names it in words of its own",
            2,
        ),
    ]


def maps():
    return [
        helped(
            FENMAP,
            'ogr2ogr -f GeoJSONSeq build/parcels.geojsonl PG:"port=5439 dbname=fen" parcels',
            "/bin/bash: line 1: ogr2ogr: command not found",
            "gdal/container",
            ["gdal/*"],
            "the program is behind another",
            127,
        ),
        helped(
            FENMAP,
            "PGPORT=5439 PGUSER=fen psql -h localhost fen -v ON_ERROR_STOP=1 -f sql/parcels.sql 2>&1",
            "BEGIN\nDROP TABLE\n"
            "psql:sql/parcels.sql:31: ERROR:  lwgeom_unaryunion_prec: GEOS Error: TopologyException: side location "
            "conflict at 548211.5 262004.25. This can occur if the input geometry is invalid.",
            "geometry/valid",
            ["geometry/*"],
            "variables before it; the fix has one word of the error",
            3,
        ),
        helped(
            FENMAP,
            "uv run python -m pipeline.import --layer drainage",
            "Traceback (most recent call last):\n"
            '  File "/home/dev/fenmap/pipeline/import.py", line 88, in <module>\n    main()\n'
            '  File "/home/dev/fenmap/pipeline/import.py", line 61, in main\n'
            "    with psycopg.connect(DSN) as connection:\n"
            'psycopg.OperationalError: connection failed: connection to server at "127.0.0.1", port 5439 failed: '
            "Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?",
            "postgis/start",
            ["postgis/*", "parcels/import"],
            "the database does not run; the port is its tag",
            client="gemini",
        ),
        helped(
            FENMAP,
            "uv run python -m pytest tests/test_tiles.py -q",
            "/home/dev/fenmap/.venv/bin/python: No module named pytest",
            "fenmap/test",
            ["fenmap/test"],
            "a missing module; the right command brings it along",
            size="small",
        ),
    ]


def driver():
    return [
        helped(
            SNAILNET,
            'bash -lc "set -o pipefail; make 2>&1 | tail -8"',
            "make -C /lib/modules/6.5.0-44-generic/build M=/home/dev/snailnet modules\n"
            "make[1]: *** /lib/modules/6.5.0-44-generic/build: No such file or directory.  Stop.\n"
            "make: *** [Makefile:9: all] Error 2",
            "kbuild/headers",
            ["kbuild/*"],
            "behind a shell and a pipe; the reason has the error, but for the number of the kernel",
            2,
        ),
        helped(
            SNAILNET,
            "sudo insmod ./snail.ko debug=1",
            "insmod: ERROR: could not insert module ./snail.ko: Unknown symbol in module",
            "module/symbols",
            ["module/symbols", "vm/run"],
            "behind sudo; that it is not to be loaded here at all is worth a word",
        ),
        helped(
            SNAILNET,
            "set -o pipefail; cd ~/src/linux-6.6 && make M=$OLDPWD modules -j4 2>&1 | tail -15",
            "  CC [M]  /home/dev/snailnet/snail_main.o\n"
            "gcc: error: unrecognized command-line option '-fmin-function-alignment=16'; did you mean "
            "'-falign-functions='?\n"
            "make[3]: *** [scripts/Makefile.build:243: /home/dev/snailnet/snail_main.o] Error 1\n"
            "make[2]: *** [Makefile:1921: /home/dev/snailnet] Error 2",
            "gcc/version",
            ["gcc/*", "kbuild/*"],
            "behind a cd; the fix has the words of the error",
            2,
            size="large",
        ),
    ]


def sequences():
    return [
        helped(
            REEDSEQ,
            "snakemake -n --quiet --configfile .test/config.yaml",
            "/bin/bash: line 1: snakemake: command not found",
            "snakemake/env",
            ["snakemake/env", "snakemake/dry"],
            "the program is behind another",
            127,
        ),
        helped(
            REEDSEQ,
            "timeout 60 micromamba run -n reedseq snakemake --profile profiles/slurm --configfile config/config.yaml",
            "Using profile profiles/slurm for setting default command line arguments.\n"
            "Assuming unrestricted shared filesystem usage.\n"
            "LockException:\nError: Directory cannot be locked. Please make sure that no other Snakemake process is "
            "trying to create the same files in the following directory:\n/home/dev/reedseq",
            "snakemake/lock",
            ["snakemake/lock", "snakemake/slurm"],
            "a lock left behind; 'lock' is all that the two share",
            client="gemini",
        ),
        helped(
            REEDSEQ,
            "set -o pipefail; cd tests && python -m pytest test_merge.py -q --tb=short 2>&1 | tail -15",
            "==================================== ERRORS ====================================\n"
            "________________________ ERROR collecting test_merge.py ________________________\n"
            "test_merge.py:3: in <module>\n    from merge_vcf import merge, Header\n"
            "E   ModuleNotFoundError: No module named 'merge_vcf'\n"
            "=========================== short test summary info ============================\n"
            "ERROR test_merge.py\n1 error in 0.21s",
            "merge/test",
            ["merge/*"],
            "a missing module; the right form of the command has the path in front",
            2,
        ),
        helped(
            REEDSEQ,
            "micromamba run -n reedseq samtools sort -@ 4 -o results/P03.sorted.bam results/P03.bam",
            "[bam_sort_core] merging from 12 files and 4 in-memory blocks...\n"
            "[E::bgzf_flush] File write failed (wrong size)\n"
            'samtools sort: failed to create temporary file "/tmp/samtools.2211.4410.tmp.0012.bam": '
            "No space left on device",
            "scratch/temporales",
            ["scratch/*"],
            "the hint is Spanish and quotes no error; /tmp and samtools sort are in both",
        ),
    ]


def sound():
    return [
        helped(
            TREMOLANT,
            "set -o pipefail; cargo build --release 2>&1 | tail -8",
            "          /usr/bin/ld: cannot find -lX11-xcb: No such file or directory\n"
            "          /usr/bin/ld: cannot find -lasound: No such file or directory\n"
            "          collect2: error: ld returned 1 exit status\n\n"
            "error: could not compile `tremolant-plugin` (lib) due to 1 previous error",
            "linux/libraries",
            ["linux/*"],
            "libraries are missing, and the hint has the packages, not the error",
            101,
        ),
    ]


def answers():
    return [
        helped(
            ASKDESK,
            'ASKDESK_ENV=dev uv run python -m askdesk.rerank "how do I cancel"',
            "Traceback (most recent call last):\n"
            '  File "<frozen runpy>", line 198, in _run_module_as_main\n'
            '  File "/home/dev/askdesk/askdesk/rerank.py", line 5, in <module>\n'
            "    from sentence_transformers import CrossEncoder\n"
            "ModuleNotFoundError: No module named 'sentence_transformers'",
            "uv/extras",
            ["uv/*"],
            "a variable before it; a missing module, which the reason names",
        ),
        helped(
            ASKDESK,
            "bash -o pipefail -c 'timeout 120 uv run python evals/run.py --set golden --judge local 2>&1 | tail -12'",
            '  File "/home/dev/askdesk/evals/run.py", line 52, in judge\n'
            "    verdict = ollama.chat(model=MODEL, messages=messages)\n"
            '  File "/home/dev/askdesk/.venv/lib/python3.12/site-packages/ollama/_client.py", line 118, in _request\n'
            "    raise ResponseError(e.response.text, e.response.status_code) from None\n"
            "ollama._types.ResponseError: model 'qwen2.5:14b-instruct' not found (status code: 404)",
            "ollama/model",
            ["ollama/*", "evals/run"],
            "a model is missing; the command that brings it has its name",
            client="gemini",
        ),
    ]
