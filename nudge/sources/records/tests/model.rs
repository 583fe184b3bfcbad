//! Runs random sequences of all calls, with and without a model. Between the calls time passes, keys are sent again,
//! and the database is opened again. The results must follow section 17 of the semantics. `PROPTEST_CASES=10000` runs
//! more cases.

mod kit;
#[path = "model/plain.rs"]
mod plain;
#[path = "model/steps.rs"]
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use kit::Desk;
use nudge_core::clock::{Clock as _, rfc3339};
use nudge_core::embed::{LoadedModel, ModelProvider, NoModels};
use nudge_core::service::Caller;
use plain::{
    ALIKE, Answer, At, DAY_MS, KINDS, Kept, NEARLY, PROJECTS, Plain, Record, STATUSES, Semantics, Stands, Text,
};
use proptest::test_runner::Config as Cases;
use proptest_state_machine::{StateMachineTest, prop_state_machine};
use serde_json::{Value, json};
use steps::{BODIES, Moved, Step, TITLES};

struct Run {
    desk: Desk,
    /// `ids` holds the number of each record by the order of creation. `used` holds every number that was ever used.
    ids: BTreeMap<At, i64>,
    used: BTreeSet<i64>,
    files: Vec<PathBuf>,
    calls: usize,
    /// The last call that was not refused: its index, its method, its params and its answer.
    last: Option<(usize, &'static str, Value, Value)>,
}

/// Returns the fields of a record that the model compares with the answer.
fn told(record: &Record) -> Value {
    let Text { project, kind, title, body, status } = record.now();
    json!([PROJECTS[*project], KINDS[*kind], title, body, STATUSES[*status], record.said.len()])
}

fn found(record: &Value) -> Value {
    json!(["project", "kind", "title", "body", "status", "version"].map(|field| &record[field]))
}

/// Makes the JSON of a record in an export.
fn moved((text, made, changed): &(Text, i64, i64)) -> Value {
    let Text { project, kind, title, body, status } = text;
    json!({
        "project": PROJECTS[*project], "kind": KINDS[*kind], "title": title, "body": body, "status": STATUSES[*status],
        "created_at": rfc3339::format_time(*made), "updated_at": rfc3339::format_time(*changed),
    })
}

fn repo(project: usize) -> Value {
    json!({"repo": format!("github.com/{}", PROJECTS[project])})
}

fn list(answer: &Value) -> &Vec<Value> {
    answer.as_array().unwrap_or_else(|| panic!("no list: {answer}"))
}

impl Run {
    fn id(&self, number: At) -> i64 {
        self.ids.get(&number).copied().unwrap_or_else(|| 4_711 + i64::try_from(number).unwrap())
    }

    fn at(&self, id: &Value, plain: &Plain) -> At {
        let here =
            |(number, its): (&At, &i64)| (*id == *its && plain.stored.here(*number).is_some()).then_some(*number);
        self.ids.iter().find_map(here).unwrap_or_else(|| panic!("{id} is no record"))
    }

    fn number(&mut self, model_number: At, id: i64) {
        assert!(self.used.insert(id), "a number of another record: {id}");
        self.ids.insert(model_number, id);
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
            .by(Caller::with_name("test").with_key(Some(&key)), verb, params)
            .map_err(|error| error.reason().to_owned())
    }

    /// Returns the path of a new file.
    fn file(&mut self) -> PathBuf {
        self.calls += 1;
        self.desk.folder.path().join(format!("file-{}", self.calls))
    }

    fn write(&mut self, records: &[Value]) -> PathBuf {
        let file = self.file();
        let export = json!({"format": "nudge-records/1", "records": records});
        std::fs::write(&file, export.to_string()).unwrap();
        file
    }

    fn take(&mut self, file: &PathBuf) -> Result<Value, String> {
        self.change("import", json!({"file": file}))
    }

