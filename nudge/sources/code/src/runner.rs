//! Builds the command that runs some tests, if the test runner of the project is known.

use std::collections::BTreeMap;

use nudge_code_index::CodeLanguage;
use nudge_os::foreign::{self, LinkPolicy};
use serde_json::Value;

use crate::root::ProjectRoot;

/// The most bytes that are read of a manifest.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// The most bytes of a command.
const MAX_BYTES: usize = 2_000;

/// Returns the command that runs `tests` (each a file and a qualified name) and all tests in `files`. The command must
/// run in the folder of the root. Returns `None` if no runner is known.
pub fn test_command(root: &ProjectRoot, tests: &[(String, String)], files: &[String]) -> Option<String> {
    let mut by_runner: BTreeMap<TestRunner, Vec<(&str, Option<&str>)>> = BTreeMap::new();
    let named = files.iter().filter(|file| !tests.iter().any(|(path, _)| path == *file));
    let all = tests.iter().map(|(path, qual)| (&**path, Some(&**qual))).chain(named.map(|path| (&**path, None)));
    for (path, qual) in all {
        if let Some(runner) = TestRunner::find_runner(root, path) {
            by_runner.entry(runner).or_default().push((path, qual));
        }
    }
    let commands: Vec<_> = by_runner.iter().map(|(runner, tests)| runner.to_command(tests)).collect();
    let command = commands.join(" && ");
    (!command.is_empty() && command.len() <= MAX_BYTES).then_some(command)
}

/// A test runner, with the package or folder where it runs.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TestRunner {
    Pytest,
    /// Cargo, for this package.
    Cargo(String),
    /// Go, for this folder.
    Go(String),
    /// A runner of Node with its name, in the folder of this package.
    Node(&'static str, String),
}

impl TestRunner {
    fn find_runner(root: &ProjectRoot, path: &str) -> Option<Self> {
        match CodeLanguage::from_path(path)? {
            CodeLanguage::Python => Some(Self::Pytest),
            CodeLanguage::Rust => {
                let name = |_: &str, text: &str| {
                    let manifest: toml::Table = text.parse().ok()?;
                    Some(manifest.get("package")?.get("name")?.as_str()?.to_owned())
                };
                find_above(root, path, "Cargo.toml", name).map(Self::Cargo)
            }
            CodeLanguage::Go => Some(Self::Go(path.rsplit_once('/').map_or(".", |(folder, _)| folder).to_owned())),
            CodeLanguage::JavaScript | CodeLanguage::TypeScript | CodeLanguage::Tsx => {
                let runner = |folder: &str, text: &str| {
                    let manifest: Value = serde_json::from_str(text).ok()?;
                    let uses = |name: &str| {
                        let lists = ["devDependencies", "dependencies"].map(|list| &manifest[list]);
                        lists.iter().any(|list| list.get(name).is_some())
                            || manifest["scripts"]["test"].as_str().is_some_and(|script| script.contains(name))
                    };
                    let runner = ["vitest", "jest"].into_iter().find(|name| uses(name))?;
                    Some(Self::Node(runner, folder.to_owned()))
                };
                find_above(root, path, "package.json", runner)
            }
            _ => None,
        }
    }

