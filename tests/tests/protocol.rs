//! Checks the protocol of locks, membership, promotion, journal and session file (`nudge/client/src/members.rs`). The
//! model has three processes. They may take steps in any order, die between two steps, and start again.
//!
//! A suspended process is a process that takes no step for a long time, so the orders include suspensions.
//!
//! The model merges states that no process can tell apart:
//! - The processes are alike, so their names do not matter, and a process that is off may start at any time.
//! - A session's number only matters as "the last that was written" or "older".
//! - The winner of the lock removes `server.pid` and, if it is a PROXY, reads the session file in the same step,
//!   because only the holder of the lock changes that file.
//! - A process that gives up its last try while no server runs counts as dead.
//! - A thread that wins after its PROXY has ended gives the lock back, which is like the probe of a client.
//!
//! The model has one limit: a suspended member of a stopped session still holds `members.lock`, so the next session
//! also lasts as long as that member lives.

use stateright::{Checker, Model, Property};

#[path = "protocol/steps.rs"]
mod steps;
#[path = "protocol/world.rs"]
mod world;

use steps::{Action, Flaw, Protocol};
use world::{At, PROCESSES, Process, SessionMark, World};

/// The most rounds in which each state must reach a PRIMARY. In a round every process takes a step.
const PATIENCE: usize = 60;

/// Returns true if some process becomes PRIMARY when from now on no process dies.
fn recovers(protocol: &Protocol, mut world: World) -> bool {
    for _ in 0..PATIENCE {
        if world.is_served() {
            return true;
        }
        let starts = world.processes.iter().all(|process| process.at == At::Off);
        for name in 0..PROCESSES {
            if !starts && world.processes[name].at == At::Off {
                continue;
            }
            world = protocol.step(&world, name).unwrap_or(world);
            world = protocol.line(&world, name).unwrap_or(world);
        }
    }
    false
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::default()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (name, process) in world.processes.iter().enumerate() {
            actions.extend([Action::Step(name), Action::Line(name)]);
            if process.at != At::Off {
                actions.push(Action::Die(name));
            }
            match process.at {
                At::Serving => actions.extend([Action::Write(name), Action::End(name), Action::Stop(name)]),
                At::Proxy | At::Won | At::TurnedAway | At::Describing if process.is_member() => {
                    actions.push(Action::End(name));
                }
                At::Opening(true) if process.is_member() => {
                    actions.extend([Action::End(name), Action::CannotRead(name)]);
                }
                At::Opening(true) => actions.push(Action::CannotRead(name)),
                _ => {}
            }
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        match action {
            Action::Step(name) => next = self.step(world, name)?,
            Action::Line(name) => next = self.line(world, name)?,
            Action::Write(name) => next = self.write(world, name)?,
            Action::End(name) if world.processes[name].at == At::Serving => {
                (next.processes[name].at, next.processes[name].store) = (At::Ending, 0);
            }
            Action::End(name) => next = self.end_proxy(world, name),
            Action::Stop(name) => next.processes[name].at = At::Closed,
            Action::CannotRead(name) if world.processes[name].is_member() => next.processes[name].at = At::Proxy,
            // A process that cannot read the journal reports this and ends if it is no member. The other processes
            // continue.
            Action::Die(name) | Action::CannotRead(name) => next = next.die(name),
        }
        next.account();
        Some(next.sorted())
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
                primaries(world).all(|primary| world.over & (primary.store | world.journal.unwrap_or(0)) == 0)
            }),
            Property::always("the journal is what the PRIMARY has", |_, world: &World| {
                primaries(world).all(|primary| world.journal == Some(primary.store))
            }),
            Property::always("the journal keeps what was acknowledged while a member lives", |_, world: &World| {
                world.owed & !world.journal.unwrap_or(0) == 0
            }),
            Property::always("nobody goes on with a session that was stopped", |_, world: &World| {
                primaries(world).all(|_| !world.stopped)
            }),
            Property::always("nobody is turned away from a session that lives", |_, world: &World| {
                let lives = world.session == SessionMark::Lives;
                world.processes.iter().all(|process| !(lives && process.belongs() && process.at == At::TurnedAway))
            }),
            Property::always("nothing stays on the disk unless the last one died", |_, world: &World| {
                world.left || world.is_clean() || world.processes.iter().any(|process| process.at != At::Off)
            }),
            // This check includes states with only one living process: the deaths produce them.
            Property::always("somebody can always become PRIMARY", |protocol: &Protocol, world: &World| {
                recovers(protocol, *world)
            }),
            // These properties show that the states exist. Otherwise the properties above could be true only because
            // such states never occur.
            Property::sometimes("a promoted PROXY has an acknowledged write", |_, world: &World| {
                world.server_file.is_none()
                    && world.processes.iter().any(|process| process.at == At::Ready && process.store & world.owed != 0)
            }),
            Property::sometimes("a write is acknowledged in a second session", |_, world: &World| {
                world.over != 0 && primaries(world).any(|primary| primary.store & world.owed != 0)
            }),
            Property::sometimes("a PROXY learns that its session was stopped", |_, world: &World| {
                let stopped = world.session == SessionMark::Stopped;
                stopped && world.processes.iter().any(|process| process.at == At::TurnedAway)
            }),
            Property::sometimes("a PROXY learns of another session", |_, world: &World| {
                let lives = world.session == SessionMark::Lives;
                lives && world.processes.iter().any(|process| process.at == At::TurnedAway)
            }),
            Property::sometimes("all three belong to a session", |_, world: &World| {
                world.processes.iter().all(Process::is_member)
            }),
        ]
    }
}

/// Promise (session): The protocol of lock, membership, promotion and journal holds for three processes, in every
/// order of steps and crashes.
#[test]
fn the_protocol_holds_in_every_order() {
    let checker = Protocol(Flaw::None).checker().spawn_bfs().join();
    eprintln!("{} states, the furthest after {} steps", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
    assert!(checker.is_done() && checker.unique_state_count() > 10_000);
}

#[test]
fn mistakes_are_found() {
    let lost = "a PRIMARY has all that was acknowledged while a member lived";
    let stale = "a new session starts empty";
    let stopped = "nobody goes on with a session that was stopped";
    let away = "nobody is turned away from a session that lives";
    let litter = "nothing stays on the disk unless the last one died";
    for (flaw, broken) in [
        (Flaw::JoinsUnanswered, stale),
        (Flaw::JoinsFirst, stale),
        (Flaw::NeverAsks, lost),
        (Flaw::AcknowledgesFirst, lost),
        (Flaw::ClearsUnlocked, "the journal is what the PRIMARY has"),
        (Flaw::IgnoresTheLock, "never two PRIMARYs"),
        (Flaw::NoLastTry, litter),
        (Flaw::OneLastTry, litter),
        (Flaw::RemovesTheMark, stopped),
        (Flaw::NeverLooks, stopped),
        (Flaw::NeverLooks, stale),
        (Flaw::NeverMarks, stopped),
        (Flaw::ForgetsFirst, stale),
        (Flaw::BelievesTheFile, away),
        (Flaw::AsksFirst, away),
        (Flaw::StaysInLine, litter),
    ] {
        let checker =
            Protocol(flaw).checker().finish_when(stateright::HasDiscoveries::AnyOf([broken].into())).spawn_bfs().join();
        let path = checker.discovery(broken);
        assert!(path.is_some(), "{flaw:?} is not found in {} states", checker.unique_state_count());
    }
}
