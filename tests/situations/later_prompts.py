"""Lists the prompts of the later situations that need a hint."""

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
    early,
    hint,
    prompt,
    repository,
    situation,
    start,
    store_of,
    stored,
)


def prompts():
    return [
        situation(
            "b1 direct",
            TESSERA,
            prompt("run the regression test cover alone"),
            ["regress/single"],
            ["regress/*", "tessera/*", "cluster/start"],
        ),
        situation(
            "b1 direct",
            GRISTMILL,
            prompt("load the seed with the vat rates again, Finland has changed", "codex"),
            ["seeds/load"],
            ["seeds/*", "dbt/*"],
        ),
        situation(
            "b1 direct",
            BEVELKIT,
            prompt("pack the addon as a zip so that I can give it to the testers"),
            ["addon/pack"],
            ["addon/*", "versions/api"],
            store=store_of(BEVELKIT, size="large"),
        ),
        situation(
            "b1 direct",
            POSTERN,
            prompt("what is in the mail queue of the lab?"),
            ["queue/list"],
            ["queue/*", "relay/limity", "logs/where"],
        ),
        situation(
            "b1 direct",
            ICEFLOE,
            prompt("download the forcing of 2021 for the Fram Strait", "gemini"),
            ["forcing/download"],
            ["forcing/*"],
        ),
        situation(
            "b2 forms",
            VAULTLINE,
            prompt("before I merge: has any function grown in gas compared with what was snapshotted?"),
            ["forge/snapshot"],
            ["forge/*"],
        ),
        situation(
            "b2 forms",
            LARDER,
            prompt("the padding is meant to be 12 now, so updating the golden images is fine", cwd="apps/mobile"),
            ["goldens/update"],
            ["goldens/*", "mobile/test"],
        ),
        situation(
            "b2 forms",
            SLOTWISE,
            prompt("two colleagues pushed migrations over the weekend, can you get my database migrated?"),
            ["booking/migrations"],
            ["booking/*", "slotwise/settings", "calendar/overlap", "patients/seed"],
            store=store_of(SLOTWISE, size="small"),
        ),
        situation(
            "b2 forms",
            TOLLGATE,
            prompt(
                "marketing sent links as a spreadsheet, I saved it as links.csv; importing them is all that is left"
            ),
            ["links/import"],
            ["links/*"],
            store=store_of(TOLLGATE, size="large"),
        ),
        situation(
            "b4 typos",
            HERON,
            prompt("becnhmark the decdoer once more, i want a number for before and one for after"),
            ["bench/decode"],
            ["bench/*"],
        ),
        situation(
            "b4 typos",
            MOORBRAND,
            prompt("prüf noch die Rechtschreibnug der Kaptiel, bevor ich das verschicke"),
            ["rechtschreibung/pruefen"],
            ["rechtschreibung/*", "kapitel/*", "dissertation/*"],
        ),
        situation(
            "b4 typos",
            ZINSLAUF,
            prompt("submti the jlc and show me what comes back", "codex"),
            ["jcl/submit"],
            ["jcl/*", "sperre/ultimo", "zowe/profile"],
        ),
        situation(
            "b7 paths",
            ICEFLOE,
            prompt("look at src/contact.jl: floes of 20 cm go straight through each other. Why?"),
            ["contact/stiffness"],
            ["contact/*", "integrators/timestep", "icefloe/test"],
            why="the file is the component",
        ),
        situation(
            "b7 paths",
            TESSERA,
            prompt("could @src/gist.c return false a bit more often in line 140? it would save the second look"),
            ["gist/consistent"],
            ["gist/*", "regress/*", "tessera/*"],
            why="the file is the component",
        ),
        situation(
            "b8 identifiers",
            VAULTLINE,
            prompt("PriceFeed says that a USDC is worth 100000000 dollars", "codex"),
            ["oracle/decimals"],
            ["oracle/*", "forge/test"],
        ),
        situation(
            "b8 identifiers",
            GRISTMILL,
            prompt("the dashboard on fct_margin is a hundred times too high since May, what is going on?"),
            ["margin/currency"],
            ["margin/*", "backfill/margin", "dbt/build"],
        ),
        situation(
            "b6 pasted",
            GRISTMILL,
            prompt("worked all morning, and now this:\n\n" + dbt_log()),
            ["warehouse/login"],
            ["warehouse/*", "dbt/*"],
            why="one of 19 lines says it",
        ),
        situation(
            "b6 pasted",
            TESSERA,
            prompt("any idea?\n\n" + server_log()),
            ["worker/preload"],
            ["worker/*", "cluster/start", "tessera/installcheck"],
            why="one of 13 lines says it",
        ),
        switched(),
        corrected(),
    ]