    fn changed(&mut self, plain: &Plain, step: &Step) -> Option<Result<Value, String>> {
        Some(match *step {
            Step::Save { project, kind, title, body, status, distinct, merge } => {
                let params = json!({
                    "kind": KINDS[kind], "title": TITLES[title], "body": BODIES[body], "distinct": distinct,
                    "status": status.map(|index| STATUSES[index]), "context": repo(project),
                    "dedup": if merge { "merge" } else { "ask" },
                });
                self.change("upsert", params)
            }
            Step::Change { at: number, title, body, status, expect } => {
                let params = json!({
                    "id": self.id(number), "title": title.map(|index| TITLES[index]), "body": body.map(|index| BODIES[index]),
                    "status": status.map(|index| STATUSES[index]), "if_match_version": expect,
                });
                self.change("upsert", params)
            }
            Step::Delete { at: number, forever } => {
                self.change("delete", json!({"id": self.id(number), "forever": forever}))
            }
            Step::Restore { at: number, version } => {
                self.change("restore", json!({"id": self.id(number), "version": version}))
            }
            Step::Merge { into, ids } => {
                self.change("merge", json!({"into": self.id(into), "ids": ids.map(|number| self.id(number))}))
            }
            Step::Join { from, into, here } => {
                let context = if here { repo(into) } else { json!({}) };
                let params = json!({"from": PROJECTS[from], "into": PROJECTS[into], "context": context});
                self.change("join_projects", params)
            }
            Step::Export { project } => self.export(plain, project),
            Step::Backup => {
                let file = self.file();
                let answer = self.change("backup", json!({"file": file}));
                // A backup changes no record, and Nudge does not store the key of a backup.
                self.last = None;
                answer.inspect(|_| self.files.push(file))
            }
            Step::Import(ref records) => {
                let record = |entry: &Moved| match entry.record(plain.now) {
                    Some(record) => moved(&record),
                    None => {
                        json!({"project": PROJECTS[0], "kind": "issue", "title": "", "status": "open", "created_at": "", "updated_at": ""})
                    }
                };
                let file = self.write(&records.iter().map(record).collect::<Vec<_>>());
                self.take(&file)
            }
            Step::Take { file } => self.take(&self.files[file].clone()),
            Step::Recover { file } => {
                let answer = self.change("recover", json!({"file": self.files[file]}));
                // The last call may be newer than the backup, so the backup may not contain its key.
                self.last = None;
                answer.inspect(|answer| self.files.push(answer["replaced"].as_str().unwrap().into()))
            }
            Step::Duplicates { project } => {
                let params = json!({"project": project.map_or("*", |index| PROJECTS[index]), "limit": 100});
                let answer = self.desk.by(Caller::with_name("test"), "duplicates", &params);
                answer.map_err(|error| error.reason().to_owned()).inspect(|answer| self.pairs(plain, project, answer))
            }
            _ => return None,
        })
    }

    fn export(&mut self, plain: &Plain, project: Option<usize>) -> Result<Value, String> {
        let params = json!({"project": project.map(|index| PROJECTS[index])});
        let answer = self.desk.by(Caller::with_name("test"), "export", &params);
        let answer = answer.map_err(|error| error.reason().to_owned())?;
        let Some(Kept::Export(records)) = plain.files.last() else { panic!("{params}: {answer}") };
        assert_eq!(answer["records"], json!(records.iter().map(moved).collect::<Vec<_>>()), "{params}");
        let file = self.write(list(&answer["records"]));
        self.files.push(file);
        Ok(answer)
    }

    /// Checks the listed pairs: both records have the same project and kind and are near enough, the nearest pair comes
    /// first, and no pair is missing.
    fn pairs(&self, plain: &Plain, project: Option<usize>, answer: &Value) {
        let all: Vec<_> = plain.stored.all().collect();
        let (mut sure, mut perhaps) = (0, BTreeMap::new());
        for (index, (entry, record)) in all.iter().enumerate() {
            for (other, next) in &all[index + 1..] {
                let (a, b) = (record.now(), next.now());
                let is_of_it = project.is_none_or(|name| plain.stored.project(name) == a.project);
                let distance = a.distance(b);
                if is_of_it && (a.project, a.kind) == (b.project, b.kind) && distance <= ALIKE + 0.001 {
                    sure += usize::from(distance <= ALIKE - 0.001);
                    perhaps.insert((*entry, *other), distance);
                }
            }
        }
        let pairs = list(&answer["duplicates"]);
        let count = pairs.len() + usize::try_from(answer["omitted"].as_u64().unwrap()).unwrap();
        assert!((sure..=perhaps.len()).contains(&count) && (pairs.len() == count || pairs.len() == 100), "{answer}");
        let mut last = 0.0;
        for pair in pairs {
            let ids = (self.at(&pair["ids"][0], plain), self.at(&pair["ids"][1], plain));
            let distance = pair["distance"].as_f64().unwrap();
            let wanted = perhaps.remove(&ids).unwrap_or_else(|| panic!("{pair} is none, or is told twice"));
            assert!((distance - wanted).abs() < 0.001 && distance >= last, "{wanted} {answer}");
            last = distance;
        }
        assert_eq!(answer["uncompared"], 0);
    }

