"""Lists the prompts of the last situations that need a hint."""

from last_rows import ASKDESK, FENMAP, LICHEN, REEDSEQ, SNAILNET, TREMOLANT, WRENBUS
from later_rows import prompt, situation, store_of


def prompts():
    return [*asked(), *misspelt(), *named(), *pasted()]


def asked():
    return [
        situation(
            "b1 direct",
            WRENBUS,
            prompt("build the bitstream for the ulx3s again, the constraints have changed"),
            ["synth/ulx3s"],
            ["synth/*", "board/flash", "yosys/sv"],
        ),
        situation(
            "b1 direct",
            FENMAP,
            prompt("serve the tiles so that I can look at the map in the browser", "codex"),
            ["map/preview"],
            ["map/*", "tiles/make"],
        ),
        situation(
            "b1 direct",
            TREMOLANT,
            prompt("validate the clap bundle and tell me what fails", "codex"),
            ["clap/validate"],
            ["clap/*", "plugin/bundle"],
            store=store_of(TREMOLANT, size="large"),
        ),
        situation(
            "b1 direct",
            ASKDESK,
            prompt("run the evaluation on the golden set, with the local judge please", "gemini"),
            ["evals/run"],
            ["evals/*", "ollama/model", "prompts/version", "tickets/scrub", "llm/rate"],
        ),
        situation(
            "b2 forms",
            LICHEN,
            prompt("Lena edited colour.json, so the token package wants rebuilding before anything else"),
            ["tokens/build"],
            ["tokens/*", "couleurs/contraste"],
        ),
        situation(
            "b2 forms",
            SNAILNET,
            prompt("does sparse still complain about the endianness of the descriptors?"),
            ["sparse/run"],
            ["sparse/*", "kbuild/*", "checkpatch/run"],
        ),
        situation(
            "b2 forms",
            REEDSEQ,
            prompt("once that is through: plotting the depths of this run as a pdf, same look as last time", "gemini"),
            ["depth/plot"],
            ["depth/*", "muestras/contaminadas", "report/html"],
            why="those that are contaminated would be worth a word",
        ),
        situation(
            "b2 forms",
            ASKDESK,
            prompt("I cut the documents into smaller chunks now, so everything has to be re-embedded and indexed anew"),
            ["index/rebuild"],
            ["index/*", "chunk/tables", "tickets/scrub", "evals/run"],
            store=store_of(ASKDESK, size="small"),
        ),
    ]


def misspelt():
    return [
        situation(
            "b4 typos",
            TREMOLANT,
            prompt("bundel the plguin as relase pls, i want to try it in the daw"),
            ["plugin/bundle"],
            ["plugin/*", "clap/validate", "reaper/cache"],
        ),
        situation(
            "b4 typos",
            WRENBUS,
            prompt("added a CSR for the timer, now regenrate the regsiter block", "codex"),
            ["registers/generate"],
            ["registers/*", "rtl/naming"],
            store=store_of(WRENBUS, size="large"),
        ),
    ]


def named():
    return [
        situation(
            "b7 paths",
            SNAILNET,
            prompt("there is a bug in snail_dma.c: on the arm board the first bytes of a frame are the last one's"),
            ["dma/sync"],
            ["dma/*", "snail/locks", "irq/coalesce"],
            why="the file is the component",
        ),
        situation(
            "b7 paths",
            LICHEN,
            prompt("in packages/react/src/Combobox.tsx, arrow down should move the focus to the next option", "gemini"),
            ["combobox/aria"],
            ["combobox/*", "dialog/focus", "lichen/test", "release/changeset", "a11y/check"],
            why="the file is the component, and what is asked is what must not be",
        ),
        situation(
            "b8 identifiers",
            FENMAP,
            prompt("why is drainage.width_dm drawn so fat? a ditch of two metres covers the whole field"),
            ["sloten/breedte"],
            ["sloten/*", "lagen/namen", "fenmap/crs"],
            why="the name of the table is the tag; the hint is in Dutch",
        ),
    ]


def pasted():
    return [
        situation(
            "b6 pasted",
            TREMOLANT,
            prompt(
                "fresh laptop, first build:\n\n"
                "   Compiling proc-macro2 v1.0.86\n"
                "   Compiling libc v0.2.155\n"
                "   Compiling serde v1.0.204\n"
                "error: linking with `clang` failed: exit status: 1\n"
                "  |\n"
                '  = note: LC_ALL="C" PATH="/usr/bin:/bin" VSLANG="1033" "clang" "-m64" "/tmp/rustcQ1x/symbols.o"\n'
                '          "-Wl,--as-needed" "-Wl,-Bstatic" "-fuse-ld=lld" "-Wl,--eh-frame-hdr" "-nodefaultlibs"\n'
                "  = note: clang: error: invalid linker name in argument '-fuse-ld=lld'\n\n"
                "error: could not compile `proc-macro2` (build script) due to 1 previous error\n"
                "warning: build failed, waiting for other jobs to finish...",
            ),
            ["rust/lld"],
            ["linux/libraries"],
            why="one of eleven lines says it",
        ),
        situation(
            "b6 pasted",
            REEDSEQ,
            prompt(
                "this is from the log of call_P03, what does it want from me?\n\n"
                "14:02:11.120 INFO  HaplotypeCaller - The Genome Analysis Toolkit (GATK) v4.5.0.0\n"
                "14:02:11.121 INFO  HaplotypeCaller - Executing as reed@node17 on Linux v5.14.0 amd64\n"
                "14:02:11.124 INFO  HaplotypeCaller - Java runtime: OpenJDK 64-Bit Server VM v17.0.11\n"
                "14:02:11.480 INFO  HaplotypeCaller - Initializing engine\n"
                "14:02:12.007 INFO  HaplotypeCaller - Done initializing engine\n"
                "14:02:12.131 INFO  HaplotypeCaller - Shutting down engine\n"
                "[June 3, 2024 at 2:02:12 PM CEST] HaplotypeCaller done. Elapsed time: 0.02 minutes.\n"
                "java.lang.IllegalArgumentException: samples cannot be empty\n"
                "\tat org.broadinstitute.hellbender.utils.Utils.validateArg(Utils.java:798)\n"
                "\tat org.broadinstitute.hellbender.engine.Walker.onStartup(AssemblyRegionWalker.java:79)",
                "codex",
            ),
            ["bam/readgroup"],
            ["bam/*", "samples/lanes", "muestras/contaminadas"],
            why="one of ten lines says it",
        ),
        situation(
            "b6 pasted",
            ASKDESK,
            prompt(
                "the api comes up but the first question kills it:\n\n"
                "INFO:     Uvicorn running on http://127.0.0.1:8310 (Press CTRL+C to quit)\n"
                "INFO:     Application startup complete.\n"
                'INFO:     127.0.0.1:51122 - "POST /ask HTTP/1.1" 500 Internal Server Error\n'
                "ERROR:    Exception in ASGI application\n"
                "Traceback (most recent call last):\n"
                '  File "/srv/askdesk/retrieve.py", line 41, in nearest\n'
                "    rows = session.execute(query).all()\n"
                'sqlalchemy.exc.ProgrammingError: (psycopg.errors.UndefinedTable) relation "chunks" does not exist\n'
                "LINE 2: FROM chunks ORDER BY chunks.embedding <=> $1 LIMIT $2",
            ),
            ["migrate/head"],
            ["migrate/*", "index/rebuild", "pgvector/extension"],
            why="one of nine lines says it",
        ),
    ]
