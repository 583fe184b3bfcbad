//! Holds the state of the processes and the disk at one moment.

pub const PROCESSES: usize = 3;
/// The number of writes, one bit each: enough for one in a session, one in the next, and one that is never
/// acknowledged.
pub const WRITES: u32 = 3;

/// The state of a process, named by its next step.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// Is not running, or looks for the lock or for a PRIMARY that answers; it holds no lock in any case.
    #[default]
    Off,
    /// Has an answer of a PRIMARY; joins the session next.
    Answered,
    /// Reads the session file next.
    Joined,
    /// Checks next whether `server.pid` is still the same as when the PRIMARY answered.
    Looked,
    Proxy,
    /// Has `primary.lock`, as all states up to `Unlocking` have; removes `server.pid` next, and a PROXY then reads the
    /// session file.
    Won,
    /// Gives the lock back next, because the session of this PROXY is over.
    TurnedAway,
    /// Tries next to get `members.lock` exclusively.
    Asking,
    /// Has `members.lock` exclusively; releases it next.
    Asked,
    RemovingJournal,
    RemovingSession,
    /// Opens the journal next; the flag says whether it keeps the content.
    Opening(bool),
    /// Writes the session file next, unless it continues the session of that file.
    Describing,
    Joining,
    /// Writes `server.pid` next.
    Ready,
    Serving,
    /// Has written a record that is not acknowledged yet.
    Recorded,
    /// Is stopped by `nudge stop` and acknowledges nothing more; empties the session file next.
    Closed,
    /// Has emptied the session file; empties the journal next.
    Marked,
    /// Answers no more calls; removes `server.pid` next.
    Ending,
    Leaving,
    AskingAtTheEnd,
    AskedAtTheEnd,
    /// Removes the journal next; the flag says whether it then removes the session file.
    ClearingJournal(bool),
    ClearingSession,
    Unlocking,
    /// Has no lock; a PROXY that is ending leaves the session next.
    LeavingTheLine,
    /// Tries to get the lock for the last time.
    LastTry,
    /// Has finished; the system ends its threads next.
    Exiting,
}

/// The knowledge of a PROXY about its session. Each session file has a new number, so a PROXY can only tell whether its
/// number is the last that was written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knows {
    #[default]
    Nothing,
    Last,
    Older,
}

/// The session file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionMark {
    #[default]
    Unknown,
    Stopped,
    /// The file holds the last number that was ever written.
    Lives,
}

/// The session for which a process holds `members.lock` shared, if it does.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    #[default]
    No,
    /// Holds it since an earlier session, which was stopped; this process has not noticed it yet.
    OfOlder,
    OfLatest,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    pub at: At,
    /// The step of the thread of a PROXY that is ending: the thread may already hold the lock. `Off` when there is no
    /// such thread.
    pub line: At,
    /// Is true when `server.pid` is still the same as when the PRIMARY answered.
    pub unchanged: bool,
    pub knows: Knows,
    /// Has won the lock in its last try.
    pub last: bool,
    pub member: Member,
    /// Has taken part in a session: it saw the PRIMARY answer, or it is the PRIMARY.
    pub part: bool,
    /// The writes that its answers would show.
    pub store: u8,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub processes: [Process; PROCESSES],
    /// The process that `server.pid` names, if it is alive.
    pub server_file: Option<usize>,
    pub session: SessionMark,
    pub journal: Option<u8>,
    /// All writes.
    pub written: u8,
    /// The acknowledged writes that must not be lost: some process has belonged to the session ever since.
    pub owed: u8,
    /// The writes that a new session must not show: at some time after them no participant was alive, or the session
    /// was stopped.
    pub over: u8,
    /// Is true when the session was stopped and no other has begun.
    pub stopped: bool,
    /// A process that died left files on the disk, and no living process had to remove them.
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
    /// Returns true when the process answers callers.
    pub fn is_primary(&self) -> bool {
        matches!(self.at, At::Serving | At::Recorded | At::Closed | At::Marked)
    }

    /// Returns true when the process need not remove the session's files: it has not joined, it exits, or its last try
    /// has already asked for members.
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

    /// Returns true when `members.lock` is held exclusively.
    pub fn is_asked(&self) -> bool {
        self.processes.iter().any(|process| matches!(process.at, At::Asked | At::AskedAtTheEnd))
    }

    pub fn is_served(&self) -> bool {
        self.processes.iter().any(Process::is_primary)
    }

    /// Returns true when the server that `server.pid` names answers.
    pub fn answers(&self) -> bool {
        self.server_file.is_some_and(|name| self.processes[name].is_primary())
    }

    pub fn has_members(&self) -> bool {
        self.processes.iter().any(Process::is_member)
    }

    pub fn next_write(&self) -> Option<u8> {
        (self.written.count_ones() < WRITES).then(|| 1 << self.written.count_ones())
    }

    /// Changes the process in `server.pid`.
    pub fn name(&mut self, named: Option<usize>) {
        self.server_file = named;
        self.processes.iter_mut().for_each(|process| process.unchanged = false);
    }

    /// Begins a new session: a process that is still a member of the stopped one becomes `OfOlder`.
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

    /// Updates `owed` and `over`, which the properties compare, after each step.
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

    /// Sorts the processes: they are alike, so worlds that differ only in their order are the same.
    pub fn sorted(mut self) -> Self {
        let named = self.server_file.map(|name| self.processes[name]).filter(|process| process.at != At::Off);
        self.processes.sort_unstable();
        // Names the first process that is equal to the named one: no property can tell equal processes apart.
        self.server_file = named.and_then(|named| self.processes.iter().position(|process| *process == named));
        self
    }
}
