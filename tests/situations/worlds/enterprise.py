"""Defines projects of companies, hospitals and data centres. Many of their systems are not in the repository."""

from .hints import World, command, note

NORDWIND = World(
    {
        "dir": "nordwind-crm",
        "remote": "ssh://git@bitbucket.nordwind.example/crm/nordwind-crm.git",
        "branch": "develop",
        "files": [
            "sfdx-project.json",
            "package.json",
            "config/project-scratch-def.json",
            "data/sample-plan.json",
            "force-app/main/default/classes/QuoteService.cls",
            "force-app/main/default/classes/QuoteServiceTest.cls",
            "force-app/main/default/flows/Renewal.flow-meta.xml",
            "force-app/main/default/lwc/discountGrid/discountGrid.js",
            "manifest/package.xml",
        ],
    },
    [
        note("nordwind-crm/commits", "`NWCRM-123: what`; Copado reads the number", "git commit"),
        command("scratch/create", "sf org create scratch -f config/project-scratch-def.json -a nw-dev -d -y 14"),
        command(
            "scratch/push",
            "sf project deploy start -o nw-dev",
            "upload source",
            priority=7,
            reason="asks nothing and overwrites",
        ),
        command(
            "apex/tests",
            "sf apex run test -o nw-dev -l RunLocalTests -w 30 -r human -c",
            reason="without -w it returns at once and says nothing",
            priority=8,
        ),
        command("apex/log", "sf apex tail log -o nw-dev --color", "debug"),
        command(
            "uat/validate",
            "sf project deploy validate -x manifest/package.xml -o nw-uat -l RunLocalTests",
            reason="Copado alone deploys to it",
        ),
        command(
            "sfdx/login",
            "sf org login web -r https://nordwind--uat.sandbox.my.salesforce.com -a nw-uat",
            "fix sf session",
            "it lasts two hours",
        ),
        note("quotes/discounts", "above 20 % Quote_Discount has to approve; QuoteService must not set Status itself"),
        command("lwc/jest", "npm run test:unit -- --findRelatedTests", "javascript component"),
        note("profiles/none", "no profiles in the repository: rights come from PS_Sales and PS_Backoffice"),
        note("flows/activate", "a flow is inactive after it was deployed; Setup > Flows switches it on", age_h=2300),
        command(
            "sampledata/import",
            "sf data import tree -p data/sample-plan.json -o nw-dev",
            "accounts quotes",
            reason="quotes come after their accounts",
        ),
    ],
)

WARDGATE = World(
    {
        "dir": "wardgate",
        "remote": "https://git.klinikum.example/integration/wardgate.git",
        "branch": "main",
        "files": [
            "Wardgate.sln",
            "nuget.klinikum.config",
            "config/routes.yaml",
            "samples/adt_a01.hl7",
            "src/Wardgate.Adt/AdtRouter.cs",
            "src/Wardgate.Mllp/MllpListener.cs",
            "src/Wardgate.Oru/OruMapper.cs",
            "tests/Wardgate.Adt.Tests/AdtRouterTests.cs",
            "tools/MllpSend/Program.cs",
            "tools/Replay/Program.cs",
        ],
    },
    [
        note("wardgate/commits", "no names of patients or wards in a message, not even invented ones"),
        command("dotnet/build", "dotnet build Wardgate.sln -c Release -warnaserror", priority=8),
        command("dotnet/tests", "dotnet test --nologo --filter Category!=Integration", "unit xunit", priority=8),
        command(
            "mllp/send",
            "dotnet run --project tools/MllpSend -- --host localhost --port 6661 samples/adt_a01.hl7",
            "hl7 message",
            uses=6,
            reason="prints the ACK",
        ),
        note("mllp/ack", "an ACK is sent when the message is on disk, not before; AE: try again, AR: never again"),
        command(
            "routes/reload",
            "curl -X POST http://localhost:9100/admin/routes/reload",
            reason="no restart: the wards are connected",
        ),
        note(
            "adt/merge",
            "A40: who stays is in PID-3, who goes in MRG-1; the laboratory sends them the other way round",
            "patient",
        ),
        note("oru/units", "the laboratory says mg/dl in OBX-6 and means mmol/l; OruMapper converts, once, at the end"),
        command(
            "nuget/restore",
            "dotnet restore --configfile nuget.klinikum.config",
            "fix nuget",
            "NU1301: the public feed is blocked",
        ),
        note(
            "patients/invented", "ids from 9900000 are invented patients; send no others from a workstation", priority=7
        ),
        command(
            "journal/replay",
            "dotnet run --project tools/Replay -- --since 2h --route LAB",
            "resend",
            reason="asks before it sends",
        ),
    ],
)