    fn check_answer(&mut self, answer: Result<Value, String>, plain: &Plain, step: &Step) {
        match (answer, &plain.answer) {
            (Err(reason), Answer::Refused(expected)) => assert_eq!(reason, *expected),
            (Ok(_), Answer::Nothing) => {}
            (Ok(answer), Answer::Record(number)) => {
                let record = answer.get("record").unwrap_or(&answer);
                let id = record["id"].as_i64().unwrap();
                if !self.ids.contains_key(number) {
                    self.number(*number, id);
                    self.similar(plain, *number, step, &answer);
                }
                assert_eq!((id, found(record)), (self.ids[number], told(&plain.stored.records[number])));
            }
            (Ok(answer), Answer::Near(near)) => {
                // Nudge stores no key for a call with this answer: a repeated call gets the question again.
                self.last = None;
                assert_eq!(answer["written"], false, "{answer}");
                let mut named: Vec<_> = list(&answer["near"]).iter().map(|near| near["record"]["id"].clone()).collect();
                let mut wanted: Vec<_> = near.iter().map(|number| json!(self.ids[number])).collect();
                let by_id = |id: &Value| id.as_i64();
                assert_eq!(named.len(), wanted.len().min(5), "{answer}");
                named.sort_by_key(by_id);
                wanted.sort_by_key(by_id);
                assert!(named.iter().all(|id| wanted.contains(id)), "{answer}");
            }
            (Ok(answer), Answer::Imported { new, skipped, refused, similar }) => {
                let counts = [&answer["imported"], &answer["skipped"], &answer["refused"]];
                assert_eq!(json!(counts), json!([new.len(), skipped, refused]), "{answer}");
                let listed = self.desk.call("list", &json!({"project": "*", "limit": 1000}));
                let mut ids: Vec<_> = list(&listed["records"]).iter().map(|row| row["id"].as_i64().unwrap()).collect();
                ids.retain(|id| !plain.stored.all().any(|(number, _)| self.ids.get(&number) == Some(id)));
                ids.sort_unstable();
                assert_eq!(ids.len(), new.len(), "{answer}");
                new.iter().zip(ids).for_each(|(number, id)| self.number(*number, id));
                let named = list(&answer["similar"]);
                if plain.is_meant {
                    let is_near = |row: &Value| row["like"]["distance"].as_f64().is_none_or(|far| far <= ALIKE);
                    assert!(similar.len() <= named.len() && named.iter().all(is_near), "{answer}");
                } else {
                    let pair = |row: &Value| json!([row["id"], row["like"]["id"]]);
                    let wanted: Vec<_> =
                        similar.iter().map(|(number, like)| json!([self.ids[number], self.ids[like]])).collect();
                    assert_eq!(named.iter().map(pair).collect::<Vec<_>>(), wanted, "{answer}");
                }
            }
            (Ok(answer), Answer::Joined { into, moved }) => {
                assert_eq!(answer, json!({"project": PROJECTS[*into], "moved": moved}));
            }
            (answer, expected) => panic!("{answer:?}, {expected:?}"),
        }
    }

    /// Checks that the answer lists the records similar to a new record, unless the caller has set `distinct`.
    fn similar(&self, plain: &Plain, number: At, step: &Step, answer: &Value) {
        let Step::Save { distinct: false, .. } = step else { return };
        let mut like =
            if plain.is_meant { plain.stored.near(plain.stored.records[&number].now(), ALIKE) } else { Vec::new() };
        like.retain(|(_, other)| *other != number);
        assert!(like.iter().all(|(distance, _)| *distance > NEARLY));
        let named: Vec<_> = answer.get("similar").map(|similar| list(similar).clone()).unwrap_or_default();
        assert_eq!(named.len(), like.len().min(5), "{answer}");
        assert!(named.iter().all(|row| like.iter().any(|(_, number)| row["id"] == self.ids[number])), "{answer}");
        assert!(answer.get("degraded").is_none(), "{answer}");
    }

    /// Checks the content and the revisions of a record.
    fn check(&self, plain: &Plain, number: At) {
        let Some(id) = self.ids.get(&number) else { panic!("no number of {number}") };
        let params = json!({"id": id, "revisions": true});
        let Some(record) = plain.stored.here(number) else {
            assert_eq!(self.desk.refused("get", &params).reason(), "E_NOT_FOUND");
            return;
        };
        let answer = self.desk.call("get", &params);
        assert_eq!(found(&answer), told(record));
        let times = [record.made, record.changed].map(rfc3339::format_time);
        assert_eq!([&answer["created_at"], &answer["updated_at"]], [&times[0], &times[1]], "{answer}");
        let before: Vec<_> = list(&answer["revisions"]).iter().rev().map(found).collect();
        let said = |n: usize| told(&Record { said: record.said[..n].to_vec(), ..record.clone() });
        assert_eq!(before, (1..record.said.len()).map(said).collect::<Vec<_>>(), "revisions of {id}");
    }

