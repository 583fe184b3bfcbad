//! Contains the state of the processes and of the disk at one moment.

pub const PROCESSES: usize = 3;
/// The number of writes. Three are enough: one in a session, one in the next session, and one that is never
/// acknowledged. Each write is a bit.
pub const WRITES: u32 = 3;

/// The state of a process. Most names say which step comes next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// Is not running, or looks for the lock or for a PRIMARY that answers. It holds no lock.
    #[default]
    Off,
    /// Has an answer of the PRIMARY. Joins the session next.
    Answered,
    /// Reads the session file next.
    Joined,
    /// Has read the session file. Checks next whether `server.pid` is still the same as when the PRIMARY answered.
    Looked,
    Proxy,
    /// Has `primary.lock`, as in all states up to `Unlocking`. Removes `server.pid` next; a PROXY then reads the
    /// session file.
    Won,
    /// Has the lock, but the session of this PROXY is over. Gives the lock back next.
    TurnedAway,
    /// Tries next to lock `members.lock` exclusively.
    Asking,
    /// Has `members.lock` exclusively. Releases it next.
    Asked,
    RemovingJournal,
    RemovingSession,
    /// Opens the journal next. The flag is true if the journal keeps its content.
    Opening(bool),
    /// Writes the session file next, unless it continues the session of this file.
    Describing,
    Joining,
    /// Writes `server.pid` next.
    Ready,
    Serving,
    /// Has recorded a write and not acknowledged it yet.
    Recorded,
    /// Acknowledges no more writes because of `nudge stop`. Empties the session file next.
    Closed,
    /// Has emptied the session file. Empties the journal next.
    Marked,
    /// Answers no more calls. Removes `server.pid` next.
    Ending,
    Leaving,
    AskingAtTheEnd,
    AskedAtTheEnd,
    /// Removes the journal next. The flag is true if it then also removes the session file.
    ClearingJournal(bool),
    ClearingSession,
    Unlocking,
    /// Has no lock. A PROXY that is ending leaves the session next.
    LeavingTheLine,
    /// Tries to get `primary.lock` for the last time.
    LastTry,
    /// Has finished. The system ends its threads next.
    Exiting,
}

/// The knowledge of a PROXY about its session. Each session file has a new number. So a PROXY knows only if the number
/// of its session is the last one that was written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knows {
    #[default]
    Nothing,
    Last,
    Older,
}

/// The state of the session file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionMark {
    #[default]
    Unknown,
    Stopped,
    /// The file contains the last number that was written.
    Lives,
}

/// The session for which a process holds a shared lock on `members.lock`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    #[default]
    No,
    /// Has held the lock since an earlier session, which was stopped. The process has not noticed the stop yet.
    OfOlder,
    OfLatest,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    pub at: At,
    /// The step of the waiting thread of a PROXY that is ending. The thread may already hold the lock. `Off` when there
    /// is no such thread.
    pub line: At,
    /// True while `server.pid` is the same as when the PRIMARY answered.
    pub unchanged: bool,
    pub knows: Knows,
    /// True if the process has won the lock in its last try.
    pub last: bool,
    pub member: Member,
    /// True if the process has taken part in a session: it saw a PRIMARY answer, or it is the PRIMARY.
    pub part: bool,
    /// The writes that the process has in memory, one bit each.
    pub store: u8,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub processes: [Process; PROCESSES],
    /// The process that `server.pid` names; `None` if there is no file, or if that process is dead.
    pub server_file: Option<usize>,
    pub session: SessionMark,
    pub journal: Option<u8>,
    /// All writes so far.
    pub written: u8,
    /// The acknowledged writes that must not be lost, because since then the session has always had a member.
    pub owed: u8,
    /// The writes that a new session must not show. After each of them, the session was stopped, or there was a moment
    /// without a participant.
    pub over: u8,
    /// True if the session was stopped and no other session has begun.
    pub stopped: bool,
    /// True if a process died and left files on the disk that no living process had to remove.
    pub left: bool,
}

