//! Tests random sequences of calls to a PRIMARY and a PROXY of one session, with a `kill -9` between two calls or
//! during a call. A plain model checks the answers: no acknowledged change is lost, and an unacknowledged call takes
//! effect completely or not at all (semantics section 8).
//!
//! `NUDGE_KILLS=200` sets the number of sequences, and `NUDGE_SEED` repeats the sequences of a run.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::kit::agent::{Agent, LONG, Pending};
use super::kit::rng::Rng;
use super::kit::session::Session;

const SEQUENCES: u64 = 10;
const STEPS: u64 = 24;
const KEYS: [&str; 4] = ["build", "lint", "run", "test"];

/// The parts of a hint that are compared: the number of the set that stored it, its version and its use count.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hint {
    set: u64,
    version: u64,
    uses: u64,
}

type Plain = BTreeMap<&'static str, Hint>;

#[derive(Debug, Clone, Copy)]
enum Call {
    Set(u64),
    Bump,
    Delete,
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Self::Set(_) => "nudge_set_hint",
            Self::Bump => "nudge_bump",
            Self::Delete => "nudge_delete_hint",
        }
    }

    /// Builds the arguments. Every part of the hint contains the number of the set, so that a mixture of two sets would
    /// show.
    fn arguments(self, key: &str) -> Value {
        let mut arguments = json!({"component": "api", "key": key});
        if let Self::Set(set) = self {
            arguments["value"] = json!(format!("make {set} {}", "x".repeat(usize::try_from(set % 7).unwrap() * 900)));
            arguments["meta"] = json!({"reason": format!("reason {set}"), "tags": [format!("t{set}")]});
        }
        arguments
    }

    /// Returns the hint after the call, or the reason for which the server must refuse the call.
    fn made(self, before: Option<Hint>) -> Result<Option<Hint>, &'static str> {
        match (self, before) {
            // A set stores a new value, which resets the use count.
            (Self::Set(set), old) => Ok(Some(Hint { set, version: old.map_or(0, |old| old.version) + 1, uses: 0 })),
            (Self::Bump, Some(old)) => Ok(Some(Hint { uses: old.uses + 1, ..old })),
            (Self::Delete, Some(_)) => Ok(None),
            (Self::Bump | Self::Delete, None) => Err("E_NOT_FOUND"),
        }
    }
}

/// Starts to read the store through one of the agents.
fn look(agent: &Agent) -> Pending {
    let asked = agent.begin_tool("nudge_query", &json!({"component": "api", "limit": 100}));
    asked.unwrap_or_else(|why| panic!("{}", why.reason()))
}

fn seen(look: Pending) -> Plain {
    let answer = look.tool(LONG).unwrap_or_else(|why| panic!("{}", why.reason()));
    let hint = |row: &Value| {
        let hint = &row["hint"];
        let number = |text: &Value| text.as_str().unwrap().split(' ').nth(1).unwrap().parse::<u64>().unwrap();
        let set = number(&hint["value"]);
        assert_eq!(hint["value"], Call::Set(set).arguments("")["value"], "half a value: {hint}");
        assert_eq!(number(&hint["meta"]["reason"]), set, "half of one and half of another: {hint}");
        assert_eq!(hint["meta"]["tags"], json!([format!("t{set}")]), "half of one and half of another: {hint}");
        let key = *KEYS.iter().find(|key| hint["key"] == **key).unwrap();
        let count = |name: &str| hint[name].as_u64().unwrap_or(0);
        (key, Hint { set, version: count("version"), uses: count("use_count") })
    };
    answer["hints"].as_array().unwrap().iter().map(hint).collect()
}

/// A call of a PROXY that was killed before the answer came. The PRIMARY may still read and run the call. `before` is
/// the hint before the call.
#[derive(Debug, Clone, Copy)]
struct Adrift {
    key: &'static str,
    call: Call,
    before: Option<Hint>,
}

struct Play {
    session: Session,
    rng: Rng,
    plain: Plain,
    sets: u64,
    adrift: Option<Adrift>,
}

impl Play {
    fn primary(&self) -> Arc<Agent> {
        let pid = self.session.primary(|file| self.session.agents.iter().any(|agent| agent.pid == file.pid)).pid;
        Arc::clone(self.session.agent(pid))
    }

    /// Returns a random call. Its key is not that of a call that may still take effect.
    fn call(&mut self) -> (&'static str, Call) {
        let adrift = self.adrift.as_ref().map(|adrift| adrift.key);
        let keys: Vec<_> = KEYS.into_iter().filter(|key| Some(*key) != adrift).collect();
        let key = self.rng.one_of(&keys);
        let call = match self.rng.below(6) {
            0..3 => {
                self.sets += 1;
                Call::Set(self.sets)
            }
            3 | 4 => Call::Bump,
            _ => Call::Delete,
        };
        (key, call)
    }

    fn note(&mut self, key: &'static str, hint: Option<Hint>) {
        match hint {
            Some(hint) => drop(self.plain.insert(key, hint)),
            None => drop(self.plain.remove(key)),
        }
    }

