//! Simulates clients of a session: they read and change hints at random, and record the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::history::{Event, Kind, Nanos, Outcome, Sight};
use crate::kit::agent::{Agent, Failure, locked};
use crate::kit::raw::Raw;
use crate::kit::rng::Rng;
use crate::kit::session::run;
use crate::kit::system::nudge;

/// The number of keys that all clients share.
pub const KEYS: u16 = 16;
/// The time limit of a call, longer than any suspension of a PRIMARY.
const PATIENCE: Duration = Duration::from_secs(40);

/// The state that the clients share with the threads that kill and suspend agents.
pub struct World {
    pub runtime: PathBuf,
    /// The agents; a new agent replaces one that ends.
    pub slots: Vec<Mutex<Arc<Agent>>>,
    pub begun: Instant,
    pub over: AtomicBool,
    /// The begin and the end of each suspension of a PRIMARY.
    pub stops: Mutex<Vec<(Nanos, Nanos)>>,
    /// The process ids of former PRIMARYs.
    pub past: Mutex<BTreeSet<u64>>,
    pub seed: u64,
}

impl World {
    pub fn now(&self) -> Nanos {
        Nanos::try_from(self.begun.elapsed().as_nanos()).unwrap()
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// The way in which a client calls.
pub enum How {
    /// Over the stdio of the agent in a slot. Several clients may share an agent.
    Stdio(usize),
    Http(Raw),
    CommandLine,
}

#[derive(Default)]
pub struct Notes {
    pub events: Vec<Event>,
    /// The failed calls with begin, end and reason, if no kill or suspension by the test explains the failure.
    pub failures: Vec<(Nanos, Nanos, String)>,
    /// The wrong answers that a client notices by itself, without the answers of other clients.
    pub wrong: Vec<String>,
    /// The begin and the end of each acknowledged call, whatever its method.
    pub calls: Vec<(Nanos, Nanos)>,
}

pub struct Client<'a> {
    pub world: &'a World,
    pub number: u16,
    pub how: How,
    pub rng: Rng,
    pub notes: Notes,
    last_value: u64,
    /// The last version that this client has seen of each key.
    seen: BTreeMap<u16, u32>,
    /// The number of the key that only this client uses, and the value that it must have.
    own: (u32, Option<String>),
}

enum Told {
    Done(Value),
    Refused(Value),
    Unsure,
    Unsent,
}

impl<'a> Client<'a> {
    pub fn new(world: &'a World, number: u16, how: How) -> Self {
        let rng = Rng::new(world.seed ^ u64::from(number) << 48);
        let notes = Notes::default();
        Self { world, number, how, rng, notes, last_value: 0, seen: BTreeMap::new(), own: (0, None) }
    }

    /// Makes calls until the run is over.
    pub fn run(mut self) -> Notes {
        while !self.world.is_over() {
            let key = u16::try_from(self.rng.below(u64::from(KEYS))).unwrap();
            match self.rng.below(100) {
                0..40 => self.read(key),
                40..65 => self.set(key, false),
                65..75 => self.set(key, true),
                75..90 => self.bump(key),
                90..95 => self.read_all(),
                _ => self.own(),
            }
            // Pauses between calls. The load is then the same on every machine that is fast enough.
            let (from, to) = if matches!(self.how, How::CommandLine) { (150, 350) } else { (5, 25) };
            thread::sleep(self.rng.millis(from, to));
        }
        self.notes
    }

    fn read(&mut self, key: u16) {
        let (begin, told) = self.call("get_hint", &json!({"component": "shared", "key": format!("k{key}")}));
        match told {
            Told::Done(result) => self.note(key, Kind::Read, begin, 0, Outcome::Done(sight(&result["hint"]))),
            Told::Refused(error) if error["data"]["reason"] == "E_NOT_FOUND" => {
                let nothing = Sight { version: 0, count: Some(0), value: Some(0) };
                self.note(key, Kind::Read, begin, 0, Outcome::Done(nothing));
            }
            told => self.unexpected("get", told),
        }
    }

