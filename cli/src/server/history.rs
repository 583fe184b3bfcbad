//! What changed, for those who watch: the last changes of the store in order, and a call that waits
//! for the next.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nudge::{Applied, Caller, Error, ErrorKind, Hint, Method, Result, Service, unknown_method};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::time::timeout;

use super::changes::{TOUCHED_CAPACITY, Touched};

/// Answers when there is something to tell: [`History::wait`] comes before the call.
pub const CHANGES: &str = "nudge.changes";

/// Changes remembered for those who ask late.
const MAX_EVENTS: usize = 1_000;
/// A call with more changes than this is told of as one.
const MAX_EVENTS_OF_ONE_CALL: usize = 50;
/// What is shown of a value.
const MAX_VALUE_CHARS: usize = 200;
/// Longest wait; clients ask again.
const MAX_WAIT_S: f64 = 5.0;
/// Each holds a connection; further ones must have room to call.
const MAX_WATCHERS: usize = 128;
/// Numbers that one process may give out in a millisecond before they could be another's.
const NUMBERS_OF_A_MS: u64 = 2_048;

static METHOD: Method = Method::new(CHANGES, "Changes", "What changed after `since` (a `next` of an earlier answer; absent: nothing yet), waiting up to `wait_s` seconds (5 at most) for the first.", || {
        serde_json::json!({
            "type": "object",
            "properties": {"since": {"type": "integer", "minimum": 0}, "wait_s": {"type": "number", "minimum": 0, "maximum": 5}},
            "additionalProperties": false
        })
    }).reads().quick();

/// The store's last changes.
pub struct History {
    state: Mutex<State>,
    /// Tells those who wait the number of the next change; none once nobody waits any more.
    news: watch::Sender<Option<u64>>,
    watchers: Semaphore,
    touched: broadcast::Sender<Touched>,
}

impl Default for History {
    fn default() -> Self {
        let first = first_number();
        Self {
            state: Mutex::new(State { events: VecDeque::new(), first, next: first }),
            news: watch::Sender::new(Some(first)),
            watchers: Semaphore::new(MAX_WATCHERS),
            touched: broadcast::channel(TOUCHED_CAPACITY).0,
        }
    }
}

struct State {
    events: VecDeque<Arc<Event>>,
    /// The number of the first change. It comes from the time, so that numbers of a PRIMARY that went
    /// before are lower, and are known to be another's.
    first: u64,
    /// Number of the next event.
    next: u64,
}

fn first_number() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or_default() * NUMBERS_OF_A_MS
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
    /// How many changes after `since` are no longer remembered; null when `since` is a number of
    /// another process, so that nobody knows.
    missed: Option<u64>,
}

impl History {
    /// Tells which components change, to those who read resources.
    pub fn touched(&self) -> &broadcast::Sender<Touched> {
        &self.touched
    }

    /// This process has become PRIMARY: its numbers come after those of the one before.
    pub fn begin(&self) {
        let mut state = self.lock();
        let next = first_number();
        (state.first, state.next) = (next, next);
        drop(state);
        self.news.send_replace(Some(next));
    }

    /// Lets everybody who waits go; nobody waits from now on.
    pub fn close(&self) {
        self.news.send_replace(None);
    }

