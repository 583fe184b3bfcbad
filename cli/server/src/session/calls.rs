//! Runs calls on worker threads, each within its caller's places, so that no call delays another. A few short calls run
//! on the event loop.

use std::sync::Arc;

use nudge::{Caller, Error, Result, Service};
use nudge_core::service::CallLane;
use serde_json::value::RawValue;

use crate::memory;
use crate::work::WorkDesk;

/// The most bytes of a call that runs on the event loop. Larger calls run on a worker thread. So do batches, because a
/// batch may contain a thousand calls.
pub const MAX_INLINE_BYTES: usize = 64 << 10;

/// Makes one call. An inline and short call runs on this thread; other calls run on a worker thread, within the
/// caller's places. If an inline call runs out of steps, it is repeated on a worker thread: it changes nothing, so this
/// is safe.
///
/// # Errors
/// The method's own errors.
pub async fn call(
    desk: &WorkDesk,
    service: Arc<dyn Service>,
    caller: Caller<'_>,
    method: &str,
    params: &RawValue,
) -> Result<Box<RawValue>> {
    let row = service.find_method(method);
    let sent = params.get().len();
    if sent <= MAX_INLINE_BYTES && row.is_some_and(|row| row.inline) {
        let tried = service.call_by(caller.inline(), method, params);
        if !tried.as_ref().is_err_and(Error::lacks_steps) {
            return tried;
        }
    }
    let (caller, method, params) = (OwnedCaller::from(caller), method.to_owned(), params.to_owned());
    let run = move || service.call_by(caller.as_caller(), &method, &params);
    let answer = desk.run(row.map_or(CallLane::Work, |row| row.lane), run).await.flatten();
    // Noted after the call: memory that is returned while the call still uses it would not be returned again.
    memory::note_use(sent.max(answer.as_ref().map_or(0, |answer| answer.get().len())));
    answer
}

/// A copy of a caller that can move to another thread.
struct OwnedCaller {
    name: String,
    agent: bool,
    key: Option<String>,
    asks_env: bool,
}

impl From<Caller<'_>> for OwnedCaller {
    fn from(caller: Caller<'_>) -> Self {
        Self { name: caller.name.into(), agent: caller.agent, key: caller.key.map(Into::into), asks_env: caller.env }
    }
}

impl OwnedCaller {
    fn as_caller(&self) -> Caller<'_> {
        let caller = Caller::with_name(&self.name).with_key(self.key.as_deref());
        let caller = if self.agent { caller.by_agent() } else { caller };
        if self.asks_env { caller.asking_env() } else { caller }
    }
}
