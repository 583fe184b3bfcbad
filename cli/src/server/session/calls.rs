//! Runs calls on the event loop's own thread, which is quickest, or, when they may take long, on another one.

use std::sync::Arc;

use nudge::{CallCost, Caller, Error, Result, Service};
use nudge_core::service::{CallLane, MethodSpec};
use serde_json::value::RawValue;

use crate::server::memory;
use crate::server::work::WorkDesk;

/// Largest call that runs on the event loop's thread. Larger ones go to a thread of their own, and so do
/// batches, which may hold a thousand calls.
pub const MAX_INLINE_BYTES: usize = 64 << 10;

/// Makes one call on the thread that suits it. The cost of a quick call can depend on the stored data: a call that
/// turns out to take long has changed nothing, and is made again on another thread.
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
    if params.get().len() <= MAX_INLINE_BYTES && CallCost::is_quick(service.find_method(method), params.get()) {
        let tried = service.call_by(caller.in_passing(), method, params);
        if !tried.as_ref().is_err_and(Error::takes_long) {
            return tried;
        }
    }
    let sent = params.get().len();
    let (caller, method, params) = (OwnedCaller::from(caller), method.to_owned(), params.to_owned());
    let lane = find_lane(service.find_method(&method));
    let run = move || service.call_by(caller.as_caller(), &method, &params);
    memory::note_use(sent);
    let answer = desk.run(lane, run).await.flatten();
    memory::note_use(answer.as_ref().map_or(0, |answer| answer.get().len()));
    answer
}

/// The places that a call takes off the event loop.
pub fn find_lane(method: Option<&'static MethodSpec>) -> CallLane {
    method.map_or(CallLane::Work, |method| method.lane)
}

/// A caller that can go to another thread.
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
