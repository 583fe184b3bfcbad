//! Random sequences of calls that change or read records, with time moving, keys sent again and the database opened anew,
//! against what the semantics (section 17) say of a list of texts and what they were. `PROPTEST_CASES=10000` makes more.

mod kit;

use std::collections::BTreeSet;

use kit::Desk;
use nudge_core::service::Caller;
use proptest::prelude::*;
use proptest::test_runner::Config as Cases;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use serde_json::{Value, json};

const PROJECTS: [&str; 2] = ["acme/shop", "acme/web"];
const KINDS: [&str; 2] = ["issue", "arch"];
const STATUSES: [&str; 3] = ["open", "resolved", "archived"];
/// The first three are one text but for case, spaces and the signs that end a word.
const TITLES: [&str; 5] =
    ["Uploads are refused", "uploads  are REFUSED.", "Uploads are \"refused\"", "Is it ready?", "It is ready"];
const BODIES: [&str; 3] = ["", "nginx had a limit of 1m.", "Nginx had a limit of 2m."];
/// By place in [`TITLES`] and [`BODIES`]: what is equal is the same text.
const SAME_TITLE: [usize; 5] = [0, 0, 0, 3, 4];

/// A record by the order in which they were made.
type At = usize;

#[derive(Debug, Clone)]
enum Step {
    Save { project: usize, kind: usize, title: usize, body: usize, status: Option<usize>, distinct: bool },
    Change { at: At, title: Option<usize>, body: Option<usize>, status: Option<usize>, expect: Option<usize> },
    Delete { at: At, forever: bool },
    Restore { at: At, version: Option<usize> },
    Merge { into: At, ids: [At; 2] },
    List { project: Option<usize>, kind: Option<usize>, status: Option<usize> },
    Search { title: usize },
    Again,
    Reopen,
}