MILLRACE = World(
    {
        "dir": "millrace",
        "remote": "git@github.com:riverbank/millrace.git",
        "branch": "main",
        "files": [
            "pom.xml",
            "mvnw",
            "compose.yaml",
            "scripts/deploy",
            "scripts/topics",
            "src/main/avro/order.avsc",
            "src/main/java/io/riverbank/OrderTotalsTopology.java",
            "src/test/java/io/riverbank/OrderTotalsTopologyTest.java",
        ],
    },
    [
        note("millrace/commits", "a change of a topology says whether the state has to be thrown away", "git commit"),
        command(
            "topology/test",
            "./mvnw -q test -Dtest='*TopologyTest'",
            reason="the whole suite starts three brokers",
            priority=8,
        ),
        command("topology/describe", "./mvnw -q exec:java -Dexec.args=--describe | dot -Tsvg > /tmp/t.svg", "graph"),
        command(
            "broker/up",
            "docker compose up -d --wait redpanda",
            "kafka start",
            priority=7,
            reason="up in two seconds, Kafka in forty",
        ),
        command("topics/create", "scripts/topics apply --env local"),
        command(
            "topics/rpk",
            "docker compose exec redpanda rpk topic create -p 6 orders order-totals orders.dlq",
            reason="does by hand what scripts/topics does",
        ),
        command(
            "offsets/reset",
            "kafka-streams-application-reset --application-id millrace-local --input-topics orders",
            reason="stop the job first",
        ),
        note("avro/compatible", "BACKWARD_TRANSITIVE: what is added needs a default", "schema registry"),
        note("rocksdb/folder", "delete /tmp/kafka-streams after a change of topology", "fix state store"),
        command(
            "deadletter/read",
            "kcat -b localhost:19092 -t orders.dlq -C -o -20 -e | jq .",
            "dlq poison",
            age_h=52,
        ),
        note("windows/grace", "ten minutes of grace, as accounting asked for; it may not be shortened"),
        command("canary/deploy", "scripts/deploy canary", "rollout", reason="one instance of eight"),
    ],
)

NIGHTJAR = World(
    {
        "dir": "nightjar",
        "remote": "git@gitlab.telco.example:data/nightjar.git",
        "branch": "main",
        "files": [
            "build.sbt",
            "project/plugins.sbt",
            "conf/local.conf",
            "dags/nightly.py",
            "src/main/scala/nightjar/CdrLoad.scala",
            "src/main/scala/nightjar/Sessionize.scala",
        ],
    },
    [
        note("nightjar/commits", "name the job first: `Sessionize: what`"),
        command(
            "sbt/assembly",
            "sbt -mem 4096 'set assembly / test := {}' assembly",
            "jar package",
            priority=8,
            reason="its tests take half an hour",
        ),
        command("sbt/tests", "sbt 'testOnly nightjar.* -- -l nightjar.Slow'", priority=8, uses=4),
        command(
            "submit/local",
            "spark-submit --master 'local[4]' --driver-memory 6g target/scala-2.13/nightjar.jar conf/local.conf",
            "run",
        ),
        command("submit/yarn", "spark-submit --master yarn --deploy-mode cluster --queue etl nightjar.jar", "cluster"),
        note(
            "cdr/skew",
            "nine calls in ten are of the partner 26201; salt the key of a join, or one task runs for three hours",
            age_h=180,
        ),
        command("cdr/sample", "hdfs dfs -get /data/cdr/2024-03-01/part-00000.parquet /scratch/cdr/"),
        command(
            "kerberos/ticket",
            "kinit -kt ~/nightjar.keytab nightjar@TELCO.EXAMPLE",
            "fix hdfs gss",
            "a ticket lives ten hours",
        ),
        command(
            "spark/java",
            "export JAVA_HOME=/usr/lib/jvm/java-17-openjdk",
            "fix spark",
            "it does not start with 21: IllegalAccessError sun.nio.ch",
        ),
        command(
            "delta/vacuum",
            "spark-sql -e 'VACUUM cdr.sessions RETAIN 168 HOURS'",
            reason="less than a week breaks reading as of a day",
        ),
        command(
            "airflow/backfill",
            "airflow dags backfill nightly -s 2024-03-01 -e 2024-03-03 --reset-dagruns -y",
            reason="both days are included",
        ),
        command("scalafmt/all", "sbt scalafmtAll scalafixAll", "format style"),
    ],
)

STEADING = World(
    {
        "dir": "steading",
        "remote": "git@git.uni.example:it/steading.git",
        "branch": "main",
        "files": [
            "ansible.cfg",
            "site.yml",
            "requirements.yml",
            "printers.csv",
            "playbooks/certs.yml",
            "inventories/lab/hosts.yml",
            "inventories/lab/group_vars/all/vault.yml",
            "inventories/prod/hosts.yml",
            "roles/backup/molecule/default/molecule.yml",
            "roles/ldap/tasks/main.yml",
            "roles/printers/tasks/main.yml",
        ],
    },
    [
        note("steading/commits", "role first: `ldap: what`; one role each", "git commit"),
        command("playbook/lab", "ansible-playbook -i inventories/lab site.yml --diff", "apply", priority=8),
        command(
            "playbook/dry",
            "ansible-playbook -i inventories/prod site.yml --check --diff --limit $HOST",
            reason="production is applied by the job of the night alone",
        ),
        command(
            "molecule/backup",
            "cd roles/backup && molecule test --destroy=never",
            "role container",
            reason="the container stays for a look",
        ),
        command(
            "galaxy/install",
            "ansible-galaxy install -r requirements.yml --force",
            "fix ansible collection",
            "couldn't resolve module/action",
        ),
        command(
            "backup/restore",
            "restic -r sftp:backup1:/srv/restic restore latest --target /tmp/restored --include",
            age_h=340,
        ),
        command(
            "vault/edit", "ansible-vault edit --vault-id lab@~/.vault-lab inventories/lab/group_vars/all/vault.yml"
        ),
        note("ldap/schema", "change the schema on ldap1 and wait five minutes; ldap2 and ldap3 copy it", "directory"),
        note("printers/queues", "printers.csv is the faculty's; what is edited here is gone on Monday", "cups"),
        command("ansiblelint/offline", "ansible-lint --offline -p", reason="galaxy cannot be reached"),
        command("inventory/graph", "ansible-inventory -i inventories/prod --graph --vars"),
        command("certs/renew", "ansible-playbook -i inventories/prod playbooks/certs.yml -e force=true", "tls expired"),
    ],
)
