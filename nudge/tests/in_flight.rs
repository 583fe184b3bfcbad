//! Tests calls with a key that run at the same time: calls with the same key wait for each other, other calls do not.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nudge::{Caller, Clock, Config, Millis, Nudge, Result, Service};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

thread_local! {
    /// The action that the next read of the clock on this thread carries out.
    static NEXT: Cell<Option<Next>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
enum Next {
    Wait,
    Panic,
}

/// A clock that can stop a call. An import reads the clock before it takes any lock of the store.
struct Gate {
    reached: Sender<()>,
    opened: Mutex<Receiver<()>>,
    waits: AtomicUsize,
}

impl Clock for Gate {
    fn now(&self) -> Millis {
        match NEXT.take() {
            Some(Next::Wait) => {
                self.waits.fetch_add(1, Ordering::SeqCst);
                self.reached.send(()).unwrap();
                self.opened.lock().unwrap().recv().unwrap();
            }
            Some(Next::Panic) => panic!("as the test wants it"),
            None => {}
        }
        1_767_225_600_000
    }
}

struct Store {
    nudge: Nudge,
    gate: Arc<Gate>,
}

fn store() -> (Arc<Store>, Receiver<()>, Sender<()>) {
    let ((reached, arrivals), (open, opened)) = (channel(), channel());
    let gate = Arc::new(Gate { reached, opened: Mutex::new(opened), waits: AtomicUsize::new(0) });
    let nudge = Nudge::with_clock(Config::default(), gate.clone());
    (Arc::new(Store { nudge, gate }), arrivals, open)
}

impl Store {
    fn import(&self, key: &str, next: Option<Next>) -> Result<Box<RawValue>> {
        let params = json!({"payload": {"components": {"a": {"hints": {"k": "v"}}}}, "mode": "replace"});
        NEXT.set(next);
        let done = self.call(key, "nudge.import", &params);
        NEXT.set(None);
        done
    }

    fn call(&self, key: &str, method: &str, params: &Value) -> Result<Box<RawValue>> {
        self.nudge.call_by(Caller::with_name("tester").with_key(Some(key)), method, &to_raw_value(params).unwrap())
    }
}

/// Runs a function on a new thread. The channel receives the result.
fn start<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(run()));
    told
}

const SOON: Duration = Duration::from_secs(20);

#[test]
fn another_key_does_not_wait() {
    let (store, arrivals, open) = store();
    let held = Arc::clone(&store);
    let import = start(move || held.import("long", Some(Next::Wait)));
    arrivals.recv_timeout(SOON).unwrap();
    let other = Arc::clone(&store);
    let set =
        start(move || other.call("short", "nudge.set_hint", &json!({"component": "a", "key": "s", "value": "v"})));
    let set = set.recv_timeout(SOON);
    open.send(()).unwrap();
    set.expect("it does not wait for the import").unwrap();
    import.recv_timeout(SOON).unwrap().unwrap();
}

#[test]
fn the_same_key_waits_for_the_first() {
    let (store, arrivals, open) = store();
    let held = Arc::clone(&store);
    let first = start(move || held.import("one", Some(Next::Wait)));
    arrivals.recv_timeout(SOON).unwrap();
    let other = Arc::clone(&store);
    let second = start(move || other.import("one", Some(Next::Wait)));
    assert!(second.recv_timeout(Duration::from_millis(200)).is_err(), "it waits");
    open.send(()).unwrap();
    let first = first.recv_timeout(SOON).unwrap().unwrap();
    assert_eq!(second.recv_timeout(SOON).unwrap().unwrap().get(), first.get());
    assert_eq!(store.gate.waits.load(Ordering::SeqCst), 1, "made once");
}

#[test]
fn a_call_that_panics_leaves_its_key_free() {
    let (store, ..) = store();
    let breaks = Arc::clone(&store);
    assert!(std::thread::spawn(move || breaks.import("one", Some(Next::Panic)).is_ok()).join().is_err());
    let again = Arc::clone(&store);
    start(move || again.import("one", None)).recv_timeout(SOON).expect("the key is free").unwrap();
}
