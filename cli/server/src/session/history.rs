//! The last changes of all sources, in order, and a call that waits for the next change.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use nudge::{Error, MethodSpec, Result};
use nudge_core::clock::{Clock as _, SystemClock};
use nudge_core::once::OnceByKey;
use nudge_core::source::{ChangeEvent, ChangeSink};
use nudge_core::table::{MethodTable, TableRow, TableService, answer_typed, build_schema};
use nudge_core::wire;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::time::timeout;

use super::changes::{CHANGES, IN_USE, TOUCHED_CAPACITY, TouchedThing};
use crate::memory;

/// The most changes that the history holds.
const MAX_EVENTS: usize = 1_000;
/// The longest wait of a call, in seconds; a client then calls again.
const MAX_WAIT_S: f64 = 5.0;
/// The most callers that wait at the same time. Each one holds a connection, and other callers also need connections.
const MAX_WATCHERS: usize = 128;
/// The number of change numbers for each millisecond. Fewer changes happen in that time, so a later process always
/// starts with a higher number.
const NUMBERS_OF_A_MS: u64 = 2_048;

const ABOUT: &str = "\
What changed after `since` (a `next` of an earlier answer; absent: nothing yet), waiting up to `wait_s` seconds (5 at \
most) for the first.";

static TABLE: MethodTable<ChangeHistory> = MethodTable(&[&TableRow {
    method: MethodSpec::new(CHANGES, "Changes", ABOUT, build_schema::<ChangesParams>).read_only().vital(),
    run: |history, _, params| {
        answer_typed(params, |params: ChangesParams| Ok(history.changes_since(params.into_checked()?.since)))
    },
}]);

/// The last changes, and the callers that wait for the next change.
pub struct ChangeHistory {
    state: Mutex<HistoryState>,
    /// Sends the number of the next change to waiting callers. Sends `None` after [`ChangeHistory::end_waits`].
    news: watch::Sender<Option<u64>>,
    watchers: Semaphore,
    touched: broadcast::Sender<TouchedThing>,
}

impl Default for ChangeHistory {
    fn default() -> Self {
        let first = first_number();
        Self {
            state: Mutex::new(HistoryState { events: VecDeque::new(), first, next: first }),
            news: watch::Sender::new(Some(first)),
            watchers: Semaphore::new(MAX_WATCHERS),
            touched: broadcast::channel(TOUCHED_CAPACITY).0,
        }
    }
}

struct HistoryState {
    events: VecDeque<Arc<ChangeEvent>>,
    /// The number of the first change. It is computed from the time, so it is higher than all numbers of an earlier
    /// PRIMARY.
    first: u64,
    /// The number of the next change.
    next: u64,
}

fn first_number() -> u64 {
    SystemClock.now().unsigned_abs().saturating_mul(NUMBERS_OF_A_MS)
}

/// Params of [`CHANGES`].
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ChangesParams {
    /// A `next` of an earlier answer.
    #[serde(deserialize_with = "wire::given")]
    since: Option<u64>,
    /// Seconds to wait for the first change (0).
    #[serde(deserialize_with = "wire::given")]
    #[schemars(range(min = 0, max = 5))]
    wait_s: Option<f64>,
}

#[derive(Serialize)]
struct ChangesAnswer {
    changes: Vec<Arc<ChangeEvent>>,
    /// The value for the next call's `since`.
    next: u64,
    /// Number of changes after `since` that are no longer remembered; null when `since` comes from another
    /// process, so that the number is unknown.
    missed: Option<u64>,
}

impl ChangeHistory {
    /// Returns the channel that reports each changed resource.
    pub fn touched(&self) -> &broadcast::Sender<TouchedThing> {
        &self.touched
    }

    /// Starts new change numbers when this process becomes PRIMARY. The new numbers are higher than those of the last
    /// PRIMARY.
    pub fn begin_numbers(&self) {
        let mut state = self.state.lock();
        let next = first_number();
        (state.first, state.next) = (next, next);
        drop(state);
        self.news.send_replace(Some(next));
    }

    /// Ends all current and future waits.
    pub fn end_waits(&self) {
        self.news.send_replace(None);
    }

    /// Waits as long as the params of a [`CHANGES`] call ask for. The caller makes the call itself afterwards, without
    /// a wait.
    ///
    /// # Errors
    /// `E_QUOTA` when too many callers wait already. Wrong params are no error here, because the call itself refuses
    /// them.
    pub async fn wait_for_change(&self, params: &RawValue) -> Result<()> {
        let Ok(ChangesParams { since, wait_s: Some(wait) }) =
            wire::parse_params(params).and_then(ChangesParams::into_checked)
        else {
            return Ok(());
        };
        let Ok(_watcher) = self.watchers.try_acquire() else {
            let message = format!("{MAX_WATCHERS} callers watch already; end one of them first.");
            return Err(Error::quota("watchers", MAX_WATCHERS, message));
        };
        let mut news = self.news.subscribe();
        let Some(since) = since.or(*news.borrow()) else { return Ok(()) };
        let news = news.wait_for(|next| next.is_none_or(|next| next > since));
        // After a timeout, the call itself answers without changes.
        let _ = timeout(Duration::from_secs_f64(wait), news).await;
        Ok(())
    }