impl At {
    fn has_the_lock(self) -> bool {
        !matches!(
            self,
            Self::Off
                | Self::Answered
                | Self::Joined
                | Self::Looked
                | Self::Proxy
                | Self::LeavingTheLine
                | Self::LastTry
                | Self::Exiting
        )
    }

    pub fn clears(self) -> bool {
        matches!(self, Self::ClearingJournal(_) | Self::ClearingSession)
    }
}

impl Process {
    /// Returns true if the process answers callers.
    pub fn is_primary(&self) -> bool {
        matches!(self.at, At::Serving | At::Recorded | At::Closed | At::Marked)
    }

    /// Returns true if the process need not remove the session's files: it has not joined, it exits, or it has already
    /// looked for members in its last try.
    fn has_no_duty(&self) -> bool {
        match self.at {
            At::ClearingJournal(false) | At::Unlocking => self.last,
            stage => matches!(stage, At::Off | At::Answered | At::Exiting),
        }
    }

    pub fn is_member(&self) -> bool {
        self.member != Member::No
    }

    pub fn belongs(&self) -> bool {
        self.member == Member::OfLatest
    }

    pub fn leave(&mut self) {
        (self.member, self.part, self.knows) = (Member::No, false, Knows::Nothing);
    }
}

impl World {
    pub fn is_locked(&self, clears_unlocked: bool) -> bool {
        self.processes.iter().any(|process| {
            process.line.has_the_lock() || (process.at.has_the_lock() && !(clears_unlocked && process.at.clears()))
        })
    }

    /// Returns true while a process holds `members.lock` exclusively.
    pub fn is_asked(&self) -> bool {
        self.processes.iter().any(|process| matches!(process.at, At::Asked | At::AskedAtTheEnd))
    }

    pub fn is_served(&self) -> bool {
        self.processes.iter().any(Process::is_primary)
    }

    /// Returns true if the process in `server.pid` answers.
    pub fn answers(&self) -> bool {
        self.server_file.is_some_and(|name| self.processes[name].is_primary())
    }

    pub fn has_members(&self) -> bool {
        self.processes.iter().any(Process::is_member)
    }

    pub fn next_write(&self) -> Option<u8> {
        (self.written.count_ones() < WRITES).then(|| 1 << self.written.count_ones())
    }

    /// Writes or removes `server.pid`.
    pub fn name(&mut self, named: Option<usize>) {
        self.server_file = named;
        self.processes.iter_mut().for_each(|process| process.unchanged = false);
    }

    /// Begins a new session. A process that is still a member of the stopped session becomes `OfOlder`.
    pub fn begin(&mut self) {
        if self.session == SessionMark::Stopped {
            for process in self.processes.iter_mut().filter(|process| process.is_member()) {
                process.member = Member::OfOlder;
            }
        }
        self.stopped = false;
    }

    pub fn describe(&mut self) {
        if self.session != SessionMark::Lives {
            self.session = SessionMark::Lives;
            for process in self.processes.iter_mut().filter(|process| process.knows == Knows::Last) {
                process.knows = Knows::Older;
            }
        }
    }

    pub fn forget_session(&mut self) {
        self.session = SessionMark::Unknown;
        self.left = false;
    }

    /// Updates `owed` and `over` after a step. The properties compare them.
    pub fn account(&mut self) {
        if !self.processes.iter().any(Process::belongs) {
            self.owed = 0;
        }
        if !self.processes.iter().any(|process| process.part) {
            self.over = self.written;
        }
    }

    pub fn is_clean(&self) -> bool {
        self.journal.is_none() && self.session == SessionMark::Unknown
    }

    pub fn die(mut self, name: usize) -> Self {
        self.processes[name] = Process::default();
        self.left |= !self.is_clean() && self.processes.iter().all(Process::has_no_duty);
        self.account();
        self
    }

    /// Sorts the processes. The processes are alike, so two states that differ only in their order are equal.
    pub fn sorted(mut self) -> Self {
        let named = self.server_file.map(|name| self.processes[name]).filter(|process| process.at != At::Off);
        self.processes.sort_unstable();
        // Names the first process that is equal to the named one, because no property can tell them apart.
        self.server_file = named.and_then(|named| self.processes.iter().position(|process| *process == named));
        self
    }
}
