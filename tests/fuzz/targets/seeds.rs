//! Reads a repository's file that names its commands. The first byte selects the kind of file.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use nudge_seed::{SeedLimits, read};
use tempfile::TempDir;

const FILES: [&str; 16] = [
    "package.json",
    "Makefile",
    "justfile",
    "Taskfile.yml",
    "Cargo.toml",
    "pyproject.toml",
    "tox.ini",
    "noxfile.py",
    "go.mod",
    "mise.toml",
    "composer.json",
    "build.gradle",
    "pom.xml",
    "docker-compose.yml",
    ".github/workflows/ci.yml",
    "CMakeLists.txt",
];

static REPOSITORY: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder for temporary files");
    fs::create_dir_all(folder.path().join(".github/workflows")).expect("there is room");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let Some((first, text)) = bytes.split_first() else { return };
    let file = REPOSITORY.path().join(FILES[usize::from(*first) % FILES.len()]);
    fs::write(&file, text).expect("there is room");
    let limits = SeedLimits::default();
    let report = read(REPOSITORY.path(), &limits);
    assert!(report.seeds.len() <= limits.seeds);
    fs::remove_file(file).expect("it was there");
});
