//! Runs random sequences of calls that write, list and find units. Between the calls, other programs write, change and
//! remove files, and processes end. The results must follow section 19 of the semantics. `PROPTEST_CASES=10000` runs
//! more cases.

mod kit;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use kit::Desk;
use nudge_core::embed::NoModels;
use nudge_core::service::Caller;
use proptest::prelude::*;
use proptest::test_runner::Config as Cases;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use serde_json::{Value, json};

/// Titles, each with the name of its file.
const TITLES: [(&str, &str); 3] =
    [("Retries with jitter", "retries-with-jitter"), ("Rate limits: 429", "rate-limits-429"), ("Größe", "größe")];
const DOMAINS: [&str; 2] = ["coding", "general"];
const BODIES: [&str; 2] = ["Full jitter, at most 30 s.", "# Part\n\ntext [[Retries with jitter]]\n"];
/// The index of the title that the second body links to. `LINKING` is the index of the second body.
const LINKED: usize = 0;
const LINKING: usize = 1;
const CONFIDENCES: [&str; 2] = ["0.25", "0.9"];

/// If a unit has at least this score, the answer must contain the units related to it.
const GOOD: f64 = 0.3;

/// A file, as the indexes of its domain and its title.
type At = (usize, usize);

#[derive(Debug, Clone)]
enum Step {
    Add {
        at: At,
        body: usize,
    },
    SetTitle {
        at: At,
        title: usize,
    },
    SetConfidence {
        at: At,
        confidence: usize,
    },
    /// Another program writes the file.
    Write {
        at: At,
        title: usize,
    },
    Remove {
        at: At,
    },
    Get {
        at: At,
    },
    List {
        domain: Option<usize>,
    },
    /// Asks a question with the words of a title.
    Ask {
        title: usize,
        domain: Option<usize>,
        hops: usize,
    },
    AskNothing,
    Again,
    Rebuild,
    Reopen,
}

#[derive(Debug, Clone, PartialEq)]
struct Unit {
    title: usize,
    confidence: Option<usize>,
    /// The index of the body; `None` for a file that another program wrote.
    body: Option<usize>,
}

#[derive(Debug, Clone)]
struct Plain {
    units: BTreeMap<At, Unit>,
    /// The expected error of the last step.
    refused: Option<&'static str>,
}

/// Returns the words of a text, in lower case.
fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

impl Unit {
    /// Returns all words of the unit.
    fn words(&self) -> BTreeSet<String> {
        words(&format!("{} {}", TITLES[self.title].0, self.body.map_or("written by hand", |body| BODIES[body])))
    }
}

impl Plain {
    /// Returns the units that are related to a unit, in both directions. A link leads to the only unit with its title,
    /// and nowhere if several units have this title.
    fn related(&self, key: At) -> Vec<At> {
        let mut named = self.units.iter().filter(|(_, unit)| unit.title == LINKED).map(|(key, _)| *key);
        let Some(target) = named.next().filter(|_| named.next().is_none()) else { return Vec::new() };
        let links = |key: &At| self.units[key].body == Some(LINKING) && *key != target;
        if key == target {
            return self.units.keys().copied().filter(links).collect();
        }
        links(&key).then_some(target).into_iter().collect()
    }

    /// Returns the units that can be reached within `hops` relations, each with its least number of relations.
    fn reached(&self, from: &BTreeSet<At>, hops: usize) -> BTreeMap<At, usize> {
        let mut reached: BTreeMap<_, _> = from.iter().map(|key| (*key, 0)).collect();
        for hop in 1..=hops {
            for key in reached.keys().copied().collect::<Vec<_>>() {
                for next in self.related(key) {
                    reached.entry(next).or_insert(hop);
                }
            }
        }
        reached.retain(|_, hop| *hop > 0);
        reached
    }
}

struct Semantics;

impl ReferenceStateMachine for Semantics {
    type State = Plain;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Plain> {
        Just(Plain { units: BTreeMap::new(), refused: None }).boxed()
    }

