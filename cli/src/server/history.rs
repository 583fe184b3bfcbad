//! What changed, for those who watch: the last changes of the store in order, and a call that waits
//! for the next.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nudge::{Applied, Caller, ContextUse, Entry, Error, ErrorKind, Hint, Log, Method, Result, Service, unknown_method};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::broadcast;

use super::changes::{TOUCHED_CAPACITY, Touched};

/// Answers when there is something to tell, so it runs on a thread of its own.
pub const CHANGES: &str = "nudge.changes";

/// Changes remembered for those who ask late.
const MAX_EVENTS: usize = 1_000;
/// A call with more changes than this is told of as one.
const MAX_EVENTS_OF_ONE_CALL: usize = 50;
/// What is shown of a value.
const MAX_VALUE_CHARS: usize = 200;
/// Longest wait; clients ask again.
const MAX_WAIT_S: f64 = 5.0;
/// Each waits on a thread.
const MAX_WATCHERS: usize = 32;

static METHOD: Method = Method {
    name: CHANGES,
    title: "Changes",
    description: "What changed after `since` (a `next` of an earlier answer; absent: nothing yet), waiting up to `wait_s` seconds (5 at most) for the first.",
    tool: false,
    frequent: false,
    read_only: true,
    destructive: false,
    idempotent: true,
    context: ContextUse::None,
    params: || {
        serde_json::json!({
            "type": "object",
            "properties": {"since": {"type": "integer", "minimum": 0}, "wait_s": {"type": "number", "minimum": 0, "maximum": 5}},
            "additionalProperties": false
        })
    },
};

/// The store's last changes.
pub struct History {
    state: Mutex<State>,
    more: Condvar,
    watchers: AtomicUsize,
    touched: broadcast::Sender<Touched>,
}

impl Default for History {
    fn default() -> Self {
        let (touched, _) = broadcast::channel(TOUCHED_CAPACITY);
        Self { state: Mutex::default(), more: Condvar::new(), watchers: AtomicUsize::new(0), touched }
    }
}

#[derive(Default)]
struct State {
    events: VecDeque<Arc<Event>>,
    /// Number of the next event.
    next: u64,
    closed: bool,
}

/// One change, as it is told.
#[derive(Debug, Serialize)]
struct Event {
    /// `set`, `bump`, `delete`, `import`, `outcome`, `undo` or `expire`.
    what: &'static str,
    at: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    by: String,
    #[serde(flatten)]
    about: About,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum About {
    One {
        component: String,
        key: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        variant: String,
        version: u64,
        /// Cut short; a secret is `[secret]`, what expires is left out.
        #[serde(skip_serializing_if = "String::is_empty")]
        value: String,
    },
    Many {
        count: usize,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    since: Option<u64>,
    wait_s: Option<f64>,
}

#[derive(Serialize)]
struct Answer {
    changes: Vec<Arc<Event>>,
    /// For the next call's `since`.
    next: u64,
    /// Changes after `since` that are no longer remembered.
    missed: u64,
}

impl History {
    /// Tells which components change, to those who read resources.
    pub fn touched(&self) -> &broadcast::Sender<Touched> {
        &self.touched
    }

    /// Lets everybody who waits go; nobody waits from now on.
    pub fn close(&self) {
        self.lock().closed = true;
        self.more.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing here panics half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, params: &Params) -> Answer {
        let wait = Duration::from_secs_f64(params.wait_s.unwrap_or(0.0));
        let state = self.lock();
        let since = params.since.unwrap_or(state.next);
        let waiting = |state: &mut State| !state.closed && state.next <= since;
        let (state, _) = self.more.wait_timeout_while(state, wait, waiting).unwrap_or_else(PoisonError::into_inner);
        let oldest = state.next - state.events.len() as u64;
        // A number of another server's is no place in this one's changes.
        let since = if since > state.next { oldest } else { since };
        let from = usize::try_from(since.saturating_sub(oldest)).unwrap_or(usize::MAX);
        Answer {
            changes: state.events.iter().skip(from).cloned().collect(),
            next: state.next,
            missed: oldest.saturating_sub(since),
        }
    }
}

/// The history as a log that keeps nothing, for a store that lives in memory alone.
impl Log for History {
    fn append(&self, _: &Entry<'_>) -> Result<()> {
        Ok(())
    }

    fn applied(&self, applied: &Applied<'_>) {
        let touch = |hint: &Hint, count_changed| {
            // Nobody may be listening.
            let _ = self.touched.send(Touched { component: hint.component().into(), count_changed });
        };
        for hint in applied.put() {
            touch(hint, !matches!(applied.verb, "bump" | "outcome") && (applied.verb != "set" || hint.version() == 1));
        }
        applied.gone().for_each(|hint| touch(hint, true));
        let gone = if applied.verb == "expire" { "expire" } else { "delete" };
        let told = applied.put().map(|hint| (applied.verb, hint)).chain(applied.gone().map(|hint| (gone, hint)));
        let told: Vec<_> = told.collect();
        let event = |what, about| Event { what, at: applied.time(), by: applied.by.name.into(), about };
        let events: Vec<_> = match told.len() {
            0 => return,
            1..=MAX_EVENTS_OF_ONE_CALL => told.into_iter().map(|(what, hint)| event(what, About::one(hint))).collect(),
            count => vec![event(applied.verb, About::Many { count })],
        };
        let mut state = self.lock();
        for event in events {
            if state.events.len() == MAX_EVENTS {
                state.events.pop_front();
            }
            state.events.push_back(Arc::new(event));
            state.next += 1;
        }
        drop(state);
        self.more.notify_all();
    }
}

impl About {
    fn one(hint: &Hint) -> Self {
        // What expires is to be seen nowhere once it has, and this would outlive it.
        let value = match (hint.is_secret(), hint.expires()) {
            (true, _) => "[secret]".into(),
            (_, true) => String::new(),
            _ => hint.text().chars().take(MAX_VALUE_CHARS).collect(),
        };
        Self::One {
            component: hint.component().into(),
            key: hint.key().into(),
            variant: hint.variant().into(),
            version: hint.version(),
            value,
        }
    }
}

impl Service for History {
    fn methods(&self) -> Vec<&'static Method> {
        vec![&METHOD]
    }

    fn call_by(&self, _: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        if method != METHOD.name {
            return Err(unknown_method());
        }
        if !params.get().trim_start().starts_with('{') {
            return Err(Error::new(ErrorKind::ParamsNotObject, "`params` must be a JSON object."));
        }
        let wrong = || {
            Error::new(ErrorKind::Invalid, "Give `since`, a `next` of an earlier answer, and `wait_s`, 0 to 5 seconds.")
        };
        let params: Params = serde_json::from_str(params.get()).map_err(|_| wrong())?;
        if params.wait_s.is_some_and(|wait| !(0.0..=MAX_WAIT_S).contains(&wait)) {
            return Err(wrong());
        }
        let waits = params.wait_s.is_some_and(|wait| wait > 0.0);
        let _watcher = if waits { Some(Watcher::enter(&self.watchers)?) } else { None };
        to_raw_value(&self.wait(&params))
            .map_err(|_| Error::new(ErrorKind::Invalid, "The changes cannot be written as JSON."))
    }
}

/// One of the few that may wait.
struct Watcher<'a>(&'a AtomicUsize);

