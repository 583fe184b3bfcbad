//! Completes the calls of the stdio client (semantics section 9): adds a missing context, and the environment variables
//! that the PRIMARY asks for.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nudge::{Caller, ContextUse, Result};
use nudge_app::context::{ContextInference, OpenContext, client_cwd};
use nudge_client::CallParams;
use nudge_core::service::CallLane;
use rmcp::model::JsonObject;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::session::backend::CallBackend;
use crate::session::calls::MAX_INLINE_BYTES;
use crate::work::WorkDesk;

/// The time for which a call waits for its context. It is a little longer than the time limit of git. Unknown fields
/// then stay unknown.
const PATIENCE: Duration = Duration::from_millis(2500);

/// Finds the folder of a client from the `_meta` of its call.
type CwdFinder = dyn Fn(&JsonObject) -> Option<PathBuf> + Send + Sync;

/// Completes the contexts of one client's calls. Reads files on a worker thread, because a disk may not answer.
pub struct ContextFiller {
    inference: Arc<ContextInference>,
    /// Finds the folder of the client from its `_meta`.
    find_cwd: Arc<CwdFinder>,
    desk: WorkDesk,
    patience: Duration,
    /// The number of reads of files that a call no longer waits for. As long as there is one, no call starts another.
    overdue: Arc<AtomicUsize>,
}

impl ContextFiller {
    /// Makes a filler for a client. `desk` has the places for reads of files.
    pub fn new(inference: Arc<ContextInference>, desk: WorkDesk) -> Self {
        Self { inference, find_cwd: Arc::new(client_cwd), desk, patience: PATIENCE, overdue: Arc::default() }
    }

    /// Returns true when hints without a scope are limited to the client's repository.
    pub fn limits_reach(&self) -> bool {
        self.inference.limits_reach()
    }

    /// Reads files to find the facts that a context does not have yet. Facts that come too late stay unknown.
    async fn look_at_files(&self, open: OpenContext, meta: JsonObject) -> OpenContext {
        if !open.needs_files() || self.overdue.load(Ordering::Relaxed) > 0 {
            return open;
        }
        let (desk, inference, find_cwd) = (self.desk.clone(), Arc::clone(&self.inference), Arc::clone(&self.find_cwd));
        let mut looked = open.clone();
        let look = move || {
            inference.look_at_files(&mut looked, || find_cwd(&meta));
            looked
        };
        let mut look = Box::pin(async move { desk.run(CallLane::Work, look).await });
        if let Ok(looked) = timeout(self.patience, &mut look).await {
            return looked.unwrap_or(open);
        }
        self.overdue.fetch_add(1, Ordering::Relaxed);
        let overdue = Arc::clone(&self.overdue);
        tokio::spawn(async move {
            // The call has continued without these facts.
            drop(look.await);
            overdue.fetch_sub(1, Ordering::Relaxed);
        });
        open
    }

    /// Runs work on the text of params. Large text is processed on a worker thread.
    async fn work_on_text<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if bytes <= MAX_INLINE_BYTES { Ok(work()) } else { self.desk.run(CallLane::Work, work).await }
    }

    /// Returns the params with all known facts in their context.
    async fn fill_params(&self, params: &Arc<CallParams>, open: &Arc<OpenContext>) -> Result<Box<RawValue>> {
        let bytes = params.as_raw().get().len();
        let (params, open, inference) = (Arc::clone(params), Arc::clone(open), Arc::clone(&self.inference));
        self.work_on_text(bytes, move || params.with_context(&inference.complete_context(&open))).await.flatten()
    }
}

/// A call of a tool.
pub struct ToolCall {
    /// The method behind the tool.
    pub method: String,
    /// Says how to fill in the method's context.
    pub context: ContextUse,
    /// The arguments as received.
    pub params: Box<RawValue>,
    /// The client's `_meta`.
    pub meta: JsonObject,
}

/// Makes a call with the context that `filler` infers. If the PRIMARY names variables that the context lacks, makes the
/// call once more with them.
///
/// # Errors
/// The method's own error; `E_UNAVAILABLE` when the PRIMARY does not answer.
pub async fn call(
    backend: &CallBackend,
    by: &str,
    call: ToolCall,
    filler: Option<&ContextFiller>,
) -> Result<Box<RawValue>> {
    let caller = Caller::with_name(by).by_agent();
    let ToolCall { method, context, params, meta } = call;
    let Some(filler) = filler.filter(|_| context != ContextUse::None) else {
        return backend.call_by(caller, &method, &params).await;
    };
    let bytes = params.get().len();
    let params = Arc::new(filler.work_on_text(bytes, move || CallParams::read(params)).await?);
    let begun = params.can_be_filled().then(|| filler.inference.begin_context(context, params.given_context()));
    let Some(open) = begun.flatten() else {
        return backend.call_by(caller, &method, params.as_raw()).await;
    };
    let open = Arc::new(filler.look_at_files(open, meta).await);
    let complete = filler.fill_params(&params, &open).await?;
    let answer = backend.call_by(caller.asking_env(), &method, &complete).await;
    if !filler.inference.env().learn_from(&answer) {
        return answer;
    }
    let complete = filler.fill_params(&params, &open).await?;
    backend.call_by(caller, &method, &complete).await
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::work::{CallerId, WorkPool};

    #[test]
    fn a_disk_that_does_not_answer_is_waited_for_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            // The test disk answers only when a second thread reaches the barrier.
            let barrier = Arc::new(Barrier::new(2));
            let hanging = Arc::clone(&barrier);
            let desk = Arc::new(WorkPool::default()).desk_for(CallerId::Looks);
            let filler = ContextFiller {
                patience: Duration::from_millis(20),
                find_cwd: Arc::new(move |_| {
                    hanging.wait();
                    Some("/".into())
                }),
                ..ContextFiller::new(Arc::default(), desk)
            };
            let open = filler.inference.begin_context(ContextUse::Inferred, None).unwrap();
            // If the second lookup read files, it would hang for ever: the first lookup is the only other thread at the
            // barrier.
            for _ in 0..2 {
                let looked = filler.look_at_files(open.clone(), JsonObject::new()).await;
                assert_eq!(filler.inference.complete_context(&looked).get("cwd"), None);
                assert_eq!(filler.overdue.load(Ordering::Relaxed), 1);
            }
            barrier.wait();
            while filler.overdue.load(Ordering::Relaxed) > 0 {
                tokio::task::yield_now().await;
            }
            // The disk answers again, so the next lookup reads files.
            let waits = std::thread::spawn(move || barrier.wait().is_leader());
            let patient = ContextFiller { patience: PATIENCE, ..filler };
            let looked = patient.look_at_files(open, JsonObject::new()).await;
            assert_eq!(patient.inference.complete_context(&looked)["cwd"], "/");
            waits.join().unwrap();
        });
    }
}
