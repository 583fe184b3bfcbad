//! Manages membership in a session: every living `nudge serve` holds `members.lock` shared.
//!
//! # The protocol
//!
//! There are two lock files, which Nudge never removes. When a process dies, the system releases its locks. The PRIMARY
//! holds `primary.lock` exclusively, and each member of the session holds `members.lock` shared. Only the holder of
//! `primary.lock` tries to lock `members.lock` exclusively, and no other process probes it. So a failed attempt on
//! `members.lock` proves that a member lives. (A failed attempt on `primary.lock` proves nothing, because clients probe
//! that lock.)
//!
//! A PRIMARY writes a third file, `session`, for the next PRIMARY. If the file is empty, a user has ended the session
//! on purpose. The session may still have members then, because a suspended member notices the end late.
//!
//! **Start.** A server repeats these two steps until one succeeds:
//! 1. [`RuntimeDir::try_lock`]: when the lock is won, go on as PRIMARY;
//! 2. when `server.pid` names a server that *answers* while a process holds the lock, go on as PROXY.
//!
//! **As PRIMARY**, in this order:
//! 1. [`RuntimeDir::remove_server_file`], which also removes the local channel;
//! 2. [`RuntimeDir::session_is_over`]; when the session is over, [`RuntimeDir::remove_session`];
//! 3. open the session's rows ([`ROWS`](crate::ROWS)), or begin new ones when the session is over; on an error the
//!    server releases the lock, and the start fails;
//! 4. fill the store, bind the port, [`RuntimeDir::write_session`];
//! 5. [`RuntimeDir::join_session`];
//! 6. [`RuntimeDir::listen`], then [`RuntimeDir::write_server_file`]. Only after this step the PRIMARY answers calls.
//!
//! **As PROXY**: [`RuntimeDir::join_session`], then serve. A PROXY joins only after a PRIMARY has answered. If it
//! joined earlier, a PRIMARY in step 2 could take a dead session for a living one. The PROXY then reads the session
//! file, which it trusts only while `server.pid` names the server that answered. Otherwise another server has won the
//! lock, and the file may still describe an earlier session.
//!
//! **Promotion** of a PROXY: [`RuntimeDir::wait_for_lock`], then step 1. If [`RuntimeDir::read_session`] says that the
//! session was stopped or that another session has begun, the PROXY ends. Otherwise it does steps 3, 4 and 6. It passes
//! opens the old rows in step 3: the PROXY is a member, so the session lives. If step 3 fails, the PROXY releases the lock and
//! tries again. It keeps its [`SessionMember`] all the time.
//!
//! **End**: the server answers no more calls, then calls [`RuntimeDir::end_session`]. A PRIMARY does step 1, leaves the
//! session, and checks as in step 2 whether the session has members. If it has none, the PRIMARY removes the rows and
//! the session file, so that no data stays on the disk. Then it releases the lock. A PROXY stops waiting for the
//! lock and leaves the session.
//!
//! Then each ending server tries for the lock once more, for a moment, or longer if no server runs. The winner does the
//! same check. So the last server removes the files, in every order of leaving and checking. If the session was stopped
//! and still has other members, the empty session file stays for them. The PRIMARY counts a connected PROXY as a
//! member, even when it cannot see the lock of that PROXY.
//!
//! **`nudge stop`**: first [`RuntimeDir::stop_session`], and the PRIMARY deletes all rows. Then each member does the steps of
//! **End**.
//!
//! **Death** at any point skips the remaining steps. The next start removes the files that stay on the disk.
//!
//! **Removed files.** When another program removes files, the PRIMARY restores them with [`LockWatch::retake_lock`]. It
//! does so only if it wins the new lock file and no file shows another PRIMARY. Members join again with
//! [`RuntimeDir::stay_member`], and a PROXY waits for the lock in the directory that now has the path.
//!
//! If another server has begun a session in that directory meanwhile, a PROXY of the old session leaves it and starts
//! again, as any server does. A server that starts and finds no session first asks for a sign of life
//! ([`RuntimeDir::ask_for_life`]). It asks once, without the lock, before it begins a session.
//!
//! [`LockWatch::retake_lock`]: crate::LockWatch::retake_lock
//!
//! There is one limit. A suspended member (SIGSTOP) of a stopped session counts as a member of the next session until
//! it wakes up. So the next session may live longer than its last running process.
//!
//! `tests/tests/protocol.rs` tests these steps in every order.
//!
//! # Why the protocol is correct
//!
//! - *Two servers start*: one wins `primary.lock`. The other joins after the first has decided.
//! - *A PROXY saw a PRIMARY answer, and joins only after that PRIMARY has died*: if the PROXY joins before the next
//!   PRIMARY does step 2, the session continues. Otherwise a new session has begun, and the PROXY is a member of the
//!   new session. It has not served any client yet.
//! - *A member dies while a PRIMARY decides*: if the PRIMARY saw the member's lock, the session continues with the
//!   PRIMARY, because both lived at the same time for a moment.
//! - *A PRIMARY dies after deciding*: if no process had joined, the next PRIMARY decides again. Otherwise there are
//!   members, and the session continues for them.
//! - *Two servers end at once*: each does the check of step 2 after it has left. If one cannot get the lock because the
//!   other holds it, either the other checks later, or the first tries again.

