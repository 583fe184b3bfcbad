//! Tests databases of other programs: which rows are read, and which files are refused.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge_os::foreign::LinkPolicy;
use nudge_storage::foreign::{ForeignDatabase, ForeignLimits, ForeignLog, UnfitDatabase};
use nudge_storage::rusqlite::{Connection, config::DbConfig};

fn limits() -> ForeignLimits {
    ForeignLimits {
        file_bytes: 16 << 20,
        value_bytes: 1 << 20,
        all_bytes: 4 << 20,
        steps: 1_000_000,
        until: Instant::now() + Duration::from_mins(1),
    }
}

/// Makes a database file with an SQL script, which may also write to the schema table.
fn made(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("theirs.db");
    let c = Connection::open(&path).unwrap();
    c.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false).unwrap();
    c.pragma_update(None, "writable_schema", true).unwrap();
    c.execute_batch(script).unwrap();
    path
}

/// Reads the texts in column `x` of table `t`.
fn texts(path: &Path, limits: &ForeignLimits) -> Result<Vec<String>, UnfitDatabase> {
    let mut texts = Vec::new();
    ForeignDatabase::open(path, LinkPolicy::Refused, ForeignLog::Read, limits)?.for_each_row(
        "t",
        &["x"],
        None,
        &mut |row| {
            texts.push(row.get(0).unwrap());
            ControlFlow::Continue(())
        },
    )?;
    Ok(texts)
}

const ENDLESS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n ORDER BY x DESC";

#[test]
fn only_ordinary_tables_are_read() {
    let disguised =
        |name: &str, sql: &str| format!("INSERT INTO sqlite_schema VALUES('table', '{name}', '{name}', 0, '{sql}')");
    for script in [
        format!("CREATE VIEW t(x) AS {ENDLESS}"),
        "CREATE VIRTUAL TABLE t USING fts5(x)".to_owned(),
        "CREATE TABLE t(y, x AS (hex(zeroblob(1000000))))".to_owned(),
        "CREATE TABLE t(y)".to_owned(),
        "CREATE TABLE u(x)".to_owned(),
        // Makes schema rows whose columns disagree with their SQL text; SQLite uses the SQL text.
        disguised("t", &format!("CREATE VIEW t(x) AS {ENDLESS}")),
        disguised("u", &format!("CREATE VIEW t(x) AS {ENDLESS}")),
        disguised("t", "CREATE VIRTUAL TABLE t USING fts5(x)"),
        disguised("IF", "CREATE VIRTUAL TABLE IF NOT EXISTS t USING fts5(x)"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let unfit = texts(&made(folder.path(), &script), &limits()).unwrap_err();
        assert!(
            matches!(unfit, UnfitDatabase::NoTable | UnfitDatabase::NotADatabase | UnfitDatabase::Damaged),
            "{script}: {unfit:?}"
        );
    }
}

#[test]
fn every_read_has_limits() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path(), "CREATE TABLE t(x TEXT); INSERT INTO t VALUES('one'), ('two')");
    assert_eq!(texts(&path, &limits()).unwrap(), ["one", "two"]);
    let many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20000) INSERT INTO t SELECT 'x' || x FROM n";
    Connection::open(&path).unwrap().execute_batch(many).unwrap();
    let long = "INSERT INTO t VALUES(printf('%1000d', 1))";
    Connection::open(&path).unwrap().execute_batch(long).unwrap();
    for less in [
        ForeignLimits { file_bytes: 4_096, ..limits() },
        ForeignLimits { value_bytes: 500, ..limits() },
        ForeignLimits { all_bytes: 100, ..limits() },
        ForeignLimits { steps: 10_000, ..limits() },
        ForeignLimits { until: Instant::now(), ..limits() },
    ] {
        assert!(matches!(texts(&path, &less), Err(UnfitDatabase::TooMuch)), "{less:?}");
    }
    let mut found = 0;
    let only: (&str, &dyn nudge_storage::rusqlite::ToSql) = ("x", &"x7");
    let file = ForeignDatabase::open(&path, LinkPolicy::Refused, ForeignLog::Ignored, &limits()).unwrap();
    file.for_each_row("t", &["x"], Some(only), &mut |_| {
        found += 1;
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(found, 1);
    drop(file);
    let tables = (0..1_001).map(|number| format!("CREATE TABLE t{number}(x);")).collect::<Vec<_>>().concat();
    let tables = format!("BEGIN; {tables} COMMIT");
    Connection::open(&path).unwrap().execute_batch(&tables).unwrap();
    texts(&path, &limits()).unwrap_err();
    fs::write(&path, "no database".repeat(100)).unwrap();
    assert!(matches!(texts(&path, &limits()), Err(UnfitDatabase::NotADatabase)));
}

/// A file that its own program has open is read with its log. The read waits until that program has finished its
/// change.
#[test]
fn a_file_in_use_is_read_and_nothing_is_made_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path(), "PRAGMA journal_mode = WAL; CREATE TABLE t(x TEXT); INSERT INTO t VALUES('one')");
    let c = Connection::open(&path).unwrap();
    c.execute_batch("INSERT INTO t VALUES('two')").unwrap();
    assert_eq!(texts(&path, &limits()).unwrap(), ["one", "two"], "from the log");
    c.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(c);
    assert_eq!(texts(&path, &limits()).unwrap(), ["one", "two"]);
    fs::write(folder.path().join("theirs.db-journal"), "journal").unwrap();
    let soon = ForeignLimits { until: Instant::now() + Duration::from_millis(50), ..limits() };
    assert!(matches!(texts(&path, &soon), Err(UnfitDatabase::InUse)));
    fs::remove_file(folder.path().join("theirs.db-journal")).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no file was made");
}

#[cfg(unix)]
#[test]
fn no_pipe_is_waited_for_and_no_link_followed() {
    let pipe = |path: &Path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    let folder = tempfile::tempdir().unwrap();
    let path_of = |name: &str| folder.path().join(name);
    pipe(&path_of("pipe"));
    std::os::unix::fs::symlink("/dev/zero", path_of("zero")).unwrap();
    for odd in ["pipe", "zero", "missing"] {
        assert!(matches!(texts(&path_of(odd), &limits()), Err(UnfitDatabase::File(_))), "{odd}");
    }
    let path = made(folder.path(), "CREATE TABLE t(x TEXT); INSERT INTO t VALUES('one')");
    pipe(&path_of("theirs.db-wal"));
    pipe(&path_of("theirs.db-journal"));
    assert_eq!(texts(&path, &limits()).unwrap(), ["one"]);
}
