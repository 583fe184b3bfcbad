//! Tests that changes are recorded before any reader can see them, and that a change that cannot be recorded is refused
//! and changes nothing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use nudge::{
    BumpHint, ChangeLog, Clock, Config, Context, DeleteHint, Error, ErrorKind, ExportHints, ImportHints, ImportMode,
    LogEntry, ManualClock, Nudge, OutcomeParams, Result, ScopeSpec, SetHint, StoreChange, View,
};
use serde_json::value::to_raw_value;

#[derive(Default)]
struct Spy {
    store: OnceLock<Weak<Nudge>>,
    fail: AtomicBool,
    calls: AtomicUsize,
    seen: Mutex<Vec<String>>,
}

struct SpyLog(Arc<Spy>);

impl ChangeLog for SpyLog {
    fn append(&self, entry: &LogEntry<'_>) -> Result<()> {
        let changes = entry.applied.changes;
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        if self.0.fail.load(Ordering::SeqCst) {
            return Err(Error::unavailable("The disk is full; make room."));
        }
        let store = self.0.store.get().and_then(Weak::upgrade).expect("the store is there");
        for change in changes {
            let line = match change {
                StoreChange::Put(hint) => {
                    let visible = store.get(hint.component(), hint.key(), &Context::default());
                    let same = visible.filter(|seen| seen.hint().variant() == hint.variant());
                    let marks = |hint: &nudge::Hint| (hint.version(), hint.use_count());
                    assert!(same.is_none_or(|seen| marks(seen.hint()) < marks(hint)), "not visible yet");
                    format!("put {}/{} v{} used {}", hint.component(), hint.key(), hint.version(), hint.use_count())
                }
                StoreChange::Delete(hint) => {
                    assert!(store.get(hint.component(), hint.key(), &Context::default()).is_some(), "still visible");
                    format!("delete {}/{}", hint.component(), hint.key())
                }
                StoreChange::Extra(extra) => format!("extra {extra}"),
                StoreChange::Replaced(hint) => format!("keep {}/{} v{}", hint.component(), hint.key(), hint.version()),
                _ => "something new".into(),
            };
            self.0.seen.lock().unwrap().push(line);
        }
        Ok(())
    }
}

fn store() -> (Arc<Nudge>, Arc<Spy>) {
    let spy = Arc::new(Spy::default());
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_767_225_600_000));
    let store = Arc::new(Nudge::with_log(Config::default(), clock, Box::new(SpyLog(Arc::clone(&spy)))));
    spy.store.set(Arc::downgrade(&store)).unwrap();
    (store, spy)
}

fn export(store: &Nudge) -> String {
    serde_json::to_string(&store.export(&ExportHints::default()).unwrap()).unwrap()
}

fn import(payload: &serde_json::Value, mode: ImportMode) -> ImportHints {
    ImportHints { payload: to_raw_value(payload).unwrap(), mode, allow_secret: false }
}

fn bump() -> BumpHint {
    BumpHint { component: "a".into(), key: "k".into(), ..BumpHint::default() }
}

fn outcome() -> OutcomeParams {
    OutcomeParams { command: "make".into(), exit_code: Some(2), ..OutcomeParams::default() }
}

fn delete() -> DeleteHint {
    DeleteHint { component: "a".into(), key: "k".into(), ..DeleteHint::default() }
}

/// Promise (hints): The store records a change before a reader can see it. A change that cannot be recorded changes
/// nothing.
#[test]
fn changes_are_recorded_first_as_they_will_stand() {
    let (store, spy) = store();
    store.set(SetHint::new("a", "k", "make")).unwrap();
    store.bump(bump()).unwrap();
    store.set(SetHint::new("a", "k", "make all")).unwrap();
    store.delete(&delete()).unwrap();
    let payload = serde_json::json!({"components": {"b": {"hints": {"x": "1"}}}, "theme": "dark"});
    store.import(&import(&payload, ImportMode::Merge)).unwrap();
    assert_eq!(
        *spy.seen.lock().unwrap(),
        [
            "put a/k v1 used 0",
            "put a/k v1 used 1",
            "keep a/k v1",
            "put a/k v2 used 0",
            "delete a/k",
            "put b/x v1 used 0",
            "extra {\"theme\":\"dark\"}"
        ]
    );
}

/// Promise (hints): A read changes nothing and records nothing.
#[test]
fn reads_and_refused_calls_record_nothing() {
    let (store, spy) = store();
    store.get("a", "k", &Context::default());
    store.query(nudge::QueryHints::default()).unwrap();
    store.bump(bump()).unwrap_err();
    store.delete(&delete()).unwrap_err();
    store.outcome(outcome()).unwrap();
    let mut conflicting = SetHint::new("a", "k", "x");
    conflicting.if_match_version = Some(3);
    store.set(conflicting).unwrap_err();
    assert_eq!(spy.calls.load(Ordering::SeqCst), 0);
}

/// Promise: see `changes_are_recorded_first_as_they_will_stand`.
#[test]
fn a_record_that_fails_refuses_the_call_and_changes_nothing() {
    let (store, spy) = store();
    store.set(SetHint::new("a", "k", "make")).unwrap();
    let before = export(&store);
    spy.fail.store(true, Ordering::SeqCst);
    let mut scoped = SetHint::new("a", "k", "other");
    scoped.meta.scope = ScopeSpec { branch: vec!["new/*".into()], ..ScopeSpec::default() };
    let payload = serde_json::json!({"components": {"b": {"hints": {"x": "1"}}}, "theme": "dark"});
    let errors = [
        store.set(scoped.clone()).unwrap_err(),
        store.bump(bump()).unwrap_err(),
        store.outcome(outcome()).unwrap_err(),
        store.delete(&delete()).unwrap_err(),
        store.import(&import(&payload, ImportMode::Replace)).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    assert_eq!(export(&store), before);
    // When the log works again, all calls work, including calls with scopes that the failed calls used.
    spy.fail.store(false, Ordering::SeqCst);
    let dev = Context::builder().branch("new/x").build().unwrap();
    let view = View::new(&*store, dev);
    assert_eq!(view.get("a", "k").unwrap().hint().text(), "make");
    store.set(scoped).unwrap();
    assert_eq!(view.get("a", "k").unwrap().hint().text(), "other");
}
