//! Runs random sequences of sends, checks, answers and lists. The clock also goes back, the server restarts, and
//! files are damaged. The results must follow section 16 of the semantics: one signal for each agent.
//! `PROPTEST_CASES=10000` runs more cases.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use nudge_core::clock::{Clock, ManualClock, rfc3339};
use nudge_core::service::Caller;
use nudge_core::source::{Source, SourceHost};
use nudge_signals::SOURCE;
use proptest::prelude::*;
use proptest::test_runner::Config as Cases;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use serde_json::value::RawValue;
use serde_json::{Value, json};

const START_MS: i64 = 1_767_225_600_000;
const AGENTS: [&str; 4] = ["mayor", "polecat", "polecat-2", "witness"];
const TYPES: [&str; 6] =
    ["health_check", "stall_warning", "priority_change", "abort", "sync_request", "nudge_response"];
const RESPONSE: usize = 5;

type Agent = usize;

#[derive(Debug, Clone)]
enum Step {
    Send {
        from: Agent,
        to: Agent,
        kind: usize,
        words: usize,
        requires: bool,
    },
    /// Checks for a signal: with the `last_seen` of the last answer, or without it if `anew` is true.
    Check {
        agent: Agent,
        anew: bool,
    },
    Respond {
        agent: Agent,
        words: usize,
    },
    /// Another program writes a file that is not a signal.
    Spoil {
        agent: Agent,
    },
    Remove {
        agent: Agent,
    },
    Advance(i64),
    Restart,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Signal {
    from: Agent,
    kind: usize,
    words: usize,
    requires: bool,
    at: i64,
}

#[derive(Debug, Clone, PartialEq)]
enum File {
    Spoilt,
    Signal(Signal),
}

#[derive(Debug, Clone)]
struct Plain {
    now: i64,
    files: BTreeMap<Agent, File>,
    /// The agents whose folder exists.
    known: BTreeSet<Agent>,
    seen: BTreeMap<Agent, i64>,
    /// The result of the last step: the signal that the step sent or returned, or its error.
    told: Result<Option<Signal>, &'static str>,
}

impl Plain {
    fn signal(&self, agent: Agent) -> Option<&Signal> {
        match self.files.get(&agent) {
            Some(File::Signal(signal)) => Some(signal),
            _ => None,
        }
    }

    fn send(&mut self, to: Agent, signal: Signal) {
        // The new time is later than the replaced time, even in the same millisecond or after the clock went back.
        let sent = self.signal(to).map_or(self.now, |old| self.now.max(old.at + 1));
        let signal = Signal { at: sent, ..signal };
        self.known.insert(to);
        self.files.insert(to, File::Signal(signal));
        self.told = Ok(Some(signal));
    }
}

struct Semantics;

impl ReferenceStateMachine for Semantics {
    type State = Plain;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Plain> {
        let (files, known, seen) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Just(Plain { now: START_MS, files, known, seen, told: Ok(None) }).boxed()
    }

    fn transitions(_: &Plain) -> BoxedStrategy<Step> {
        let agent = || 0..AGENTS.len();
        let send = (agent(), agent(), 0..TYPES.len(), 0..3_usize, any::<bool>());
        prop_oneof![
            6 => send.prop_map(|(from, to, kind, words, requires)| Step::Send { from, to, kind, words, requires }),
            6 => (agent(), prop::bool::weighted(0.2)).prop_map(|(agent, anew)| Step::Check { agent, anew }),
            4 => (agent(), 0..3_usize).prop_map(|(agent, words)| Step::Respond { agent, words }),
            1 => agent().prop_map(|agent| Step::Spoil { agent }),
            1 => agent().prop_map(|agent| Step::Remove { agent }),
            4 => (-2_000..60_000_i64).prop_map(Step::Advance),
            1 => Just(Step::Restart),
        ]
        .boxed()
    }

    fn apply(mut plain: Plain, step: &Step) -> Plain {
        plain.told = Ok(None);
        match *step {
            Step::Send { from, to, kind, words, requires } => {
                plain.send(to, Signal { from, kind, words, requires, at: 0 });
            }
            Step::Check { agent, anew } => {
                let seen = if anew { None } else { plain.seen.get(&agent).copied() };
                let found = plain.signal(agent).filter(|signal| seen.is_none_or(|seen| signal.at > seen)).copied();
                if let Some(found) = &found {
                    plain.seen.insert(agent, found.at);
                } else if anew {
                    plain.seen.remove(&agent);
                }
                plain.told = Ok(found);
            }
            Step::Respond { agent, words } => match plain.signal(agent).copied() {
                Some(asked) if asked.kind != RESPONSE => {
                    plain.send(asked.from, Signal { from: agent, kind: RESPONSE, words, requires: false, at: 0 });
                }
                _ => plain.told = Err("E_NOT_FOUND"),
            },
            Step::Spoil { agent } => {
                if plain.known.contains(&agent) {
                    plain.files.insert(agent, File::Spoilt);
                }
            }
            Step::Remove { agent } => drop(plain.files.remove(&agent)),
            Step::Advance(ms) => plain.now += ms,
            Step::Restart => {}
        }
        plain
    }
}

struct Run {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    signals: Arc<dyn Source>,
    /// The `last_seen` of the last answer.
    seen: BTreeMap<Agent, Value>,
}

fn open(folder: &tempfile::TempDir, clock: &Arc<ManualClock>) -> Arc<dyn Source> {
    let host = SourceHost::new_alone(folder.path(), &SOURCE, &[]).unwrap();
    (SOURCE.open)(SourceHost { clock: Arc::clone(clock) as Arc<dyn Clock>, ..host }).unwrap()
}

/// Returns one of three messages; the first is `None`, which means the default of the type.
fn message(words: usize) -> Option<&'static str> {
    [None, Some("stop what you do"), Some("\u{202e}two\nlines and é")][words]
}

