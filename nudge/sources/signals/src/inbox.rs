//! Sends a signal to the one file of an agent, and reads this file.
//!
//! A reader sees the old file or the new file, even when a process dies ([`folder`](crate::folder)). Nudge's senders
//! use a lock, because each signal needs a later time than the signal before it ([`stamp`](crate::stamp)). Other
//! programs write without the lock; then only the order of the times may be wrong.

use std::io;
use std::time::Duration;

use nudge_core::clock::Millis;
use nudge_core::error::{Error, Result};
use nudge_os::beneath::HeldFolder;
use nudge_os::lock::LockPatience;

use crate::agent::AgentId;
use crate::folder::{self, OldFile};
use crate::signal::{Signal, SignalDraft};
use crate::stamp;
use crate::state::{StateDir, unusable_error};
use crate::tracked::is_tracked;

/// The name of the file that holds an agent's signal.
const LATEST: &str = "latest.json";
/// The most bytes that Nudge reads of a signal file. A file from Nudge has less than a tenth of them.
const MAX_BYTES: u64 = 64 << 10;
/// The longest time that a sender waits for the lock. Any program that can read the folder can hold the lock, and an
/// `abort` must arrive. So the sender then writes without the lock.
const PATIENCE: Duration = Duration::from_secs(3);

/// The file of an agent's signal.
#[derive(Debug, Clone, Copy)]
pub struct SignalInbox<'a> {
    state: &'a StateDir,
    agent: &'a AgentId,
}

impl<'a> SignalInbox<'a> {
    pub(crate) const fn new(state: &'a StateDir, agent: &'a AgentId) -> Self {
        Self { state, agent }
    }

    /// Reads the signal. Returns `None` when there is no file. Returns the reason in a few words when the file does not
    /// count: it holds no signal, git tracks it, or its time is more than a minute after `now`.
    ///
    /// # Errors
    /// `E_INVALID` for a link that leads out of the state directory; `E_UNAVAILABLE` when the folder cannot be read.
    pub fn read(&self, now: Millis) -> Result<Option<Result<Signal, String>>> {
        Ok(self.state.of_agent(self.agent)?.and_then(|folder| {
            let found = read(&folder.held)?;
            if is_tracked(&folder.path.join(LATEST)) {
                return Some(Err("git tracks it, so that it came with the checkout".into()));
            }
            let is_ahead = |signal: &Signal| stamp::is_ahead(&signal.timestamp, now);
            // A signal with a time in the future would stay the newest for ever.
            Some(found.and_then(|signal| if is_ahead(&signal) { Err("it is dated ahead".into()) } else { Ok(signal) }))
        }))
    }

    /// Replaces the signal, and returns the new one as it was written. The new signal gets the time `now`, or a time
    /// just after that of the old signal if the old time is not earlier than `now`.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read) and [`SignalDraft::check_message`]. After an error the file is unchanged.
    pub fn send(&self, draft: SignalDraft, now: Millis) -> Result<Signal> {
        draft.check_message()?;
        let folder = self.state.make_of_agent(self.agent)?;
        let path = folder.path.join(LATEST);
        if is_tracked(&path) {
            let path = path.display();
            let message =
                format!("Git tracks {path}, so that nobody takes it for a signal; take it out by `git rm --cached`.");
            return Err(Error::invalid(message));
        }
        let _one_at_a_time = folder.held.take_lock(LockPatience::Within(PATIENCE));
        let before = read(&folder.held).and_then(Result::ok);
        let signal = draft.into_signal(stamp::next(now, before.as_ref().map(|before| &*before.timestamp)));
        let text =
            signal.to_text().map_err(|_| Error::invalid("The signal cannot be written as JSON; report this."))?;
        let written = folder::write(&folder.held, LATEST, &text, OldFile::Replaced);
        written.map_err(|error| unusable_error(&path, &error))?;
        folder.held.sweep_leftovers();
        Ok(signal)
    }
}

