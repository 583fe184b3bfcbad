//! Calls every method of one store from several threads for 2 seconds, or for `NUDGE_HAMMER_SECONDS`. `tests/hammer`
//! runs this test for a minute in each language.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nudge::{BumpHint, Nudge, Service, SetHint, method};
use serde_json::Value;
use serde_json::value::to_raw_value;

const THREADS: usize = 8;
/// The calls by method name. The tests of the bindings use them too.
const CALLS: &str = include_str!("../../tests/fixtures/hammered.json");

#[test]
fn every_method_by_many_threads() {
    let seconds = std::env::var("NUDGE_HAMMER_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2);
    let mut calls: BTreeMap<String, Value> = serde_json::from_str(CALLS).unwrap();
    let mut named: Vec<_> = method::methods().into_iter().map(|method| method.name.to_owned()).collect();
    named.sort();
    assert_eq!(calls.keys().cloned().collect::<Vec<_>>(), named, "each method is called");
    // This call undoes the last deletion of any thread.
    calls.insert("nudge.undo".into(), serde_json::json!({}));
    let calls: Vec<_> = calls.into_iter().map(|(name, params)| (name, to_raw_value(&params).unwrap())).collect();

    let store = Nudge::default();
    store.set(SetHint::new("counted", "uses", "counts")).unwrap();
    let (answered, refused, bumped) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(seconds);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, calls, answered, refused, bumped) = (&store, &calls, &answered, &refused, &bumped);
            scope.spawn(move || {
                // Each thread has a different step, so that the threads meet in many combinations.
                let mut index = thread;
                while Instant::now() < end {
                    index += 2 * thread + 1;
                    let (name, params) = &calls[index % calls.len()];
                    match store.call(name, params) {
                        Ok(answer) => {
                            assert!(answer.get().starts_with('{'), "{name}");
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            assert!(["E_NOT_FOUND", "E_CONFLICT"].contains(&error.reason()), "{name}: {error}");
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    let bump = BumpHint { component: "counted".into(), key: "uses".into(), ..BumpHint::default() };
                    store.bump(bump).unwrap();
                    bumped.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let uses = store.get("counted", "uses", &nudge::Context::default()).unwrap().hint().use_count();
    assert_eq!(uses, bumped.into_inner(), "no use is lost");
    println!(
        "{seconds} s by {THREADS} threads: {} calls answered, {} refused, {uses} bumps",
        answered.into_inner(),
        refused.into_inner()
    );
}