    fn transitions(_: &Plain) -> BoxedStrategy<Step> {
        let any_key = || (0..DOMAINS.len(), 0..TITLES.len());
        let title = || 0..TITLES.len();
        prop_oneof![
            6 => (any_key(), 0..BODIES.len()).prop_map(|(key, body)| Step::Add { at: key, body }),
            3 => (any_key(), title()).prop_map(|(key, title)| Step::SetTitle { at: key, title }),
            3 => (any_key(), 0..CONFIDENCES.len()).prop_map(|(key, confidence)| Step::SetConfidence { at: key, confidence }),
            2 => (any_key(), title()).prop_map(|(key, title)| Step::Write { at: key, title }),
            3 => any_key().prop_map(|key| Step::Remove { at: key }),
            3 => any_key().prop_map(|key| Step::Get { at: key }),
            3 => prop::option::of(0..DOMAINS.len()).prop_map(|domain| Step::List { domain }),
            6 => (title(), prop::option::of(0..DOMAINS.len()), 0..3_usize).prop_map(|(title, domain, hops)| Step::Ask { title, domain, hops }),
            1 => Just(Step::AskNothing),
            2 => Just(Step::Again),
            1 => Just(Step::Rebuild),
            1 => Just(Step::Reopen),
        ]
        .boxed()
    }

    fn apply(mut plain: Plain, step: &Step) -> Plain {
        plain.refused = None;
        match *step {
            Step::Add { at: key, body } => {
                let new = Unit { title: key.1, confidence: None, body: Some(body) };
                match plain.units.entry(key) {
                    Entry::Occupied(_) => plain.refused = Some("E_CONFLICT"),
                    Entry::Vacant(place) => _ = place.insert(new),
                }
            }
            Step::SetTitle { at: key, title } => match plain.units.get_mut(&key) {
                Some(unit) => unit.title = title,
                None => plain.refused = Some("E_NOT_FOUND"),
            },
            Step::SetConfidence { at: key, confidence } => match plain.units.get_mut(&key) {
                Some(unit) => unit.confidence = Some(confidence),
                None => plain.refused = Some("E_NOT_FOUND"),
            },
            Step::Write { at: key, title } => {
                plain.units.insert(key, Unit { title, confidence: None, body: None });
            }
            Step::Remove { at: key } => drop(plain.units.remove(&key)),
            Step::AskNothing => plain.refused = Some("E_INVALID"),
            Step::Get { at: key } if !plain.units.contains_key(&key) => plain.refused = Some("E_NOT_FOUND"),
            _ => {}
        }
        plain
    }
}

struct Run {
    desk: Desk,
    calls: usize,
    last: Option<(usize, &'static str, Value, Value)>,
}

fn path((domain, title): At) -> String {
    format!("domains/{}/{}.md", DOMAINS[domain], TITLES[title].1)
}

impl Run {
    fn keyed(&self, key: usize, verb: &str, params: &Value) -> Result<Value, String> {
        let key = key.to_string();
        self.desk
            .by(Caller::with_name("test").with_key(Some(&key)), verb, params)
            .map_err(|error| error.reason().to_owned())
    }

    fn change(&mut self, plain: &Plain, verb: &'static str, params: Value) {
        self.calls += 1;
        let answer = self.keyed(self.calls, verb, &params);
        assert_eq!(answer.as_ref().err().map(String::as_str), plain.refused, "{verb} {params}");
        if let Ok(answer) = answer {
            self.last = Some((self.calls, verb, params, answer));
        }
    }

    fn list(&self, plain: &Plain, domain: Option<usize>) {
        let params = json!({"domain": domain.map(|index| DOMAINS[index])});
        let answer = self.desk.call("list", &params);
        let entry =
            |unit: &Value| (unit["path"].as_str().unwrap().to_owned(), unit["title"].as_str().unwrap().to_owned());
        let listed: Vec<_> = answer["units"].as_array().unwrap().iter().map(entry).collect();
        let mut wanted: Vec<_> = plain
            .units
            .iter()
            .filter(|(key, _)| domain.is_none_or(|domain| domain == key.0))
            .map(|(key, unit)| (path(*key), TITLES[unit.title].0.to_owned()))
            .collect();
        wanted.sort();
        assert_eq!(listed, wanted, "{params}");
    }

