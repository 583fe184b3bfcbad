//! What the processes and the disk are at one moment.

pub const PROCESSES: usize = 3;
/// Bits of a set: enough for a write in a session, one in the next, and one that dies unacknowledged.
pub const WRITES: u32 = 3;

/// Which step of the protocol comes next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// Or tries for the lock, or for a PRIMARY that answers: neither holds anything.
    #[default]
    Off,
    /// A PRIMARY has answered; joins next.
    Answered,
    /// Reads the session file next.
    Joined,
    /// Looks next whether `server.pid` still says what it said when the PRIMARY answered.
    Looked,
    Proxy,
    /// Has `primary.lock`, as in all that follow; removes `server.pid` next. A PROXY then looks at the
    /// session file.
    Won,
    /// Gives the lock back next, because the session of this PROXY is over.
    TurnedAway,
    /// Tries `members.lock` exclusively next.
    Asking,
    /// Has it, and releases it next.
    Asked,
    RemovingJournal,
    RemovingSession,
    /// Opens the journal, and keeps what is in it or not.
    Opening(bool),
    /// Writes the session file next, unless it goes on with the one there is.
    Describing,
    Joining,
    /// Writes `server.pid` next.
    Ready,
    Serving,
    /// Has written a record that is not acknowledged yet.
    Recorded,
    /// `nudge stop`: acknowledges nothing more; cuts the session file to nothing next.
    Closed,
    /// Empties the journal next.
    Marked,
    /// Answers nothing more; removes `server.pid` next.
    Ending,
    Leaving,
    AskingAtTheEnd,
    AskedAtTheEnd,
    /// Removes the journal next; and then the session file, or not.
    ClearingJournal(bool),
    ClearingSession,
    Unlocking,
    /// Has no lock; a PROXY that ends leaves the session next.
    LeavingTheLine,
    /// Tries for the lock once more.
    LastTry,
    /// Has done all; the system ends its threads next.
    Exiting,
}

/// What a PROXY knows of its session. Numbers are never used twice; so all that can be observed of one is
/// whether it is the last that was ever written.
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
    /// With the last number that was ever written.
    Lives,
}

/// Whether it holds `members.lock` shared.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    #[default]
    No,
    /// Since before the latest session began; the one before was stopped, and this one does not know.
    OfOlder,
    OfLatest,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    pub at: At,
    /// The thread of a PROXY that ends, which may have won the lock when it was told; else `Off`.
    pub line: At,
    /// `server.pid` is still what it was when the PRIMARY answered.
    pub unchanged: bool,
    pub knows: Knows,
    /// Its last try has begun to succeed.
    pub last: bool,
    pub member: Member,
    /// Has taken part in a session: saw its PRIMARY answer, or is it.
    pub part: bool,
    /// The writes it would answer with.
    pub store: u8,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub processes: [Process; PROCESSES],
    /// Whom `server.pid` names, if that one lives.
    pub server_file: Option<usize>,
    pub session: SessionMark,
    pub journal: Option<u8>,
    /// All that was ever written.
    pub written: u8,
    /// Acknowledged while somebody belonged to the session, and somebody has ever since.
    pub owed: u8,
    /// Written before a moment at which nobody lived who had taken part, or before a stop.
    pub over: u8,
    /// Somebody stopped the session, and no other has begun.
    pub stopped: bool,
    /// What lies on the disk was left by one who died, with nobody there to see to it.
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
    /// Whether it answers callers.
    pub fn is_primary(&self) -> bool {
        matches!(self.at, At::Serving | At::Recorded | At::Closed | At::Marked)
    }

    /// Whether it has not come so far that it would have to clear up, or has asked for the last time.
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

    /// Whether `members.lock` is held exclusively.
    pub fn is_asked(&self) -> bool {
        self.processes.iter().any(|process| matches!(process.at, At::Asked | At::AskedAtTheEnd))
    }

    pub fn is_served(&self) -> bool {
        self.processes.iter().any(Process::is_primary)
    }

    /// Whether the server answers that `server.pid` names.
    pub fn answers(&self) -> bool {
        self.server_file.is_some_and(|name| self.processes[name].is_primary())
    }

    pub fn has_members(&self) -> bool {
        self.processes.iter().any(Process::is_member)
    }

    pub fn next_write(&self) -> Option<u8> {
        (self.written.count_ones() < WRITES).then(|| 1 << self.written.count_ones())
    }

    /// Changes `server.pid`.
    pub fn name(&mut self, named: Option<usize>) {
        self.server_file = named;
        self.processes.iter_mut().for_each(|process| process.unchanged = false);
    }

    /// A new session begins, or there is nobody left for whom one could.
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

    /// What the properties speak of follows from each step.
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

    /// The same with the processes in order: they are all alike, so their names do not matter.
    pub fn sorted(mut self) -> Self {
        let named = self.server_file.map(|name| self.processes[name]).filter(|process| process.at != At::Off);
        self.processes.sort_unstable();
        // Whoever is quite the same could as well be the one.
        self.server_file = named.and_then(|named| self.processes.iter().position(|process| *process == named));
        self
    }
}
