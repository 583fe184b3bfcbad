//! Defines the steps of a process in the model.

use super::world::{At, Knows, Member, Process, SessionMark, World};

/// A deliberate mistake in the protocol, which the check must find. The last three mistakes were once in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// Joins when the lock is held, even if no PRIMARY answers.
    JoinsUnanswered,
    /// Joins before it has an answer of the PRIMARY.
    JoinsFirst,
    /// Treats every start as a new session.
    NeverAsks,
    /// Acknowledges a write before it records the write.
    AcknowledgesFirst,
    /// Removes the journal at the end only after it has released the lock.
    ClearsUnlocked,
    /// Becomes PRIMARY when the process in `server.pid` does not answer.
    IgnoresTheLock,
    /// Ends without a last try for the lock.
    NoLastTry,
    /// Ends the last try as soon as another process holds the lock.
    OneLastTry,
    /// Removes the session file of a stopped session while other processes are members of it.
    RemovesTheMark,
    /// Lets a PROXY that wins the lock skip the session file.
    NeverLooks,
    /// Empties the journal at `nudge stop`, but not the session file.
    NeverMarks,
    /// Removes the session file before the journal.
    ForgetsFirst,
    /// Trusts the session file that it has read, although another PRIMARY may have won since.
    BelievesTheFile,
    /// Removes `server.pid` in the last try, but only after it has tried `members.lock`.
    AsksFirst,
    /// Lets a thread become PRIMARY when it wins the lock after its PROXY has left.
    StaysInLine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Step(usize),
    /// The waiting thread of a PROXY that is ending takes a step.
    Line(usize),
    Write(usize),
    /// Opening the journal fails because there are no file descriptors left.
    CannotRead(usize),
    End(usize),
    /// A user runs `nudge stop`.
    Stop(usize),
    Die(usize),
}

pub struct Protocol(pub Flaw);

impl Protocol {
    fn is_locked(&self, world: &World) -> bool {
        world.is_locked(self.0 == Flaw::ClearsUnlocked)
    }

    /// Takes the next step of a process. Returns `None` when the process has to wait.
    pub fn step(&self, world: &World, name: usize) -> Option<World> {
        let mut next = *world;
        let process = world.processes[name];
        let own = &mut next.processes[name];
        let stage = match process.at {
            At::Off if !self.is_locked(world) || (self.0 == Flaw::IgnoresTheLock && !world.answers()) => At::Won,
            At::Off if world.answers() || self.0 == Flaw::JoinsUnanswered => {
                (own.part, own.unchanged) = (world.answers(), true);
                At::Answered
            }
            At::Answered | At::Joining if world.is_asked() => return None,
            At::Off | At::Serving => return None,
            At::Answered => {
                own.member = Member::OfLatest;
                At::Joined
            }
            At::Joined => {
                own.knows = if world.session == SessionMark::Lives { Knows::Last } else { Knows::Nothing };
                At::Looked
            }
            At::Looked => {
                if !process.unchanged && self.0 != Flaw::BelievesTheFile {
                    own.knows = Knows::Nothing;
                }
                own.unchanged = false;
                At::Proxy
            }
            At::Proxy if self.is_locked(world) => return None,
            At::Proxy => At::Won,
            At::Won if self.0 == Flaw::JoinsFirst => {
                own.member = Member::OfLatest;
                self.promote(&mut next, &process, At::Won)
            }
            At::Won | At::Opening(true) | At::Describing if process.is_member() => {
                let stage = self.promote(&mut next, &process, process.at);
                if stage == At::Describing {
                    (next.processes[name].store, next.processes[name].part) = (next.journal.unwrap_or(0), true);
                }
                stage
            }
            At::TurnedAway => At::LeavingTheLine,
            At::Recorded => {
                let last = 1 << (world.written.count_ones() - 1);
                next.journal = Some(world.journal.unwrap_or(0) | last);
                next.owed |= last;
                own.store |= last;
                At::Serving
            }
            At::Closed => {
                if self.0 != Flaw::NeverMarks {
                    next.session = SessionMark::Stopped;
                }
                (next.owed, next.over, next.stopped) = (0, world.written, true);
                At::Marked
            }
            At::Marked => {
                next.journal = world.journal.map(|_| 0);
                own.store = 0;
                At::Ending
            }
            stage if stage < At::Serving => self.start(&mut next, name),
            _ => self.end(&mut next, name)?,
        };
        next.processes[name].at = stage;
        if stage == At::Off {
            next.processes[name] = Process::default();
        }
        next.account();
        Some(next)
    }

