//! Who belongs to the session: every living `nudge serve` holds `members.lock` shared.
//!
//! # The protocol
//!
//! Two lock files, never removed, whose locks the system releases when a process dies: `primary.lock`,
//! held exclusively by the PRIMARY, and `members.lock`, held shared by all who belong to the session.
//! Nobody who does not hold the first ever tries the second exclusively, and nobody probes it: so a
//! refusal means a living member. (A refusal of `primary.lock` means nothing: clients probe it.) And a
//! file, `session`: what a PRIMARY leaves to the next. An empty one says that the session was ended on
//! purpose, whoever still belongs to it: a member may have been stopped, and notices late.
//!
//! **Start.** Until one of the two succeeds:
//! 1. [`RuntimeDir::try_lock`]: won, go on as PRIMARY;
//! 2. `server.pid` names a server that *answers* while the lock is held: go on as PROXY.
//!
//! **As PRIMARY**, in this order:
//! 1. [`RuntimeDir::remove_server_file`];
//! 2. [`RuntimeDir::session_is_over`]; when it is, [`RuntimeDir::remove_session`];
//! 3. [`RuntimeDir::open_journal`] with `keep` = not over; on an error the lock is given back, and the
//!    start fails;
//! 4. the store is filled, the port bound, [`RuntimeDir::write_session`];
//! 5. [`RuntimeDir::join`];
//! 6. [`RuntimeDir::write_server_file`], and only now calls are answered.
//!
//! **As PROXY**: [`RuntimeDir::join`], then serve. Never before a PRIMARY has answered: whoever joins
//! earlier makes a PRIMARY that is just deciding take a dead session for a living one. It then reads which
//! session that is, and believes it only while `server.pid` names the one that answered: else somebody
//! has won since, and the file may still speak of a session before.
//!
//! **Promotion** of a PROXY: [`RuntimeDir::lock`]; 1; when [`RuntimeDir::session`] says that the session
//! was stopped, or is another by now, it ends instead; else 3 with `keep` (it is a member itself, so
//! the session lives; on an error it gives the lock back and tries again), 4 and 6. It keeps its
//! [`Member`].
//!
//! **End**: answer nothing more, then [`RuntimeDir::end`]. Of the PRIMARY: 1, leave, ask 2 again, and when
//! over remove the journal and the session file, so that nothing stays on the disk; then release the
//! lock. Of a PROXY: step out of the line for the lock, and leave. Then, both alike, try for the lock once
//! more, for a moment; won, 1, ask 2 again and remove the same. So whoever is last removes it, in whatever order they leave and ask. When the
//! session was stopped and others still belong to it, the empty session file stays for them.
//!
//! **`nudge stop`**: [`RuntimeDir::stop_session`] and [`Journal::clear`] first, then the end of each.
//! **Death** anywhere is an end without the other steps: what stays on the disk is removed by the next
//! start.
//!
//! One limit: a member of a stopped session that sleeps (SIGSTOP) belongs to the next one too until it
//! wakes up, so that one may outlive its last process.
//!
//! `tests/tests/protocol.rs` takes these steps in every order.
//!
//! # Why it holds
//!
//! *Two starters*: one wins `primary.lock`; the other joins after the first has decided. *A PROXY that
//! saw a PRIMARY answer, and joins only after that has died*: the session goes on if it joins before the
//! next PRIMARY asks, else a new one has begun and it belongs to that; it has promised nobody anything yet.
//! *A member that dies while a PRIMARY decides*: the session goes on with the PRIMARY, which lived with it
//! for a moment. *A PRIMARY that dies after deciding*: nobody had joined, so the next decides anew, or
//! there are members, who agree that the session lives. *Two that end at once*: each asks after it has
//! left, and the one whose lock the other was refused asks after that, or the other still tries.

