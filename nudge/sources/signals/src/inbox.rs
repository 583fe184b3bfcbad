//! The one file of an agent: sent to, read.
//!
//! A file is replaced by renaming a whole one over it, so a reader sees the old or the new, whoever dies when. The
//! specification's sender writes a file of one fixed name first; two at a time publish each other's halves. So the name
//! is new each time. Senders of ours also go one after another, for each has to be later than the last
//! ([`stamp`](crate::stamp)); those of others do as they like, which costs at most that order.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nudge_core::clock::Millis;
use nudge_core::error::{Error, Result};
use nudge_core::foreign::{self, Links};

use crate::agent::AgentId;
use crate::signal::{Draft, Signal};
use crate::stamp;
use crate::state::{StateDir, unusable};

/// The file of an agent.
const LATEST: &str = "latest.json";
/// Longest file that is read; ours are shorter than a tenth of it.
const MAX_BYTES: u64 = 64 << 10;
/// The names of files that are not yet whole.
const TEMPORARY: (&str, &str) = (".nudge-", ".tmp");
/// When one of those is left over from a sender that died.
const LEFT_OVER: Duration = Duration::from_hours(1);
/// How long a sender waits for the others. Whoever can read the folder can hold its lock, and an `abort` has to come
/// through, so then it goes on without.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// The place of an agent's signal.
#[derive(Debug, Clone, Copy)]
pub struct Inbox<'a> {
    state: &'a StateDir,
    agent: &'a AgentId,
}

impl<'a> Inbox<'a> {
    pub(crate) const fn new(state: &'a StateDir, agent: &'a AgentId) -> Self {
        Self { state, agent }
    }

    /// Reads the signal: `None` when there is none, and the reason in a few words when there is a file that cannot be
    /// read as one, which counts as none.
    ///
    /// # Errors
    /// `E_INVALID` for a link that leads out of the state directory; `E_UNAVAILABLE` when it cannot be looked at.
    pub fn read(&self) -> Result<Option<Result<Signal, String>>> {
        Ok(self.state.of_agent(self.agent)?.and_then(|folder| read(&folder.join(LATEST))))
    }

    /// Replaces the signal, and returns it as it was written. Its time is `now`, or later when that of the signal before
    /// is not earlier.
    ///
    /// # Errors
    /// As [`read`](Self::read), and as [`Draft::check`]; then nothing was changed.
    pub fn send(&self, draft: Draft, now: Millis) -> Result<Signal> {
        draft.check()?;
        let folder = self.state.make_of_agent(self.agent)?;
        let path = folder.join(LATEST);
        let _one_at_a_time = lock(&folder);
        let before = read(&path).and_then(Result::ok);
        let signal = draft.at(stamp::next(now, before.as_ref().map(|before| &*before.timestamp)));
        let text = signal.text().map_err(|_| Error::invalid("The signal cannot be written as JSON; report this."))?;
        replace(&folder, &path, &text).map_err(|error| unusable(&path, &error))?;
        sweep(&folder);
        Ok(signal)
    }
}