def switched():
    pack = hint("addon/pack", {"type": "command", "cmd": "blender --command extension build"}, "zip release")
    pack_old = hint(
        "addon/pack",
        {"type": "command", "cmd": "git archive --prefix=bevelkit/ -o bevelkit.zip HEAD"},
        "zip release",
        "3.6 knows no extensions",
    )
    own = [one for one in store_of(BEVELKIT) if one["id"] != "addon/pack"]
    return situation(
        "f switch",
        BEVELKIT,
        prompt("now the zip of the addon for the old ones"),
        ["pack-legacy"],
        ["addon/validate", "addon/reload", "versions/api"],
        ["pack-main"],
        "another branch since the start",
        history=[{"event": start()}, {"git": ["checkout", "-q", "legacy-3.6"]}],
        store=[
            *own,
            stored(pack, repository(BEVELKIT) | {"branch": ["main"]}, "pack-main"),
            stored(pack_old, repository(BEVELKIT) | {"branch": ["legacy-*"]}, "pack-legacy"),
        ],
        event_only=True,
    )


def corrected():
    store = store_of(POSTERN)
    before = next(one for one in store if one["id"] == "swaks/send")
    now = "swaks --server localhost:2626 --tls --to probe@lab.example --attach @t/data/invoice.pdf"
    return situation(
        "e staleness",
        POSTERN,
        prompt("the milter is up again, send it the test mail with the attachment", "codex"),
        ["swaks/send"],
        ["swaks/*", "milter/*", "queue/*", "logs/where"],
        why="corrected since the start told it: another port",
        history=[{"event": start("codex")}, {"set": before | {"value": {"type": "command", "cmd": now}}}],
        store=store,
        event_only=True,
        text_needed_event=[now],
    )


def other_words():
    return [
        situation(
            "b3 paraphrase",
            LARDER,
            prompt("my wife and I both edit the same jar offline. whose amount is kept?"),
            ["pantry_sync/merge"],
            ["pantry_sync/*"],
            store=early(store_of(LARDER)),
        ),
        situation(
            "b3 paraphrase",
            POSTERN,
            prompt("a customer's letter was turned away an hour ago, find out what we told the sender"),
            ["logs/where"],
            ["logs/*", "queue/*", "greylist/*", "relay/*", "filter/*"],
            store=early(store_of(POSTERN, size="large")),
        ),
        situation(
            "b3 paraphrase",
            ZINSLAUF,
            prompt("konten.dat is garbage on my screen, every umlaut is wrong; give me something I can read", "codex"),
            ["ebcdic/convert"],
            ["ebcdic/*", "copy/comp3"],
            why="a word of the path, and else no word of the hint",
            store=early(store_of(ZINSLAUF)),
        ),
        situation(
            "b3 paraphrase",
            HERON,
            prompt("does it still compile for those who are not on Linux?"),
            ["cross/windows"],
            ["cross/*", "zig/version"],
            store=early(store_of(HERON)),
        ),
        situation(
            "b5 languages",
            SLOTWISE,
            prompt("hatırlatma mesajlarını deneyelim ama gerçek hastalara hiçbir şey gitmesin"),
            ["reminders/sandbox"],
            ["reminders/*", "slotwise/settings", "patients/*"],
            why="Turkish, the hint is in English",
            store=early(store_of(SLOTWISE)),
        ),
        situation(
            "b5 languages",
            GRISTMILL,
            prompt("money we gave back on Monday is not in Tuesday's table, is that a bug?"),
            ["refunds/atraso"],
            ["refunds/*", "source/freshness"],
            why="the hint is in Portuguese",
            store=early(store_of(GRISTMILL)),
        ),
        situation(
            "b5 languages",
            ICEFLOE,
            prompt("Wie groß darf ein Zeitschritt sein, ohne dass die Energie davonläuft?", "codex"),
            ["integrators/timestep"],
            ["integrators/*", "contact/*", "gpu/precision"],
            why="German, the hint is in English",
            store=early(store_of(ICEFLOE)),
        ),
        situation(
            "b5 languages",
            MOORBRAND,
            prompt("how do we write 300 degrees and 5 kilowatts per square metre in this document?", "gemini"),
            ["makros/einheiten"],
            ["makros/*"],
            why="the hint is in German",
            store=early(store_of(MOORBRAND, size="small")),
        ),
    ]