use std::fs::{File, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nudge::{Error, ErrorKind, Result};

use crate::journal::Journal;
use crate::runtime::{PrimaryLock, RuntimeDir};
use crate::session::SessionState;

/// Held shared by all who belong to the session; never removed, so that all lock the same file.
const LOCK: &str = "members.lock";
/// A PRIMARY that decides holds the lock for microseconds; more only when it is stopped in between.
const JOIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to try for the lock that nobody keeps.
const FORSAKEN_TIMEOUT: Duration = Duration::from_millis(300);
const JOIN_POLL: Duration = Duration::from_millis(1);
/// How long one that ends tries for a lock that is held.
const END_TIMEOUT: Duration = Duration::from_millis(20);

/// Belonging to the session, which lives as long as anybody does. Ends when dropped, and when the
/// process dies.
///
/// Members are not counted here: that would take a file for each, which a killed process leaves behind
/// and whose removal races with the next process of the same pid. The PRIMARY knows who calls it.
#[derive(Debug)]
pub struct Member(#[allow(dead_code)] File);

impl RuntimeDir {
    /// Joins the session. A PRIMARY does it when it has decided whether the session goes on, a PROXY
    /// when a PRIMARY has answered it, both before they serve anybody.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the lock file cannot be used, or a PRIMARY that is just deciding keeps it for
    /// more than five seconds (somebody has stopped it).
    pub fn join(&self) -> Result<Member> {
        let file = self.members()?;
        let deadline = Instant::now() + JOIN_TIMEOUT;
        loop {
            match file.try_lock_shared() {
                Ok(()) => return Ok(Member(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(JOIN_POLL),
                Err(TryLockError::WouldBlock) => {
                    let path = self.path().display();
                    let message =
                        format!("A Nudge server that is starting in {path} does not go on; end it and try again.");
                    return Err(Error::new(ErrorKind::Unavailable, message));
                }
                Err(TryLockError::Error(error)) => return Err(self.io("lock", LOCK, &error)),
            }
        }
    }

    /// Whether a new session begins: nobody belongs to the old one any more, or it was stopped. The caller
    /// is PRIMARY and no member: it has not joined yet, or has left.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the lock file cannot be used.
    pub fn session_is_over(&self, lock: &PrimaryLock) -> Result<bool> {
        Ok(!self.has_members(lock)? || self.session() == SessionState::Stopped)
    }

    /// Ends a PRIMARY, which gives its lock, or a PROXY, which has none: leaves the session, and removes
    /// the journal and the session file when nobody else belongs to it. Whether it found the session over.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when something cannot be removed; the lock is released all the same, and the next
    /// start removes it.
    pub fn end(&self, lock: Option<PrimaryLock>, member: Member, journal: Option<Journal>) -> Result<bool> {
        let unnamed = lock.as_ref().map_or(Ok(()), |lock| self.remove_server_file(lock));
        drop(member);
        // Closed before it is removed, which some systems demand.
        drop(journal);
        // Each releases its lock when it is done.
        let first = lock.map_or(Ok(false), |lock| self.remove_if_over(&lock));
        let last =
            self.try_lock_for_a_moment().and_then(|lock| lock.map_or(Ok(false), |lock| self.remove_if_over(&lock)));
        unnamed?;
        Ok(first? | last?)
    }

    /// Removes what a session that is over leaves. Whether it is over.
    fn remove_if_over(&self, lock: &PrimaryLock) -> Result<bool> {
        // Before it asks: who joins from here on sees that somebody has won.
        let unnamed = self.remove_server_file(lock);
        if !self.has_members(lock)? {
            self.remove_session(lock)?;
            return unnamed.map(|()| true);
        }
        if self.session() == SessionState::Stopped {
            // The empty session file stays, to tell the others.
            return self.remove_journal(lock).map(|()| true);
        }
        Ok(false)
    }

    /// Others that end, and clients that probe, hold the lock for microseconds; a PRIMARY, which removes
    /// everything itself, for as long as it lives.
    fn try_lock_for_a_moment(&self) -> Result<Option<PrimaryLock>> {
        let deadline = Instant::now() + END_TIMEOUT;
        loop {
            match self.try_lock()? {
                None if Instant::now() < deadline => sleep(JOIN_POLL),
                tried => return Ok(tried),
            }
        }
    }

    /// Ends a session of which nobody can be PRIMARY although it has members, for instance because none of
    /// them can read its journal: they end when the lock comes to them. Whether there was one.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the files cannot be emptied.
    pub fn end_forsaken(&self) -> Result<bool> {
        // They hold it for moments, to try.
        let deadline = Instant::now() + FORSAKEN_TIMEOUT;
        let lock = loop {
            match self.try_lock()? {
                Some(lock) => break lock,
                None if Instant::now() < deadline => sleep(JOIN_POLL),
                None => return Ok(false),
            }
        };
        if !self.has_members(&lock)? {
            return Ok(false);
        }
        self.stop_session()?;
        self.remove_journal(&lock).map(|()| true)
    }

    /// Whether anybody belongs to the session; the caller too, if it has joined.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the lock file cannot be used.
    pub fn has_members(&self, _lock: &PrimaryLock) -> Result<bool> {
        let file = self.members()?;
        match file.try_lock() {
            Ok(()) => {
                // Closing would release it as well; this says so.
                let _ = file.unlock();
                Ok(false)
            }
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(self.io("lock", LOCK, &error)),
        }
    }

    fn members(&self) -> Result<File> {
        self.dir.open_lock(LOCK, true).map_err(|error| self.io("lock", LOCK, &error))
    }
}
