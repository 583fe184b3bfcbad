//! Finds the tests that ran some lines of code, in the coverage files of the project. Coverage is more reliable than
//! the calls in the code.
//!
//! Two kinds of files are read. Files of coverage.py say which test ran which line (`dynamic_context`,
//! `--cov-context=test`). `lcov` files say only whether a line ran. A coverage file that is older than the code is
//! ignored.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge_core::text::before_mark;
use nudge_os::foreign::{self, LinkPolicy};
use nudge_storage::foreign::{ForeignDatabase, ForeignLimits, ForeignLog, UnfitDatabase};
use parking_lot::Mutex;
use serde_json::Value;

use crate::root::ProjectRoot;

/// The names of coverage files, relative to the top of the project.
const DATABASE: &str = ".coverage";
const JSON: [&str; 1] = ["coverage.json"];
const LCOV: [&str; 3] = ["lcov.info", "coverage/lcov.info", "target/lcov.info"];
/// The most bytes of a coverage file. A database may have more, `MAX_DATABASE_BYTES`; it is in memory while it is read.
const MAX_BYTES: u64 = 32 << 20;
const MAX_DATABASE_BYTES: u64 = 128 << 20;
/// The most bytes of one value in a database. `MAX_VALUES_BYTES` limits all values that are read together: names of
/// tests, and bitmaps of the lines of files.
const MAX_VALUE_BYTES: i32 = 1 << 20;
const MAX_VALUES_BYTES: u64 = 32 << 20;
/// The most steps of `SQLite`'s virtual machine; a row takes about ten steps.
const MAX_STEPS: u64 = 50_000_000;
/// The most tests that ran one file.
const MAX_CONTEXTS: usize = 20_000;
/// The longest time that one answer waits for coverage. To read 100 MiB takes 50 ms.
const MAX_TIME: Duration = Duration::from_millis(500);

/// The time for which the reader remembers that a project has no coverage. Each answer about a node checks this.
const NONE_FOR: Duration = Duration::from_secs(1);

/// Reads the coverage of a root.
#[derive(Debug, Default)]
pub struct CoverageReader {
    found_none: Mutex<Option<Instant>>,
    /// Only one answer reads coverage at a time. Other answers wait, at most for their own time limit.
    reading: Mutex<()>,
}

/// The lines of a definition after its first line. The first line runs already when the file is loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CoverageRange {
    /// The file.
    pub path: String,
    /// The first line.
    pub first: u32,
    /// The last line.
    pub last: u32,
}

/// The coverage of some lines.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RangeCoverage {
    /// The tests that ran any of the lines, in the form in which the test runner names them.
    pub tests: BTreeSet<String>,
    /// Is true when anything ran the lines; `None` if coverage does not say it.
    pub at_all: Option<bool>,
}

/// The coverage of a project, as read for one answer.
#[derive(Debug, Default)]
pub struct CoverageAnswer {
    ran: BTreeMap<CoverageRange, RangeCoverage>,
    /// Is true when the time limit ended the read, so the coverage of some lines is unknown.
    pub is_late: bool,
}

impl CoverageAnswer {
    /// Returns the coverage of a range, or `None` if it is unknown.
    pub fn find_range(&self, lines: &CoverageRange) -> Option<&RangeCoverage> {
        self.ran.get(lines)
    }
}

impl CoverageReader {
    /// Returns true if the project has a coverage file, which may be too old.
    pub fn is_there(&self, root: &ProjectRoot) -> bool {
        let mut found_none = self.found_none.lock();
        if found_none.is_some_and(|moment| moment.elapsed() < NONE_FOR) {
            return false;
        }
        let mut all = [DATABASE].into_iter().chain(JSON).chain(LCOV);
        let is_there = all.any(|name| root.join(name).symlink_metadata().is_ok());
        *found_none = (!is_there).then(Instant::now);
        is_there
    }

    /// Reads the coverage of some lines, within the time limit. The read can take half a second, so the caller must
    /// hold no lock that others need.
    pub fn read(&self, root: &ProjectRoot, wanted: &BTreeSet<CoverageRange>) -> CoverageAnswer {
        let until = Instant::now() + MAX_TIME;
        let Some(_reading) = self.reading.try_lock_until(until) else {
            return CoverageAnswer { is_late: true, ..CoverageAnswer::default() };
        };
        read(root, wanted, until)
    }
}