    /// Waits as the params of a call to [`CHANGES`] ask; the call itself, which follows, does not.
    ///
    /// # Errors
    /// `E_QUOTA` when too many wait already. Params that make no sense are the call's to refuse.
    pub async fn wait(&self, params: &RawValue) -> Result<()> {
        let Ok(Params { since, wait_s: Some(wait) }) = Params::read(params) else { return Ok(()) };
        let Ok(_watcher) = self.watchers.try_acquire() else {
            let message = format!("{MAX_WATCHERS} callers watch already; end one of them first.");
            return Err(Error::new(ErrorKind::Quota, message).with("limit", "watchers").with("max", MAX_WATCHERS));
        };
        let mut news = self.news.subscribe();
        let since = since.or(*news.borrow()).unwrap_or_default();
        let news = news.wait_for(|next| next.is_none_or(|next| next > since));
        // Nothing new is an answer too.
        let _ = timeout(Duration::from_secs_f64(wait), news).await;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing here panics half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn since(&self, since: Option<u64>) -> Answer {
        let State { events, first, next } = &*self.lock();
        let (first, next) = (*first, *next);
        let oldest = next - events.len() as u64;
        let since = since.unwrap_or(next);
        // A number of another server's is no place in this one's changes.
        let (from, missed) = match since {
            ours if (first..=next).contains(&ours) => (ours.max(oldest), Some(oldest.saturating_sub(ours))),
            _ => (oldest, None),
        };
        let known = usize::try_from(from - oldest).unwrap_or(usize::MAX);
        Answer { changes: events.iter().skip(known).cloned().collect(), next, missed }
    }

    /// Tells of changes that everybody can see now.
    pub fn note(&self, applied: &Applied<'_>) {
        let touch = |hint: &Hint, count_changed| {
            // Nobody may be listening.
            let _ = self.touched.send(Touched::Component { name: hint.component().into(), count_changed });
        };
        for hint in applied.put() {
            touch(hint, !matches!(applied.verb, "bump" | "outcome") && (applied.verb != "set" || hint.version() == 1));
        }
        applied.gone().for_each(|hint| touch(hint, true));
        let gone = if applied.verb == "expire" { "expire" } else { "delete" };
        let told = applied.put().map(|hint| (applied.verb, hint)).chain(applied.gone().map(|hint| (gone, hint)));
        let told: Vec<_> = told.collect();
        let event = |what, about| Event { what, at: applied.time(), by: applied.by.name.into(), about };
        let new: Vec<_> = match told.len() {
            0 => return,
            1..=MAX_EVENTS_OF_ONE_CALL => told.into_iter().map(|(what, hint)| event(what, About::one(hint))).collect(),
            count => vec![event(applied.verb, About::Many { count })],
        };
        let count = new.len() as u64;
        let mut state = self.lock();
        state.events.extend(new.into_iter().map(Arc::new));
        let old = state.events.len().saturating_sub(MAX_EVENTS);
        state.events.drain(..old);
        state.next += count;
        let now = state.next;
        drop(state);
        self.news.send_if_modified(|next| next.as_mut().map(|next| *next = now).is_some());
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
        to_raw_value(&self.since(Params::read(params)?.since))
            .map_err(|_| Error::new(ErrorKind::Invalid, "The changes cannot be written as JSON."))
    }
}

impl Params {
    fn read(params: &RawValue) -> Result<Self> {
        if !params.get().trim_start().starts_with('{') {
            return Err(Error::new(ErrorKind::ParamsNotObject, "`params` must be a JSON object."));
        }
        let params: Self = serde_json::from_str(params.get()).unwrap_or(Self { since: None, wait_s: Some(f64::NAN) });
        if params.wait_s.is_some_and(|wait| !(0.0..=MAX_WAIT_S).contains(&wait)) {
            let message = "Give `since`, a `next` of an earlier answer, and `wait_s`, 0 to 5 seconds.";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use nudge::{Config, Nudge, SetHint, SystemClock};
    use serde_json::{Value, json};

    use super::*;

    struct Noting(Arc<History>);

    impl nudge::Log for Noting {
        fn append(&self, _: &nudge::Entry<'_>) -> Result<()> {
            Ok(())
        }

        fn applied(&self, applied: &Applied<'_>) {
            self.0.note(applied);
        }
    }

    fn store() -> (Nudge, Arc<History>) {
        let history = Arc::new(History::default());
        let log = Box::new(Noting(Arc::clone(&history)));
        (Nudge::with_log(Config::default(), Arc::new(SystemClock), log), history)
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
        let none = ask(&history, &json!({"since": all["next"]}));
        assert_eq!((&none["changes"], &none["missed"]), (&json!([]), &json!(0)));
        // Numbers of a server before, and of one whose clock was ahead.
        for other in [0, start - 1, start + 1_101] {
            let all = ask(&history, &json!({"since": other}));
            assert_eq!((&all["missed"], all["changes"].as_array().unwrap().len()), (&Value::Null, 1_000));
        }
    }

    #[test]
    fn who_waits_hears_at_once_and_closing_lets_everybody_go() {
        let (store, history) = store();
        let start = ask(&history, &json!({}))["next"].as_u64().unwrap();
        let params = |since: u64| to_raw_value(&json!({"since": since, "wait_s": 5})).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let change = async { store.set(SetHint::new("a", "k", "x")).unwrap() };
            let (begun, old, new) = (std::time::Instant::now(), params(start), params(start + 1));
            let (heard, _) = tokio::join!(history.wait(&old), change);
            heard.unwrap();
            let (heard, ()) = tokio::join!(history.wait(&new), async { history.close() });
            heard.unwrap();
            history.wait(&new).await.unwrap();
            assert!(begun.elapsed() < Duration::from_secs(5), "it waited to the end");
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