use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_os::dir::{FileId, FileKind};
use nudge_os::lock::{FileLock, LockKind, LockPatience, LockRefusal};
use parking_lot::Mutex;

use crate::runtime::{PrimaryLock, RuntimeDir, ServerFile};
use crate::session::SessionState;

/// The name of the file that all members of the session lock shared. Nudge never removes the file, so that all members
/// lock the same one.
pub(crate) const LOCK: &str = "members.lock";
/// Longest wait for `members.lock`. A PRIMARY that decides holds the lock only for microseconds, unless it is
/// suspended.
const JOIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which [`RuntimeDir::end_forsaken`] tries for `primary.lock`.
const FORSAKEN_TIMEOUT: Duration = Duration::from_millis(300);
/// Longest wait of [`RuntimeDir::wait_for_end`]. On a quiet machine a server ends within milliseconds.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
const JOIN_POLL: Duration = Duration::from_millis(1);
/// Time for which an ending server tries for `primary.lock` while a serving process holds it.
const END_TIMEOUT: Duration = Duration::from_millis(20);
/// Time for which an ending server tries for `primary.lock` when no server runs. Fifty servers may end at once. The
/// holder of the lock may have checked for members already, and on a busy machine it may hold the lock for a while.
const UNSERVED_TIMEOUT: Duration = Duration::from_secs(2);

/// Membership in the session. The session lives as long as it has members. Dropping this value, or the death of the
/// process, ends the membership.
///
/// Nudge does not count members with one file for each. A killed process would leave its file, and removing that file
/// could remove the file of a new process with the same pid. The PRIMARY counts its PROXYs by their calls.
#[derive(Debug)]
pub struct SessionMember(Arc<Mutex<FileLock>>);

impl SessionMember {
    /// Returns a handle for the thread that waits for `primary.lock`. The handle does not extend the membership.
    pub fn new_watch(&self) -> MemberWatch {
        MemberWatch(Arc::downgrade(&self.0))
    }
}

/// A handle on a [`SessionMember`] that does not extend the membership.
#[derive(Debug)]
pub struct MemberWatch(Weak<Mutex<FileLock>>);

impl MemberWatch {
    /// Returns the membership; `None` after it has ended.
    pub fn to_member(&self) -> Option<SessionMember> {
        self.0.upgrade().map(SessionMember)
    }
}

impl RuntimeDir {
    /// Joins the session, before the server answers any client. A PRIMARY joins after it has decided whether the
    /// session continues. A PROXY joins after a PRIMARY has answered.
    ///
    /// `E_UNAVAILABLE` when the lock file cannot be used, or when a suspended PRIMARY holds the lock for more than five
    /// seconds.
    pub fn join_session(&self) -> Result<SessionMember> {
        // A program that deletes old files may lock the directory for a moment. A failure is ignored, because the next
        // member tries again.
        let _ = self.dir().keep_from_ageing();
        match self.dir().take_lock(LOCK, LockKind::Shared, LockPatience::Within(JOIN_TIMEOUT)) {
            Ok(lock) => Ok(SessionMember(Arc::new(Mutex::new(lock)))),
            Err(LockRefusal::Held) => {
                let path = self.path().display();
                let message =
                    format!("A Nudge server that is starting in {path} does not go on; end it and try again.");
                Err(Error::unavailable(message))
            }
            Err(refusal) => Err(self.lock_error(LOCK, refusal)),
        }
    }

    /// Joins again after `members.lock` was removed or replaced. Returns true when this membership locks the file that
    /// now has the name. If a PRIMARY is deciding and `patience` ends, returns false; the caller can try again later.
    pub fn stay_member(&self, member: &SessionMember, patience: LockPatience<'_>) -> bool {
        let mut held = member.0.lock();
        let is_named = FileId::from_file(held.as_file()).and_then(|id| self.dir().is_named(LOCK, &id)).unwrap_or(true);
        if is_named {
            return true;
        }
        let _ = self.dir().keep_from_ageing();
        match self.dir().take_lock(LOCK, LockKind::Shared, patience) {
            Ok(lock) => {
                *held = lock;
                true
            }
            Err(_) => false,
        }
    }

    /// Returns true when a new session must begin, because the old session has no members or was stopped. The caller
    /// must be PRIMARY and must not be a member: it has not joined yet, or has left.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the lock file cannot be used.
    pub fn session_is_over(&self, lock: &PrimaryLock) -> Result<bool> {
        Ok(!self.has_members(lock)? || self.read_session() == SessionState::Stopped)
    }