impl<'a> Watcher<'a> {
    fn enter(watchers: &'a AtomicUsize) -> Result<Self> {
        let watcher = Self(watchers);
        if watchers.fetch_add(1, Ordering::SeqCst) < MAX_WATCHERS {
            return Ok(watcher);
        }
        let message = format!("{MAX_WATCHERS} callers watch already; end one of them first.");
        Err(Error::new(ErrorKind::Quota, message).with("limit", "watchers").with("max", MAX_WATCHERS))
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use nudge::{Config, Nudge, SetHint, SystemClock};
    use serde_json::{Value, json};

    use super::*;

    fn store() -> (Nudge, Arc<History>) {
        let history = Arc::new(History::default());
        (Nudge::with_log(Config::default(), Arc::new(SystemClock), Box::new(Arc::clone(&history))), history)
    }

    fn ask(history: &History, params: &Value) -> Value {
        let answer = history.call(CHANGES, &to_raw_value(params).unwrap()).unwrap();
        serde_json::from_str(answer.get()).unwrap()
    }

    #[test]
    fn changes_come_in_order_and_the_old_ones_are_counted() {
        let (store, history) = store();
        let start = ask(&history, &json!({}))["next"].as_u64().unwrap();
        for n in 0..1_100 {
            store.set(SetHint::new("a", "k", format!("{n}"))).unwrap();
        }
        let all = ask(&history, &json!({"since": start}));
        assert_eq!((all["missed"].as_u64(), all["changes"].as_array().unwrap().len()), (Some(100), 1_000));
        assert_eq!(all["changes"][0]["value"], "100");
        assert_eq!(all["changes"][999]["version"], 1_100);
        assert_eq!(ask(&history, &json!({"since": all["next"]}))["changes"], json!([]));
        // A number of another server's.
        assert_eq!(ask(&history, &json!({"since": 99_999}))["changes"].as_array().unwrap().len(), 1_000);
    }

    #[test]
    fn a_waiting_call_hears_at_once_and_closing_lets_it_go() {
        let (store, history) = store();
        std::thread::scope(|scope| {
            let heard = scope.spawn(|| ask(&history, &json!({"since": 0, "wait_s": 5})));
            store.set(SetHint::new("a", "k", "x")).unwrap();
            assert_eq!(heard.join().unwrap()["changes"][0]["what"], "set");
            let last = scope.spawn(|| ask(&history, &json!({"since": 1, "wait_s": 5})));
            history.close();
            assert_eq!(last.join().unwrap()["changes"], json!([]));
        });
    }

    #[test]
    fn secrets_and_large_imports_are_not_told_in_full() {
        let (store, history) = store();
        let mut hint = SetHint::new("a", "k", "open sesame");
        hint.meta.sensitivity = Some(nudge::Sensitivity::Secret);
        store.set(hint).unwrap();
        let hints: serde_json::Map<_, _> = (0..60).map(|n| (format!("k{n}"), json!("x"))).collect();
        let params = json!({"payload": {"components": {"b": {"hints": hints}}}});
        store.call("nudge.import", &to_raw_value(&params).unwrap()).unwrap();
        let all = ask(&history, &json!({"since": 0}));
        assert_eq!(all["changes"][0]["value"], "[secret]");
        assert_eq!(all["changes"][1]["count"], 60);
    }

    #[test]
    fn what_it_is_given_is_checked() {
        let history = History::default();
        for params in
            [r#"{"since":-1}"#, r#"{"since":"x"}"#, r#"{"more":1}"#, r#"{"wait_s":5.1}"#, r#"{"wait_s":-1}"#, "[]"]
        {
            let params: Box<RawValue> = serde_json::from_str(params).unwrap();
            assert_eq!(history.call(CHANGES, &params).unwrap_err().reason(), "E_INVALID");
        }
    }
}
