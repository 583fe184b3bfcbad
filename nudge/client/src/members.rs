//! Membership in a session: every living `nudge serve` holds `members.lock` shared.
//!
//! # The protocol
//!
//! There are two lock files, never removed, whose locks the system releases when a process dies: `primary.lock`, held
//! exclusively by the PRIMARY, and `members.lock`, held shared by all members of the session. Only the holder of
//! `primary.lock` ever tries `members.lock` exclusively, and no process probes it: so a refusal means a living member.
//! (A refusal of `primary.lock` means nothing: clients probe it.) A third file, `session`, is written by a PRIMARY for
//! the next one. When it is empty, the session was ended on purpose, even if it still has members: a suspended member
//! notices late.
//!
//! **Start.** A server repeats these two until one succeeds:
//! 1. [`RuntimeDir::try_lock`]: when the lock is won, go on as PRIMARY;
//! 2. when `server.pid` names a server that *answers* while the lock is held, go on as PROXY.
//!
//! **As PRIMARY**, in this order:
//! 1. [`RuntimeDir::remove_server_file`], which removes the local channel too;
//! 2. [`RuntimeDir::session_is_over`]; when it is, [`RuntimeDir::remove_session`];
//! 3. [`RuntimeDir::open_journal`] with `keep` = not over; on an error the lock is given back, and the
//!    start fails;
//! 4. the store is filled, the port bound, [`RuntimeDir::write_session`];
//! 5. [`RuntimeDir::join_session`];
//! 6. [`RuntimeDir::listen`], then [`RuntimeDir::write_server_file`], and only now calls are answered.
//!
//! **As PROXY**: [`RuntimeDir::join_session`], then serve. A PROXY never joins before a PRIMARY has answered: joining
//! earlier makes a PRIMARY that is just deciding take a dead session for a living one. It then reads the
//! session file, and believes it only while `server.pid` names the server that answered: else another server
//! has won the lock since, and the file may still describe an earlier session.
//!
//! **Promotion** of a PROXY: [`RuntimeDir::wait_for_lock`], then 1. When [`RuntimeDir::read_session`] says that the session
//! was stopped, or is another by now, the PROXY ends instead; else it does 3 with `keep` (it is a member itself,
//! so the session lives; on an error it gives the lock back and tries again), 4 and 6. It keeps its
//! [`SessionMember`].
//!
//! **End**: answer nothing more, then [`RuntimeDir::end_session`]. The PRIMARY does 1, leaves, and asks as in 2 whether any
//! member is left; when none is, it removes the journal and the session file, so that nothing stays on the disk. Then
//! it releases the lock. A PROXY stops waiting for the lock, and leaves. Then both try for the lock once more, for a
//! moment, or longer if no server runs; the winner does the same. So the last one removes the files, in whatever order
//! they leave and ask. When the session was stopped and still has other members, the empty session file stays for them.
//! The PRIMARY counts a PROXY that is connected to it as one, also when it sees no lock of it.
//!
//! **`nudge stop`**: [`RuntimeDir::stop_session`] and [`Journal::clear`] first, then the end of each.
//! **Death** at any point is an end without the other steps: the next start removes the files that stay on the
//! disk.
//!
//! **Files that are removed** by somebody else: the PRIMARY puts them back ([`LockWatch::retake_lock`]) when it has won the new
//! lock file and nothing shows that another was PRIMARY there; members join again ([`RuntimeDir::stay_member`]), and a
//! PROXY waits for the lock of the directory that has the path. When another server has begun a session there meanwhile,
//! a PROXY of the old one leaves it and starts anew, as any server does. A starting server that finds no session asks by the sign
//! of life ([`RuntimeDir::ask_for_life`]) once, without the lock, before it begins one.
//!
//! [`LockWatch::retake_lock`]: crate::LockWatch::retake
//!
//! There is one limit: a suspended member (SIGSTOP) of a stopped session belongs to the next session too until
//! it wakes up, so that the next session may outlive its last process.
//!
//! `tests/tests/protocol.rs` takes these steps in every order.
//!
//! # Why it holds
//!
//! *Two starters*: one wins `primary.lock`; the other joins after the first has decided. *A PROXY that saw a PRIMARY
//! answer, and joins only after that PRIMARY has died*: the session goes on if the PROXY joins before the next PRIMARY
//! asks 2; else a new session has begun, and the PROXY belongs to that. It has not served any client yet. *A member
//! that dies while a PRIMARY decides*: the session goes on with the PRIMARY, which lived at the same time for a moment.
//! *A PRIMARY that dies after deciding*: either no process had joined, so the next one decides anew, or there are
//! members, for whom the session lives. *Two that end at once*: each asks 2 after it has left; when one is refused the
//! lock because the other holds it, the other asks later, or the first tries again.

