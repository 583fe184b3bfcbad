//! Who belongs to the session: every living `nudge serve` holds `members.lock` shared.
//!
//! # The protocol
//!
//! Two lock files, never removed, whose locks the system releases when a process dies: `primary.lock`,
//! held exclusively by the PRIMARY, and `members.lock`, held shared by all who belong to the session.
//! Nobody but a PRIMARY ever tries the second exclusively, and nobody probes it: so a refusal means a
//! living member. (A refusal of `primary.lock` means nothing: clients probe it.)
//!
//! **Start.** Until one of the two succeeds:
//! 1. [`RuntimeDir::try_lock`]: won, go on as PRIMARY;
//! 2. `server.pid` names a server that *answers* while the lock is held: go on as PROXY.
//!
//! **As PRIMARY**, in this order:
//! 1. [`RuntimeDir::remove_server_file`];
//! 2. [`RuntimeDir::session_is_over`];
//! 3. [`RuntimeDir::open_journal`] with `keep` = not over; on an error the lock is given back, and start
//!    begins again;
//! 4. [`RuntimeDir::join`];
//! 5. the store is filled, the port bound, [`RuntimeDir::write_server_file`], and only now calls are answered.
//!
//! **As PROXY**: [`RuntimeDir::join`], then serve. Never before a PRIMARY has answered: whoever joins
//! earlier makes a PRIMARY that is just deciding take a dead session for a living one.
//!
//! **Promotion** of a PROXY: [`RuntimeDir::try_lock`], 1, then 3 with `keep` (it is a member itself, so the
//! session lives), then 5. It keeps its [`Member`].
//!
//! **End of the PRIMARY**: answer nothing more, then [`RuntimeDir::end`]: 1, leave, ask 2 again, and when over
//! remove the journal, so that nothing stays on the disk; release the lock last. **End of a PROXY**: one
//! [`RuntimeDir::try_lock`]; won, as the PRIMARY ends, because nobody else would remove the journal; else
//! drop the [`Member`]. **`nudge stop`**: [`Journal::clear`] first, then the end of each. **Death** anywhere is
//! an end without the other steps: what stays on the disk is removed by the next start.
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
//! there are members, who agree that the session lives.

use std::fs::{File, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nudge::{Error, ErrorKind, Result};

use crate::journal::Journal;
use crate::runtime::{PrimaryLock, RuntimeDir};

/// Held shared by all who belong to the session; never removed, so that all lock the same file.
const LOCK: &str = "members.lock";
/// A PRIMARY that decides holds the lock for microseconds; more only when it is stopped in between.
const JOIN_TIMEOUT: Duration = Duration::from_secs(5);
const JOIN_POLL: Duration = Duration::from_millis(1);

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

    /// Whether nobody belongs to the session any more, so that a new one begins. The caller is PRIMARY
    /// and no member: it has not joined yet, or has left.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the lock file cannot be used.
    pub fn session_is_over(&self, _lock: &PrimaryLock) -> Result<bool> {
        let file = self.members()?;
        match file.try_lock() {
            Ok(()) => {
                // Closing would release it as well; this says so.
                let _ = file.unlock();
                Ok(true)
            }
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(self.io("lock", LOCK, &error)),
        }
    }

    /// Ends a PRIMARY, or a PROXY that has the lock: leaves the session, removes the journal when nobody
    /// else belongs to it, and releases the lock after that. Whether the session is over with it.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when something cannot be removed; the lock is released all the same, and the next
    /// start removes it.
    pub fn end(&self, lock: PrimaryLock, member: Member, journal: Option<Journal>) -> Result<bool> {
        let unnamed = self.remove_server_file(&lock);
        drop(member);
        let over = self.session_is_over(&lock)?;
        // Closed before it is removed, which some systems demand.
        drop(journal);
        let removed = if over { self.remove_journal(&lock) } else { Ok(()) };
        drop(lock);
        unnamed.and(removed).map(|()| over)
    }

    fn members(&self) -> Result<File> {
        self.dir.open_lock(LOCK, true).map_err(|error| self.io("lock", LOCK, &error))
    }
}