    /// Ends this server's part in the session. A PRIMARY passes its lock, and a PROXY passes `None`. The function
    /// leaves the session, and removes the rows and the session file if no other process is a member. Returns true when
    /// the session is over. A PRIMARY has closed its rows before.
    ///
    /// `has_unseen_member` must return true when the session has members whose lock this process cannot see, because
    /// their `members.lock` was removed. The session file of a stopped session stays for these members.
    ///
    /// `E_UNAVAILABLE` when a file cannot be removed. The lock is released all the same, and the next start removes the
    /// file.
    pub fn end_session(
        &self,
        lock: Option<PrimaryLock>,
        member: SessionMember,
        has_unseen_member: impl Fn() -> bool,
    ) -> Result<bool> {
        let unnamed = lock.as_ref().map_or(Ok(()), |lock| self.remove_server_file(lock));
        drop(member);
        // Each of the two attempts releases its lock at its end.
        let remove = |lock: PrimaryLock| self.remove_if_over(&lock, &has_unseen_member);
        let first = lock.map_or(Ok(false), remove);
        let last = self.try_lock_for_a_moment().and_then(|lock| lock.map_or(Ok(false), remove));
        unnamed?;
        Ok(first? | last?)
    }

    /// Removes the files of the session if it is over. Returns true in that case.
    fn remove_if_over(&self, lock: &PrimaryLock, has_unseen_member: impl Fn() -> bool) -> Result<bool> {
        // Removes `server.pid` before it looks for members. A server that joins later then sees that a process has won
        // the lock.
        let unnamed = self.remove_server_file(lock);
        let (has_members, is_stopped) = (self.has_members(lock)?, self.read_session() == SessionState::Stopped);
        if !(has_members || is_stopped && has_unseen_member()) {
            self.remove_session(lock)?;
            return unnamed.map(|()| true);
        }
        if is_stopped {
            // Leaves the empty session file, so that the other members see that the session was stopped.
            return self.remove_rows(lock).map(|()| true);
        }
        Ok(false)
    }

    /// Tries to get `primary.lock`. Other ending servers and probing clients hold it only for microseconds, so the
    /// function waits for them. It gives up soon when a serving PRIMARY holds the lock, because that PRIMARY removes
    /// all files at its own end. If no server runs, it waits longer, because the last process must get the lock.
    fn try_lock_for_a_moment(&self) -> Result<Option<PrimaryLock>> {
        let begun = Instant::now();
        let is_served = || self.read_server_file().is_some() && self.read_session() != SessionState::Stopped;
        let is_over = || {
            let passed = begun.elapsed();
            passed >= UNSERVED_TIMEOUT || (passed >= END_TIMEOUT && is_served())
        };
        self.try_lock_for(LockPatience::Until(&is_over))
    }

    /// Ends a session that has members but cannot have a PRIMARY, for instance because no member can read its rows.
    /// Each member ends when it gets the lock. Returns true when there was such a session.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the files cannot be emptied.
    pub fn end_forsaken(&self) -> Result<bool> {
        // Members that cannot become PRIMARY still try, and each attempt holds the lock for a moment.
        let Some(lock) = self.try_lock_for(LockPatience::Within(FORSAKEN_TIMEOUT))? else { return Ok(false) };
        if !self.has_members(&lock)? {
            return Ok(false);
        }
        self.stop_session()?;
        self.remove_rows(&lock).map(|()| true)
    }

    /// Blocks the thread until a server that was asked to end has ended, and has left only its lock files and its log.
    /// The caller may then remove folders or start the next server. Returns false after five seconds.
    pub fn wait_for_end(&self, server: &ServerFile) -> bool {
        let deadline = Instant::now() + LEAVE_TIMEOUT;
        let is_there = || match self.read_server_file() {
            Some(named) => named == *server,
            None => self.is_held(),
        };
        while is_there() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(JOIN_POLL);
        }
        true
    }

    /// Returns true when the session has members. A caller that has joined counts too.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the lock file cannot be used.
    pub fn has_members(&self, _lock: &PrimaryLock) -> Result<bool> {
        match self.dir().take_lock(LOCK, LockKind::Exclusive, LockPatience::AtOnce) {
            Ok(_) => Ok(false),
            Err(LockRefusal::Held) => Ok(true),
            Err(refusal) => Err(self.lock_error(LOCK, refusal)),
        }
    }

    /// Returns true when `members.lock` is missing. Nudge never removes it. So if a session file exists, another
    /// program has removed `members.lock`, and it is unknown whether the session has members.
    pub fn lacks_members_file(&self) -> bool {
        matches!(self.dir().look_up(LOCK), Ok(FileKind::Missing))
    }
}