use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_os::dir::{FileId, FileKind};
use nudge_os::lock::{FileLock, LockKind, LockPatience, LockRefusal};
use parking_lot::Mutex;

use crate::journal::Journal;
use crate::runtime::{PrimaryLock, RuntimeDir, ServerFile};
use crate::session::SessionState;

/// The file that all members of the session lock shared; never removed, so that all lock the same file.
pub(crate) const LOCK: &str = "members.lock";
/// Longest wait for `members.lock`. A PRIMARY that decides holds it for microseconds, unless it is stopped
/// in between.
const JOIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which [`RuntimeDir::end_forsaken`] tries for `primary.lock`.
const FORSAKEN_TIMEOUT: Duration = Duration::from_millis(300);
/// Longest wait of [`RuntimeDir::wait_for_end`]; a server on a quiet machine leaves within milliseconds.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
const JOIN_POLL: Duration = Duration::from_millis(1);
/// Time for which an ending server tries for a `primary.lock` that a serving process holds.
const END_TIMEOUT: Duration = Duration::from_millis(20);
/// The same when no server runs, sized for fifty that end at once: the holder of the lock may have asked for members
/// already, and on a busy machine it may wait before it gives the lock back.
const UNSERVED_TIMEOUT: Duration = Duration::from_secs(2);

/// Membership in the session, which lives as long as it has members. Ends when dropped, and when the
/// process dies.
///
/// Members are not counted here: that would take a file for each, which a killed process leaves behind
/// and whose removal races with the next process of the same pid. The PRIMARY counts its PROXYs by their calls.
#[derive(Debug)]
pub struct SessionMember(Arc<Mutex<FileLock>>);

impl SessionMember {
    /// Returns a handle for the thread that waits for `primary.lock`; it does not keep the membership alive.
    pub fn new_watch(&self) -> MemberWatch {
        MemberWatch(Arc::downgrade(&self.0))
    }
}

/// A handle on a [`SessionMember`] that does not keep it alive.
#[derive(Debug)]
pub struct MemberWatch(Weak<Mutex<FileLock>>);

impl MemberWatch {
    /// The membership, while it lives.
    pub fn to_member(&self) -> Option<SessionMember> {
        self.0.upgrade().map(SessionMember)
    }
}