    /// Asks a question. The answer must contain each unit that has a word of the question, with its present text, and
    /// the units related to these. It must contain no other unit.
    fn ask(&self, plain: &Plain, title: usize, domain: Option<usize>, hops: usize) {
        let question = json!({"task_description": TITLES[title].0, "domain": domain.map(|index| DOMAINS[index]), "hops": hops, "limit": 20});
        let answer = self.desk.call("context", &question);
        let key_of = |unit: &Value| {
            let known = plain.units.keys().find(|key| unit["path"] == path(**key));
            let key = *known.unwrap_or_else(|| panic!("{unit} is no unit"));
            assert_eq!(unit["title"], TITLES[plain.units[&key].title].0, "{unit}");
            key
        };
        let is_asked = |key: &At| domain.is_none_or(|domain| domain == key.0);
        let asked = words(TITLES[title].0);
        let holds = |(key, unit): &(&At, &Unit)| is_asked(key) && !unit.words().is_disjoint(&asked);
        let wanted: BTreeSet<_> = plain.units.iter().filter(holds).map(|(key, _)| *key).collect();
        let units = answer["units"].as_array().unwrap();
        let found: BTreeSet<_> = units.iter().map(key_of).collect();
        assert_eq!((&found, units.len()), (&wanted, wanted.len()), "{question}: {answer}");
        let scores: Vec<_> = units.iter().map(|unit| unit["score"].as_f64().unwrap()).collect();
        assert!(
            scores.is_sorted_by(|a, b| a >= b) && scores.iter().all(|score| (0.0..=1.0).contains(score)),
            "{answer}"
        );
        if plain.units.iter().any(|(key, unit)| is_asked(key) && unit.title == title) {
            assert_eq!(answer["weak"], false, "{question}: {answer}");
        }
        let mut reached = plain.reached(&found, hops);
        reached.retain(|key, _| is_asked(key) && !found.contains(key));
        let related = answer["related"].as_array().unwrap();
        // The answer may leave out a unit that is related only to units with a low score.
        let is_good = |unit: &&Value| unit["score"].as_f64().is_some_and(|score| score >= GOOD);
        let of_good = plain.reached(&units.iter().filter(is_good).map(key_of).collect(), hops.min(1));
        let told: BTreeSet<_> = related.iter().map(key_of).collect();
        assert!(reached.keys().all(|key| told.contains(key) || !of_good.contains_key(key)), "{question}: {answer}");
        assert_eq!(told.len(), related.len(), "each once: {answer}");
        for unit in related {
            let hop = unit["hop"].as_u64().and_then(|hop| usize::try_from(hop).ok()).unwrap();
            let least =
                reached.get(&key_of(unit)).copied().unwrap_or_else(|| panic!("{unit} is not related: {question}"));
            assert!((least..=hops).contains(&hop) && unit["relation"] == "links_to", "{question}: {answer}");
        }
        for (unit, section) in
            units.iter().chain(related).flat_map(|unit| sections(unit).map(move |section| (unit, section)))
        {
            let text = fs::read_to_string(self.desk.path(unit["path"].as_str().unwrap())).unwrap();
            let (first, last) = section["lines"].as_str().unwrap().split_once('-').unwrap();
            let (first, last) = (first.parse::<usize>().unwrap(), last.parse::<usize>().unwrap());
            let lines: Vec<_> = text.lines().skip(first - 1).take(last + 1 - first).collect();
            assert!(lines.join("\n").contains(section["text"].as_str().unwrap().trim()), "{section}: {text}");
        }
        assert_eq!(answer["degraded"], json!(["no embedding model: nudge model add"]));
        assert_eq!(answer["searched"]["units"], plain.units.len());
    }
}

/// Returns the sections of a found unit, or the only section of a related unit.
fn sections(unit: &Value) -> impl Iterator<Item = &Value> {
    unit["sections"].as_array().into_iter().flatten().chain(unit.get("section"))
}

impl StateMachineTest for Run {
    type SystemUnderTest = Self;
    type Reference = Semantics;