    /// Takes the next step of a process that has won the lock and is no member of the session.
    fn start(&self, next: &mut World, name: usize) -> At {
        match next.processes[name].at {
            At::Won => {
                next.name(None);
                At::Asking
            }
            At::Asking if next.has_members() && next.session != SessionMark::Stopped && self.0 != Flaw::NeverAsks => {
                next.processes[name].part = true;
                At::Opening(true)
            }
            At::Asking if next.has_members() => self.begin(next),
            At::Asking => At::Asked,
            At::Asked => self.begin(next),
            At::RemovingJournal => {
                next.journal = None;
                if self.0 == Flaw::ForgetsFirst { At::Opening(false) } else { At::RemovingSession }
            }
            At::RemovingSession => {
                next.forget_session();
                if self.0 == Flaw::ForgetsFirst { At::RemovingJournal } else { At::Opening(false) }
            }
            At::Opening(keep) => {
                let kept = next.journal.filter(|_| keep).unwrap_or(0);
                next.journal = Some(kept);
                (next.processes[name].store, next.processes[name].part) = (kept, true);
                At::Describing
            }
            At::Describing => {
                next.describe();
                At::Joining
            }
            At::Joining => {
                next.processes[name].member = Member::OfLatest;
                At::Ready
            }
            _ => {
                next.name(Some(name));
                At::Serving
            }
        }
    }

    fn begin(&self, next: &mut World) -> At {
        next.begin();
        if self.0 == Flaw::ForgetsFirst { At::RemovingSession } else { At::RemovingJournal }
    }

    /// Takes the next step of a PROXY whose waiting thread has won the lock.
    fn promote(&self, next: &mut World, process: &Process, stage: At) -> At {
        match stage {
            At::Won => {
                next.name(None);
                let over = match next.session {
                    SessionMark::Unknown => false,
                    SessionMark::Stopped => true,
                    SessionMark::Lives => process.knows == Knows::Older,
                };
                if over && self.0 != Flaw::NeverLooks { At::TurnedAway } else { At::Opening(true) }
            }
            At::Opening(_) => {
                next.journal = Some(next.journal.unwrap_or(0));
                At::Describing
            }
            _ => {
                next.describe();
                At::Ready
            }
        }
    }

    /// Takes the next step of the waiting thread of a PROXY that is ending.
    pub fn line(&self, world: &World, name: usize) -> Option<World> {
        let mut next = *world;
        let process = world.processes[name];
        let line = match process.line {
            At::Off => return None,
            At::Proxy if self.is_locked(world) => return None,
            At::Proxy => At::Won,
            // The PROXY is ending, so the thread gives the lock back.
            At::Ready | At::TurnedAway => At::Off,
            stage => self.promote(&mut next, &process, stage),
        };
        next.processes[name].line = line;
        Some(next)
    }

    /// Takes the next step of a process that is ending.
    fn end(&self, next: &mut World, name: usize) -> Option<At> {
        let process = next.processes[name];
        Some(match process.at {
            At::Ending => {
                next.name(None);
                At::Leaving
            }
            At::Leaving | At::LeavingTheLine => {
                next.processes[name].leave();
                if process.at == At::Leaving { At::AskingAtTheEnd } else { At::LastTry }
            }
            At::AskingAtTheEnd if !next.has_members() => At::AskedAtTheEnd,
            At::AskingAtTheEnd if next.session != SessionMark::Stopped => At::Unlocking,
            // The session file stays. It shows the other members that the session was stopped.
            At::AskingAtTheEnd => At::ClearingJournal(self.0 == Flaw::RemovesTheMark),
            At::AskedAtTheEnd => {
                next.stopped = false;
                At::ClearingJournal(true)
            }
            At::ClearingJournal(all) => {
                if all && self.0 == Flaw::AsksFirst {
                    next.name(None);
                }
                next.journal = None;
                if all { At::ClearingSession } else { At::Unlocking }
            }
            At::ClearingSession => {
                next.forget_session();
                At::Unlocking
            }
            At::Unlocking if !process.last && self.0 != Flaw::NoLastTry => At::LastTry,
            At::LastTry if self.0 == Flaw::NoLastTry => At::Off,
            At::LastTry if !self.is_locked(next) => {
                next.processes[name].last = true;
                // `server.pid` still exists if the last PRIMARY died.
                if self.0 != Flaw::AsksFirst {
                    next.name(None);
                }
                At::AskingAtTheEnd
            }
            At::LastTry if next.is_served() || self.0 == Flaw::OneLastTry => exit(process),
            At::LastTry => return None,
            At::Unlocking => exit(process),
            _ => At::Off,
        })
    }

    /// Begins a write: the PRIMARY has recorded it and has not acknowledged it yet.
    pub fn write(&self, world: &World, name: usize) -> Option<World> {
        let write = world.next_write()?;
        let mut next = *world;
        next.written |= write;
        if self.0 == Flaw::AcknowledgesFirst {
            next.owed |= write;
        } else {
            next.journal = Some(world.journal.unwrap_or(0) | write);
        }
        next.processes[name].at = At::Recorded;
        Some(next)
    }

    /// Tells a PROXY to end. Its waiting thread may already have the lock.
    pub fn end_proxy(&self, world: &World, name: usize) -> World {
        let mut next = *world;
        let process = &mut next.processes[name];
        // A thread that still waits is left out of the model: when it wins, it gives the lock back at once.
        let waits = process.at == At::Proxy && self.0 != Flaw::StaysInLine;
        process.store = 0;
        (process.line, process.at) = (if waits { At::Off } else { process.at }, At::LeavingTheLine);
        next
    }
}

/// Returns the last step of a process. The exit is a separate step only if a thread of the process may still act.
fn exit(process: Process) -> At {
    if process.line == At::Off { At::Off } else { At::Exiting }
}
