//! Runs threads that use one store in random orders, which `shuttle` chooses. No change may be lost or visible in part,
//! and the log must match the store. The script `tests/orders` at the top of the
//! repository runs these tests; its argument is the number of orders.

#[allow(dead_code)]
mod kit;

use std::sync::Arc;

use kit::Records;
use nudge::{BumpHint, Context, DeleteHint, ExportHints, ManualClock, Nudge, QueryHints, ScopeSpec, SetHint, View};
use nudge_core::sync::in_any_order;
use shuttle::thread;

/// Opens a store, and returns it with the records of its log.
fn opened() -> (Arc<Nudge>, Arc<Records>) {
    let records = Arc::new(Records::default());
    let clock = Arc::new(ManualClock::new(kit::START_MS));
    let store = Nudge::with_log(nudge::Config::default(), clock, Box::new(Arc::clone(&records)));
    let store = store.with_identity("one".into(), kit::START_MS);
    (Arc::new(store), records)
}

fn set(store: &Nudge, key: &str, branch: &str) {
    let mut hint = SetHint::new("c", key, format!("for {branch}"));
    hint.meta.scope = ScopeSpec { branch: vec![branch.to_owned()], ..ScopeSpec::default() };
    store.set(hint).unwrap();
}

fn delete(store: &Nudge, key: &str) -> bool {
    store.delete(&DeleteHint { component: "c".into(), key: key.into(), all: true, ..DeleteHint::default() }).is_ok()
}

fn on(branch: &str) -> Context {
    Context::builder().branch(branch).build().unwrap()
}

/// Returns the whole contents of a store as text.
fn all(store: &Nudge) -> String {
    let payload = store.export(&ExportHints { include_secrets: true, ..ExportHints::default() }).unwrap().payload;
    serde_json::to_string(&payload).unwrap()
}

#[test]
fn no_update_is_lost() {
    in_any_order(|| {
        let (store, _) = opened();
        store.set(SetHint::new("c", "n", "0")).unwrap();
        let threads = [0, 1].map(|_| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                store.bump(BumpHint { component: "c".into(), key: "n".into(), ..BumpHint::default() }).unwrap();
                let found = store.get("c", "n", &Context::default()).unwrap();
                let next = (found.hint().text().parse::<u64>().unwrap() + 1).to_string();
                let hint =
                    SetHint { if_match_version: Some(found.hint().version()), ..SetHint::new("c", "n", next.as_str()) };
                u64::from(store.set(hint).is_ok())
            })
        });
        let counted: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        let found = store.get("c", "n", &Context::default()).unwrap();
        assert!(counted > 0, "one of them comes first");
        assert_eq!(found.hint().text(), counted.to_string());
    });
}

#[test]
fn who_looks_sees_what_fits() {
    in_any_order(|| {
        let (store, _) = opened();
        set(&store, "k", "a");
        // The writers add and remove hints, so that a new scope gets the number of a removed one.
        let writers = [("k", "b"), ("l", "a")].map(|(key, branch)| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                delete(&store, key);
                set(&store, key, branch);
                delete(&store, "l");
            })
        });
        let readers = ["a", "b"].map(|branch| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let view = View::new(&*store, on(branch));
                for key in ["k", "l", "k"] {
                    if let Some(found) = view.get("c", key) {
                        assert_eq!(found.hint().text(), format!("for {branch}"));
                    }
                }
                let context = Context::builder().branch(branch);
                for row in store.query(QueryHints { context, ..QueryHints::default() }).unwrap().hints {
                    assert_eq!(row.hint.text(), format!("for {branch}"));
                }
            })
        });
        writers.into_iter().chain(readers).for_each(|thread| thread.join().unwrap());
        assert_eq!(View::new(&*store, on("b")).get("c", "k").unwrap().hint().text(), "for b");
    });
}

#[test]
fn the_log_tells_what_is_stored() {
    in_any_order(|| {
        let (store, records) = opened();
        set(&store, "k", "a");
        let acts: [fn(&Nudge); 3] = [
            |store| {
                set(store, "k", "b");
                set(store, "l", "a");
            },
            |store| {
                delete(store, "k");
                let _ = store.undo(nudge::UndoDeletion::default());
            },
            |store| {
                let _ = store.bump(BumpHint { component: "c".into(), key: "k".into(), ..BumpHint::default() });
                store.sweep();
            },
        ];
        let threads = acts.map(|act| {
            let store = Arc::clone(&store);
            thread::spawn(move || act(&store))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let (again, _) = opened();
        assert_eq!(again.restore(records.all.lock().unwrap().iter()), 0);
        assert_eq!(all(&again), all(&store));
    });
}
