"""Lists the later situations in which no hint should be told."""

from later_rows import (
    BEVELKIT,
    GRISTMILL,
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
    as_a_rule,
    failed,
    prompt,
    situation,
    store_of,
)


def quiet(category, world, event, allowed, why, **more):
    return situation(category, world, event, allowed=allowed, why=why, quiet=True, **more)


def accidents():
    return [
        quiet(
            "b10 accident",
            HERON,
            prompt("rename the helper expectHeader at the end of root.zig to expectMagic and adapt its callers"),
            ["heron/*"],
            "'header' is that of an image; the one for C is not meant",
        ),
        quiet(
            "b10 accident",
            SLOTWISE,
            prompt("the comment above the flag demo in templates/booking/week.html is wrong, put it in one sentence"),
            ["booking/*"],
            "no demo data are wanted",
            store=store_of(SLOTWISE, size="large"),
        ),
        quiet(
            "b10 accident",
            TOLLGATE,
            prompt("turn the switch in lib/kv.ts into a lookup table that is filled at load time", "codex"),
            ["kv/*", "quota/atomic", "edge/regions"],
            "'load' is that of a module, not a measurement",
        ),
        quiet(
            "b10 accident",
            GRISTMILL,
            prompt("explain in two sentences what the macro cents does with a null in the source column"),
            ["margin/currency", "staging/naming"],
            "'source' is a column; its age is of no interest",
        ),
        quiet(
            "b10 accident",
            TESSERA,
            prompt("in hilbert.c a group of points is called cluster; call it bucket, everywhere"),
            ["indent/run", "regress/*", "tessera/*"],
            "no server is to be started",
            store=store_of(TESSERA, size="small"),
        ),
        quiet(
            "b10 accident",
            POSTERN,
            prompt('flush_line in Filter.pm gets a second parameter: the separator, "\\n" if there is none', "codex"),
            ["filter/*", "perl/tidy", "postern/*"],
            "no queue is to be flushed",
        ),
        quiet(
            "b10 accident",
            VAULTLINE,
            prompt("let the error of Escrow.release say who called it"),
            ["escrow/*", "forge/test", "bindings/abi"],
            "'release' is a function; nothing is to be deployed",
        ),
        quiet(
            "b10 accident",
            LARDER,
            prompt("extract what builds the tile in scanner_page.dart into a widget of its own", cwd="apps/mobile"),
            ["scan/*", "mobile/test", "goldens/update"],
            "nothing is to be built or scanned",
            store=store_of(LARDER, size="large"),
        ),
    ]


def ordinary():
    return [
        quiet(
            "b9 nothing said",
            ICEFLOE,
            prompt("write a function that gives the area of a polygon from its vertices, with a docstring"),
            ["icefloe/test", "format/juliaformatter"],
            "ordinary work that no hint concerns",
        ),
        quiet(
            "b9 nothing said",
            BEVELKIT,
            prompt("operators/inset.py has 600 lines: move the pure geometry into a file of its own"),
            ["operators/*", "bmesh/free", "blender/tests"],
            "ordinary work; what is about operators would do no harm",
            store=store_of(BEVELKIT, size="large"),
        ),
        quiet(
            "b9 nothing said",
            ZINSLAUF,
            prompt("benenne den Paragraphen DRUCK-ENDE in ZINS020 in DRUCK-FUSS um", "codex"),
            ["columns/margin", "zinslauf/*"],
            "ordinary work that no hint concerns",
        ),
        quiet(
            "b9 nothing said",
            MOORBRAND,
            prompt("the second paragraph of kapitel/einleitung.tex says everything twice, shorten it to half"),
            ["kapitel/*", "rechtschreibung/*", "wortzahl/zaehlen"],
            "ordinary work that no hint concerns",
            store=store_of(MOORBRAND, size="small"),
        ),
        quiet(
            "b9 nothing said",
            TOLLGATE,
            prompt("add a paragraph to the README about the licence: MIT, but the logo is not free"),
            [],
            "ordinary work that no hint concerns",
        ),
        quiet(
            "b9 nothing said",
            SLOTWISE,
            prompt("give Doctor a property full_name that leaves an empty title out", "gemini"),
            ["slotwise/tests"],
            "ordinary work that no hint concerns; no column comes of it",
        ),
        quiet(
            "b9 nothing said",
            POSTERN,
            prompt("replace the nested ?: in the sub verdict by an if chain, nobody can read that"),
            ["perl/tidy", "filter/*", "postern/prove"],
            "ordinary work that no hint concerns",
            store=store_of(POSTERN, size="small"),
        ),
    ]