    fn to_command(&self, tests: &[(&str, Option<&str>)]) -> String {
        let words = |words: &mut dyn Iterator<Item = String>| {
            let mut said: Vec<String> = Vec::new();
            for word in words.map(|word| quote_word(&word)) {
                if !said.contains(&word) {
                    said.push(word);
                }
            }
            said.join(" ")
        };
        let names = || tests.iter().filter_map(|(_, qual)| Some(qual.as_ref()?.rsplit(['.', ':']).next()?.to_owned()));
        let all = tests.iter().any(|(_, qual)| qual.is_none());
        match self {
            Self::Pytest => {
                let mut ids = tests.iter().map(|(path, qual)| match qual {
                    Some(qual) => format!("{path}::{}", qual.replace('.', "::")),
                    None => (*path).to_owned(),
                });
                format!("pytest {}", words(&mut ids))
            }
            Self::Cargo(package) if all => format!("cargo test -p {}", quote_word(package)),
            Self::Cargo(package) => format!("cargo test -p {} -- {}", quote_word(package), words(&mut names())),
            Self::Go(folder) => {
                let folder = if folder == "." { folder.clone() } else { format!("./{folder}") };
                let names: Vec<_> = names().collect();
                let run = if all {
                    String::new()
                } else {
                    format!(" -run {}", quote_word(&format!("^({})$", names.join("|"))))
                };
                format!("go test {}{run}", quote_word(&folder))
            }
            Self::Node(runner, folder) => {
                let inside = |path: &str| path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/').to_owned();
                let run = if *runner == "vitest" { "vitest run" } else { runner };
                let cd = if folder.is_empty() { String::new() } else { format!("cd {} && ", quote_word(folder)) };
                format!("{cd}npx {run} {}", words(&mut tests.iter().map(|(path, _)| inside(path))))
            }
        }
    }
}

/// Calls `says` with the manifests of this name: first in the file's folder, then in each folder above. Returns the
/// first result that `says` gives.
fn find_above<T>(root: &ProjectRoot, path: &str, name: &str, says: impl Fn(&str, &str) -> Option<T>) -> Option<T> {
    let mut folder = path;
    while !folder.is_empty() {
        folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
        let manifest = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let text = foreign::read_text(&root.join(&manifest), LinkPolicy::Refused, MAX_MANIFEST_BYTES).ok();
        if let Some(said) = text.and_then(|text| says(folder, &text)) {
            return Some(said);
        }
    }
    None
}

/// Quotes a word for a shell.
fn quote_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nudge_core::context::detect::{GitDetector, GitEnv};

    use super::*;

    #[test]
    fn each_has_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for (path, text) in [
            ("Cargo.toml", "[workspace]\n"),
            ("crates/a/Cargo.toml", "[package]\nname = 'one'\n"),
            ("web/package.json", r#"{"devDependencies": {"vitest": "3"}}"#),
            ("package.json", r#"{"scripts": {"test": "jest"}}"#),
        ] {
            fs::create_dir_all(base.join(path).parent().unwrap()).unwrap();
            fs::write(base.join(path), text).unwrap();
        }
        let root = ProjectRoot::find_root(&base, &mut GitDetector::with_env(GitEnv::empty())).unwrap();
        for (tests, files, says) in [
            (
                &[("tests/test_a.py", "TestA.test_x"), ("tests/test_a.py", "test_y")][..],
                &[][..],
                Some("pytest tests/test_a.py::TestA::test_x tests/test_a.py::test_y"),
            ),
            (&[], &["tests/test_b.py"], Some("pytest tests/test_b.py")),
            (
                &[("crates/a/src/lib.rs", "tests.holds"), ("crates/a/tests/it.rs", "holds")],
                &[],
                Some("cargo test -p one -- holds"),
            ),
            (&[("loose.rs", "t")], &[], None),
            (
                &[("pkg/a_test.go", "TestA"), ("pkg/a_test.go", "TestB")],
                &[],
                Some("go test ./pkg -run '^(TestA|TestB)$'"),
            ),
            (
                &[("web/src/a.test.ts", "works")],
                &["b.test.js"],
                Some("npx jest b.test.js && cd web && npx vitest run src/a.test.ts"),
            ),
            (&[("it's.py", "test_a")], &[], Some(r"pytest 'it'\''s.py::test_a'")),
            (&[], &["A.java"], None),
        ] {
            let tests: Vec<_> = tests.iter().map(|(path, qual)| ((*path).to_owned(), (*qual).to_owned())).collect();
            let files: Vec<_> = files.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(test_command(&root, &tests, &files).as_deref(), says);
        }
    }
}