fn read(root: &ProjectRoot, wanted: &BTreeSet<CoverageRange>, until: Instant) -> CoverageAnswer {
    let mut covered = CoverageAnswer::default();
    let reports = CoverageReports::default();
    let mut database = None;
    for lines in wanted {
        let mut ran = None;
        if find_newer(root, DATABASE, &lines.path, MAX_DATABASE_BYTES).is_some() {
            // A database that cannot be used counts as missing, and the other coverage files are read instead.
            let database = database.get_or_insert_with(|| CoverageDatabase::open(root, until));
            match database.as_mut().map_err(|unfit| matches!(unfit, UnfitDatabase::TooMuch)) {
                Ok(database) => match database.read_range(root, lines) {
                    Ok(found) => ran = found,
                    Err(unfit) => covered.is_late |= matches!(unfit, UnfitDatabase::TooMuch),
                },
                Err(is_late) => covered.is_late |= is_late,
            }
        }
        if Instant::now() >= until {
            covered.is_late = true;
            break;
        }
        let ran = ran
            .or_else(|| reports.read_json(root, lines))
            .or_else(|| reports.read_lcov(root, lines))
            .unwrap_or_default();
        covered.ran.insert(lines.clone(), ran);
    }
    covered
}

/// Returns the path of a coverage file if it is newer than the code file `path` and has at most `most` bytes.
fn find_newer(root: &ProjectRoot, name: &str, path: &str, most: u64) -> Option<PathBuf> {
    let place = root.join(name);
    let meta = place.symlink_metadata().ok().filter(|meta| meta.is_file() && meta.len() <= most)?;
    let code = root.join(path).symlink_metadata().ok()?;
    (meta.modified().ok()? >= code.modified().ok()?).then_some(place)
}

/// The open database of coverage.py.
struct CoverageDatabase {
    file: ForeignDatabase,
    /// The names of the tests that were looked up, by their numbers in the database.
    contexts: BTreeMap<i64, Option<String>>,
}

impl CoverageDatabase {
    fn open(root: &ProjectRoot, until: Instant) -> Result<Self, UnfitDatabase> {
        let limits = ForeignLimits {
            file_bytes: MAX_DATABASE_BYTES,
            value_bytes: MAX_VALUE_BYTES,
            all_bytes: MAX_VALUES_BYTES,
            steps: MAX_STEPS,
            until,
        };
        let file = ForeignDatabase::open(&root.join(DATABASE), LinkPolicy::Refused, ForeignLog::Ignored, &limits)?;
        Ok(Self { file, contexts: BTreeMap::new() })
    }

