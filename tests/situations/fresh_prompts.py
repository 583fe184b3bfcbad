"""Lists the prompts of the fresh situations, and the hints that must not be told at each prompt."""

from worlds import (
    ANVIL,
    COPPERWORKS,
    FERNWEH,
    LINDEN,
    MILLRACE,
    MINNOW,
    MINUTIER,
    NIGHTJAR,
    NORDWIND,
    SNIPBAR,
    STEADING,
    SWITCHYARD,
    TAPIR,
    TIDYFLORA,
    WARDGATE,
)
from worlds.rows import early, prompt, situation, store_of


def prompts():
    return [
        situation(
            "b1 direct",
            NORDWIND,
            prompt("run the apex tests"),
            ["apex/tests"],
            ["apex/*", "scratch/*"],
            store=store_of(NORDWIND, size="large"),
        ),
        situation(
            "b1 direct",
            STEADING,
            prompt("show me the inventory as a graph", "codex"),
            ["inventory/graph"],
            ["inventory/*"],
        ),
        situation(
            "b1 direct",
            TAPIR,
            prompt("make a snapshot of the release, I want to try the binaries on another machine"),
            ["release/snapshot"],
            ["release/*"],
        ),
        situation(
            "b1 direct",
            NIGHTJAR,
            prompt("backfill the first three days of March in airflow", "gemini"),
            ["airflow/backfill"],
            ["airflow/*"],
        ),
        situation(
            "b2 forms",
            FERNWEH,
            prompt("both migrations are merged, apply them here"),
            ["schema/migrate"],
            ["schema/*"],
            store=store_of(FERNWEH, size="small"),
        ),
        situation(
            "b2 forms",
            SNIPBAR,
            prompt("are the strings of the popup translated by now? get what there is"),
            ["locales/sync"],
            ["locales/*"],
        ),
        situation(
            "b2 forms",
            MINNOW,
            prompt("that output is right now, so promoting it is fine"),
            ["dune/promote"],
            ["dune/*"],
            store=store_of(MINNOW, size="large"),
        ),
        situation(
            "b2 forms",
            ANVIL,
            prompt(
                "opening the gearbox takes twice as long since Friday: do some profiling before you change anything"
            ),
            ["profiler/tracy"],
            ["profiler/*"],
        ),
        situation(
            "b2 forms",
            MILLRACE,
            prompt("resetting the offset did not help last time, but let us try it once more", "codex"),
            ["offsets/reset"],
            ["offsets/*", "rocksdb/*"],
        ),
        situation(
            "b4 typos", LINDEN, prompt("bulid the bloks, then look at the team page"), ["blocks/build"], ["blocks/*"]
        ),
        situation(
            "b4 typos",
            WARDGATE,
            prompt("relaod the ruotes, LAB2 is in the yaml now", "codex"),
            ["routes/reload"],
            ["routes/*"],
        ),
        situation(
            "b4 typos",
            TIDYFLORA,
            prompt("the paramter is renamed; now the roxgyen docs"),
            ["tidyflora/document"],
            ["tidyflora/*"],
            store=store_of(TIDYFLORA, size="small"),
        ),
        situation(
            "b3 paraphrase",
            COPPERWORKS,
            prompt("I want to walk around in it and see what the pipes look like"),
            ["fabric/client"],
            ["fabric/*", "pipes/*"],
            store=early(store_of(COPPERWORKS)),
        ),
        situation(
            "b3 paraphrase",
            STEADING,
            prompt("a colleague deleted her thesis; can we get her the folder as it was last night?"),
            ["backup/restore"],
            ["backup/*"],
            store=early(store_of(STEADING, size="large")),
        ),
        situation(
            "b3 paraphrase",
            MILLRACE,
            prompt("where do orders end up that could not be parsed, and what is in them?", "codex"),
            ["deadletter/read"],
            ["deadletter/*", "avro/*"],
            store=early(store_of(MILLRACE)),
        ),
        situation(
            "b3 paraphrase",
            ANVIL,
            prompt("two corners that lie on each other are reported as distinct, mend the comparison"),
            ["kernel/tolerance"],
            ["kernel/*"],
            store=early(store_of(ANVIL)),
        ),
        situation(
            "b5 languages",
            MINUTIER,
            prompt("drop the mortgage clause nobody uses any more and renumber those after it", "codex"),
            ["clauses/numerotation"],
            ["clauses/*"],
            why="the hint is in French",
            store=early(store_of(MINUTIER, size="small")),
        ),
        situation(
            "b5 languages",
            NIGHTJAR,
            prompt("a junção de ontem ficou presa horas numa única tarefa; dá para distribuir melhor?"),
            ["cdr/skew"],
            ["cdr/*"],
            store=early(store_of(NIGHTJAR)),
        ),
        situation(
            "b5 languages",
            SWITCHYARD,
            prompt("нагрузи узел тысячей вызовов и посмотри, выдержит ли он"),
            ["sip_edge/load"],
            ["sip_edge/*"],
            store=early(store_of(SWITCHYARD)),
        ),
        situation(
            "b5 languages",
            SNIPBAR,
            prompt("단위 테스트만 돌려 줘", "gemini"),
            ["vitest/run"],
            ["vitest/*", "playwright/*"],
            store=early(store_of(SNIPBAR)),
        ),
        situation(
            "b6 pasted",
            NIGHTJAR,
            prompt("what does it want from me?\n\n" + spark_log()),
            ["kerberos/ticket"],
            ["kerberos/*", "submit/*", "cdr/*"],
            why="the last of 21 lines says it",
        ),
        situation(
            "b7 paths",
            NORDWIND,
            prompt("force-app/main/default/lwc/discountGrid/discountGrid.js shows -0 %; begin with a test that fails"),
            ["lwc/jest"],
            ["lwc/*", "quotes/discounts"],
            why="the folder is the component",
        ),
        situation(
            "b7 paths",
            SWITCHYARD,
            prompt("why does @apps/call_fsm/src/call_fsm.erl hang up after half a second?"),
            ["call_fsm/timers"],
            ["call_fsm/*"],
            store=store_of(SWITCHYARD, size="large"),
        ),
        situation(
            "b8 identifiers",
            FERNWEH,
            prompt("SyncFaresJob ran twice for Lufthansa this morning. How come?"),
            ["fares/sync"],
            ["fares/*"],
        ),
        situation(
            "b8 identifiers",
            WARDGATE,
            prompt("OruMapper rounds potassium to whole numbers", "codex"),
            ["oru/units"],
            ["oru/*"],
        ),
        situation(
            "b10 accident",
            TAPIR,
            prompt("rename the field Release of changelog.Entry to Tag and adapt its callers"),
            allowed=["tapir/commits"],
            why="'release' is a field; nothing is to be released",
            quiet=True,
            store=store_of(TAPIR, size="small"),
        ),
        situation(
            "b10 accident",
            TIDYFLORA,
            prompt("put a comment above the loop in distance.cpp that says why the check for NA comes first", "codex"),
            allowed=["rcpp/*"],
            why="'check' is an if; the package is not to be checked",
            quiet=True,
        ),
        situation(
            "b10 accident",
            SNIPBAR,
            prompt("the sign-in button has to be disabled while the request is running"),
            why="nothing is to be signed or run",
            quiet=True,
            store=store_of(SNIPBAR, size="small"),
        ),
        situation(
            "b10 accident",
            FERNWEH,
            prompt(
                "turn the nested if of BookingsController#update into guard clauses and restore the old flash message"
            ),
            allowed=["bookings/*"],
            why="'restore' is a word of the backup of another project",
            quiet=True,
            store=store_of(FERNWEH, size="large"),
        ),
        situation(
            "b9 nothing said",
            MINNOW,
            prompt("yes, do it like that", "codex"),
            why="names nothing: nothing is worth its bytes",
            quiet=True,
        ),
        situation(
            "b9 nothing said",
            LINDEN,
            prompt("hm, are you sure?"),
            why="names nothing: nothing is worth its bytes",
            quiet=True,
        ),
    ]


