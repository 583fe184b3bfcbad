//! Which tests really ran a piece of code, where the project's own coverage says it: better than anything that can be
//! read from the code.
//!
//! Files of coverage.py are read, if they know which test ran which line (`dynamic_context`, `--cov-context=test`), and
//! of `lcov`, which know only what ran at all. One that is older than the code says nothing of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge_core::foreign::{self, Links};
use nudge_storage::rusqlite::{Connection, OpenFlags};
use parking_lot::Mutex;
use serde_json::Value;

use crate::root::Root;

/// The files that are looked for, at the top of the project and where they are usually put.
const DATABASE: &str = ".coverage";
const JSON: [&str; 1] = ["coverage.json"];
const LCOV: [&str; 3] = ["lcov.info", "coverage/lcov.info", "target/lcov.info"];
/// Longest file that is read, and longest database that is opened.
const MAX_BYTES: u64 = 32 << 20;
const MAX_DATABASE_BYTES: u64 = 256 << 20;
/// Most tests of one file.
const MAX_CONTEXTS: usize = 20_000;

/// How long it is taken for true that there is no coverage: each answer about a node asks for it.
const NONE_FOR: Duration = Duration::from_secs(1);

/// The coverage of a root.
#[derive(Debug, Default)]
pub struct Coverage(Mutex<Option<Instant>>);

impl Coverage {
    /// What ran of the lines of a file after `first` and up to `last`: the line of a definition itself runs when the file
    /// is loaded.
    pub fn of(&self, root: &Root, path: &str, first: u32, last: u32) -> Ran {
        let mut found_none = self.0.lock();
        if found_none.is_some_and(|at| at.elapsed() < NONE_FOR) {
            return Ran::default();
        }
        let mut all = [DATABASE].into_iter().chain(JSON).chain(LCOV);
        let is_there = all.any(|name| root.join(name).symlink_metadata().is_ok());
        *found_none = (!is_there).then(Instant::now);
        drop(found_none);
        if is_there { of(root, path, first, last) } else { Ran::default() }
    }
}

/// What ran of some lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The tests that ran them, as the runner names them.
    pub tests: BTreeSet<String>,
    /// Whether anything ran them; `None` where nothing is known of them.
    pub at_all: Option<bool>,
}

fn of(root: &Root, path: &str, first: u32, last: u32) -> Ran {
    let lines = if last > first { first + 1..=last } else { first..=last };
    let holds = |line: u32| lines.contains(&line);
    let found = database(root, path, &holds).or_else(|| json(root, path, &holds));
    found.or_else(|| lcov(root, path, &holds)).unwrap_or_default()
}

/// A file of coverage, if it is newer than the code.
fn newer(root: &Root, name: &str, path: &str, most: u64) -> Option<PathBuf> {
    let place = root.join(name);
    let meta = place.symlink_metadata().ok().filter(|meta| meta.is_file() && meta.len() <= most)?;
    let code = root.join(path).symlink_metadata().ok()?;
    (meta.modified().ok()? >= code.modified().ok()?).then_some(place)
}

fn database(root: &Root, path: &str, holds: &dyn Fn(u32) -> bool) -> Option<Ran> {
    let file = newer(root, DATABASE, path, MAX_DATABASE_BYTES)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let c = Connection::open_with_flags(file, flags).ok()?;
    // It may be anybody's: nothing in its schema is run.
    c.pragma_update(None, "trusted_schema", false).ok()?;
    let whole = root.join(path);
    let mut statement = c
        .prepare(
            "SELECT c.context, l.numbits FROM line_bits l JOIN file f ON f.id = l.file_id \
             JOIN context c ON c.id = l.context_id WHERE f.path IN (?1, ?2) LIMIT ?3",
        )
        .ok()?;
    let limit = i64::try_from(MAX_CONTEXTS).unwrap_or(i64::MAX);
    let mut rows = statement.query((path, whole.to_str()?, limit)).ok()?;
    let mut ran = Ran::default();
    while let Ok(Some(row)) = rows.next() {
        let (Ok(context), Ok(bits)) = (row.get_ref(0), row.get_ref(1)) else { continue };
        let (Ok(context), Ok(bits)) = (context.as_str(), bits.as_blob()) else { continue };
        ran.note(context, numbers(bits).any(holds));
    }
    ran.at_all.is_some().then_some(ran)
}

/// The numbers of the bits that are set.
fn numbers(bits: &[u8]) -> impl Iterator<Item = u32> {
    let all = bits.iter().zip((0_u32..).step_by(8));
    all.flat_map(|(byte, from)| (0..8).filter(move |bit| byte & (1 << bit) != 0).map(move |bit| from + bit))
}

fn json(root: &Root, path: &str, holds: &dyn Fn(u32) -> bool) -> Option<Ran> {
    let file = JSON.iter().find_map(|name| newer(root, name, path, MAX_BYTES))?;
    let all: Value = serde_json::from_slice(&foreign::read(&file, Links::Refused, MAX_BYTES).ok()?).ok()?;
    let files = all.get("files")?;
    let own = files.get(path).or_else(|| files.get(root.join(path).to_str()?))?;
    let mut ran = Ran::default();
    let number = |line: &Value| line.as_u64().and_then(|line| u32::try_from(line).ok());
    let executed = own.get("executed_lines")?.as_array()?;
    ran.note("", executed.iter().filter_map(number).any(holds));
    for (line, contexts) in own.get("contexts").and_then(Value::as_object).into_iter().flatten() {
        if line.parse().is_ok_and(holds) {
            let contexts = contexts.as_array().into_iter().flatten().filter_map(Value::as_str);
            contexts.take(MAX_CONTEXTS).for_each(|context| ran.note(context, true));
        }
    }
    Some(ran)
}