    /// Reads the coverage of some lines; `None` if the database does not have the file of these lines.
    fn read_range(
        &mut self,
        root: &ProjectRoot,
        lines: &CoverageRange,
    ) -> Result<Option<RangeCoverage>, UnfitDatabase> {
        let whole = root.join(&lines.path);
        let mut files = BTreeSet::new();
        for path in [Some(lines.path.as_str()), whole.to_str()].into_iter().flatten() {
            self.file.for_each_row("file", &["id"], Some(("path", &path)), &mut |row| {
                files.extend(row.get::<_, i64>(0));
                ControlFlow::Continue(())
            })?;
        }
        let (mut ran, mut contexts, mut left) = (RangeCoverage::default(), BTreeSet::new(), MAX_CONTEXTS);
        for file in files {
            self.file.for_each_row("line_bits", &["context_id", "numbits"], Some(("file_id", &file)), &mut |row| {
                let (context, bits) = (row.get::<_, i64>(0), row.get_ref(1));
                if let (Ok(context), Some(bits)) = (context, bits.ok().and_then(|bits| bits.as_blob().ok())) {
                    let has_run = list_set_bits(bits).any(|line| lines.contains_line(line));
                    ran.add_run("", has_run);
                    contexts.extend(has_run.then_some(context));
                }
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        }
        for id in contexts {
            if let Some(context) = self.read_context(id)? {
                ran.add_run(&context, true);
            }
        }
        Ok(ran.at_all.is_some().then_some(ran))
    }

    fn read_context(&mut self, id: i64) -> Result<Option<String>, UnfitDatabase> {
        if let Some(known) = self.contexts.get(&id) {
            return Ok(known.clone());
        }
        let mut context = None;
        self.file.for_each_row("context", &["context"], Some(("id", &id)), &mut |row| {
            context = row.get(0).ok();
            ControlFlow::Break(())
        })?;
        self.contexts.insert(id, context.clone());
        Ok(context)
    }
}

impl CoverageRange {
    fn contains_line(&self, line: u32) -> bool {
        if self.last > self.first { self.first < line && line <= self.last } else { line == self.first }
    }
}

/// Lists the positions of the set bits.
fn list_set_bits(bits: &[u8]) -> impl Iterator<Item = u32> {
    let all = bits.iter().zip((0_u32..).step_by(8));
    all.flat_map(|(byte, from)| (0..8).filter(move |bit| byte & (1 << bit) != 0).map(move |bit| from + bit))
}

/// The coverage files other than the database. Each is read once for an answer.
#[derive(Default)]
struct CoverageReports {
    json: OnceCell<Option<Value>>,
    lcov: OnceCell<Option<String>>,
}

impl CoverageReports {
    fn read_json(&self, root: &ProjectRoot, lines: &CoverageRange) -> Option<RangeCoverage> {
        let file = JSON.iter().find_map(|name| find_newer(root, name, &lines.path, MAX_BYTES))?;
        let parse = || serde_json::from_slice(&foreign::read(&file, LinkPolicy::Refused, MAX_BYTES).ok()?).ok();
        let files = self.json.get_or_init(parse).as_ref()?.get("files")?;
        let own = files.get(&lines.path).or_else(|| files.get(root.join(&lines.path).to_str()?))?;
        let mut ran = RangeCoverage::default();
        let number = |line: &Value| line.as_u64().and_then(|line| u32::try_from(line).ok());
        let executed = own.get("executed_lines")?.as_array()?;
        ran.add_run("", executed.iter().filter_map(number).any(|line| lines.contains_line(line)));
        for (line, contexts) in own.get("contexts").and_then(Value::as_object).into_iter().flatten() {
            if line.parse().is_ok_and(|line| lines.contains_line(line)) {
                let contexts = contexts.as_array().into_iter().flatten().filter_map(Value::as_str);
                contexts.take(MAX_CONTEXTS).for_each(|context| ran.add_run(context, true));
            }
        }
        Some(ran)
    }

    fn read_lcov(&self, root: &ProjectRoot, lines: &CoverageRange) -> Option<RangeCoverage> {
        let file = LCOV.iter().find_map(|name| find_newer(root, name, &lines.path, MAX_BYTES))?;
        let text = self.lcov.get_or_init(|| foreign::read_text(&file, LinkPolicy::Refused, MAX_BYTES).ok()).as_ref()?;
        let (mut ran, mut program, mut is_ours) = (RangeCoverage::default(), "", false);
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("TN:") {
                program = name.trim();
            } else if let Some(file) = line.strip_prefix("SF:") {
                is_ours = is_same(root, file.trim(), &lines.path);
            } else if let Some((line, count)) =
                line.strip_prefix("DA:").filter(|_| is_ours).and_then(|da| da.split_once(','))
            {
                let has_run = count.split(',').next().is_some_and(|count| count.trim() != "0");
                if line.parse().is_ok_and(|line| lines.contains_line(line)) {
                    ran.add_run(program, has_run);
                }
            }
        }
        ran.at_all.is_some().then_some(ran)
    }
}

fn is_same(root: &ProjectRoot, given: &str, path: &str) -> bool {
    given.strip_prefix("./").unwrap_or(given) == path || Path::new(given) == root.join(path)
}

impl RangeCoverage {
    fn add_run(&mut self, context: &str, has_run: bool) {
        self.at_all = Some(has_run || self.at_all == Some(true));
        if has_run && !context.is_empty() {
            self.tests.insert(context.to_owned());
        }
    }
}

/// Splits a coverage context into the file and the name of a test. pytest writes
/// `tests/test_a.py::TestA::test_x[1]|run`. Other runners write a name with dots that begins with the file, such as
/// `tests.test_a.TestA.test_x`. For such a name, the file is `None`.
/// `tests/test_a.py::TestA::test_x[1]|run`. Other runners write a name with dots that begins with the file, such as
/// `tests.test_a.TestA.test_x`; then the file is `None`.
pub fn test(context: &str) -> (Option<String>, String) {
    let context = before_mark(context, &['|', '[']);
    match context.split_once("::") {
        Some((path, name)) => (Some(path.to_owned()), name.replace("::", ".")),
        None => (None, context.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use nudge_core::context::detect::{GitDetector, GitEnv};
    use nudge_storage::rusqlite::Connection;

    use super::*;

    fn of(root: &ProjectRoot, path: &str, first: u32, last: u32) -> RangeCoverage {
        let lines = CoverageRange { path: path.to_owned(), first, last };
        let covered = CoverageReader::default().read(root, &BTreeSet::from([lines.clone()]));
        covered.find_range(&lines).cloned().unwrap_or_default()
    }

    fn project() -> (tempfile::TempDir, ProjectRoot) {
        let folder = tempfile::tempdir().unwrap();
        let project_folder = folder.path().canonicalize().unwrap();
        fs::write(project_folder.join("setup.py"), "").unwrap();
        fs::write(project_folder.join("a.py"), "def f():\n    return 1\n\n\ndef g():\n    return 2\n").unwrap();
        let root = ProjectRoot::find_root(&project_folder, &mut GitDetector::with_env(GitEnv::empty())).unwrap();
        (folder, root)
    }

    fn tests(ran: &RangeCoverage) -> Vec<&str> {
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
        assert_eq!(of(&root, "setup.py", 1, 2), RangeCoverage::default());
        // The code is newer than the coverage.
        let later = SystemTime::now() + Duration::from_mins(1);
        fs::File::options().write(true).open(root.join("a.py")).unwrap().set_modified(later).unwrap();
        assert_eq!(of(&root, "a.py", 1, 2), RangeCoverage::default());
        fs::write(root.join(".coverage"), "no database").unwrap();
        assert_eq!(of(&root, "a.py", 1, 2), RangeCoverage::default());
    }

    /// Each of these databases would take endless time or all memory: a view, computed columns, a page that refers to
    /// itself.
    #[test]
    fn a_hostile_database_says_nothing_at_once() {
        const ENDLESS: &str =
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 1, 1, x FROM n WHERE x < 0";
        let tables = "CREATE TABLE file(id INTEGER PRIMARY KEY, path TEXT); INSERT INTO file VALUES(1, 'a.py');
            CREATE TABLE context(id INTEGER PRIMARY KEY, context TEXT); INSERT INTO context VALUES(1, 't.test_f');";
        for line_bits in [
            format!("CREATE VIEW line_bits(file_id, context_id, numbits) AS {ENDLESS}"),
            "CREATE TABLE line_bits(file_id, context_id, numbits AS (zeroblob(900000000)));
             INSERT INTO line_bits VALUES(1, 1), (1, 1), (1, 1)"
                .to_owned(),
        ] {
            let (_folder, root) = project();
            let c = Connection::open(root.join(".coverage")).unwrap();
            c.execute_batch(&format!("{tables} {line_bits}")).unwrap();
            drop(c);
            fs::write(root.join("lcov.info"), "TN:\nSF:a.py\nDA:2,3\nend_of_record\n").unwrap();
            assert_eq!(of(&root, "a.py", 1, 2).at_all, Some(true), "the report is read instead");
        }
    }

    #[test]
    fn who_reads_coverage_keeps_others_waiting_for_a_moment_only() {
        let (_folder, root) = project();
        let coverage = CoverageReader::default();
        let lines = BTreeSet::from([CoverageRange { path: "a.py".to_owned(), first: 1, last: 2 }]);
        let reading = coverage.reading.lock();
        assert!(coverage.read(&root, &lines).is_late);
        drop(reading);
        assert!(!coverage.read(&root, &lines).is_late);
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