    /// Reads all keys in one call.
    pub fn read_all(&mut self) {
        let (begin, told) = self.call("query", &json!({"component": "shared", "limit": 100}));
        match told {
            Told::Done(result) => {
                for row in result["hints"].as_array().unwrap() {
                    let key = row["hint"]["key"].as_str().unwrap()[1..].parse().unwrap();
                    self.note(key, Kind::Read, begin, 0, Outcome::Done(sight(&row["hint"])));
                }
            }
            told => self.unexpected("query", told),
        }
    }

    fn set(&mut self, key: u16, compared: bool) {
        self.last_value += 1;
        let value = u64::from(self.number) << 32 | self.last_value;
        let text = format!("w{}.{}", self.number, self.last_value);
        let mut params = json!({"component": "shared", "key": format!("k{key}"), "value": text});
        if compared {
            params["if_match_version"] = json!(self.seen.get(&key).unwrap_or(&0));
        }
        let (begin, told) = self.call("set_hint", &params);
        let outcome = match told {
            Told::Done(result) => Outcome::Done(sight(&result["hint"])),
            Told::Unsure => Outcome::Unsure,
            Told::Refused(error) if compared && error["data"]["reason"] == "E_CONFLICT" => {
                let version = error["data"]["current_version"].as_u64().unwrap();
                Outcome::Refused(Some(Sight { version: u32::try_from(version).unwrap(), count: None, value: None }))
            }
            told => return self.unexpected("set", told),
        };
        if let (true, Outcome::Done(Sight { version, .. })) = (compared, outcome)
            && version != self.seen.get(&key).unwrap_or(&0) + 1
        {
            self.notes.wrong.push(format!("{params} was answered with version {version}"));
        }
        self.note(key, Kind::Set, begin, value, outcome);
    }

    fn bump(&mut self, key: u16) {
        let (begin, told) = self.call("bump", &json!({"component": "shared", "key": format!("k{key}")}));
        let outcome = match told {
            Told::Done(result) => Outcome::Done(sight(&result["hint"])),
            Told::Unsure => Outcome::Unsure,
            Told::Refused(error) if error["data"]["reason"] == "E_NOT_FOUND" => {
                Outcome::Refused(Some(Sight { version: 0, count: Some(0), value: None }))
            }
            told => return self.unexpected("bump", told),
        };
        self.note(key, Kind::Bump, begin, 0, outcome);
    }

    /// Reads the key that only this client uses, and sets or deletes it. The read must show this client's last change.
    /// If the outcome of a change is unknown, the client continues with a new key.
    fn own(&mut self) {
        let name = json!({"component": format!("own{}", self.number), "key": format!("k{}", self.own.0)});
        let (_, told) = self.call("get_hint", &name);
        match told {
            Told::Done(result) => self.is_own(&name, result["hint"]["value"].as_str()),
            Told::Refused(error) if error["data"]["reason"] == "E_NOT_FOUND" => self.is_own(&name, None),
            told => return self.unexpected("get", told),
        }
        let (method, mut params, next) = if self.own.1.is_some() && self.rng.below(2) == 0 {
            ("delete_hint", name, None)
        } else {
            self.last_value += 1;
            let mut params = name;
            params["value"] = json!(format!("w{}.{}", self.number, self.last_value));
            let next = params["value"].as_str().map(str::to_owned);
            ("set_hint", params, next)
        };
        let (_, told) = self.call(method, &params);
        match told {
            Told::Done(_) => self.own.1 = next,
            Told::Unsure => self.own = (self.own.0 + 1, None),
            Told::Refused(error) => {
                params["told"] = error;
                self.notes.wrong.push(format!("client {}: {method} of {params}", self.number));
                self.own = (self.own.0 + 1, None);
            }
            Told::Unsent => {}
        }
    }

    fn is_own(&mut self, name: &Value, value: Option<&str>) {
        if value != self.own.1.as_deref() {
            let (now_us, own) = (self.world.now() / 1_000, &self.own.1);
            self.notes.wrong.push(format!("client {} at {now_us}us: {name} is {value:?}, not {own:?}", self.number));
            self.own = (self.own.0 + 1, None);
        }
    }

