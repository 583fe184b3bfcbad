//! Tests many processes that use one file: killed processes, two versions, a full disk. The test starts its own program
//! again with a role for each process.
//!
//! To kill 480 processes: `NUDGE_STORAGE_KILLS=480 cargo test -p nudge-storage --test processes kills`.

mod kit;

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use kit::{CACHE, Desk, FORGETTING, NEW, OLD, add, count, titles};
use libtest_mimic::{Arguments, Trial};
use nudge_core::clock::{Clock as _, SystemClock};
use nudge_core::error::Error;
use nudge_core::service::{CallIdentity, Caller};
use nudge_core::source::DataDir;
use nudge_storage::{DatabaseKind, DatabaseOpening, Db, mark_compaction};

/// The environment variable that holds the role of a started process.
const ROLE: &str = "NUDGE_STORAGE_ROLE";
/// Number of processes that a run kills in each mode.
const KILLS: usize = 48;

fn main() -> ExitCode {
    if let Ok(role) = std::env::var(ROLE) {
        let args: Vec<_> = std::env::args().skip(1).collect();
        play(&role, &args.iter().map(String::as_str).collect::<Vec<_>>());
        return ExitCode::SUCCESS;
    }
    let trial = |name: &str, run: fn()| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    };
    let trials = vec![
        trial("kills_lose_nothing_that_was_flushed", kills_lose_nothing_that_was_flushed),
        trial("kills_lose_nothing_that_was_not_flushed", kills_lose_nothing_that_was_not_flushed),
        trial("first_opens_at_once", first_opens_at_once),
        trial("migrations_at_once", migrations_at_once),
        trial("two_versions_at_once", two_versions_at_once),
        trial("a_key_sent_again_after_a_kill", a_key_sent_again_after_a_kill),
        trial("locks_outlast_all_that_is_done_to_the_file", locks_outlast_all_that_is_done_to_the_file),
        trial("a_deletion_for_ever_outlasts_a_kill", a_deletion_for_ever_outlasts_a_kill),
        #[cfg(unix)]
        trial("a_log_is_not_replayed_onto_another_file", a_log_is_not_replayed_onto_another_file),
        #[cfg(unix)]
        trial("a_log_that_was_copied_with_its_file_is_replayed", a_log_that_was_copied_with_its_file_is_replayed),
        #[cfg(target_os = "linux")]
        trial("a_compaction_takes_no_memory_for_the_file", a_compaction_takes_no_memory_for_the_file),
        #[cfg(unix)]
        trial("a_full_disk_changes_nothing", a_full_disk_changes_nothing),
        #[cfg(unix)]
        trial("a_folder_that_cannot_be_written", a_folder_that_cannot_be_written),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Acts in the role of a started process, and prints a line after each action.
fn play(role: &str, args: &[&str]) {
    let folder = DataDir::new(args[0]);
    let open = |app: &'static DatabaseKind| Db::open(&DatabaseOpening::new(&folder, app));
    match (role, &args[1..]) {
        ("write", [mode, tag]) => {
            let db = open(if *mode == "full" { &OLD } else { &CACHE }).unwrap();
            for number in 0.. {
                let title = format!("{tag}-{number}");
                add(&db, &title).unwrap();
                say(&title);
            }
        }
        ("add", [version, title]) => {
            let app = if *version == "old" { &OLD } else { &NEW };
            told(open(app).and_then(|db| add(&db, title)).map(|_| ()));
        }
        ("add at once", [title]) => {
            let opening = DatabaseOpening { wait: Duration::ZERO, ..DatabaseOpening::new(&folder, &OLD) };
            told(Db::open(&opening).and_then(|db| add(&db, title)).map(|_| ()));
        }
        ("old", []) => {
            let db = open(&OLD).unwrap();
            add(&db, "of the old one").unwrap();
            say("open");
            std::io::stdin().read_line(&mut String::new()).unwrap();
            told(add(&db, "too late").map(|_| ()));
            told(db.read(|_| Ok(())));
        }
        ("key", [key]) => {
            let db = open(&OLD).unwrap();
            say("begin");
            say(&once(&db, key));
            // Waits until the process is killed.
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
        ("fill", []) => {
            let db = open(&OLD).unwrap();
            let mut number = 0;
            let refused = loop {
                match add(&db, &number.to_string()) {
                    Ok(_) => number += 1,
                    Err(refused) => break refused,
                }
            };
            assert_eq!(count(&db), number, "what was refused is not there, all else is");
            told(Err(refused));
            say(&number.to_string());
        }
        ("forget", [end]) => {
            let db = open(&FORGETTING).unwrap();
            delete_for_ever(&db, SECRET);
            say("committed");
            if *end == "compact" {
                db.compact().unwrap();
            }
            // Waits until the process is killed.
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
        ("compact", []) => {
            open(&FORGETTING).unwrap().compact().unwrap();
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            say(peak.trim().trim_end_matches(" kB"));
        }
        _ => panic!("{role}: {args:?}"),
    }
}

/// Prints a line in one write, so that the reader never sees a part of the line.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

fn told(done: Result<(), Error>) {
    say(&done.map_or_else(|refused| format!("{refused:?}"), |()| "done".into()));
}

/// Adds a note in a call with a key, and returns the answer.
fn once(db: &Db, key: &str) -> String {
    let mut caller = Caller::with_name("test").with_key(Some(key));
    caller.call = Some(CallIdentity::new("nudge.notes.add", key));
    let add = |tx: &nudge_storage::rusqlite::Transaction<'_>| {
        tx.execute("INSERT INTO note(title, body) VALUES(?1 || ':' || random(), '')", [key])?;
        Ok(tx.query_row("SELECT title FROM note WHERE id = last_insert_rowid()", [], |row| row.get::<_, String>(0))?)
    };
    db.write_once(caller, add).unwrap().result.get().to_owned()
}

/// A process that this test has started.
struct Actor {
    child: Child,
    /// The lines that the process prints; `None` when another thread reads them.
    lines: Option<Lines<BufReader<ChildStdout>>>,
    stdin: Option<ChildStdin>,
}

impl Actor {
    fn start(role: &str, args: &[&str]) -> Self {
        Self::start_by(Command::new(std::env::current_exe().unwrap()), role, args)
    }

    fn start_by(mut command: Command, role: &str, args: &[&str]) -> Self {
        command.args(args).env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = child.stdout.take().map(|out| BufReader::new(out).lines());
        let stdin = child.stdin.take();
        Self { child, lines, stdin }
    }

    fn line(&mut self) -> String {
        self.lines.as_mut().unwrap().next().expect("a line").unwrap()
    }

    /// Waits for a successful end, and returns the remaining lines.
    fn rest(mut self) -> Vec<String> {
        drop(self.stdin.take());
        let lines = self.lines.take().into_iter().flatten().map(Result::unwrap).collect();
        assert!(self.child.wait().unwrap().success());
        lines
    }

    fn kill(mut self) {
        assert!(self.child.try_wait().unwrap().is_none(), "it failed before");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn folder(desk: &Desk) -> &str {
    desk.folder.path().to_str().unwrap()
}

/// Promise (storage): The database keeps every acknowledged change when a writer is killed, and a refused change
/// leaves nothing.
fn kills_lose_nothing_that_was_flushed() {
    kills("full", &OLD);
}

fn kills_lose_nothing_that_was_not_flushed() {
    kills("normal", &CACHE);
}

/// Runs four writers at a time, and kills one after another during its writes.
fn kills(mode: &str, app: &'static DatabaseKind) {
    let kills = std::env::var("NUDGE_STORAGE_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let desk = Desk::new();
    let (sender, acks) = channel();
    let mut readers = Vec::new();
    let mut start = |number: usize| {
        let mut actor = Actor::start("write", &[folder(&desk), mode, &format!("w{number}")]);
        let (lines, sender) = (actor.lines.take().unwrap(), sender.clone());
        readers.push(std::thread::spawn(move || {
            // The last line may be incomplete. Then its change was not acknowledged.
            lines.map_while(Result::ok).for_each(|line| sender.send(line).unwrap());
        }));
        actor
    };
    let mut actors: Vec<_> = (0..4).map(&mut start).collect();
    let (mut told, mut random) = (HashSet::new(), Random(42));
    for number in 4..kills + 4 {
        for _ in 0..=random.below(40) {
            told.insert(acks.recv().unwrap());
        }
        actors.swap_remove(random.below(4)).kill();
        actors.push(start(number));
    }
    actors.into_iter().for_each(Actor::kill);
    for reader in readers {
        reader.join().unwrap();
    }
    drop(sender);
    told.extend(acks.try_iter());

    let db = desk.open(app);
    let there: HashSet<_> = titles(&db).into_iter().collect();
    let lost: Vec<_> = told.difference(&there).collect();
    assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), told.len());
    let halves = "SELECT count(*) FROM note WHERE id NOT IN (SELECT note FROM vector)";
    assert_eq!(db.read(|c| Ok(c.query_row(halves, [], |row| row.get::<_, i64>(0))?)).unwrap(), 0);
    let health = db.check().unwrap();
    assert!(health.is_sound() && health.rebuilt.is_empty(), "{health:?}");
    println!("{mode}: {kills} kills, {} acknowledged, 0 lost, {} there", told.len(), there.len());
}

/// A random number generator that gives the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

/// Ten processes open a missing database at the same time, twenty times.
fn first_opens_at_once() {
    for _ in 0..20 {
        let desk = Desk::new();
        at_once(&desk, "old");
        let db = desk.open(&OLD);
        assert_eq!(count(&db), 10);
        assert!(db.check().unwrap().is_sound());
    }
}

/// Ten processes of a new version open a file of the old version at the same time.
fn migrations_at_once() {
    for _ in 0..5 {
        let desk = Desk::new();
        // The other processes use the system's clock, so this one does too.
        desk.clock.jump_by(SystemClock.now() - kit::NOON);
        add(&desk.open(&OLD), "old").unwrap();
        at_once(&desk, "new");
        let db = desk.open(&NEW);
        assert_eq!(count(&db), 11);
        assert!(db.check().unwrap().is_sound());
        assert!(desk.backups().iter().any(|name| name.ends_with(".v2.db")), "{:?}", desk.backups());
        assert!(desk.backups().len() <= 3, "{:?}", desk.backups());
    }
}

fn at_once(desk: &Desk, version: &str) {
    let actors: Vec<_> =
        (0..10).map(|number| Actor::start("add", &[folder(desk), version, &format!("n{number}")])).collect();
    for actor in actors {
        assert_eq!(actor.rest(), ["done"]);
    }
}

/// A process continues with its own version after another process has migrated the file.
fn two_versions_at_once() {
    let desk = Desk::new();
    let mut old = Actor::start("old", &[folder(&desk)]);
    assert_eq!(old.line(), "open");
    let new = desk.open(&NEW);
    add(&new, "of the new one").unwrap();
    let refused = format!(
        "E_UNAVAILABLE (50301): The database {} was written by a newer nudge; update this one.",
        desk.path().display()
    );
    assert_eq!(old.rest(), [refused.as_str(), &refused], "neither a change nor a look");
    new.close().unwrap();
    let before = std::fs::read(desk.path()).unwrap();
    assert_eq!(Actor::start("add", &[folder(&desk), "old", "too late"]).rest(), [refused]);
    assert_eq!(std::fs::read(desk.path()).unwrap(), before);
    assert_eq!(titles(&desk.open(&NEW)), ["of the new one", "of the old one"]);
}

/// A process dies before a change, or between the change and its answer. The next process gets the same call again.
///
/// Promise (storage): The file holds a change together with the key of its call, or neither of them.
fn a_key_sent_again_after_a_kill() {
    let desk = Desk::new();
    let mut answers = Vec::new();
    for number in 0..24 {
        let key = format!("key{number}");
        let mut first = Actor::start("key", &[folder(&desk), &key]);
        assert_eq!(first.line(), "begin");
        // Every second process is killed while it writes.
        let answer = (number % 2 == 0).then(|| first.line());
        first.kill();
        let db = desk.open(&OLD);
        let again = once(&db, &key);
        assert!(answer.is_none_or(|answer| answer == again), "{again}");
        assert_eq!(once(&db, &key), again);
        answers.push(again.trim_matches('"').to_owned());
    }
    answers.sort();
    assert_eq!(titles(&desk.open(&OLD)), answers, "each was made once");
}

/// The title of a note that the test deletes and compacts away.
const SECRET: &str = "zyzzyvatron";

fn delete_for_ever(db: &Db, title: &str) {
    db.write(|tx| {
        tx.execute("DELETE FROM note WHERE title = ?1", [title])?;
        mark_compaction(tx)
    })
    .unwrap();
}

/// Counts the files of the database that contain the secret. The function searches only the end of the secret, because
/// FTS5 stores only the part of a word that differs from the word before it.
fn count_holders(desk: &Desk) -> usize {
    let names = kit::names(desk.folder.path()).into_iter().filter(|name| name.starts_with("notes.db"));
    let texts = names.map(|name| std::fs::read(desk.folder.path().join(name)).unwrap());
    texts.filter(|text| text.windows(6).any(|part| part == b"vatron")).count()
}

/// A process dies between the deletion and the end of the compaction. The next process completes the compaction.
fn a_deletion_for_ever_outlasts_a_kill() {
    for end in ["wait", "compact"].iter().cycle().copied().take(12) {
        let desk = Desk::new();
        let db = desk.open(&FORGETTING);
        for number in 0..200 {
            add(&db, &format!("zyzzy{number}")).unwrap();
        }
        add(&db, SECRET).unwrap();
        db.close().unwrap();
        let mut first = Actor::start("forget", &[folder(&desk), end]);
        assert_eq!(first.line(), "committed");
        // Every second process is killed during the compaction.
        first.kill();
        let db = desk.open(&FORGETTING);
        if end == "wait" {
            assert!(count_holders(&desk) > 0 && db.is_compaction_due().unwrap());
        }
        db.compact().unwrap();
        assert!(!db.is_compaction_due().unwrap());
        assert_eq!(count_holders(&desk), 0, "{end}");
        assert_eq!((count(&db), db.check().unwrap().is_sound()), (200, true));
    }
}

#[cfg(target_os = "linux")]
fn a_compaction_takes_no_memory_for_the_file() {
    const MIB: u64 = 64;
    let desk = Desk::new();
    let db = desk.open(&FORGETTING);
    for number in 0..MIB {
        let id = add(&db, &number.to_string()).unwrap();
        db.write(|tx| Ok(tx.execute("UPDATE vector SET bytes = randomblob(1 << 20) WHERE note = ?1", [id])?)).unwrap();
    }
    delete_for_ever(&db, "0");
    db.close().unwrap();
    let peak: u64 = Actor::start("compact", &[folder(&desk)]).rest()[0].parse().unwrap();
    assert!(peak < MIB * 1024 / 2, "{peak} KiB");
}

/// Returns true when this process holds a lock of the file. A process holds one for each open database.
#[cfg(target_os = "linux")]
fn is_locked(path: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let ours = [std::process::id().to_string(), format!(":{}", path.metadata().unwrap().ino())];
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|lock| {
        lock.get(1) == Some(&"POSIX")
            && lock.get(4) == Some(&&*ours[0])
            && lock.iter().any(|field| field.ends_with(&ours[1]))
    })
}

/// While this process changes the file, no other process can write to it. The locks must survive whatever this process
/// does with the file.
///
/// Promise: see `sqlite_alone_opens_the_file`.
fn locks_outlast_all_that_is_done_to_the_file() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "before").unwrap();
    // This first write of a new day also makes the copy of the day.
    desk.clock.advance_by(24 * kit::HOUR);
    db.write(|tx| {
        tx.execute("INSERT INTO note(title, body) VALUES('within', '')", [])?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(count(&db), 1);
                db.read_change_number().unwrap();
                db.backup(&desk.folder.path().join("mine.db")).unwrap();
                assert_eq!((db.newest_backup().is_some(), db.journal_mode().as_str()), (true, "wal"));
                assert!(desk.path().metadata().unwrap().len() > 0);
                // A second connection in the same process opens and closes.
                assert_eq!(count(&desk.open(&OLD)), 1);
            });
        });
        let other = Actor::start("add at once", &[folder(&desk), "in between"]).rest();
        assert!(other[0].contains("is in use by another call or process; try again."), "{other:?}");
        Ok(())
    })
    .unwrap();
    #[cfg(target_os = "linux")]
    assert!(is_locked(&desk.path()), "whoever ends as the last one removes the log");
    assert_eq!(Actor::start("add at once", &[folder(&desk), "after"]).rest(), ["done"]);
    assert_eq!(titles(&db), ["after", "before", "within"]);
}

