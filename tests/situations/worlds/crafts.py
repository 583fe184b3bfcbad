"""Defines projects for people who make things, and projects that teach programming."""

from .hints import World, command, file, note

TAPIR = World(
    {
        "dir": "tapir",
        "remote": "https://github.com/tapirhq/tapir.git",
        "branch": "main",
        "files": [
            "go.mod",
            "main.go",
            "cmd/root.go",
            "cmd/sync.go",
            "internal/changelog/changelog.go",
            "internal/manifest/manifest.go",
            "internal/manifest/legacy.go",
            "testdata/script/sync.txtar",
            ".goreleaser.yaml",
        ],
    },
    [
        note("tapir/commits", "lower case, package first: `cmd/sync: what`"),
        command("tapir/install", "go install -ldflags '-X main.version=dev' .", "build", priority=7),
        command("testscript/run", "go test . -run TestScript/sync -v", priority=8),
        command(
            "testscript/update",
            "go test . -run TestScript -update",
            "golden",
            "rewrites testdata/script/*.txtar; read the diff",
        ),
        command(
            "golangci/new", "golangci-lint run --new-from-rev=main", "lint", reason="old findings are for another day"
        ),
        command(
            "release/snapshot",
            "goreleaser release --snapshot --clean --skip=sign",
            "binaries",
            reason="only maintainers have the key",
        ),
        command("completion/zsh", "tapir completion zsh > ~/.zsh/completions/_tapir"),
        command("manpages/make", "go run internal/docgen/main.go man/", "documentation help"),
        note("fields/unknown", "since 0.9 an unknown field is an error; legacy.go reads what is older"),
        command("modules/private", "export GOPRIVATE=github.com/tapirhq/*", "fix go", "410 Gone from sum.golang.org"),
        note("lockfile/slashes", "filepath.ToSlash before anything is written to it: it is shared with Windows"),
        command("race/internal", "go test -race -count=1 ./internal/...", age_h=900),
    ],
)

ANVIL = World(
    {
        "dir": "anvil",
        "remote": "https://git.anvilcad.example/core/anvil.git",
        "branch": "master",
        "files": [
            "CMakeLists.txt",
            "CMakePresets.json",
            "conanfile.py",
            "profiles/linux-gcc13",
            "samples/gearbox.anv",
            "src/gui/MainWindow.cpp",
            "src/io/step_reader.cpp",
            "src/kernel/boolean.cpp",
            "tests/kernel/boolean_test.cpp",
            "translations/anvil_de.ts",
        ],
    },
    [
        note("anvil/commits", "say what a user sees; `kernel:` or `gui:` before it", "git commit"),
        command("anvil/compile", "cmake --build --preset relwithdeb -j6", reason="-j12 runs out of memory", priority=8),
        command("kernel/tests", "ctest --preset relwithdeb -R kernel --output-on-failure", priority=8),
        note(
            "kernel/tolerance",
            "points are equal below 1e-7: geo::same(), never ==",
            "geometry",
            age_h=200,
        ),
        command(
            "conan/install",
            "conan install . -pr:a profiles/linux-gcc13 --build=missing",
            "fix cmake opencascade",
            "Could not find a package configuration file",
        ),
        command(
            "gui/offscreen",
            "QT_QPA_PLATFORM=offscreen ctest --preset relwithdeb -R gui",
            "fix qt xcb",
            "there is no display here",
        ),
        command(
            "kernel/fuzz",
            "build/relwithdeb/fuzz_boolean -max_total_time=60 corpus/boolean",
            reason="finds most within the minute",
        ),
        file("stepfiles/corpus", "/srv/cad/corpus", "", "of customers: nothing of it into the repository"),
        command("profiler/tracy", "build/relwithdeb/anvil --tracy samples/gearbox.anv", "performance"),
        command("linguist/update", "cmake --build --preset relwithdeb --target update_translations", "language"),
        note("undo/commands", "each change of a document is a QUndoCommand; calling Document::set breaks undo"),
        command("clangformat/changed", "git clang-format master", "style"),
    ],
)

TIDYFLORA = World(
    {
        "dir": "tidyflora",
        "remote": "https://github.com/botanylab/tidyflora.git",
        "branch": "main",
        "files": [
            "DESCRIPTION",
            "NAMESPACE",
            "R/herbarium.R",
            "R/phenology.R",
            "data-raw/species.R",
            "src/distance.cpp",
            "tests/testthat/test-phenology.R",
            "vignettes/precompile.R",
            "vignettes/tidyflora.Rmd.orig",
        ],
    },
    [
        note("tidyflora/commits", "a line in NEWS.md goes with what a user notices", "git commit"),
        command("tidyflora/test", "Rscript -e 'devtools::test(reporter = \"summary\")'", priority=8, uses=7),
        command("tidyflora/check", "Rscript -e 'devtools::check(cran = TRUE, vignettes = FALSE)'", "cran"),
        command(
            "tidyflora/document", "Rscript -e 'devtools::document()'", "roxygen", "man/ and NAMESPACE are made by it"
        ),
        command(
            "renv/restore",
            "Rscript -e 'renv::restore(prompt = FALSE)'",
            "fix library",
            "there is no package called ...",
        ),
        command("tidyflora/snapshots", "Rscript -e 'testthat::snapshot_accept()'", "vdiffr plots"),
        command("species/rebuild", "Rscript data-raw/species.R", reason="forty minutes, and GBIF allows three a day"),
        note("phenology/leap", "29 February is dropped: day 60 is 1 March in every year, as in the paper", age_h=4100),
        command("rcpp/attributes", "Rscript -e 'Rcpp::compileAttributes()'", "fix symbol", "undefined _tidyflora_..."),
        command("pkgdown/site", "Rscript -e 'pkgdown::build_site(preview = FALSE)'"),
        note("vignettes/orig", "the .Rmd.orig are the sources; vignettes/precompile.R knits them"),
    ],
)

MINNOW = World(
    {
        "dir": "minnow",
        "remote": "https://gitlab.cs.uni.example/pl/minnow.git",
        "branch": "main",
        "branches": ["solutions"],
        "files": [
            "dune-project",
            "bin/minnowc.ml",
            "examples/fib.mnw",
            "grading/grade.py",
            "handouts/Makefile",
            "handouts/04-closures.md",
            "lib/parser.mly",
            "lib/regalloc.ml",
            "lib/typing.ml",
            "runtime/rt.c",
            "test/cram/closures.t",
        ],
    },
    [
        note("minnow/commits", "week first: `w5: what`", "git commit"),
        command("dune/build", "dune build @check", reason="types alone; the whole takes a minute"),
        command("dune/runtest", "dune runtest test/cram", "test", priority=8),
        note("solutions/secret", "nothing of the branch solutions may reach the remote `public`", priority=9),
        command("dune/promote", "dune promote", "cram"),
        command(
            "opam/switch",
            "eval $(opam env --switch=minnow)",
            "fix dune opam",
            "the libraries of the course are in a switch of its own",
        ),
        command("menhir/conflicts", "menhir --explain lib/parser.mly", "grammar"),
        command("regalloc/dump", "dune exec minnowc -- --dump-after regalloc examples/fib.mnw", "spill"),
        command("riscv/run", "qemu-riscv64 -L /usr/riscv64-linux-gnu ./a.out", reason="the compiler writes RISC-V"),
        command("handouts/pdf", "make -C handouts pdf"),
        command(
            "grading/one", "python3 grading/grade.py --submission", "marks students", reason="takes the folder of one"
        ),
        command("ocamlformat/all", "dune fmt", age_h=760),
    ],
)
