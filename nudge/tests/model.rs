//! Compares random sequences of calls, time jumps and restarts with a plain model of the semantics.
//! `PROPTEST_CASES=100000` makes more sequences.

// This test does not use all of `kit`.
#[allow(dead_code)]
mod kit;
#[path = "model/plain.rs"]
mod plain;

use kit::RecordedStore;
use nudge::{Caller, Config};
use plain::{
    Answer, COMPONENTS, Entry, KEYS, MAX_HINTS, Name, Plain, SCOPES, STANDS, Semantics, Step, TTLS, VALUES, Which,
};
use proptest::test_runner::Config as Cases;
use proptest_state_machine::{StateMachineTest, prop_state_machine};
use serde_json::{Value, json};

struct Run {
    session: RecordedStore,
    /// The number of calls with a key.
    calls: usize,
    /// The last call with a key that changed something, and its answer.
    last: Option<(&'static str, Value, Result<Value, String>)>,
}

fn scope(scope: usize) -> Value {
    json!({"branch": SCOPES[scope].0, "cwd_glob": SCOPES[scope].1})
}

fn stand(stand: usize) -> Value {
    json!({"cwd": STANDS[stand].0, "branch": STANDS[stand].1})
}

fn named(name: Name) -> Value {
    json!({"component": COMPONENTS[name.0], "key": KEYS[name.1]})
}

fn with(mut params: Value, more: Value) -> Value {
    let Value::Object(more) = more else { unreachable!() };
    params.as_object_mut().unwrap().extend(more);
    params
}

/// Formats milliseconds as RFC 3339, to compare the model's times with the times of answers.
fn time(ms: i64) -> String {
    nudge_core::clock::rfc3339::format_time(ms)
}

/// Lists the fields of an entry of the model that must be equal to the fields of the hint.
fn told(entry: &Entry) -> Value {
    json!([
        COMPONENTS[entry.name.0],
        KEYS[entry.name.1],
        SCOPES[entry.scope].2,
        VALUES[entry.value],
        TTLS[entry.ttl].0,
        entry.priority,
        entry.version,
        time(entry.created),
        time(entry.updated),
        entry.uses,
        (entry.uses > 0).then(|| time(entry.used)),
        entry.failures,
    ])
}

fn found(hint: &Value) -> Value {
    let or = |value: &Value, other: Value| if value.is_null() { other } else { value.clone() };
    json!([
        hint["component"],
        hint["key"],
        or(&hint["variant"], json!("")),
        hint["value"],
        hint["meta"]["ttl"],
        hint["meta"]["priority"],
        hint["version"],
        hint["created_at"],
        hint["updated_at"],
        or(&hint["use_count"], json!(0)),
        hint["last_used_at"],
        or(&hint["failure_count"], json!(0)),
    ])
}

impl Run {
    fn store() -> RecordedStore {
        RecordedStore::with(7, Config { max_hints: MAX_HINTS, ..Config::default() })
    }

    /// Makes a call with a key, so that a later step can repeat the call.
    fn change(&mut self, method: &'static str, params: Value) -> Result<Value, String> {
        self.calls += 1;
        let answer = self.keyed(method, &params);
        self.last = Some((method, params, answer.clone()));
        answer
    }

    fn keyed(&self, method: &str, params: &Value) -> Result<Value, String> {
        let key = self.calls.to_string();
        let caller = Caller::with_name("tester/1").with_key(Some(&key));
        self.session.by(caller, method, params).map_err(|error| error.reason().to_owned())
    }

    fn ask(&self, method: &str, params: &Value) -> Result<Value, String> {
        self.session.call(method, params).map_err(|error| error.reason().to_owned())
    }

    /// Runs a step. Returns its answer, and the name of the answer's field to compare (`""` for none). `None` for a
    /// step without an answer to compare.
    fn answered(&mut self, step: &Step) -> Option<(Result<Value, String>, &'static str)> {
        Some(match *step {
            Step::Set { name, scope: scope_index, value, ttl, priority, expect } => {
                let meta = json!({"scope": scope(scope_index), "ttl": TTLS[ttl].0, "priority": priority});
                let more = json!({"value": VALUES[value], "meta": meta, "if_match_version": expect});
                (self.change("set_hint", with(named(name), more)), "")
            }
            Step::Get { name, scope, stand: place } => {
                let more = json!({"context": stand(place), "variant": scope.map(|scope| SCOPES[scope].2)});
                (self.ask("get_hint", &with(named(name), more)), "")
            }
            Step::Bump { name, which, delta } => {
                let more = match which {
                    Which::Unsaid => json!({"delta": delta}),
                    Which::Scope(scope) => json!({"delta": delta, "variant": SCOPES[scope].2}),
                    Which::All(place) => json!({"delta": delta, "context": stand(place)}),
                };
                (self.change("bump", with(named(name), more)), "")
            }
            Step::Delete { name, which } => {
                let more = match which {
                    Which::Unsaid => json!({}),
                    Which::Scope(scope) => json!({"variant": SCOPES[scope].2}),
                    Which::All(_) => json!({"all": true}),
                };
                (self.change("delete_hint", with(named(name), more)), "deleted_count")
            }
            Step::Undo => (self.change("undo", json!({})), "restored"),
            Step::Outcome { value, ok, stand: place } => {
                let params = json!({"command": VALUES[value], "ok": ok, "context": stand(place)});
                (self.change("outcome", params), "matched")
            }
            _ => return None,
        })
    }