/// Starts a process that writes notes, kills it, and returns the titles of the notes.
#[cfg(unix)]
fn write_and_die(desk: &Desk) -> Vec<String> {
    let mut writer = Actor::start("write", &[folder(desk), "full", "killed"]);
    let written = (0..30).map(|_| writer.line()).collect();
    writer.kill();
    assert!(desk.folder.path().join("notes.db-wal").metadata().unwrap().len() > 0, "it left its log");
    written
}

/// All processes have died when a user moves a copy over the database, so their log is still there.
///
/// Promise (storage): After a copy was moved over the database, `SQLite` does not replay the log of a killed process
/// onto the copy (Unix).
#[cfg(unix)]
fn a_log_is_not_replayed_onto_another_file() {
    let desk = Desk::new();
    let copy = desk.folder.path().join("copy.db");
    let db = desk.open(&OLD);
    for number in 0..20 {
        add(&db, &format!("before {number}")).unwrap();
    }
    db.backup(&copy).unwrap();
    db.close().unwrap();
    write_and_die(&desk);
    std::fs::rename(&copy, desk.path()).unwrap();
    for more in 0..3 {
        let db = desk.open(&OLD);
        assert!(db.check().unwrap().is_sound());
        assert_eq!(count(&db), 20 + more);
        add(&db, &format!("after {more}")).unwrap();
    }
    let logs = desk.backups().into_iter().filter(|name| name.ends_with("-replaced.wal"));
    assert_eq!(logs.count(), 1, "it is all there is of what it holds");
}