    fn changes_since(&self, since: Option<u64>) -> ChangesAnswer {
        let HistoryState { events, first, next } = &*self.state.lock();
        let (first, next) = (*first, *next);
        let oldest = next - events.len() as u64;
        let since = since.unwrap_or(next);
        // A number from another server means nothing for this server's changes.
        let (from, missed) = match since {
            ours if (first..=next).contains(&ours) => (ours.max(oldest), Some(oldest.saturating_sub(ours))),
            _ => (oldest, None),
        };
        let news = (oldest..).zip(events).filter(|(number, _)| *number >= from);
        ChangesAnswer { changes: news.map(|(_, event)| Arc::clone(event)).collect(), next, missed }
    }
}

impl ChangeSink for ChangeHistory {
    fn tell_changes(&self, changes: &[ChangeEvent]) {
        if changes.is_empty() {
            return;
        }
        let counts = changes.iter().filter_map(|event| event.detail.get("count")?.as_u64());
        memory::note_changes(counts.sum());
        for event in changes {
            if event.what == IN_USE {
                let _ = self.touched.send(TouchedThing::Tools);
            }
            for touch in &event.touched {
                let name = Arc::clone(&touch.resource);
                // An error only means that no task listens.
                let _ = self.touched.send(TouchedThing::Resource {
                    source: event.source,
                    name,
                    count_changed: touch.count_changed,
                });
            }
        }
        let mut state = self.state.lock();
        state.events.extend(changes.iter().cloned().map(Arc::new));
        let old = state.events.len().saturating_sub(MAX_EVENTS);
        state.events.drain(..old);
        state.next += changes.len() as u64;
        let now = state.next;
        drop(state);
        self.news.send_if_modified(|next| next.as_mut().map(|next| *next = now).is_some());
    }
}

impl TableService for ChangeHistory {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    // `nudge.changes` only reads, so a repeated call is harmless.
    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        None
    }
}

impl ChangesParams {
    fn into_checked(self) -> Result<Self> {
        if self.wait_s.is_some_and(|wait| !(0.0..=MAX_WAIT_S).contains(&wait)) {
            let message = "Give `since`, a `next` of an earlier answer, and `wait_s`, 0 to 5 seconds.";
            return Err(Error::invalid(message));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Map, Value, json};

    use nudge::Service as _;

    use super::*;

    fn event(n: u64) -> ChangeEvent {
        let detail = Map::from_iter([("n".to_owned(), n.into())]);
        let time = "2026-01-01T00:00:00.000Z".into();
        ChangeEvent { source: "hints", what: "set", at: time, by: String::new(), touched: Vec::new(), detail }
    }

    fn ask(history: &ChangeHistory, params: &Value) -> Value {
        let answer = history.call(CHANGES, &to_raw_value(params).unwrap()).unwrap();
        serde_json::from_str(answer.get()).unwrap()
    }

    #[test]
    fn changes_come_in_order_and_the_old_ones_are_counted() {
        let history = ChangeHistory::default();
        let start = ask(&history, &json!({}))["next"].as_u64().unwrap();
        (0..1_100).for_each(|n| history.tell_changes(&[event(n)]));
        let all = ask(&history, &json!({"since": start}));
        assert_eq!((all["missed"].as_u64(), all["changes"].as_array().unwrap().len()), (Some(100), 1_000));
        let told = json!({"source": "hints", "what": "set", "at": "2026-01-01T00:00:00.000Z", "n": 100});
        assert_eq!(all["changes"][0], told);
        assert_eq!(all["changes"][999]["n"], 1_099);
        let none = ask(&history, &json!({"since": all["next"]}));
        assert_eq!((&none["changes"], &none["missed"]), (&json!([]), &json!(0)));
        // The numbers come from earlier servers, and the last one from a server whose clock was ahead.
        for other in [0, start - 1, start + 1_101] {
            let all = ask(&history, &json!({"since": other}));
            assert_eq!((&all["missed"], all["changes"].as_array().unwrap().len()), (&Value::Null, 1_000));
        }
    }

    #[test]
    fn who_waits_hears_at_once_and_closing_lets_everybody_go() {
        let history = ChangeHistory::default();
        let start = ask(&history, &json!({}))["next"].as_u64().unwrap();
        let params = |since: u64| to_raw_value(&json!({"since": since, "wait_s": 5})).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let change = async { history.tell_changes(&[event(1)]) };
            let (begun, old, new) = (std::time::Instant::now(), params(start), params(start + 1));
            let (heard, ()) = tokio::join!(history.wait_for_change(&old), change);
            heard.unwrap();
            let (heard, ()) = tokio::join!(history.wait_for_change(&new), async { history.end_waits() });
            heard.unwrap();
            history.wait_for_change(&new).await.unwrap();
            assert!(begun.elapsed() < Duration::from_secs(5), "it waited to the end");
        });
    }

    #[test]
    fn what_it_is_given_is_checked() {
        let history = ChangeHistory::default();
        for params in
            [r#"{"since":-1}"#, r#"{"since":"x"}"#, r#"{"more":1}"#, r#"{"wait_s":5.1}"#, r#"{"wait_s":-1}"#, "[]"]
        {
            let params: Box<RawValue> = serde_json::from_str(params).unwrap();
            assert_eq!(history.call(CHANGES, &params).unwrap_err().reason(), "E_INVALID");
        }
    }
}