fn read(path: &Path) -> Option<Result<Signal, String>> {
    match foreign::read_text(path, Links::Refused, MAX_BYTES) {
        Ok(text) => Some(Signal::parse(&text).map_err(str::to_owned)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

/// Nobody ever reads half of it.
fn replace(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY.0).suffix(TEMPORARY.1);
    // As readable as what others write there: agents may be of several users.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The name lasts once its folder is on the disk; some file systems cannot be asked for it.
    #[cfg(unix)]
    let _ = open_folder(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Waits until no other sender of ours is at it. What cannot be locked is not.
fn lock(folder: &Path) -> Option<File> {
    let file = lock_file(folder).ok()?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Err(_) => return None,
        }
    }
}

/// The folder itself, so that it holds one file and nothing else.
#[cfg(unix)]
fn lock_file(folder: &Path) -> io::Result<File> {
    open_folder(folder)
}

/// Folders cannot be locked there; the file stands beside those of the agents.
#[cfg(not(unix))]
fn lock_file(folder: &Path) -> io::Result<File> {
    let beside = folder.parent().unwrap_or(folder).join(".lock");
    fs::OpenOptions::new().create(true).truncate(false).write(true).open(beside)
}

#[cfg(unix)]
fn open_folder(folder: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?.into())
}

/// Removes what senders left that died before their file was whole.
fn sweep(folder: &Path) {
    let left_over = |path: &PathBuf| {
        let is_ours = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1));
        let written = || path.symlink_metadata().and_then(|meta| meta.modified()).ok();
        is_ours && written().is_some_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > LEFT_OVER))
    };
    let Ok(entries) = fs::read_dir(folder) else { return };
    entries.flatten().map(|entry| entry.path()).filter(left_over).for_each(|path| drop(fs::remove_file(path)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::SignalType;

    fn draft(message: &str) -> Draft {
        let from = AgentId::parse("mayor").unwrap();
        Draft { from, kind: SignalType::Abort, message: message.into(), requires_response: false }
    }

    /// A state directory with an agent `a`, whose folder is there.
    fn state() -> (tempfile::TempDir, StateDir, AgentId, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::find(folder.path().to_str(), None).unwrap();
        let agent = AgentId::parse("a").unwrap();
        let own = state.make_of_agent(&agent).unwrap();
        (folder, state, agent, own)
    }

    #[test]
    fn the_last_one_wins_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::find(None, Some(folder.path())).unwrap();
        let agent = AgentId::parse("a").unwrap();
        let inbox = state.inbox(&agent);
        assert_eq!(inbox.read().unwrap(), None);
        let first = inbox.send(draft("one"), 0).unwrap();
        let second = inbox.send(draft("two"), 0).unwrap();
        assert!(stamp::is_newer(&second.timestamp, &first.timestamp));
        assert_eq!(inbox.read().unwrap(), Some(Ok(second)));
        let own = folder.path().join(".chipset/state/nudge/a");
        let names: Vec<_> = fs::read_dir(own).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [LATEST]);
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let (_folder, state, agent, own) = state();
        state.inbox(&agent).send(draft(""), 0).unwrap_err();
        assert!(fs::read_dir(own).unwrap().next().is_none());
    }

    #[test]
    fn what_is_no_signal_counts_as_none_and_is_replaced() {
        let (_folder, state, agent, own) = state();
        let inbox = state.inbox(&agent);
        for (bytes, why) in [
            (&b"{\"from\""[..], "it is not JSON"),
            (b"\xff", "it is not UTF-8 text"),
            (&vec![b' '; 65_537], "it has more than 65536 bytes"),
        ] {
            fs::write(own.join(LATEST), bytes).unwrap();
            assert_eq!(inbox.read().unwrap(), Some(Err(why.into())));
            inbox.send(draft("x"), 0).unwrap();
            assert!(matches!(inbox.read().unwrap(), Some(Ok(_))));
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_pipes_and_large_files_are_neither_waited_for_nor_read() {
        let (folder, state, agent, own) = state();
        let (inbox, path) = (state.inbox(&agent), own.join(LATEST));
        let elsewhere = folder.path().join("elsewhere.json");
        let good = draft("x").at("2026-03-05T10:35:00Z".into()).text().unwrap();
        fs::write(&elsewhere, &good).unwrap();
        let make: [&dyn Fn(); 3] = [
            &|| std::os::unix::fs::symlink(&elsewhere, &path).unwrap(),
            &|| assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
            &|| File::create(&path).unwrap().set_len(1 << 30).unwrap(),
        ];
        for make in make {
            make();
            assert!(matches!(inbox.read().unwrap(), Some(Err(_))));
            inbox.send(draft("y"), 0).unwrap();
            assert!(matches!(inbox.read().unwrap(), Some(Ok(_))), "it is replaced");
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), good, "nothing is written through a link");
    }

    #[cfg(unix)]
    #[test]
    fn who_holds_the_lock_for_good_stops_nobody() {
        let (_folder, state, agent, own) = state();
        let held = open_folder(&own).unwrap();
        held.lock().unwrap();
        state.inbox(&agent).send(draft("stop"), 0).unwrap();
    }

    #[test]
    fn what_a_dead_sender_left_goes_after_an_hour() {
        let (_folder, state, agent, own) = state();
        let leave = |name: &str, ago: Duration| {
            let file = File::create(own.join(name)).unwrap();
            file.set_modified(SystemTime::now() - ago).unwrap();
        };
        leave(".nudge-old.tmp", Duration::from_hours(2));
        leave(".nudge-new.tmp", Duration::ZERO);
        leave(".nudge.tmp", Duration::from_hours(2));
        state.inbox(&agent).send(draft("x"), 0).unwrap();
        let left = |name: &str| own.join(name).exists();
        assert_eq!((left(".nudge-old.tmp"), left(".nudge-new.tmp"), left(".nudge.tmp")), (false, true, true));
    }

    /// The protocol of the specification, step by step, with two senders.
    #[test]
    fn the_literal_form_publishes_halves_and_loses_writes() {
        let (_folder, state, agent, own) = state();
        let (fixed, path) = (own.join(".nudge.tmp"), own.join(LATEST));
        let text = draft("whole").at("2026-03-05T10:35:00Z".into()).text().unwrap();
        // The first sender has written its file; the second opens the same name, which empties it, and writes half.
        fs::write(&fixed, &text).unwrap();
        let mut second = File::create(&fixed).unwrap();
        second.write_all(&text.as_bytes()[..20]).unwrap();
        // The first publishes what is there.
        fs::rename(&fixed, &path).unwrap();
        assert_eq!(read(&path), Some(Err("it is not JSON".into())), "a torn read");
        // The second finishes, and finds nothing to rename.
        second.write_all(&text.as_bytes()[20..]).unwrap();
        assert_eq!(fs::rename(&fixed, &path).unwrap_err().kind(), io::ErrorKind::NotFound, "a lost write");
        // Ours between the steps of a literal one is whole, and so is that one.
        fs::write(&fixed, &text).unwrap();
        let ours = state.inbox(&agent).send(draft("ours"), 0).unwrap();
        assert_eq!(read(&path), Some(Ok(ours)));
        fs::rename(&fixed, &path).unwrap();
        assert_eq!(read(&path).unwrap().unwrap().message, "whole");
    }
}
