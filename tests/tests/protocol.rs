//! The protocol of locks, membership, promotion and journal (`nudge/client/src/members.rs`), checked in
//! every order in which three processes can take its steps, die between any two and start again.
//!
//! A process that is stopped is one that takes no step for long; so those orders are among them.

use stateright::{Checker, Model, Property};

const PROCESSES: usize = 3;
/// Bits of a set: enough for a write in a session, one in the next, and one that dies unacknowledged.
const WRITES: u32 = 3;
/// More than the steps from anywhere to a PRIMARY, for all processes in turn.
const PATIENCE: usize = 24;

/// Which step of the protocol comes next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    #[default]
    Off,
    /// Tries for the lock, or for a PRIMARY that answers.
    Trying,
    /// A PRIMARY has answered; joins next.
    Answered,
    Proxy,
    /// Has `primary.lock`, as in all that follow; removes `server.pid` next.
    Won,
    /// Tries `members.lock` exclusively next.
    Asking,
    /// Has it, and releases it next.
    Asked,
    /// Opens the journal, and keeps what is in it or not.
    Opening(bool),
    Joining,
    /// Writes `server.pid` next.
    Ready,
    Serving,
    /// Has written a record that is not acknowledged yet.
    Recorded,
    /// Answers nothing more; removes `server.pid` next.
    Ending,
    Leaving,
    AskingAtTheEnd,
    AskedAtTheEnd,
    Clearing,
    Unlocking,
}

/// A mistake, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// Joins when the lock is held, whether or not the PRIMARY answers.
    JoinsUnanswered,
    /// Joins before it asks.
    JoinsFirst,
    /// Takes every start for a new session.
    NeverAsks,
    /// Acknowledges before it records.
    AcknowledgesFirst,
    /// Clears the journal at the end when the lock is released already.
    ClearsUnlocked,
    /// Becomes PRIMARY when `server.pid` names nobody who answers.
    IgnoresTheLock,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
struct Process {
    at: At,
    /// Holds `members.lock` shared.
    member: bool,
    /// Has taken part in the session: saw its PRIMARY answer, or is it.
    part: bool,
    /// The writes it would answer with.
    store: u8,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
struct World {
    processes: [Process; PROCESSES],
    server_file: Option<usize>,
    journal: u8,
    /// All that was ever written.
    written: u8,
    /// Acknowledged while somebody was a member, and somebody has been ever since.
    owed: u8,
    /// Written before a moment at which nobody lived who had taken part.
    over: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Start(usize),
    Step(usize),
    Write(usize),
    /// Opening the journal fails for want of descriptors.
    CannotRead(usize),
    End(usize),
    /// `nudge stop`
    Stop(usize),
    Die(usize),
}

struct Protocol(Flaw);

impl World {
    fn is_locked(&self, flaw: Flaw) -> bool {
        self.processes.iter().any(|process| match process.at {
            At::Off | At::Trying | At::Answered | At::Proxy => false,
            At::Clearing => flaw != Flaw::ClearsUnlocked,
            _ => true,
        })
    }

    fn is_asked(&self) -> bool {
        self.processes.iter().any(|process| matches!(process.at, At::Asked | At::AskedAtTheEnd))
    }

    fn answers(&self) -> bool {
        self.server_file.is_some_and(|name| self.processes[name].is_primary())
    }

    fn has_members(&self) -> bool {
        self.processes.iter().any(|process| process.member)
    }

    fn next_write(&self) -> Option<u8> {
        (self.written.count_ones() < WRITES).then(|| 1 << self.written.count_ones())
    }