    /// Asserts that the store equals the model. For a call that may still take effect, the hint before it and the hint
    /// after it are both right. Once the call has taken effect, its key is compared like the others.
    fn check(&mut self, look: Pending, when: &str) {
        let now = seen(look);
        if let Some(Adrift { key, call, before }) = self.adrift.take() {
            let hint = now.get(key).copied();
            assert!(hint == before || call.made(before) == Ok(hint), "{call:?} of {key}: {before:?} became {hint:?}");
            self.note(key, hint);
            if hint == before {
                self.adrift = Some(Adrift { key, call, before });
            }
        }
        assert_eq!(now, self.plain, "{when}");
    }

    /// Makes a call through one of the two agents and checks the answer.
    fn step(&mut self) {
        let (key, call) = self.call();
        let agent = Arc::clone(&self.session.agents[usize::try_from(self.rng.below(2)).unwrap()]);
        let answer = agent.tool(call.name(), &call.arguments(key), LONG);
        match call.made(self.plain.get(key).copied()) {
            Ok(hint) => {
                answer.unwrap_or_else(|why| panic!("{call:?} of {key}: {}", why.reason()));
                self.note(key, hint);
            }
            Err(reason) => assert_eq!(answer.unwrap_err().reason(), reason, "{call:?} of {key}"),
        }
    }

    /// Kills an agent and starts another one. In some cases this or the other agent runs a call at that moment.
    fn kill(&mut self) {
        let primary = self.primary();
        let other = self.session.agents.iter().find(|agent| agent.pid != primary.pid).map(Arc::clone);
        let doomed = other.filter(|_| self.rng.below(4) == 0).unwrap_or_else(|| Arc::clone(&primary));
        let is_primary = doomed.pid == primary.pid;
        let caller = Arc::clone(&self.session.agents[usize::try_from(self.rng.below(2)).unwrap()]);
        let is_own = caller.pid == doomed.pid;
        // At most one call without a waiting client may exist, because the model follows only one. Such a call comes
        // from a killed PROXY. If the PRIMARY is suspended, it first answers the read of the store and then this call.
        let may_call = is_primary || !is_own || self.adrift.is_none();
        let held = (!is_primary && is_own && self.rng.below(2) == 0).then(|| Arc::clone(&primary));
        let early = held.as_ref().map(|primary| {
            primary.stop();
            look(primary)
        });
        let under_way: Option<(&'static str, Call, Pending)> = (may_call && self.rng.below(2) == 0).then(|| {
            let (key, call) = self.call();
            let pending =
                caller.begin_tool(call.name(), &call.arguments(key)).unwrap_or_else(|why| panic!("{}", why.reason()));
            (key, call, pending)
        });
        std::thread::sleep(self.rng.millis(0, if early.is_some() { 30 } else { 3 }));
        doomed.kill();
        if let Some(primary) = held {
            primary.resume();
        }
        self.session.agents.retain(|agent| agent.pid != doomed.pid);
        let survivor = Arc::clone(&self.session.agents[0]);
        if let Some((key, call, pending)) = under_way {
            let before = self.plain.get(key).copied();
            let answer = pending.tool(LONG);
            if is_own && answer.is_err() {
                // The client got no answer. The call has taken effect, will take effect, or never will.
                if is_primary {
                    let now = seen(look(&survivor)).get(key).copied();
                    let is_whole = now == before || call.made(before) == Ok(now);
                    assert!(is_whole, "{call:?} of {key}: {before:?} became {now:?}");
                    self.note(key, now);
                } else {
                    self.adrift = Some(Adrift { key, call, before });
                }
            } else {
                match call.made(before) {
                    Ok(hint) => {
                        answer.unwrap_or_else(|why| panic!("{call:?} of {key} under way: {}", why.reason()));
                        self.note(key, hint);
                    }
                    Err(reason) => assert_eq!(answer.unwrap_err().reason(), reason, "{call:?} of {key}"),
                }
            }
        }
        for look in early.into_iter().chain([look(&survivor)]) {
            self.check(look, "after a kill");
        }
        if is_primary {
            // The PRIMARY is dead, so a call that it has not read is lost.
            self.adrift = None;
        }
        self.session.join();
    }
}

/// Promise (session): A call that a kill interrupts takes effect whole or not at all.
#[test]
fn nothing_acknowledged_is_lost_or_half_there_whichever_of_two_is_killed() {
    let sequences = std::env::var("NUDGE_KILLS").map_or(SEQUENCES, |count| count.parse().unwrap());
    let mut rng = Rng::new(Rng::seed("kills"));
    let mut kills = 0;
    for _ in 0..sequences {
        let (session, rng) = (Session::start(1), Rng::new(rng.next()));
        let mut play = Play { session, rng, plain: Plain::new(), sets: 0, adrift: None };
        for _ in 0..STEPS {
            play.step();
            if play.rng.below(5) == 0 {
                play.kill();
                kills += 1;
            }
        }
        for agent in play.session.agents.clone() {
            play.check(look(&agent), "at the end");
        }
        play.session.end();
    }
    println!("{sequences} sequences of {STEPS} steps, {kills} kills");
}