    fn init_test(_: &Plain) -> Self {
        let desk = Desk::in_memory();
        fs::create_dir(desk.path("domains")).unwrap();
        Self { desk, calls: 0, last: None }
    }

    fn apply(mut run: Self, plain: &Plain, step: Step) -> Self {
        let set = |key: At, field: &str, value: Value| json!({"id": path(key), "field": field, "value": value});
        match step {
            Step::Add { at: key, body } => {
                let params = json!({"title": TITLES[key.1].0, "domain": DOMAINS[key.0], "body": BODIES[body]});
                run.change(plain, "add", params);
            }
            Step::SetTitle { at: key, title } => {
                run.change(plain, "set_field", set(key, "title", json!(TITLES[title].0)));
            }
            Step::SetConfidence { at: key, confidence } => {
                let value: f64 = CONFIDENCES[confidence].parse().unwrap();
                run.change(plain, "set_field", set(key, "confidence", json!(value)));
            }
            Step::Write { at: key, title } => {
                run.desk.write(
                    &path(key),
                    format!("---\ntitle: \"{}\"\nmine: kept\n---\nwritten by hand\n", TITLES[title].0),
                );
            }
            Step::Remove { at: key } => drop(fs::remove_file(run.desk.path(&path(key)))),
            Step::Get { at: key } => match run.desk.by(Caller::with_name("test"), "get", &json!({"id": path(key)})) {
                Ok(unit) => {
                    let wanted = &plain.units[&key];
                    assert_eq!(
                        (&unit["unit"]["path"], &unit["unit"]["title"]),
                        (&json!(path(key)), &json!(TITLES[wanted.title].0))
                    );
                }
                Err(error) => assert_eq!(Some(error.reason()), plain.refused),
            },
            Step::List { domain } => run.list(plain, domain),
            Step::Ask { title, domain, hops } => run.ask(plain, title, domain, hops),
            Step::AskNothing => {
                let refused = run.desk.refused("context", &json!({"task_description": " \n"}));
                assert_eq!(Some(refused.reason()), plain.refused);
            }
            Step::Again => {
                if let Some((key, verb, params, answer)) = &run.last {
                    assert_eq!(run.keyed(*key, verb, params).as_ref(), Ok(answer), "made once by its key");
                }
            }
            Step::Rebuild => drop(run.desk.call("rebuild", &json!({}))),
            Step::Reopen => run.desk.again(Arc::new(NoModels)),
        }
        run
    }

    /// Asserts that the brain has exactly the expected files.
    fn check_invariants(run: &Self, plain: &Plain) {
        run.list(plain, None);
        let files = run.desk.bytes();
        assert_eq!(files.len(), plain.units.len(), "{:?}", files.keys());
        for (key, unit) in &plain.units {
            let text = String::from_utf8(files[&run.desk.path(&path(*key))].clone()).unwrap();
            match unit.body {
                Some(body) => assert!(text.trim_end().ends_with(BODIES[body].trim_end()), "{text}"),
                None => {
                    assert!(text.contains("mine: kept\n") && text.ends_with("---\nwritten by hand\n"), "{text}");
                }
            }
            let confidence: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("confidence: ")).collect();
            assert_eq!(confidence, unit.confidence.map(|index| CONFIDENCES[index]).as_slice(), "{text}");
        }
    }
}

prop_state_machine! {
    #![proptest_config(Cases { cases: 200, failure_persistence: None, ..Cases::default() })]
    /// Promise: see `agrees_with_the_model`.
    #[test]
    fn writing_and_listing_agree_with_the_files(sequential 50 => Run);
}
