//! Many threads use one store while scopes are added and removed. Each hint that a reader finds must fit the reader.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nudge::{BumpHint, Context, DeleteHint, Nudge, QueryHints, ScopeSpec, SetHint, View};

/// Makes a hint with the scope of branch `b{n}`. There are far more branches than hints, so the numbers of scopes are
/// reused.
fn scoped(key: usize, n: usize) -> SetHint {
    let mut hint = SetHint::new("c", format!("k{key}"), format!("for b{n}"));
    hint.meta.scope = ScopeSpec { branch: vec![format!("b{n}")], ..ScopeSpec::default() };
    hint
}

/// Promise (hints): A `View` never takes one scope for another, even when the number of a scope is used again.
#[test]
fn a_view_never_takes_one_scope_for_another() {
    let store = Nudge::default();
    let stop = AtomicBool::new(false);
    let deadline = Instant::now() + Duration::from_secs(2);
    let reads = std::thread::scope(|scope| {
        for writer in 0..2 {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                for n in (writer..).step_by(2) {
                    let key = n % 5;
                    store.set(scoped(key, n % 50)).unwrap();
                    let _ = store.delete(&DeleteHint {
                        component: "c".into(),
                        key: format!("k{}", (n + 2) % 5),
                        all: true,
                        ..DeleteHint::default()
                    });
                    let _ =
                        store.bump(BumpHint { component: "c".into(), key: format!("k{key}"), ..BumpHint::default() });
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let (store, stop) = (&store, &stop);
                scope.spawn(move || {
                    let branch = format!("b{}", reader * 7);
                    let spec = || Context::builder().branch(branch.clone());
                    let view = View::new(store, spec().build().unwrap());
                    let mut reads = 0_u64;
                    while Instant::now() < deadline {
                        for key in 0..5 {
                            if let Some(found) = view.get("c", &format!("k{key}")) {
                                assert_eq!(found.hint().text(), format!("for {branch}"));
                                reads += 1;
                            }
                        }
                        for row in store.query(QueryHints { context: spec(), ..QueryHints::default() }).unwrap().hints {
                            assert_eq!(row.hint.text(), format!("for {branch}"));
                        }
                    }
                    stop.store(true, Ordering::Relaxed);
                    reads
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).sum::<u64>()
    });
    assert!(reads > 0, "the readers saw something");
}
