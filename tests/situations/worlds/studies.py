"""Defines projects of science and of writing."""

from .hints import World, command, note

TIDEWATER = World(
    {
        "dir": "tidewater",
        "remote": "https://gitlab.com/oceanlab/tidewater.git",
        "branch": "main",
        "branches": ["exp/lstm"],
        "files": [
            "dvc.yaml",
            "params.yaml",
            "environment.yml",
            "notebooks/01-clean.ipynb",
            "src/features.py",
            "src/fit.py",
            "data/raw.dvc",
        ],
    },
    [
        note("tidewater/commits", "one experiment, one commit; the metric goes into the subject", "git commit"),
        command("conda/create", "mamba env update -f environment.yml --prune", "install dependencies"),
        note(
            "conda/run",
            "conda run -n tidewater python ...; `conda activate` does nothing in a tool's shell",
            "fix python import",
            "system python has none of the packages",
            priority=8,
        ),
        command("dataset/pull", "dvc pull -r minio data/raw.dvc", "download gauges", priority=7),
        command(
            "dataset/ca",
            "export REQUESTS_CA_BUNDLE=/etc/ssl/certs/oceanlab-ca.pem",
            "fix tls certificate ssl",
            "minio's certificate is signed by the laboratory",
        ),
        command(
            "fit/repro", "dvc repro --single-item fit", "train model", "the whole pipeline takes five hours", uses=6
        ),
        note(
            "fit/seed",
            "params.yaml seed: 1337; the figures of the paper depend on it",
            "random reproducible",
            age_h=2000,
        ),
        command("plots/compare", "dvc plots diff main --open", "chart metrics"),
        command("notebook/execute", "papermill notebooks/01-clean.ipynb /tmp/out.ipynb -p year 2023", "jupyter run"),
        command("notebook/strip", "nbstripout --install", "output diff"),
        note("gauges/time", "all times are UTC, but gauge 14 is local time until March 2019", "timezone"),
        command("slurm/submit", "sbatch jobs/fit.sbatch", "queue cluster gpu"),
    ],
)

SPINDRIFT = World(
    {
        "dir": "spindrift",
        "remote": "https://git.hydro.example/cfd/spindrift.git",
        "branch": "main",
        "files": [
            "CMakeLists.txt",
            "CMakePresets.json",
            "src/solver/pressure.f90",
            "src/io/netcdf_out.f90",
            "cases/channel/input.nml",
        ],
    },
    [
        note("spindrift/commits", "a commit that changes results says by how much", "git commit"),
        command("spindrift/build", "cmake --preset gcc-mpi && cmake --build build -j 8", "compile fortran", priority=8),
        command("spindrift/check", "ctest --test-dir build -L quick", "regression test"),
        command(
            "spindrift/netcdf", "module load netcdf-fortran/4.6", "fix netcdf link", "undefined reference to nf90_*"
        ),
        command(
            "spindrift/mpirun",
            "mpirun --oversubscribe -np 4 build/spindrift cases/channel/input.nml",
            "run slots",
            "this machine has two cores",
        ),
        command("spindrift/restart", "build/spindrift --restart latest", "checkpoint resume continue"),
        note(
            "solver/tolerance",
            "the pressure solver needs 1e-9; a looser one loses mass over a day",
            "accuracy convergence",
        ),
        note(
            "io/chunks",
            "NetCDF chunks are one level each; do not change them, the archive depends on it",
            "output",
            age_h=1500,
        ),
        command("fprettify/all", "fprettify -i 2 -r src", "format indent"),
        command("ford/docs", "ford docs.md", "documentation html"),
    ],
)

HARBOUR = World(
    {
        "dir": "harbour-book",
        "remote": "git@github.com:inkwell/harbour-book.git",
        "branch": "main",
        "files": ["main.tex", "chapters/03-tides.tex", "figures/chart.tikz", "refs.bib", ".latexmkrc"],
    },
    [
        note("harbour-book/commits", "one chapter each; say which edition", "git commit"),
        command(
            "book/pdf",
            "latexmk -lualatex -interaction=nonstopmode main.tex",
            "typeset compile fix pdflatex",
            "the fonts need LuaTeX",
            priority=8,
            uses=12,
        ),
        command("citations/biber", "biber main", "fix bibliography undefined"),
        command("fonts/garamond", "tlmgr install ebgaramond", "fix font"),
        note("labels/cleveref", "labels begin with ch:, sec: or fig:, or cref prints ??", "reference"),
        command("figures/externalise", "make -C figures all", "tikz drawing", "twenty minutes without it"),
        command("printer/x1a", "make print", "publish press", "the printer takes PDF/X-1a alone"),
        command("prose/vale", "vale chapters/", "spelling style"),
        note("index/terms", "index a term where it is explained, not where it is used", "register"),
    ],
)

QUILL = World(
    {
        "dir": "quill",
        "remote": "https://github.com/quill-lang/quill.git",
        "branch": "main",
        "files": [
            "cabal.project",
            "quill-core/quill-core.cabal",
            "quill-core/src/Quill/Parser.hs",
            "golden/let.golden",
            "rts/gc.c",
        ],
    },
    [
        note("quill/commits", "say which pass it changes; `[ci skip]` is for prose alone", "git commit"),
        command("quill/build", "cabal build all -O0 --enable-tests", "compile ghc", priority=8),
        command("golden/accept", "cabal test golden --test-options=--accept", "expected output snapshot"),
        command("parser/conflicts", "happy --info=happy.info quill-core/src/Quill/Grammar.y", "grammar shift reduce"),
        note("bootstrap/memory", "stage 2 needs `+RTS -M10g`; without it the linker is killed", "oom self-hosting"),
        command("ghcup/toolchain", "ghcup install ghc 9.6.4 --set", "fix ghc version", "base-4.18 is asked for"),
        command("rts/valgrind", "make -C rts valgrind", "leak memory gc"),
        command("haddock/local", "cabal haddock quill-core --open", "documentation"),
        command("fourmolu/all", "fourmolu -i quill-core/src", "format style"),
        note(
            "core/invariants",
            "every binder is unique after the renamer; the linter -dcore-lint checks it",
            "intermediate",
        ),
    ],
)