    /// What the properties speak of follows from each step.
    fn account(&mut self) {
        if !self.has_members() {
            self.owed = 0;
        }
        if !self.processes.iter().any(|process| process.part) {
            self.over = self.written;
        }
    }
}

impl Process {
    fn is_primary(self) -> bool {
        matches!(self.at, At::Serving | At::Recorded)
    }
}

impl Protocol {
    /// The next step of a process; `None` when it has to wait.
    fn step(&self, world: &World, name: usize) -> Option<World> {
        let mut next = world.clone();
        let mut process = world.processes[name];
        process.at = match process.at {
            At::Trying if !world.is_locked(self.0) || (self.0 == Flaw::IgnoresTheLock && !world.answers()) => At::Won,
            At::Trying if world.answers() || self.0 == Flaw::JoinsUnanswered => {
                process.part = world.answers();
                At::Answered
            }
            At::Proxy if !world.is_locked(self.0) => At::Won,
            At::Answered | At::Joining if world.is_asked() => return None,
            At::Off | At::Serving | At::Trying | At::Proxy => return None,
            At::Answered => {
                process.member = true;
                At::Proxy
            }
            At::Won => {
                next.server_file = None;
                process.member |= self.0 == Flaw::JoinsFirst;
                if process.member { At::Opening(true) } else { At::Asking }
            }
            At::Asking if self.0 == Flaw::NeverAsks => At::Opening(false),
            At::Asking if world.has_members() => {
                process.part = true;
                At::Opening(true)
            }
            At::Asking => At::Asked,
            At::Asked => At::Opening(false),
            At::Opening(keep) => {
                next.journal = if keep { world.journal } else { 0 };
                process.store = next.journal;
                process.part = true;
                if process.member { At::Ready } else { At::Joining }
            }
            At::Joining => {
                process.member = true;
                At::Ready
            }
            At::Ready => {
                next.server_file = Some(name);
                At::Serving
            }
            At::Recorded => {
                let last = 1 << (world.written.count_ones() - 1);
                next.journal |= last;
                process.store |= last;
                next.owed |= last;
                At::Serving
            }
            _ => Self::end(&mut next, &mut process),
        };
        next.processes[name] = process;
        next.account();
        Some(next)
    }

    /// The next step of a PRIMARY that ends.
    fn end(next: &mut World, process: &mut Process) -> At {
        match process.at {
            At::Ending => {
                next.server_file = None;
                At::Leaving
            }
            At::Leaving => {
                process.member = false;
                process.part = false;
                At::AskingAtTheEnd
            }
            At::AskingAtTheEnd if next.has_members() => At::Unlocking,
            At::AskingAtTheEnd => At::AskedAtTheEnd,
            At::AskedAtTheEnd => At::Clearing,
            At::Clearing => {
                next.journal = 0;
                At::Unlocking
            }
            _ => {
                *process = Process::default();
                At::Off
            }
        }
    }

    /// Begins to write: recorded, not acknowledged.
    fn write(&self, world: &World, name: usize) -> Option<World> {
        let write = world.next_write()?;
        let mut next = world.clone();
        next.written |= write;
        if self.0 == Flaw::AcknowledgesFirst {
            next.owed |= write;
        } else {
            next.journal |= write;
        }
        next.processes[name].at = At::Recorded;
        Some(next)
    }