def spark_log():
    log = [
        f"24/06/03 02:1{n // 10}:{n % 10}3 INFO {what}"
        for n, what in enumerate(
            [
                "SparkContext: Running Spark version 3.5.1",
                "SparkContext: Submitted application: CdrLoad",
                "ResourceUtils: No custom resources configured for spark.driver.",
                "SecurityManager: Changing view acls to: nightjar",
                "Utils: Successfully started service 'sparkDriver' on port 40123.",
                "SparkEnv: Registering MapOutputTracker",
                "SparkEnv: Registering BlockManagerMaster",
                "DiskBlockManager: Created local directory at /scratch/blockmgr-9c31",
                "MemoryStore: MemoryStore started with capacity 3.4 GiB",
                "JettyUtils: Start Jetty 0.0.0.0:4040 for SparkUI",
                "Executor: Starting executor ID driver on host etl04",
                "BlockManager: Using RandomBlockReplicationPolicy for block replication policy",
                "BlockManagerMaster: Registering BlockManager BlockManagerId(driver, etl04, 38211, None)",
                "SharedState: Warehouse path is 'hdfs://telco/warehouse'.",
                "MetricsSystemImpl: s3a-file-system metrics system started",
                "CdrLoad: reading hdfs://telco/data/cdr/2024-06-02",
                "InMemoryFileIndex: It took 12 ms to list leaf files for 1 paths.",
                "ShutdownHookManager: Shutdown hook called",
                "ShutdownHookManager: Deleting directory /scratch/spark-0d77",
            ]
        )
    ]
    return "\n".join(
        [
            *log,
            'Exception in thread "main" java.io.IOException: DestHost:destPort nn1.telco.example:8020',
            "Caused by: org.ietf.jgss.GSSException: No valid credentials provided (Mechanism level: Failed to find any "
            "Kerberos tgt)",
        ]
    )