def dbt_log():
    steps = [
        "Running with dbt=1.8.3",
        "Registered adapter: bigquery=1.8.2",
        "Found 64 models, 3 seeds, 1 snapshot, 211 data tests, 18 sources, 812 macros",
        "Concurrency: 8 threads (target='dev')",
        *(
            f"{number} of 7 START sql view model dev_anna.{model} ................ [RUN]"
            for number, model in enumerate(
                [
                    "stg_shopware__orders",
                    "stg_shopware__refunds",
                    "stg_shopware__customers",
                    "stg_pos__receipts",
                    "stg_pos__shifts",
                    "int_orders",
                    "int_costs",
                ],
                1,
            )
        ),
        "Unhandled error while executing target/run/gristmill/models/staging/stg_shopware__orders.sql",
        "Reauthentication is needed. Please run `gcloud auth application-default login` to reauthenticate.",
        "1 of 7 ERROR creating sql view model dev_anna.stg_shopware__orders ... [ERROR in 1.02s]",
        "Finished running 7 view models in 0 hours 0 minutes and 9.13 seconds (9.13s).",
        "Completed with 7 errors and 0 warnings:",
        "  Runtime Error in model stg_shopware__orders (models/staging/stg_shopware__orders.sql)",
        "",
        "Done. PASS=0 WARN=0 ERROR=7 SKIP=0 TOTAL=7",
    ]
    return "\n".join(f"09:41:{20 + number}  {step}" for number, step in enumerate(steps))


def server_log():
    steps = [
        "LOG:  starting PostgreSQL 16.3 on x86_64-pc-linux-gnu, compiled by gcc 13.2.0, 64-bit",
        'LOG:  listening on IPv4 address "127.0.0.1", port 5433',
        'LOG:  listening on Unix socket "/var/run/postgresql/.s.PGSQL.5433"',
        "LOG:  database system was shut down at 2024-06-03 08:58:11 UTC",
        "LOG:  database system is ready to accept connections",
        "LOG:  checkpoint starting: time",
        "LOG:  checkpoint complete: wrote 44 buffers (0.3%)",
        "LOG:  connection received: host=[local]",
        "LOG:  connection authorized: user=anna database=contrib_regression application_name=pg_regress",
        "STATEMENT:  SELECT tessera_worker_launch(4);",
        "FATAL:  tessera must be loaded via shared_preload_libraries",
        "LOG:  disconnection: session time: 0:00:00.021 user=anna database=contrib_regression host=[local]",
        "LOG:  checkpoint starting: time",
    ]
    return "\n".join(
        f"2024-06-03 09:0{number // 3}:1{number % 10}.311 UTC [{4100 + number}] {step}"
        for number, step in enumerate(steps)
    )