fn lcov(root: &Root, path: &str, holds: &dyn Fn(u32) -> bool) -> Option<Ran> {
    let file = LCOV.iter().find_map(|name| newer(root, name, path, MAX_BYTES))?;
    let text = foreign::read_text(&file, Links::Refused, MAX_BYTES).ok()?;
    let (mut ran, mut by, mut is_ours) = (Ran::default(), "", false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("TN:") {
            by = name.trim();
        } else if let Some(file) = line.strip_prefix("SF:") {
            is_ours = is_same(root, file.trim(), path);
        } else if let Some((line, count)) =
            line.strip_prefix("DA:").filter(|_| is_ours).and_then(|da| da.split_once(','))
        {
            let has_run = count.split(',').next().is_some_and(|count| count.trim() != "0");
            if line.parse().is_ok_and(holds) {
                ran.note(by, has_run);
            }
        }
    }
    ran.at_all.is_some().then_some(ran)
}

fn is_same(root: &Root, given: &str, path: &str) -> bool {
    given.strip_prefix("./").unwrap_or(given) == path || Path::new(given) == root.join(path)
}

impl Ran {
    fn note(&mut self, context: &str, has_run: bool) {
        self.at_all = Some(self.at_all.unwrap_or_default() || has_run);
        if has_run && !context.is_empty() {
            self.tests.insert(context.to_owned());
        }
    }
}

/// The file and the name of a test as pytest gives them, `tests/test_a.py::TestA::test_x[1]|run`; else its dotted name,
/// `tests.test_a.TestA.test_x`, of which the file is the beginning.
pub fn test(context: &str) -> (Option<String>, String) {
    let context = context.split('|').next().unwrap_or_default();
    let context = context.split('[').next().unwrap_or_default();
    match context.split_once("::") {
        Some((path, name)) => (Some(path.to_owned()), name.replace("::", ".")),
        None => (None, context.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use nudge_core::context::detect::{Detector, GitEnv};

    use super::*;

    fn project() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        fs::write(at.join("setup.py"), "").unwrap();
        fs::write(at.join("a.py"), "def f():\n    return 1\n\n\ndef g():\n    return 2\n").unwrap();
        let root = Root::of(&at, &mut Detector::with_env(GitEnv::empty())).unwrap();
        (folder, root)
    }

    fn tests(ran: &Ran) -> Vec<&str> {
        ran.tests.iter().map(String::as_str).collect()
    }

    #[test]
    fn the_database_of_coverage_py() {
        let (_folder, root) = project();
        let c = Connection::open(root.join(".coverage")).unwrap();
        c.execute_batch(
            "CREATE TABLE file(id INTEGER PRIMARY KEY, path TEXT); CREATE TABLE context(id INTEGER PRIMARY KEY, context TEXT);
             CREATE TABLE line_bits(file_id INTEGER, context_id INTEGER, numbits BLOB);
             INSERT INTO context VALUES(1, ''), (2, 'tests.test_a.test_f'), (3, 'tests/test_a.py::test_g|run');
             INSERT INTO line_bits VALUES(1, 1, x'22'), (1, 2, x'04'), (1, 3, x'40');",
        )
        .unwrap();
        c.execute("INSERT INTO file VALUES(1, ?1)", [root.join("a.py").to_str().unwrap()]).unwrap();
        drop(c);
        assert_eq!(tests(&of(&root, "a.py", 1, 2)), ["tests.test_a.test_f"]);
        assert_eq!(tests(&of(&root, "a.py", 5, 6)), ["tests/test_a.py::test_g|run"]);
        assert_eq!(of(&root, "setup.py", 1, 2), Ran::default());
        // The code is newer.
        let later = SystemTime::now() + Duration::from_mins(1);
        fs::File::options().write(true).open(root.join("a.py")).unwrap().set_modified(later).unwrap();
        assert_eq!(of(&root, "a.py", 1, 2), Ran::default());
        fs::write(root.join(".coverage"), "no database").unwrap();
        assert_eq!(of(&root, "a.py", 1, 2), Ran::default());
    }

    #[test]
    fn reports_as_text() {
        let (_folder, root) = project();
        fs::write(root.join("lcov.info"), "TN:\nSF:a.py\nDA:1,1\nDA:2,3\nDA:6,0\nend_of_record\nSF:b.py\nDA:6,1\n")
            .unwrap();
        assert_eq!(of(&root, "a.py", 1, 2).at_all, Some(true));
        assert_eq!(of(&root, "a.py", 5, 6).at_all, Some(false));
        assert_eq!(of(&root, "a.py", 8, 9).at_all, None);
        let json = r#"{"files": {"a.py": {"executed_lines": [1, 2], "contexts": {"2": ["t.test_f", ""], "6": ["t.test_g"]}}}}"#;
        fs::write(root.join("coverage.json"), json).unwrap();
        assert_eq!(tests(&of(&root, "a.py", 1, 2)), ["t.test_f"]);
    }

    #[test]
    fn tests_have_names() {
        for (context, path, name) in [
            ("tests/test_a.py::TestA::test_x[1-b]|run", Some("tests/test_a.py"), "TestA.test_x"),
            ("tests.test_a.TestA.test_x", None, "tests.test_a.TestA.test_x"),
        ] {
            assert_eq!(test(context), (path.map(str::to_owned), name.to_owned()));
        }
    }
}