#[derive(Debug, Clone, PartialEq)]
struct Text {
    project: usize,
    kind: usize,
    title: String,
    body: String,
    status: usize,
    /// Texts that are equal but for what does not count have the same; none of a merged one is.
    same: Option<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stands {
    Here,
    Deleted,
    Gone,
    Merged,
}

#[derive(Debug, Clone)]
struct Record {
    /// What it said in each version, from 1 on.
    said: Vec<Text>,
    stands: Stands,
    /// The step that changed it last.
    changed: usize,
}

impl Record {
    fn now(&self) -> &Text {
        self.said.last().unwrap()
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Nothing,
    Refused(&'static str),
    /// The record of the answer.
    Record(At),
}

#[derive(Debug, Clone)]
struct Plain {
    records: Vec<Record>,
    steps: usize,
    answer: Answer,
}

impl Plain {
    fn here(&self, at: At) -> Option<&Record> {
        self.records.get(at).filter(|record| record.stands == Stands::Here)
    }

    fn all(&self) -> impl Iterator<Item = (At, &Record)> {
        self.records.iter().enumerate().filter(|(_, record)| record.stands == Stands::Here)
    }

    /// Those that a new record would be the same as.
    fn alike(&self, project: usize, kind: usize, same: (usize, usize)) -> Vec<At> {
        let is = |text: &Text| (text.project, text.kind, text.same) == (project, kind, Some(same));
        self.all().filter(|(_, record)| is(record.now())).map(|(at, _)| at).collect()
    }

    fn say(&mut self, at: At, text: Text) -> Answer {
        let record = &mut self.records[at];
        if record.stands != Stands::Here || *record.now() != text {
            record.said.push(text);
            record.changed = self.steps;
        }
        record.stands = Stands::Here;
        Answer::Record(at)
    }

    fn save(&mut self, step: &Step) -> Answer {
        let Step::Save { project, kind, title, body, status, distinct } = *step else { unreachable!() };
        let same = (SAME_TITLE[title], body);
        let before = if distinct { None } else { self.alike(project, kind, same).first().copied() };
        let text = |status| Text {
            project,
            kind,
            title: TITLES[title].to_owned(),
            body: BODIES[body].to_owned(),
            status,
            same: Some(same),
        };
        if let Some(at) = before {
            let old = self.records[at].now().status;
            return self.say(at, text(status.unwrap_or(old)));
        }
        self.records.push(Record { said: vec![text(status.unwrap_or(0))], stands: Stands::Here, changed: self.steps });
        Answer::Record(self.records.len() - 1)
    }

    fn change(&mut self, step: &Step) -> Answer {
        let Step::Change { at, title, body, status, expect } = *step else { unreachable!() };
        let Some(record) = self.here(at) else { return Answer::Refused("E_NOT_FOUND") };
        if expect.is_some_and(|expect| expect != record.said.len()) {
            return Answer::Refused("E_CONFLICT");
        }
        let mut text = record.now().clone();
        if let Some(title) = title {
            TITLES[title].clone_into(&mut text.title);
        }
        if let Some(body) = body {
            BODIES[body].clone_into(&mut text.body);
        }
        text.status = status.unwrap_or(text.status);
        let place = |texts: &[&str], one: &str| texts.iter().position(|text| *text == one);
        text.same = place(&TITLES, &text.title).map(|title| SAME_TITLE[title]).zip(place(&BODIES, &text.body));
        self.say(at, text)
    }

    fn restore(&mut self, at: At, version: Option<usize>) -> Answer {
        let Some(record) = self.records.get(at) else { return Answer::Refused("E_NOT_FOUND") };
        // What is there has been something else up to the version before.
        let earlier = match record.stands {
            Stands::Here if version.is_none() => return Answer::Refused("E_INVALID"),
            Stands::Here => record.said.len() - 1,
            Stands::Deleted | Stands::Merged => record.said.len(),
            Stands::Gone => 0,
        };
        let version = version.unwrap_or(earlier);
        if version == 0 || version > earlier {
            return Answer::Refused("E_NOT_FOUND");
        }
        let text = record.said[version - 1].clone();
        self.say(at, text)
    }

    fn merge(&mut self, into: At, ids: [At; 2]) -> Answer {
        if ids.contains(&into) {
            return Answer::Refused("E_INVALID");
        }
        let ids: BTreeSet<_> = ids.into_iter().collect();
        if self.here(into).is_none() || ids.iter().any(|at| self.here(*at).is_none()) {
            return Answer::Refused("E_NOT_FOUND");
        }
        let mut text = self.records[into].now().clone();
        let others = ids.iter().flat_map(|at| [&self.records[*at].now().title, &self.records[*at].now().body]);
        let parts: Vec<_> =
            std::iter::once(&text.body).chain(others).filter(|part| !part.is_empty()).cloned().collect();
        (text.body, text.same) = (parts.join("\n\n"), None);
        for at in ids {
            self.records[at].stands = Stands::Merged;
        }
        self.say(into, text)
    }

    fn delete(&mut self, at: At, forever: bool) -> Answer {
        match (self.records.get(at).map(|record| record.stands), forever) {
            (Some(Stands::Here), false) => self.records[at].stands = Stands::Deleted,
            (Some(Stands::Here | Stands::Deleted), true) => self.records[at].stands = Stands::Gone,
            _ => return Answer::Refused("E_NOT_FOUND"),
        }
        Answer::Nothing
    }
}

struct Semantics;

impl ReferenceStateMachine for Semantics {
    type State = Plain;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Plain> {
        Just(Plain { records: Vec::new(), steps: 0, answer: Answer::Nothing }).boxed()
    }

    fn transitions(plain: &Plain) -> BoxedStrategy<Step> {
        // One more than there are, so that some are none.
        let at = 0..=plain.records.len();
        let (titles, bodies, statuses) = (0..TITLES.len(), 0..BODIES.len(), 0..STATUSES.len());
        let some = prop::option::of::<std::ops::Range<usize>>;
        let save =
            (0..2_usize, 0..2_usize, titles.clone(), bodies.clone(), some(statuses.clone()), prop::bool::weighted(0.1));
        let change = (
            at.clone(),
            some(titles.clone()),
            some(bodies),
            some(statuses.clone()),
            prop::option::weighted(0.2, 1..4_usize),
        );
        prop_oneof![
            6 => save.prop_map(|(project, kind, title, body, status, distinct)| Step::Save { project, kind, title, body, status, distinct }),
            6 => change.prop_map(|(at, title, body, status, expect)| Step::Change { at, title, body, status, expect }),
            3 => (at.clone(), prop::bool::weighted(0.2)).prop_map(|(at, forever)| Step::Delete { at, forever }),
            5 => (at.clone(), prop::option::of(0..5_usize)).prop_map(|(at, version)| Step::Restore { at, version }),
            2 => (at.clone(), at.clone(), at).prop_map(|(into, one, other)| Step::Merge { into, ids: [one, other] }),
            2 => (some(0..2), some(0..2), some(statuses)).prop_map(|(project, kind, status)| Step::List { project, kind, status }),
            1 => titles.prop_map(|title| Step::Search { title }),
            2 => Just(Step::Again),
            1 => Just(Step::Reopen),
        ]
        .boxed()
    }

    fn preconditions(plain: &Plain, step: &Step) -> bool {
        match *step {
            // Which of several that say the same is changed is not said, nor whether one that is what it was has changed.
            Step::Save { project, kind, title, body, .. } => {
                plain.alike(project, kind, (SAME_TITLE[title], body)).len() < 2
            }
            Step::Restore { at, version: Some(version) } => {
                let text = |record: &Record| record.said.get(version.wrapping_sub(1)) != Some(record.now());
                plain.here(at).is_none_or(text)
            }
            _ => true,
        }
    }

    fn apply(mut plain: Plain, step: &Step) -> Plain {
        plain.steps += 1;
        plain.answer = match *step {
            Step::Save { .. } => plain.save(step),
            Step::Change { .. } => plain.change(step),
            Step::Delete { at, forever } => plain.delete(at, forever),
            Step::Restore { at, version } => plain.restore(at, version),
            Step::Merge { into, ids } => plain.merge(into, ids),
            Step::List { .. } | Step::Search { .. } | Step::Again | Step::Reopen => Answer::Nothing,
        };
        plain
    }
}

struct Run {
    desk: Desk,
    /// The numbers of the records, in the order in which they were made.
    ids: Vec<i64>,
    calls: usize,
    /// The last call that was not refused: its key, and its answer.
    last: Option<(usize, &'static str, Value, Value)>,
}

/// What is compared of a record.
fn told(record: &Record) -> Value {
    let Text { project, kind, title, body, status, .. } = record.now();
    json!([PROJECTS[*project], KINDS[*kind], title, body, STATUSES[*status], record.said.len()])
}

fn found(record: &Value) -> Value {
    json!(["project", "kind", "title", "body", "status", "version"].map(|field| &record[field]))
}

impl Run {
    fn id(&self, at: At) -> i64 {
        self.ids.get(at).copied().unwrap_or(4_711)
    }

    fn change(&mut self, verb: &'static str, params: Value) -> Result<Value, String> {
        self.calls += 1;
        let answer = self.keyed(self.calls, verb, &params)?;
        self.last = Some((self.calls, verb, params, answer.clone()));
        Ok(answer)
    }

    fn keyed(&self, key: usize, verb: &str, params: &Value) -> Result<Value, String> {
        let key = key.to_string();
        self.desk
            .by(Caller::named("test").with_key(Some(&key)), verb, params)
            .map_err(|error| error.reason().to_owned())
    }

    fn changed(&mut self, step: &Step) -> Option<Result<Value, String>> {
        Some(match *step {
            Step::Save { project, kind, title, body, status, distinct } => {
                let repo = format!("github.com/{}", PROJECTS[project]);
                let params = json!({
                    "kind": KINDS[kind], "title": TITLES[title], "body": BODIES[body], "distinct": distinct,
                    "status": status.map(|at| STATUSES[at]), "context": {"repo": repo},
                });
                self.change("upsert", params)
            }
            Step::Change { at, title, body, status, expect } => {
                let params = json!({
                    "id": self.id(at), "title": title.map(|at| TITLES[at]), "body": body.map(|at| BODIES[at]),
                    "status": status.map(|at| STATUSES[at]), "if_match_version": expect,
                });
                self.change("upsert", params)
            }
            Step::Delete { at, forever } => self.change("delete", json!({"id": self.id(at), "forever": forever})),
            Step::Restore { at, version } => self.change("restore", json!({"id": self.id(at), "version": version})),
            Step::Merge { into, ids } => {
                self.change("merge", json!({"into": self.id(into), "ids": ids.map(|at| self.id(at))}))
            }
            _ => return None,
        })
    }

    fn check_answer(&mut self, answer: Result<Value, String>, plain: &Plain) {
        match (answer, &plain.answer) {
            (Err(reason), Answer::Refused(expected)) => assert_eq!(reason, *expected),
            (Ok(_), Answer::Nothing) => {}
            (Ok(answer), Answer::Record(at)) => {
                let record = answer.get("record").unwrap_or(&answer);
                let id = record["id"].as_i64().unwrap();
                if *at == self.ids.len() {
                    assert!(!self.ids.contains(&id), "a number of another record: {answer}");
                    self.ids.push(id);
                }
                assert_eq!((id, found(record)), (self.ids[*at], told(&plain.records[*at])));
            }
            (answer, expected) => panic!("{answer:?}, {expected:?}"),
        }
    }

    /// A record says what it should, and knows what it said.
    fn check(&self, plain: &Plain, at: At) {
        let (record, params) = (&plain.records[at], json!({"id": self.ids[at], "revisions": true}));
        if record.stands != Stands::Here {
            assert_eq!(self.desk.refused("get", &params).reason(), "E_NOT_FOUND");
            return;
        }
        let answer = self.desk.call("get", &params);
        assert_eq!(found(&answer), told(record));
        let before: Vec<_> = answer["revisions"].as_array().unwrap().iter().rev().map(found).collect();
        let said = |n: usize| told(&Record { said: record.said[..n].to_vec(), ..record.clone() });
        assert_eq!(before, (1..record.said.len()).map(said).collect::<Vec<_>>(), "revisions of {}", self.ids[at]);
    }

    /// The records of a list, newest first.
    fn list(&self, plain: &Plain, project: Option<usize>, kind: Option<usize>, status: Option<usize>) {
        let name = project.map_or("*", |at| PROJECTS[at]);
        let params = json!({
            "project": name, "kind": kind.map(|at| KINDS[at]), "status": status.map(|at| STATUSES[at]), "limit": 1000,
        });
        let answer = self.desk.call("list", &params);
        let listed: Vec<_> =
            answer["records"].as_array().unwrap().iter().map(|one| one["id"].as_i64().unwrap()).collect();
        let is = |text: &Text| {
            project.is_none_or(|one| one == text.project)
                && kind.is_none_or(|one| one == text.kind)
                && status.is_none_or(|one| one == text.status)
        };
        let mut wanted: Vec<_> = plain.all().filter(|(_, record)| is(record.now())).collect();
        wanted.sort_by_key(|(_, record)| std::cmp::Reverse(record.changed));
        assert_eq!(listed, wanted.iter().map(|(at, _)| self.ids[*at]).collect::<Vec<_>>(), "{params}");
        assert_eq!(answer["total"], wanted.len());
    }
}

impl StateMachineTest for Run {
    type SystemUnderTest = Self;
    type Reference = Semantics;

    fn init_test(_: &Plain) -> Self {
        Self { desk: Desk::in_memory(), ids: Vec::new(), calls: 0, last: None }
    }

    fn apply(mut run: Self, plain: &Plain, step: Step) -> Self {
        let _ = run.desk.clock.advance(1_000);
        if let Some(answer) = run.changed(&step) {
            run.check_answer(answer, plain);
            return run;
        }
        match step {
            Step::List { project, kind, status } => run.list(plain, project, kind, status),
            Step::Search { title } => {
                let answer = run.desk.call("search", &json!({"query": TITLES[title], "limit": 50, "whole": true}));
                for hit in answer["results"].as_array().unwrap() {
                    let at = run.ids.iter().position(|id| hit["id"] == *id).unwrap();
                    assert_eq!(found(hit), told(plain.here(at).expect("a record that is there")));
                }
            }
            Step::Again => {
                if let Some((key, verb, params, answer)) = &run.last {
                    assert_eq!(run.keyed(*key, verb, params).as_ref(), Ok(answer));
                }
            }
            Step::Reopen => run.desk.again(),
            _ => unreachable!(),
        }
        run
    }

    /// What there is, and the record that was changed; at the end all of them.
    fn check_invariants(run: &Self, plain: &Plain) {
        run.list(plain, None, None, None);
        if let Answer::Record(at) = plain.answer {
            run.check(plain, at);
        }
    }

    fn teardown(run: Self, plain: Plain) {
        for at in 0..plain.records.len() {
            run.check(&plain, at);
        }
    }
}

/// So many sequences, if `PROPTEST_CASES` says nothing else.
fn cases() -> Cases {
    let cases = std::env::var_os("PROPTEST_CASES").map_or(500, |_| Cases::default().cases);
    Cases { cases, failure_persistence: None, ..Cases::default() }
}

prop_state_machine! {
    #![proptest_config(cases())]
    #[test]
    fn agrees_with_the_model(sequential 50 => Run);
}