impl Run {
    fn call(&self, verb: &str, mut params: Value) -> Result<Value, String> {
        params["context"] = json!({"env": {"NUDGE_STATE_DIR": self.folder.path().join("state")}});
        let params = RawValue::from_string(params.to_string()).unwrap();
        let answer = self.signals.call_by(Caller::with_name("test"), &format!("nudge.signals.{verb}"), &params);
        answer.map(|text| serde_json::from_str(text.get()).unwrap()).map_err(|error| error.reason().to_owned())
    }

    fn path(&self, agent: Agent) -> std::path::PathBuf {
        self.folder.path().join("state/nudge").join(AGENTS[agent]).join("latest.json")
    }

    /// Asserts that the five fields have the values of the signal.
    fn assert_is(found: &Value, signal: &Signal) {
        let fields = [&found["from"], &found["type"], &found["requires_response"], &found["timestamp"]];
        let sent = rfc3339::format_time(signal.at);
        assert_eq!(json!(fields), json!([AGENTS[signal.from], TYPES[signal.kind], signal.requires, sent]), "{found}");
        match message(signal.words) {
            Some("stop what you do") => assert_eq!(found["message"], "stop what you do"),
            _ => assert!(found["message"].as_str().is_some_and(|text| !text.is_empty()), "{found}"),
        }
    }

    fn assert_told(answer: &Result<Value, String>, plain: &Plain) {
        match (answer, &plain.told) {
            (Ok(answer), Ok(Some(signal))) => Self::assert_is(&answer["signal"], signal),
            (Ok(answer), Ok(None)) => assert!(answer["signal"].is_null(), "{answer}"),
            (Err(reason), Err(expected)) => assert_eq!(reason, expected),
            other => panic!("{other:?}"),
        }
    }
}

impl StateMachineTest for Run {
    type SystemUnderTest = Self;
    type Reference = Semantics;

    fn init_test(plain: &Plain) -> Self {
        // Uses a file system in memory if there is one, because a flush to a disk is slow.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        let clock = Arc::new(ManualClock::new(plain.now));
        let signals = open(&folder, &clock);
        Self { folder, clock, signals, seen: BTreeMap::new() }
    }

    fn apply(mut run: Self, plain: &Plain, step: Step) -> Self {
        match step {
            Step::Send { from, to, kind, words, requires } => {
                let params = json!({
                    "agent": AGENTS[to], "from": AGENTS[from], "type": TYPES[kind], "message": message(words),
                    "requires_response": requires,
                });
                Self::assert_told(&run.call("send", params), plain);
            }
            Step::Check { agent, anew } => {
                let seen = run.seen.get(&agent).filter(|_| !anew).cloned();
                let answer = run.call("check", json!({"agent": AGENTS[agent], "last_seen": seen}));
                Self::assert_told(&answer, plain);
                run.seen.insert(agent, answer.unwrap()["last_seen"].clone());
            }
            Step::Respond { agent, words } => {
                let params = json!({"agent": AGENTS[agent], "message": message(words)});
                Self::assert_told(&run.call("respond", params), plain);
            }
            Step::Spoil { agent } => {
                if plain.known.contains(&agent) {
                    fs::write(run.path(agent), "{\"from\": \"nobody\", \"mess").unwrap();
                }
            }
            Step::Remove { agent } => drop(fs::remove_file(run.path(agent))),
            Step::Advance(ms) => drop(run.clock.advance_by(ms)),
            Step::Restart => {
                run.signals.close();
                run.signals = open(&run.folder, &run.clock);
            }
        }
        run
    }

    /// Checks that the list has every agent, and that no temporary file is left.
    fn check_invariants(run: &Self, plain: &Plain) {
        let listed = run.call("list", json!({})).unwrap();
        let agents = listed["agents"].as_array().unwrap();
        let names: Vec<_> = agents.iter().map(|agent| agent["agent"].as_str().unwrap()).collect();
        let with_file: Vec<_> = plain.files.keys().map(|agent| AGENTS[*agent]).collect();
        assert_eq!(names, with_file);
        for listed in agents {
            let agent = AGENTS.iter().position(|name| listed["agent"] == *name).unwrap();
            match plain.files.get(&agent) {
                Some(File::Signal(signal)) => Self::assert_is(listed, signal),
                Some(File::Spoilt) => assert!(listed["from"].is_null() && listed["problem"].is_string(), "{listed}"),
                None => unreachable!("{listed}"),
            }
        }
        for agent in &plain.known {
            let left = fs::read_dir(run.path(*agent).parent().unwrap()).unwrap().count();
            assert_eq!(left, usize::from(plain.files.contains_key(agent)), "files of {}", AGENTS[*agent]);
        }
    }
}

prop_state_machine! {
    #![proptest_config(Cases { cases: 500, failure_persistence: None, ..Cases::default() })]
    /// Promise: see `agrees_with_the_model`.
    #[test]
    fn agrees_with_the_model(sequential 50 => Run);
}