fn read(folder: &HeldFolder) -> Option<Result<Signal, String>> {
    match folder::read_text(folder, LATEST, MAX_BYTES) {
        Ok(text) => Some(Signal::parse(&text).map_err(str::to_owned)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write as _;
    use std::path::{Path, PathBuf};
    use std::time::SystemTime;

    use super::*;
    use crate::signal::SignalType;

    fn draft(message: &str) -> SignalDraft {
        let from = AgentId::parse("mayor").unwrap();
        SignalDraft { from, kind: SignalType::Abort, message: message.into(), requires_response: false }
    }

    /// Makes a state directory with the folder of an agent `a`.
    fn state() -> (tempfile::TempDir, StateDir, AgentId, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::find(folder.path().to_str(), None).unwrap();
        let agent = AgentId::parse("a").unwrap();
        let own = state.make_of_agent(&agent).unwrap().path;
        (folder, state, agent, own)
    }

    fn held(folder: &Path) -> HeldFolder {
        HeldFolder::open(folder).unwrap()
    }

    #[test]
    fn the_last_one_wins_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::find(None, Some(folder.path())).unwrap();
        let agent = AgentId::parse("a").unwrap();
        let inbox = state.inbox(&agent);
        assert_eq!(inbox.read(0).unwrap(), None);
        let first = inbox.send(draft("one"), 0).unwrap();
        let second = inbox.send(draft("two"), 0).unwrap();
        assert!(stamp::is_newer(&second.timestamp, &first.timestamp, 0));
        assert_eq!(inbox.read(0).unwrap(), Some(Ok(second)));
        let own = folder.path().join(".chipset/state/nudge/a");
        let names: Vec<_> = fs::read_dir(own).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [LATEST]);
    }

    /// Another process replaces the agent's folder by a link while signals are sent and read.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_is_exchanged_for_a_link_leads_no_signal_out() {
        use std::sync::atomic::{AtomicBool, Ordering};

        use rustix::fs::{CWD, RenameFlags, renameat_with};

        let (_folder, state, agent, own) = state();
        let outside = tempfile::tempdir().unwrap();
        let link = own.with_file_name("link");
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &own, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let (mut sent, mut refused) = (0, 0);
            while sent < 100 || refused < 100 {
                match state.inbox(&agent).send(draft("x"), 0) {
                    Ok(_) => sent += 1,
                    Err(_) => refused += 1,
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(fs::read_dir(outside.path()).unwrap().next().is_none(), "a signal was written outside");
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
            assert_eq!(inbox.read(0).unwrap(), Some(Err(why.into())));
            inbox.send(draft("x"), 0).unwrap();
            assert!(matches!(inbox.read(0).unwrap(), Some(Ok(_))));
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_pipes_and_large_files_are_neither_waited_for_nor_read() {
        let (folder, state, agent, own) = state();
        let (inbox, path) = (state.inbox(&agent), own.join(LATEST));
        let elsewhere = folder.path().join("elsewhere.json");
        let good = draft("x").into_signal("2026-03-05T10:35:00Z".into()).to_text().unwrap();
        fs::write(&elsewhere, &good).unwrap();
        let make: [&dyn Fn(); 3] = [
            &|| std::os::unix::fs::symlink(&elsewhere, &path).unwrap(),
            &|| assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
            &|| File::create(&path).unwrap().set_len(1 << 30).unwrap(),
        ];
        for make in make {
            make();
            assert!(matches!(inbox.read(0).unwrap(), Some(Err(_))));
            inbox.send(draft("y"), 0).unwrap();
            assert!(matches!(inbox.read(0).unwrap(), Some(Ok(_))), "it is replaced");
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), good, "nothing is written through a link");
    }

    /// The reader of the upstream specification opens any kind of file.
    #[cfg(unix)]
    #[test]
    fn the_literal_form_reads_through_links_and_waits_at_pipes() {
        let (folder, _, _, own) = state();
        let (path, elsewhere) = (own.join(LATEST), folder.path().join("elsewhere.json"));
        let good = draft("of somebody's own").into_signal("2026-03-05T10:35:00Z".into()).to_text().unwrap();
        fs::write(&elsewhere, &good).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), good, "a file outside is read");
        assert!(matches!(read(&held(&own)), Some(Err(_))), "ours reads nothing of it");
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let mut literal =
            std::process::Command::new("cat").arg(&path).stdout(std::process::Stdio::null()).spawn().unwrap();
        assert!(matches!(read(&held(&own)), Some(Err(_))), "ours does not wait");
        assert_eq!(literal.try_wait().unwrap(), None, "the literal one waits for a writer that never comes");
        literal.kill().unwrap();
        literal.wait().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn who_holds_the_lock_for_good_stops_nobody() {
        let (_folder, state, agent, own) = state();
        let _lock = held(&own).take_lock(LockPatience::AtOnce).unwrap();
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

    /// Runs the protocol of the upstream specification step by step with two senders.
    #[test]
    fn the_literal_form_publishes_halves_and_loses_writes() {
        let (_folder, state, agent, own) = state();
        let (fixed, path) = (own.join(".nudge.tmp"), own.join(LATEST));
        let text = draft("whole").into_signal("2026-03-05T10:35:00Z".into()).to_text().unwrap();
        // The first sender has written its file. The second sender opens the same name, which empties the file, and
        // writes half of its text.
        fs::write(&fixed, &text).unwrap();
        let mut second = File::create(&fixed).unwrap();
        second.write_all(&text.as_bytes()[..20]).unwrap();
        // The first sender publishes the file, which holds only half of a text.
        fs::rename(&fixed, &path).unwrap();
        assert_eq!(read(&held(&own)), Some(Err("it is not JSON".into())), "a torn read");
        // The second sender finishes, but the file that it wants to rename is gone.
        second.write_all(&text.as_bytes()[20..]).unwrap();
        assert_eq!(fs::rename(&fixed, &path).unwrap_err().kind(), io::ErrorKind::NotFound, "a lost write");
        // Nudge sends between the steps of such a sender. Nudge's signal is whole, and the other sender's signal stays
        // whole too.
        fs::write(&fixed, &text).unwrap();
        let ours = state.inbox(&agent).send(draft("ours"), 0).unwrap();
        assert_eq!(read(&held(&own)), Some(Ok(ours)));
        fs::rename(&fixed, &path).unwrap();
        assert_eq!(read(&held(&own)).unwrap().unwrap().message, "whole");
    }
}