    fn query(&self, model: &Plain, step: &Step) {
        let Step::Query { component, stand: place, limit, ineligible } = *step else { return };
        let params = json!({
            "component": component.map(|index| COMPONENTS[index]), "context": stand(place), "limit": limit,
            "include_ineligible": ineligible,
        });
        let answer = self.ask("query", &params).unwrap();
        let rows = answer["hints"].as_array().unwrap();
        let wanted: Vec<_> = model
            .live()
            .filter(|entry| component.is_none_or(|index| index == entry.name.0) && (ineligible || entry.fits(place)))
            .collect();
        assert_eq!(rows.len(), wanted.len().min(limit), "{answer}");
        let find_entry = |row: &Value| {
            let row = found(&row["hint"]);
            (*wanted.iter().find(|entry| told(entry) == row).unwrap_or_else(|| panic!("{row}"))).clone()
        };
        let shown: Vec<_> = rows.iter().map(find_entry).collect();
        let is_before = |a: &Entry, b: &Entry| match (a.fits(place), b.fits(place)) {
            (true, false) => true,
            (false, true) => false,
            _ => a.is_before(b, model.now, false),
        };
        for (n, (row, entry)) in rows.iter().zip(&shown).enumerate() {
            assert_eq!(row["match_explain"]["matched"], entry.fits(place));
            let score = row["match_explain"]["score"].as_f64().unwrap();
            assert!((score - entry.score(model.now)).abs() < 1e-4, "{row}");
            // The rows after this one must not rank before it, and neither must the hints that the limit left out.
            for other in wanted.iter().filter(|other| !shown[..n].contains(other)) {
                assert!(!is_before(other, entry), "{entry:?} before {other:?}");
            }
        }
    }

    fn check_answer(answer: &Result<Value, String>, count: &str, expected: &Answer) {
        match (answer, expected) {
            (Err(reason), Answer::Refused(expected)) => assert_eq!(reason, expected),
            (Ok(answer), Answer::Hint(entry)) => assert_eq!(found(&answer["hint"]), told(entry), "{answer}"),
            (Ok(answer), Answer::Count(expected)) => {
                let counted = &answer[count];
                let counted = counted.as_array().map_or_else(|| counted.as_u64(), |all| Some(all.len() as u64));
                assert_eq!(counted, Some(*expected as u64), "{answer}");
            }
            _ => panic!("{answer:?} {expected:?}"),
        }
    }
}

impl StateMachineTest for Run {
    type SystemUnderTest = Self;
    type Reference = Semantics;

    fn init_test(_: &Plain) -> Self {
        Self { session: Self::store(), calls: 0, last: None }
    }

    fn apply(mut run: Self, model: &Plain, step: Step) -> Self {
        if let Some((answer, count)) = run.answered(&step) {
            Self::check_answer(&answer, count, &model.answer);
            return run;
        }
        match step {
            Step::Query { .. } => run.query(model, &step),
            Step::Clear => {
                run.ask("import", &json!({"payload": {"components": {}}, "mode": "replace"})).unwrap();
            }
            Step::Advance(ms) => drop(run.session.clock.advance_by(ms)),
            Step::Sweep => drop(run.session.store.sweep()),
            Step::Again => {
                // The store does not remember a refused call.
                if let Some((method, params, Ok(answer))) = &run.last {
                    assert_eq!(run.keyed(method, params).as_ref(), Ok(answer));
                }
            }
            Step::Promote => run.session = run.session.promoted(),
            Step::Reload => {
                let export = run.ask("export", &json!({})).unwrap();
                let next = Self::store();
                next.clock.advance_by(model.now - plain::START_MS);
                run = Self { session: next, calls: run.calls, last: None };
                run.ask("import", &json!({"payload": export["payload"], "mode": "replace"})).unwrap();
            }
            _ => unreachable!(),
        }
        run
    }

    fn check_invariants(run: &Self, model: &Plain) {
        let answer = run.ask("query", &json!({"include_ineligible": true, "limit": 1000})).unwrap();
        let sorted = |mut all: Vec<Value>| {
            all.sort_by_key(Value::to_string);
            all
        };
        let stored = answer["hints"].as_array().unwrap().iter().map(|row| found(&row["hint"])).collect();
        assert_eq!(sorted(stored), sorted(model.live().map(told).collect()));
        let deletions = run.ask("deletions", &json!({})).unwrap();
        let counts = deletions["deletions"].as_array().unwrap().iter().map(|gone| gone["count"].as_u64().unwrap());
        assert!(counts.eq(model.gone.iter().rev().map(|gone| model.alive(gone) as u64).filter(|count| *count > 0)));
    }
}

prop_state_machine! {
    #![proptest_config(Cases { cases: 500, failure_persistence: None, ..Cases::default() })]
    /// Promise (hints): Hints, signals, records and notes behave as plain models of the semantics do, for random
    /// calls, time jumps, repeated keys and restarts.
    #[test]
    fn agrees_with_the_model(sequential 50 => Run);
}