impl RuntimeDir {
    /// Joins the session. A PRIMARY does it when it has decided whether the session goes on, a PROXY
    /// when a PRIMARY has answered it, both before they serve anybody.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the lock file cannot be used, or a PRIMARY that is just deciding keeps it for
    /// more than five seconds (it is suspended).
    pub fn join_session(&self) -> Result<SessionMember> {
        // A program that is just clearing the directory keeps it locked for a moment; the next member tries again.
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

    /// Joins again after `members.lock` was removed or replaced. Returns true when the membership is that of the file that
    /// has the name. A caller that has no patience leaves it for the next try while a PRIMARY decides.
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

    /// Returns true when a new session begins: the old one has no members any more, or was stopped. The caller
    /// is PRIMARY and no member: it has not joined yet, or has left.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the lock file cannot be used.
    pub fn session_is_over(&self, lock: &PrimaryLock) -> Result<bool> {
        Ok(!self.has_members(lock)? || self.read_session() == SessionState::Stopped)
    }

    /// Ends a PRIMARY, which gives its lock, or a PROXY, which has none: leaves the session, and removes the journal
    /// and the session file when no other process belongs to it. Returns true when the session is over.
    ///
    /// `has_unseen_member` tells of members whose lock this process cannot see, since their `members.lock` was removed: the
    /// session file of a stopped session stays for them.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when something cannot be removed; the lock is released all the same, and the next
    /// start removes it.
    pub fn end_session(
        &self,
        lock: Option<PrimaryLock>,
        member: SessionMember,
        journal: Option<Journal>,
        has_unseen_member: impl Fn() -> bool,
    ) -> Result<bool> {
        let unnamed = lock.as_ref().map_or(Ok(()), |lock| self.remove_server_file(lock));
        drop(member);
        // The file is closed before it is removed, which some systems demand.
        drop(journal);
        // Each of the two tries releases its lock when it is done.
        let remove = |lock: PrimaryLock| self.remove_if_over(&lock, &has_unseen_member);
        let first = lock.map_or(Ok(false), remove);
        let last = self.try_lock_for_a_moment().and_then(|lock| lock.map_or(Ok(false), remove));
        unnamed?;
        Ok(first? | last?)
    }

    /// Removes the files of a session that is over. Returns true when it is over.
    fn remove_if_over(&self, lock: &PrimaryLock, has_unseen_member: impl Fn() -> bool) -> Result<bool> {
        // `server.pid` goes before members are counted: a server that joins later sees that the lock was won.
        let unnamed = self.remove_server_file(lock);
        let (has_members, is_stopped) = (self.has_members(lock)?, self.read_session() == SessionState::Stopped);
        if !has_members && !(is_stopped && has_unseen_member()) {
            self.remove_session(lock)?;
            return unnamed.map(|()| true);
        }
        if is_stopped {
            // The empty session file stays, to tell the others.
            return self.remove_journal(lock).map(|()| true);
        }
        Ok(false)
    }

    /// Tries for `primary.lock`, which ending servers and probing clients hold for microseconds. A PRIMARY that serves
    /// holds it for as long as it lives, and then removes everything itself: so this gives up soon. When no server
    /// runs, the process that ends last has to get it.
    fn try_lock_for_a_moment(&self) -> Result<Option<PrimaryLock>> {
        let begun = Instant::now();
        let is_served = || self.read_server_file().is_some() && self.read_session() != SessionState::Stopped;
        let is_over = || {
            let passed = begun.elapsed();
            passed >= UNSERVED_TIMEOUT || (passed >= END_TIMEOUT && is_served())
        };
        self.try_lock_for(LockPatience::Until(&is_over))
    }

    /// Ends a session that has members but can have no PRIMARY, for instance because none of them can read its journal:
    /// they end when the lock comes to them. Returns true when there was such a session.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the files cannot be emptied.
    pub fn end_forsaken(&self) -> Result<bool> {
        // Members that cannot become PRIMARY still take the lock for moments, to try.
        let Some(lock) = self.try_lock_for(LockPatience::Within(FORSAKEN_TIMEOUT))? else { return Ok(false) };
        if !self.has_members(&lock)? {
            return Ok(false);
        }
        self.stop_session()?;
        self.remove_journal(&lock).map(|()| true)
    }

    /// Waits, blocking the thread, until a server that was told to end has left nothing but its locks and its log. The
    /// caller may then remove folders, or start the next server. Returns false when that takes over five seconds.
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

    /// Returns true when the session has members; a caller that has joined counts too.
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

    /// Returns true when there is no `members.lock`. Nudge never removes it, so beside a session file this means that
    /// somebody else has, and that nothing shows whether the session has members.
    pub fn lacks_members_file(&self) -> bool {
        matches!(self.dir().look_up(LOCK), Ok(FileKind::Missing))
    }
}
