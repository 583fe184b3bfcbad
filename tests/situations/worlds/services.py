"""Defines projects of services, and of the machines that run services."""

from .hints import World, command, note

UMBRELLA = "**/pigeonhole"

LANDING = World(
    {
        "dir": "landing",
        "remote": "ssh://git@git.northgate.example/platform/landing.git",
        "branch": "main",
        "files": [
            "overlays/qa/kustomization.yaml",
            "overlays/prod/kustomization.yaml",
            "base/payments/deployment.yaml",
            "policy/images.rego",
            "Pulumi.yaml",
        ],
    },
    [
        note("landing/commits", "one overlay per commit; Argo shows the subject to everybody", "git commit"),
        command("overlays/render", "kustomize build overlays/qa", "yaml manifest", priority=9),
        command(
            "argo/sync",
            "argocd app sync payments --prune=false",
            "rollout",
            "prune deletes the volumes of the old chart",
            priority=7,
        ),
        command(
            "kube/login",
            "aws sso login --profile northgate-qa",
            "fix kubectl credentials",
            "the token lives eight hours",
            uses=7,
        ),
        note("kube/prod", "never apply to prod by hand; Argo takes it back within a minute", "production"),
        command(
            "ingress/wildcard",
            "kubectl -n ingress delete secret wildcard-tls",
            "fix certificate tls x509",
            "cert-manager then asks for a new one within two minutes",
        ),
        command("node/drain", "kubectl drain $NODE --ignore-daemonsets --delete-emptydir-data", "maintenance evict"),
        command("policy/conftest", "conftest test overlays/ -p policy/", "check rego"),
        command("alert/silence", "amtool silence add alertname=~'Kube.*' --duration 2h --comment drain", "mute page"),
        note(
            "secret/sops",
            "edit with `sops overlays/qa/values.enc.yaml`; who may is listed in .sops.yaml",
            "encrypt age",
        ),
        command("pulumi/preview", "pulumi preview --stack northgate/qa --diff", "plan cloud"),
    ],
)

KASSE = World(
    {
        "dir": "kasse",
        "remote": "git@gitlab.com:holzmann/kasse.git",
        "branch": "main",
        "files": [
            "composer.json",
            "artisan",
            "app/Http/Controllers/CartController.php",
            "app/Jobs/SendInvoice.php",
            "tests/Feature/CartTest.php",
            "docker-compose.yml",
        ],
    },
    [
        note("kasse/commits", "Betreff auf Deutsch, höchstens 60 Zeichen", "git commit"),
        note("sail/artisan", "./vendor/bin/sail artisan ...; the machine itself has no php", "fix php", priority=8),
        command("tables/migrate", "./vendor/bin/sail artisan migrate --seed", "database schema"),
        command(
            "pest/run",
            "./vendor/bin/sail pest --parallel",
            "test fix phpunit",
            "the tests are Pest's; phpunit cannot read them",
            uses=9,
        ),
        command(
            "queue/restart",
            "./vendor/bin/sail artisan queue:restart",
            "jobs worker mail",
            "workers keep old code until then",
        ),
        command("frontend/vite", "./vendor/bin/sail npm run build", "assets js css"),
        note(
            "cart/vat",
            "VAT is rounded half up on each line, then added up; the tax adviser wants it so",
            "tax rounding Steuer cent",
        ),
        command(
            "invoices/render", "./vendor/bin/sail artisan invoices:render --since=yesterday", "Rechnung pdf", priority=9
        ),
        command(
            "composer/memory", "COMPOSER_MEMORY_LIMIT=-1 ./vendor/bin/sail composer update", "fix composer dependencies"
        ),
        command("pint/dirty", "./vendor/bin/sail pint --dirty", "format style"),
        command("cache/clear", "./vendor/bin/sail artisan optimize:clear", "fix config stale"),
        note("forge/deploy", "a push to main deploys; there is no button", "release live"),
    ],
)

PIGEONHOLE = World(
    {
        "dir": "pigeonhole",
        "remote": "https://github.com/postlane/pigeonhole.git",
        "branch": "main",
        "files": [
            "mix.exs",
            "apps/inbox/mix.exs",
            "apps/inbox_web/mix.exs",
            "apps/smtp_gate/mix.exs",
            "apps/smtp_gate/lib/gate.ex",
        ],
    },
    [
        note("pigeonhole/commits", "prefix with the app: `smtp_gate: what`", "git commit"),
        command(
            "inbox/spec",
            "mix cmd --app inbox mix test --max-failures 1",
            "test exunit",
            scope={"cwd_glob": [f"{UMBRELLA}/apps/inbox/**"]},
            priority=8,
        ),
        command(
            "inbox/oban",
            "mix run -e 'Oban.drain_queue(queue: :mail)'",
            "jobs background",
            scope={"cwd_glob": [f"{UMBRELLA}/apps/inbox/**"]},
        ),
        command(
            "smtp_gate/spec",
            "mix test --only smtp --seed 0",
            "test exunit",
            "the order matters: one socket",
            scope={"cwd_glob": [f"{UMBRELLA}/apps/smtp_gate/**"]},
            priority=8,
        ),
        note(
            "smtp_gate/listener",
            "listens on 2525; swaks --server localhost:2525 sends a mail",
            "port",
            scope={"cwd_glob": [f"{UMBRELLA}/apps/smtp_gate/**"]},
        ),
        command("inbox_web/server", "mix phx.server", "phoenix http start", priority=7),
        command(
            "inbox_web/detached",
            "iex --sname web -S mix phx.server",
            "phoenix http start",
            "runs when the plain one does not find the node",
        ),
        command("inbox_web/esbuild", "mix assets.deploy", "js css"),
        command("ecto/reset", "mix ecto.reset", "database schema migrate seed"),
        command(
            "hex/local",
            "mix local.hex --force && mix local.rebar --force",
            "fix hex mix",
            "a new toolchain comes without",
        ),
        command("dialyzer/short", "mix dialyzer --format short", "types", "the first run takes twelve minutes"),
        command("otp/release", "MIX_ENV=prod mix release pigeonhole --overwrite", "package production"),
    ],
)

ORCHARD = World(
    {
        "dir": "orchard",
        "remote": "https://git.sr.ht/~pomona/orchard",
        "branch": "trunk",
        "files": [
            "flake.nix",
            "flake.lock",
            "hosts/apple.nix",
            "services/pear/module.nix",
            "services/quince/module.nix",
        ],
    },
    [
        note("orchard/commits", "path first: `services/pear: what`", "git commit"),
        command("flake/check", "nix flake check --keep-going -L", "test evaluate", priority=8),
        command(
            "flake/update",
            "nix flake update nixpkgs --commit-lock-file",
            "lock inputs upgrade",
            "only nixpkgs; the others are pinned",
        ),
        command(
            "pear/rollout",
            "nixos-rebuild switch --flake .#pear-test --target-host pear-test --use-remote-sudo",
            "deploy test machine",
            priority=7,
        ),
        command("pear/vm", "nix run .#pear-vm", "qemu local try"),
        note("quince/state", "its state is in /var/lib/quince and is not backed up", "data"),
        command(
            "nix/features",
            "export NIX_CONFIG='experimental-features = nix-command flakes'",
            "fix nix flakes",
            "experimental Nix feature is disabled",
        ),
        command("nix/gc", "nix-collect-garbage --delete-older-than 14d", "disk space full"),
        command("alejandra/format", "nix fmt", "format style"),
        note(
            "hosts/apple", "aarch64; nothing can be built for it on this machine, use the builder `cider`", "arm cross"
        ),
    ],
)