    /// Whether there is a PRIMARY after a while if nobody dies any more.
    fn recovers(&self, mut world: World) -> bool {
        for _ in 0..PATIENCE {
            if world.processes.iter().any(|process| process.is_primary()) {
                return true;
            }
            if world.processes.iter().all(|process| process.at == At::Off) {
                world.processes[0].at = At::Trying;
            }
            for name in 0..PROCESSES {
                world = self.step(&world, name).unwrap_or(world);
            }
        }
        false
    }
}

fn die(world: &World, name: usize) -> World {
    let mut next = world.clone();
    next.processes[name] = Process::default();
    next.account();
    next
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::default()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (name, process) in world.processes.iter().enumerate() {
            actions.push(if process.at == At::Off { Action::Start(name) } else { Action::Die(name) });
            actions.push(Action::Step(name));
            match process.at {
                At::Serving => actions.extend([Action::Write(name), Action::End(name), Action::Stop(name)]),
                At::Proxy => actions.push(Action::End(name)),
                At::Opening(true) => actions.push(Action::CannotRead(name)),
                _ => {}
            }
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Step(name) => return self.step(world, name),
            Action::Write(name) => return self.write(world, name),
            Action::Die(name) => return Some(die(world, name)),
            // Else it ends as the PRIMARY does, because nobody else would remove the journal.
            Action::End(name) if world.processes[name].at == At::Proxy && world.is_locked(self.0) => {
                return Some(die(world, name));
            }
            Action::End(name) => next.processes[name].at = At::Ending,
            Action::Start(name) => next.processes[name].at = At::Trying,
            Action::CannotRead(name) => {
                let process = &mut next.processes[name];
                process.at = if process.member { At::Proxy } else { At::Trying };
                process.part = process.member;
            }
            Action::Stop(name) => {
                next.journal = 0;
                next.owed = 0;
                next.over = world.written;
                next.processes[name].at = At::Ending;
            }
        }
        next.account();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn primaries(world: &World) -> impl Iterator<Item = &Process> {
            world.processes.iter().filter(|process| process.at == At::Serving)
        }
        vec![
            Property::always("never two PRIMARYs", |_, world: &World| {
                world.processes.iter().filter(|process| process.is_primary()).count() <= 1
            }),
            Property::always("a PRIMARY has all that was acknowledged while a member lived", |_, world: &World| {
                primaries(world).all(|primary| world.owed & !primary.store == 0)
            }),
            Property::always("a new session starts empty", |_, world: &World| {
                primaries(world).all(|primary| world.over & (primary.store | world.journal) == 0)
            }),
            Property::always("the journal is what the PRIMARY has", |_, world: &World| {
                primaries(world).all(|primary| world.journal == primary.store)
            }),
            Property::always("somebody can always become PRIMARY", |model: &Protocol, world: &World| {
                // All together, and each as the only one left.
                model.recovers(world.clone())
                    && (0..PROCESSES).all(|left| {
                        let others = (0..PROCESSES).filter(|name| *name != left);
                        model.recovers(others.fold(world.clone(), |world, name| die(&world, name)))
                    })
            }),
            // So that the others are not true for want of anything to speak of.
            Property::sometimes("a promoted PROXY has an acknowledged write", |_, world: &World| {
                world.server_file.is_none()
                    && world.processes.iter().any(|process| process.at == At::Ready && process.store & world.owed != 0)
            }),
            Property::sometimes("a write is acknowledged in a second session", |_, world: &World| {
                world.over != 0 && primaries(world).any(|primary| primary.store & world.owed != 0)
            }),
            Property::sometimes("all three belong to a session", |_, world: &World| {
                world.processes.iter().all(|process| process.member)
            }),
        ]
    }
}

#[test]
fn the_protocol_holds_in_every_order() {
    let checker = Protocol(Flaw::None).checker().threads(2).spawn_bfs().join();
    eprintln!("{} states, the furthest after {} steps", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
    assert!(checker.is_done() && checker.unique_state_count() > 10_000);
}

#[test]
fn mistakes_are_found() {
    let lost = "a PRIMARY has all that was acknowledged while a member lived";
    let stale = "a new session starts empty";
    for (flaw, broken) in [
        (Flaw::JoinsUnanswered, stale),
        (Flaw::JoinsFirst, stale),
        (Flaw::NeverAsks, lost),
        (Flaw::AcknowledgesFirst, lost),
        (Flaw::ClearsUnlocked, "the journal is what the PRIMARY has"),
        (Flaw::IgnoresTheLock, "never two PRIMARYs"),
    ] {
        let checker =
            Protocol(flaw).checker().finish_when(stateright::HasDiscoveries::AnyOf([broken].into())).spawn_bfs().join();
        let path = checker.discovery(broken);
        assert!(path.is_some(), "{flaw:?} is not found in {} states", checker.unique_state_count());
    }
}