def talk():
    why = "plain talk: names nothing that anything is stored about"
    return [
        quiet("b9 nothing said", TESSERA, prompt("thanks, go on"), [], why),
        quiet("b9 nothing said", VAULTLINE, prompt("yes, do that", "codex"), [], why),
        quiet("b9 nothing said", ZINSLAUF, prompt("nein, so war das nicht gemeint"), [], why),
        quiet("b9 nothing said", LARDER, prompt("good. the other one as well, please", "claude"), [], why),
        quiet(
            "b9 nothing said",
            GRISTMILL,
            prompt("ok, that makes sense. anything else you noticed?"),
            [],
            why,
            store=store_of(GRISTMILL, size="large"),
        ),
    ]


def broken_code():
    return [
        quiet(
            "c failure, nothing fits",
            HERON,
            failed(
                "zig build test --summary all",
                "src/png/filter.zig:61:17: error: use of undeclared identifier 'strde'\n"
                "        row[i] +%= strde;\n                   ^~~~~\nBuild Summary: 3/5 steps succeeded; 1 failed",
            ),
            ["heron/*"],
            "the code is wrong, not the command",
        ),
        quiet(
            "c failure, nothing fits",
            SLOTWISE,
            failed(
                "uv run pytest -n 4 --reuse-db booking/tests/test_slots.py",
                "    def test_lunch_is_free():\n>       assert len(free_slots(week)) == 38\n"
                "E       AssertionError: assert 40 == 38\n\n1 failed, 26 passed in 4.10s",
            ),
            ["slotwise/tests", "booking/*"],
            "an assertion, and the command is the right one",
            store=store_of(SLOTWISE, size="large"),
        ),
        quiet(
            "c failure, nothing fits",
            MOORBRAND,
            failed("wc -l kapitel/mesungen.tex", "wc: kapitel/mesungen.tex: No such file or directory"),
            ["kapitel/*", "wortzahl/zaehlen"],
            "a typo in a path",
        ),
        quiet(
            "c failure, nothing fits",
            VAULTLINE,
            failed(
                "forge test -vvv --no-match-path 'test/fork/*'",
                "[FAIL: assertion failed: 99 != 100] test_FeeIsRoundedUp() (gas: 41822)\n"
                "Suite result: FAILED. 17 passed; 1 failed; 0 skipped",
                client="gemini",
            ),
            ["forge/test"],
            "an assertion, and the command is the right one",
        ),
        quiet(
            "c failure, nothing fits",
            LARDER,
            failed(
                "fvm dart test --concurrency=1 test/merge_test.dart",
                "00:01 +4 -1: keeps the note of both [E]\n  Expected: an object with length of <2>\n"
                "    Actual: ['milk']\n  test/merge_test.dart 48:5  main.<fn>",
                cwd="packages/pantry_sync",
            ),
            ["pantry_sync/*"],
            "an assertion; how merges go would do no harm",
            history=as_a_rule("claude", "packages/pantry_sync"),
        ),
        quiet(
            "c failure, nothing fits",
            ICEFLOE,
            failed(
                "julia --project -e 'using Pkg; Pkg.test(test_args=[\"contact\"])'",
                "contact: Error During Test at test/contact.jl:22\n  Got exception outside of a @test\n"
                "  UndefVarError: `overlp` not defined in `IceFloe`",
            ),
            ["icefloe/test", "contact/*"],
            "a typo in the code",
        ),
        quiet(
            "c failure, nothing fits",
            TESSERA,
            failed(
                "make PG_CONFIG=/usr/lib/postgresql/16/bin/pg_config install",
                "src/hilbert.c:88:19: error: expected ';' before 'return'\n"
                "make: *** [<builtin>: src/hilbert.o] Error 1",
                2,
                "claude",
            ),
            ["tessera/*"],
            "the code is wrong, not the command",
            store=store_of(TESSERA, size="small"),
        ),
    ]