    /// Checks a list of records, the newest first.
    fn list(&self, plain: &Plain, step: &Step) {
        let Step::List { project, here, kind, status } = *step else { unreachable!() };
        let mut params = json!({"kind": kind.map(|index| KINDS[index]), "status": status.map(|index| STATUSES[index]), "limit": 1000});
        match project {
            Some(number) if here => params["context"] = repo(number),
            _ => params["project"] = json!(project.map_or("*", |index| PROJECTS[index])),
        }
        let answer = self.desk.call("list", &params);
        let listed: Vec<_> = list(&answer["records"]).iter().map(|row| row["id"].as_i64().unwrap()).collect();
        let is = |text: &Text| {
            project.is_none_or(|wanted_project| plain.stored.project(wanted_project) == text.project)
                && kind.is_none_or(|wanted_kind| wanted_kind == text.kind)
                && status.is_none_or(|wanted_status| wanted_status == text.status)
        };
        let mut wanted: Vec<_> = plain.stored.all().filter(|(_, record)| is(record.now())).collect();
        wanted.sort_by_key(|(number, record)| std::cmp::Reverse((record.changed, *number)));
        assert_eq!(listed, wanted.iter().map(|(number, _)| self.ids[number]).collect::<Vec<_>>(), "{params}");
        assert_eq!(answer["total"], wanted.len());
    }

    /// Waits until every record has its vector. In a session, the worker makes the vector soon after a change.
    fn settle(&self) {
        let is_left = || {
            self.desk
                .records
                .report_status()
                .get("records")
                .is_some_and(|stands| stands.get("without_meaning").is_some())
        };
        while is_left() {
            self.desk.call("search", &json!({"query": "uploads"}));
        }
    }
}

impl StateMachineTest for Run {
    type SystemUnderTest = Self;
    type Reference = Semantics;

    fn init_test(plain: &Plain) -> Self {
        let models: Arc<dyn ModelProvider> =
            if plain.is_meant { Arc::new(LoadedModel(Arc::new(steps::Words))) } else { Arc::new(NoModels) };
        let desk = Desk::in_memory(models);
        assert_eq!(desk.clock.now(), plain::START_MS);
        Self { desk, ids: BTreeMap::new(), used: BTreeSet::new(), files: Vec::new(), calls: 0, last: None }
    }

    fn apply(mut run: Self, plain: &Plain, step: Step) -> Self {
        let _ = run.desk.clock.advance_by(1_000);
        if plain.is_meant && matches!(step, Step::Save { .. } | Step::Duplicates { .. } | Step::Import(_)) {
            run.settle();
        }
        if let Some(answer) = run.changed(plain, &step) {
            run.check_answer(answer, plain, &step);
            return run;
        }
        match step {
            Step::List { .. } => run.list(plain, &step),
            Step::Search { title } => {
                let answer = run.desk.call("search", &json!({"query": TITLES[title], "limit": 50, "whole": true}));
                for hit in list(&answer["results"]) {
                    let number = run.at(&hit["id"], plain);
                    assert_eq!(found(hit), told(plain.stored.here(number).unwrap()));
                }
            }
            Step::Wait { days } => {
                // The database keeps the answer to a key for an hour, so it is gone by now.
                run.last = None;
                run.desk.records.tick(run.desk.clock.advance_by(days * DAY_MS));
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

    /// Checks the list and the changed record. After the last step, checks all records.
    fn check_invariants(run: &Self, plain: &Plain) {
        run.list(plain, &Step::List { project: None, here: false, kind: None, status: None });
        match plain.answer {
            Answer::Record(number) => run.check(plain, number),
            Answer::Joined { .. } | Answer::Imported { .. } => {
                run.ids.keys().for_each(|number| run.check(plain, *number));
            }
            _ => {}
        }
    }

    fn teardown(run: Self, plain: Plain) {
        assert_eq!(run.ids.len(), plain.made);
        for (number, record) in &plain.stored.records {
            run.check(&plain, *number);
            if record.stands == Stands::Gone {
                assert_eq!(run.desk.refused("restore", &json!({"id": run.ids[number]})).reason(), "E_NOT_FOUND");
            }
        }
        for number in (0..plain.made).filter(|number| !plain.stored.records.contains_key(number)) {
            run.check(&plain, number);
        }
    }
}

prop_state_machine! {
    #![proptest_config(Cases { cases: 500, failure_persistence: None, ..Cases::default() })]
    /// Promise: see `agrees_with_the_model`.
    #[test]
    fn agrees_with_the_model(sequential 50 => Run);
}
