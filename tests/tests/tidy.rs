//! Tests of the code and its documents: what a reader relies on and a compiler does not see.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nudge::{Config, ErrorKind};

/// Longest source file.
const MAX_LINES: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The files that git tracks or would track.
fn files() -> Vec<String> {
    let list = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(list.status.success(), "git ls-files");
    let names = String::from_utf8(list.stdout).unwrap();
    names.lines().filter(|name| root().join(name).is_file()).map(str::to_owned).collect()
}

fn is_source(name: &str) -> bool {
    [".rs", ".py", ".js", ".mjs", ".ts", ".mts", ".cts", ".sh"].iter().any(|ending| name.ends_with(ending))
}

#[test]
fn source_files_are_short_and_finished() {
    let unfinished = ["TO", "FIX"].map(|head| format!("{head}{}", if head == "TO" { "DO" } else { "ME" }));
    let mut seen = 0;
    for name in files().iter().filter(|name| is_source(name)) {
        let text = read(name);
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{name} has {lines} lines; split it");
        for word in &unfinished {
            assert!(!text.contains(word.as_str()), "{name} holds a {word}");
        }
        seen += 1;
    }
    assert!(seen > 50, "the walk found the sources");
}

#[test]
fn no_crate_allows_unsafe_code() {
    assert!(read("Cargo.toml").contains("unsafe_code = \"forbid\""));
    // The benchmarks count allocations, which takes a global allocator; users never build them.
    for name in files().iter().filter(|name| name.ends_with("/Cargo.toml") && *name != "tests/bench/Cargo.toml") {
        let text = read(name);
        // A binding crosses a boundary that takes `unsafe`; each use says why it is sound.
        let explained = name.starts_with("bindings/") && text.contains("undocumented_unsafe_blocks = \"deny\"");
        assert!(explained || text.contains("[lints]\nworkspace = true"), "{name} does not take the workspace's lints");
    }
}

/// Every invariant of ARCHITECTURE.md names its test as `path::test`, in backticks.
#[test]
fn every_invariant_names_a_test_that_exists() {
    let text = read("ARCHITECTURE.md");
    let table =
        text.split("## Invariants").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the section Invariants");
    let mut seen = 0;
    for row in table
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| invariant") && !line.starts_with("|--"))
    {
        let tests: Vec<_> = row.rsplit('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("not FILE::TEST: {test}"));
            let named = match file.rsplit('.').next() {
                Some("json") => format!("\"name\": \"{name}\""),
                Some("py") => format!("def {name}("),
                Some("mjs") => format!("it('{name}'"),
                _ => format!("fn {name}("),
            };
            assert!(read(file).contains(&named), "{test} does not exist");
            seen += 1;
        }
    }
    assert!(seen > 10, "the section lists invariants");
}

#[test]
fn the_readme_lists_what_there_is() {
    let readme = read("README.md");
    for method in nudge::methods() {
        assert!(readme.contains(&format!("| `{}` |", method.name)), "{} is missing", method.name);
        assert!(
            !method.tool || readme.contains(&format!("`{}`", method.tool_name())),
            "{} is missing",
            method.tool_name()
        );
    }
    for kind in ErrorKind::ALL.into_iter().filter(|kind| kind.code() > 0) {
        assert!(readme.contains(&format!("| `{}` | {} |", kind.reason(), kind.code())), "{kind:?} is missing");
    }
    for name in Config::ENV {
        assert!(readme.contains(&format!("| `{name}` |")), "{name} is missing");
    }
}

#[test]
fn documents_link_to_files_that_exist() {
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        for target in read(name).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(target.contains("://") || root().join(target).exists(), "{name} links to {target}");
        }
    }
}
