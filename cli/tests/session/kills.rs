//! Random sequences of calls to two processes of one session, a PRIMARY and a PROXY, with a `kill -9` between steps or
//! while a call is under way, against a plain model: nothing acknowledged is lost, and a call that nobody acknowledged was
//! made whole or not at all (semantics, section 8).
//!
//! `NUDGE_KILLS=200` plays so many sequences, `NUDGE_SEED` those of a run again.
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

/// A hint as far as it is compared: what was set, told by a number; its version; how often it was used.
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

    /// All parts of a hint tell the number, so that one of two halves would show.
    fn arguments(self, key: &str) -> Value {
        let mut arguments = json!({"component": "api", "key": key});
        if let Self::Set(set) = self {
            arguments["value"] = json!(format!("make {set} {}", "x".repeat(usize::try_from(set % 7).unwrap() * 900)));
            arguments["meta"] = json!({"reason": format!("reason {set}"), "tags": [format!("t{set}")]});
        }
        arguments
    }

    /// What becomes of the hint, or why the call is refused.
    fn made(self, before: Option<Hint>) -> Result<Option<Hint>, &'static str> {
        match (self, before) {
            // Each sets another value, with which the count begins anew.
            (Self::Set(set), old) => Ok(Some(Hint { set, version: old.map_or(0, |old| old.version) + 1, uses: 0 })),
            (Self::Bump, Some(old)) => Ok(Some(Hint { uses: old.uses + 1, ..old })),
            (Self::Delete, Some(_)) => Ok(None),
            (Self::Bump | Self::Delete, None) => Err("E_NOT_FOUND"),
        }
    }
}

/// The store as one of the processes shows it.
fn seen(agent: &Agent) -> Plain {
    let answer = agent.result("nudge_query", &json!({"component": "api", "limit": 100}));
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

struct Play {
    session: Session,
    rng: Rng,
    plain: Plain,
    sets: u64,
}

impl Play {
    fn primary(&self) -> Arc<Agent> {
        let pid = self.session.primary(|file| self.session.agents.iter().any(|agent| agent.pid == file.pid)).pid;
        Arc::clone(self.session.agent(pid))
    }

    fn call(&mut self) -> (&'static str, Call) {
        let key = self.rng.one_of(&KEYS);
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

    /// A call to either of the two that is answered.
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

    /// Kills one, perhaps while it, or the other, has a call under way, and starts another in its place.
    fn kill(&mut self) {
        let primary = self.primary();
        let doomed = if self.rng.below(4) == 0 {
            let other = self.session.agents.iter().find(|agent| agent.pid != primary.pid);
            Arc::clone(other.unwrap())
        } else {
            primary
        };
        let under_way: Option<(&'static str, Call, Arc<Agent>, Pending)> = (self.rng.below(2) == 0).then(|| {
            let (key, call) = self.call();
            let agent = Arc::clone(&self.session.agents[usize::try_from(self.rng.below(2)).unwrap()]);
            let pending =
                agent.begin_tool(call.name(), &call.arguments(key)).unwrap_or_else(|why| panic!("{}", why.reason()));
            (key, call, agent, pending)
        });
        std::thread::sleep(self.rng.millis(0, 3));
        doomed.kill();
        self.session.agents.retain(|agent| agent.pid != doomed.pid);
        let survivor = Arc::clone(&self.session.agents[0]);
        if let Some((key, call, agent, pending)) = under_way {
            let before = self.plain.get(key).copied();
            let answer = pending.tool(LONG);
            if agent.pid == doomed.pid && answer.is_err() {
                // Nobody was told, so it was made or not.
                let now = seen(&survivor).get(key).copied();
                assert!(now == before || call.made(before) == Ok(now), "{call:?} of {key}: {before:?} became {now:?}");
                self.note(key, now);
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
        assert_eq!(seen(&survivor), self.plain, "after a kill");
        self.session.join();
    }
}

#[test]
fn nothing_acknowledged_is_lost_or_half_there_whichever_of_two_is_killed() {
    let sequences = std::env::var("NUDGE_KILLS").map_or(SEQUENCES, |count| count.parse().unwrap());
    let mut rng = Rng::new(Rng::seed("kills"));
    let mut kills = 0;
    for _ in 0..sequences {
        let mut play = Play { session: Session::start(1), rng: Rng::new(rng.next()), plain: Plain::new(), sets: 0 };
        for _ in 0..STEPS {
            play.step();
            if play.rng.below(5) == 0 {
                play.kill();
                kills += 1;
            }
        }
        for agent in &play.session.agents {
            assert_eq!(seen(agent), play.plain, "at the end");
        }
        play.session.end();
    }
    println!("{sequences} sequences of {STEPS} steps, {kills} kills");
}