    fn note(&mut self, key: u16, kind: Kind, begin: Nanos, value: u64, outcome: Outcome) {
        if let Outcome::Done(sight) | Outcome::Refused(Some(sight)) = outcome {
            self.seen.insert(key, sight.version);
        }
        let end = self.world.now();
        self.notes.events.push(Event { key, client: self.number, kind, begin, end, value, outcome });
    }

    fn unexpected(&mut self, what: &str, told: Told) {
        if let Told::Refused(error) = told {
            self.notes.wrong.push(format!("client {}: {what} is refused: {error}", self.number));
        }
    }

    fn call(&mut self, method: &str, params: &Value) -> (Nanos, Told) {
        let World { runtime, slots, .. } = self.world;
        let number = self.rng.next();
        let begin = self.world.now();
        let (result, excused) = match &mut self.how {
            How::Stdio(slot) => {
                let agent = Arc::clone(&locked(&slots[*slot]));
                let result = agent.tool(&format!("nudge_{method}"), params, PATIENCE);
                (result, agent.doomed.load(Ordering::Relaxed))
            }
            How::Http(raw) => {
                // Limits the first try of every eighth call to 100 ms. The client then sends the call again before the
                // first answer.
                raw.patience = Duration::from_millis(if number.is_multiple_of(8) { 100 } else { 3_000 });
                raw.long = PATIENCE;
                let key = format!("{}-{number:x}", self.number);
                let changes = !["get_hint", "query"].contains(&method);
                (raw.call(&format!("nudge.{method}"), params, changes.then_some(&*key)), false)
            }
            How::CommandLine => (command_line(runtime, method, params), false),
        };
        let end = self.world.now();
        let told = match result {
            Ok(result) => {
                self.notes.calls.push((begin, end));
                Told::Done(result)
            }
            Err(Failure::Unsent) => Told::Unsent,
            Err(Failure::Refused(error)) if error["data"]["reason"] != "E_UNAVAILABLE" => {
                self.notes.calls.push((begin, end));
                Told::Refused(error)
            }
            Err(why) => {
                if !excused {
                    let how = match self.how {
                        How::Stdio(_) => "stdio",
                        How::Http(_) => "http",
                        How::CommandLine => "command line",
                    };
                    self.notes.failures.push((begin, end, format!("{how} {method} {params}: {why:?}")));
                }
                Told::Unsure
            }
        };
        (begin, told)
    }
}

fn command_line(runtime: &Path, method: &str, params: &Value) -> Result<Value, Failure> {
    let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
    let (component, key) = (text("component"), text("key"));
    let mut args = match method {
        "get_hint" => vec!["get".into(), component, key],
        "set_hint" => vec!["set".into(), component, key, text("value")],
        "bump" => vec!["bump".into(), component, key],
        "delete_hint" => vec!["delete".into(), component, key],
        _ => vec!["query".into(), "--component".into(), component, "--limit".into(), "100".into()],
    };
    if let Some(version) = params["if_match_version"].as_u64() {
        args.extend(["--if-match-version".into(), version.to_string()]);
    }
    args.push("--json".into());
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let output = run(nudge(runtime, &args), PATIENCE);
    let told = if output.status.success() { &output.stdout } else { &output.stderr };
    let told: Value = serde_json::from_slice(told).unwrap_or_else(|_| panic!("{args:?}: no JSON: {output:?}"));
    if output.status.success() { Ok(told) } else { Err(Failure::Refused(told)) }
}

fn sight(hint: &Value) -> Sight {
    let small = |value: &Value| u32::try_from(value.as_u64().unwrap_or(0)).unwrap();
    let value = hint["value"].as_str().unwrap_or_else(|| panic!("no text: {hint}"));
    let (writer, number) = value.strip_prefix('w').and_then(|value| value.split_once('.')).expect("a value of ours");
    let value = writer.parse::<u64>().unwrap() << 32 | number.parse::<u64>().unwrap();
    Sight { version: small(&hint["version"]), count: Some(small(&hint["use_count"])), value: Some(value) }
}
