"""Defines projects that run in a browser or on a desktop."""

from .hints import World, command, note

FERNWEH = World(
    {
        "dir": "fernweh",
        "remote": "git@github.com:wanderlust-gmbh/fernweh.git",
        "branch": "main",
        "files": [
            "Gemfile",
            "bin/dev",
            "bin/kamal",
            "bin/rails",
            "bin/rspec",
            "bin/setup",
            "config/deploy.yml",
            "config/routes.rb",
            "app/controllers/bookings_controller.rb",
            "app/jobs/sync_fares_job.rb",
            "app/models/booking.rb",
            "spec/models/booking_spec.rb",
        ],
    },
    [
        note("fernweh/commits", "present tense, the story in brackets at the end: [sc-1234]"),
        command("rspec/run", "bin/rspec --fail-fast", reason="bundle exec takes 20 s longer", priority=8, uses=11),
        command("rails/server", "bin/dev", "start foreman", "rails s alone serves no css", priority=7),
        command("rails/setup", "bin/setup --skip-server", "install dependencies"),
        command(
            "schema/migrate",
            "bin/rails db:migrate && bin/rails db:test:prepare",
            reason="else the specs run against the old tables",
        ),
        note("bookings/money", "prices are Money in the supplier's currency; convert in BookingTotal, nowhere else"),
        note(
            "fares/sync",
            "SyncFaresJob takes a lock per supplier; by hand: SyncFaresJob.perform_now(Supplier.find_by(code: 'LH'))",
            "sidekiq queue",
        ),
        command(
            "credentials/edit",
            "EDITOR='code --wait' bin/rails credentials:edit -e staging",
            reason="the key is the team's, not in the repository",
        ),
        command(
            "bundler/platform",
            "bundle lock --add-platform x86_64-linux",
            "fix gem bundler",
            'Your bundle only supports platforms ["arm64-darwin-23"]',
        ),
        command("kamal/staging", "bin/kamal deploy -d staging", "deploy release"),
        command(
            "chromedriver/update",
            "bin/rails webdrivers:chromedriver:update",
            "fix selenium capybara",
            "system specs: session not created",
        ),
        note("mailer/preview", "mails can be looked at under /rails/mailers; letter_opener is off in CI", age_h=1400),
    ],
)

LINDEN = World(
    {
        "dir": "linden-theme",
        "remote": "git@bitbucket.org:studiolinden/linden-theme.git",
        "branch": "main",
        "files": [
            "style.css",
            "functions.php",
            "theme.json",
            "package.json",
            "composer.json",
            "blocks/team-member/block.json",
            "patterns/hero.php",
            "scss/main.scss",
            "languages/linden.pot",
            "tests/theme-unit-test-data.xml",
        ],
    },
    [
        note("linden-theme/commits", "the version in style.css is changed by a release and by nothing else"),
        command(
            "wpenv/up", "npx wp-env start --update", "wordpress local server", priority=7, reason="answers on 8888"
        ),
        note(
            "wpenv/cli",
            "wp is in the container: npx wp-env run cli wp ...",
            "fix wp",
            "there is no php on this machine",
            priority=7,
        ),
        command("blocks/build", "npm run build:blocks", priority=8),
        command("blocks/new", "npx @wordpress/create-block --no-plugin --namespace linden"),
        note(
            "stylesheet/source", "style.css is but a header; what one sees is made from scss/ by `npm run css`", "sass"
        ),
        command(
            "translations/pot",
            "npx wp-env run cli wp i18n make-pot wp-content/themes/linden-theme languages/linden.pot",
            "gettext language",
        ),
        command(
            "phpcs/wordpress",
            "composer lint",
            "coding standard",
            reason="the review of the directory rejects what it finds",
        ),
        note("colours/palette", "colours are in theme.json settings.color.palette; no hex codes in scss"),
        command(
            "content/import",
            "npx wp-env run cli wp import tests/theme-unit-test-data.xml --authors=create",
            reason="the customer's own content must not leave their server",
        ),
        command("zip/release", "npm run zip", "publish upload", reason="node_modules must not be in it"),
    ],
)

SNIPBAR = World(
    {
        "dir": "snipbar",
        "remote": "https://github.com/snipbar/snipbar.git",
        "branch": "main",
        "branches": ["mv2-maintenance"],
        "files": [
            "package.json",
            "src/background.ts",
            "src/content/highlighter.ts",
            "src/content/highlighter.test.ts",
            "src/manifest/template.json",
            "src/options/Options.svelte",
            "scripts/manifest.ts",
            "e2e/popup.spec.ts",
            "_locales/en/messages.json",
        ],
    },
    [
        note("snipbar/commits", "conventional commits with the part in brackets: `feat(popup): what`", "git commit"),
        command("extension/dev", "pnpm dev:firefox", reason="Chrome keeps the old service worker", priority=7),
        command("extension/build", "pnpm build"),
        command("vitest/run", "pnpm vitest run --project unit", "test unit", priority=8, age_h=26),
        command(
            "playwright/headed",
            "xvfb-run -a pnpm playwright test --project=chromium",
            "fix e2e display",
            "extensions are loaded by a headed browser alone",
        ),
        command("sign/xpi", "pnpm web-ext sign --channel unlisted", "publish mozilla"),
        note("manifest/template", "manifest.json is written by scripts/manifest.ts; edit src/manifest/template.json"),
        note(
            "highlighter/ranges",
            "a range is kept as XPath and offset, with a text fragment to fall back on: Reddit rewrites its DOM",
        ),
        command("locales/sync", "pnpm crowdin download", "translation i18n", reason="overwrites _locales, but en"),
        note("storage/quota", "chrome.storage.sync takes 8 KB an item; longer snippets go to IndexedDB", "limit"),
        note("permissions/review", "a new permission costs two weeks of review at the store; ask first"),
    ],
)

MINUTIER = World(
    {
        "dir": "minutier",
        "remote": "https://gitlab.notaires.example/etudes/minutier.git",
        "branch": "principale",
        "files": [
            "pyproject.toml",
            "modeles/vente.docx",
            "modeles/bail.docx",
            "clauses/hypotheque.yaml",
            "exemples/durand.yaml",
            "essais/bail.typ",
            "minutier/rendu.py",
            "tests/test_rendu.py",
        ],
    },
    [
        note("minutier/commits", "en français, à l'infinitif, sans point"),
        command(
            "actes/generer",
            "uv run minutier rendre modeles/vente.docx --dossier exemples/durand.yaml -o /tmp/acte.docx",
            priority=7,
        ),
        command(
            "essais/lancer",
            "uv run pytest -q -m 'not word'",
            "pytest",
            "ceux qui sont marqués `word` demandent une licence",
            priority=8,
        ),
        note(
            "clauses/numerotation",
            "le numéro d'une clause ne change jamais, même si une autre est retirée: des actes signés le citent",
            age_h=75,
        ),
        command(
            "modeles/reparer",
            "uv run minutier reparer modeles/*.docx",
            "fix jinja docx",
            "Word coupe les champs en deux: TemplateSyntaxError",
        ),
        command("pdfa/convertir", "soffice --headless --convert-to pdf --outdir /tmp /tmp/acte.docx", "archive"),
        note("montants/lettres", "les montants en lettres viennent de num2words(lang='fr'), jamais de la main"),
        command("parapheur/envoyer", "uv run minutier envoyer --parapheur recette /tmp/acte.pdf", "signature"),
        command("typst/bail", "typst watch essais/bail.typ"),
        note("dates/mois", "LC_TIME=fr_FR.UTF-8, sinon les mois sont en anglais", "fix locale"),
    ],
)