/// After a whole folder was restored, its database and log are new files that belong together.
///
/// Promise: see `a_log_is_not_replayed_onto_another_file`.
#[cfg(unix)]
fn a_log_that_was_copied_with_its_file_is_replayed() {
    let (desk, other) = (Desk::new(), Desk::new());
    add(&desk.open(&OLD), "before").unwrap();
    let written = write_and_die(&desk);
    other.folder.create_folder().unwrap();
    for name in kit::names(desk.folder.path()).iter().filter(|name| *name != "backups") {
        std::fs::copy(desk.folder.path().join(name), other.folder.path().join(name)).unwrap();
    }
    for desk in [desk, other] {
        let titles = titles(&desk.open(&OLD));
        assert!(written.iter().all(|title| titles.contains(title)));
    }
}

/// The test limits the size of files to a megabyte or two, which has the same effect as a full disk.
///
/// Promise: see `kills_lose_nothing_that_was_flushed`.
#[cfg(unix)]
fn a_full_disk_changes_nothing() {
    let desk = Desk::new();
    let mut shell = Command::new("sh");
    let limited = r#"trap '' XFSZ; ulimit -f 2000; exec "$0" "$@""#;
    shell.args(["-c", limited]).arg(std::env::current_exe().unwrap());
    let said = Actor::start_by(shell, "fill", &[folder(&desk)]).rest();
    let refused = ["cannot grow, so nothing was changed", "cannot be read or written, so nothing was changed"];
    assert!(refused.iter().any(|refused| said[0].contains(refused)), "{said:?}");
    let db = desk.open(&OLD);
    assert_eq!(count(&db).to_string(), said[1]);
    assert!(count(&db) > 10 && db.check().unwrap().is_sound());
    add(&db, "there is room again").unwrap();
}

/// Modes of a folder do not restrict root, so the test uses another user when root starts it.
#[cfg(unix)]
fn a_folder_that_cannot_be_written() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let desk = Desk::new();
    add(&desk.open(&OLD), "there").unwrap();
    let path = desk.folder.path();
    let of_root = chown(path, Some(65_534), Some(65_534)).is_ok();
    let files: Vec<_> = [path.join("notes.db"), path.to_owned(), path.parent().unwrap().to_owned()].into();
    for (file, mode) in files.iter().zip([0o400, 0o500, 0o755]) {
        if of_root {
            chown(file, Some(65_534), Some(65_534)).unwrap();
        }
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let exe = std::env::current_exe().unwrap();
    let command = if of_root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(exe);
        command
    } else {
        Command::new(exe)
    };
    let said = Actor::start_by(command, "add", &[folder(&desk), "old", "more"]).rest();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
    let rest = "cannot be opened for writing; make it and its folder writable.";
    assert!(said[0].starts_with("E_UNAVAILABLE") && said[0].ends_with(rest), "{said:?}");
    assert_eq!(kit::names(path), ["notes.db"], "nothing was left");
}
