//! Completes the calls of the stdio client: adds the context that it leaves out, and the environment variables that
//! turn out to matter (semantics section 9).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nudge::{Caller, ContextUse, EnvNames, Result};
use nudge_core::service::CallLane;
use nudge_core::wire;
use rmcp::model::JsonObject;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::context::{FileLook, InferredContext};
use crate::kept as keeping;
use crate::reach;
use crate::server::session::backend::CallBackend;
use crate::server::session::calls::MAX_INLINE_BYTES;
use crate::server::session::status;
use crate::server::work::WorkDesk;

/// Knows where the client is.
pub trait FillIn: Send + Sync {
    /// Returns the context of a call, from the context in the call and the client's `_meta`.
    fn infer_context(
        &self,
        usage: ContextUse,
        given: Option<&Value>,
        meta: &JsonObject,
        look: FileLook,
    ) -> InferredContext;

    /// Sets the environment variables to tell from now on.
    fn learn_env_names(&self, names: EnvNames);

    /// Returns true when hints without a scope are limited to the client's repository.
    fn has_reach_limit(&self) -> bool {
        false
    }

    /// The repository to which a hint without a scope is limited, if it is to be limited at all. It looks at files.
    fn find_reach(&self, meta: &JsonObject) -> Option<String> {
        let _ = meta;
        None
    }
}

/// Time for which a call waits for its context, a little longer than git is waited for. Fields that are not known then
/// stay unknown.
const PATIENCE: Duration = Duration::from_millis(2500);

/// Fills in the contexts of one client's calls. Files are looked at off the event loop, because a disk may not answer.
pub struct ContextFiller {
    fill_in: Arc<dyn FillIn>,
    desk: WorkDesk,
    patience: Duration,
    /// The number of looks that no call waits for any more. While there is one, no call begins another.
    overdue: Arc<AtomicUsize>,
}

impl ContextFiller {
    /// Makes one for a client, with places to look at files.
    pub fn new(fill_in: Arc<dyn FillIn>, desk: WorkDesk) -> Self {
        Self { fill_in, desk, patience: PATIENCE, overdue: Arc::default() }
    }

    /// Returns true when hints without a scope are limited to the client's repository.
    pub fn has_reach_limit(&self) -> bool {
        self.fill_in.has_reach_limit()
    }

    async fn fill_context(&self, call: &Arc<ToolCall>) -> Box<RawValue> {
        if call.params.get().len() <= MAX_INLINE_BYTES
            && let Some(filled) = call.fill_params(&*self.fill_in, FileLook::Elsewhere)
        {
            return filled;
        }
        let (looking, fill_in) = (Arc::clone(call), Arc::clone(&self.fill_in));
        match self.look_at_files(move || looking.fill_params(&*fill_in, FileLook::Here)).await {
            Some(filled) => filled.unwrap_or_else(|| call.params.clone()),
            None => call.fill_params(&*self.fill_in, FileLook::Nowhere).unwrap_or_else(|| call.params.clone()),
        }
    }

    /// Looks at files off the event loop; `None` when they do not answer in time.
    async fn look_at_files<T: Send + 'static>(
        &self,
        look: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> Option<Option<T>> {
        if self.overdue.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let desk = self.desk.clone();
        let mut look = Box::pin(async move { desk.run(CallLane::Work, look).await });
        if let Ok(found) = timeout(self.patience, &mut look).await {
            return Some(found.ok().flatten());
        }
        self.overdue.fetch_add(1, Ordering::Relaxed);
        let overdue = Arc::clone(&self.overdue);
        tokio::spawn(async move {
            let _ = look.await;
            overdue.fetch_sub(1, Ordering::Relaxed);
        });
        None
    }
}

/// A call of a tool.
pub struct ToolCall {
    /// The method behind it.
    pub method: String,
    /// How its context is filled in.
    pub context: ContextUse,
    /// The arguments as they came.
    pub params: Box<RawValue>,
    /// The client's `_meta`.
    pub meta: JsonObject,
    /// Is true when hints are kept for next time, as the server last said.
    pub keeps: Option<bool>,
}

/// Makes a call, with the context that `filler` infers; once more when the PRIMARY names variables that it lacks.
///
/// # Errors
/// The method's own error; `E_UNAVAILABLE` when the PRIMARY does not answer.
pub async fn call(
    backend: &CallBackend,
    caller_name: &str,
    call: ToolCall,
    filler: Option<&ContextFiller>,
) -> Result<Box<RawValue>> {
    let caller = Caller::with_name(caller_name).by_agent();
    if let (reach::SET_HINT, Some(filler)) = (&*call.method, filler) {
        return store_hint(backend, caller, call, filler).await;
    }
    let Some(filler) = filler.filter(|_| call.context != ContextUse::None) else {
        return backend.call_by(caller, &call.method, &call.params).await;
    };
    let call = Arc::new(call);
    let params = filler.fill_context(&call).await;
    let refused = match backend.call_by(caller.asking_env(), &call.method, &params).await {
        Err(refused) => refused,
        answered => return answered,
    };
    filler.fill_in.learn_env_names(refused.env_names().ok_or(refused)?);
    let params = filler.fill_context(&call).await;
    backend.call_by(caller, &call.method, &params).await
}

/// Stores a hint. Without a scope it is limited to the client's repository, and the answer says so; it also says when a
/// hint that was given a duration ends with the session all the same.
async fn store_hint(
    backend: &CallBackend,
    caller: Caller<'_>,
    call: ToolCall,
    filler: &ContextFiller,
) -> Result<Box<RawValue>> {
    let ToolCall { method, params, meta, keeps, .. } = call;
    let fill_in = Arc::clone(&filler.fill_in);
    let repo = if filler.has_reach_limit() && reach::is_open(params.get()) {
        filler.look_at_files(move || fill_in.find_reach(&meta)).await.flatten()
    } else {
        None
    };
    let limited = repo.as_deref().and_then(|repo| reach::limit_to_repository(params.get(), repo));
    let mut stored = backend.call_by(caller, &method, limited.as_deref().unwrap_or(&params)).await?;
    if let (Some(repo), Some(_)) = (repo, limited) {
        let told = reach::explain_limit(&repo, "`reach: everywhere`");
        stored = reach::with_member(&stored, "reach", &told.into()).unwrap_or(stored);
    }
    if keeps != Some(true)
        && keeping::has_duration(&stored)
        && let Ok(status) = backend.call("nudge.status", &status::asked_nothing()).await
        && let Some(why) = keeping::warn_of_keeping(&status)
    {
        stored = reach::with_member(&stored, "keeping", &why.into()).unwrap_or(stored);
    }
    Ok(stored)
}

impl ToolCall {
    /// Returns the params with their context. Params that are no object, or have their context twice, are passed on as
    /// they are: the service says why they are wrong. `None` when files must be looked at, and may not be looked at
    /// here.
    fn fill_params(&self, fill_in: &dyn FillIn, look: FileLook) -> Option<Box<RawValue>> {
        #[derive(Deserialize)]
        struct GivenContext<'a> {
            #[serde(borrow, default, deserialize_with = "present")]
            context: Option<&'a RawValue>,
        }
        /// A null is given too.
        fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
            <&RawValue>::deserialize(deserializer).map(Some)
        }
        let as_it_is = || Some(self.params.clone());
        // A list would be read as the fields in order.
        if !self.params.get().starts_with('{') {
            return as_it_is();
        }
        let Ok(GivenContext { context: given }) = serde_json::from_str(self.params.get()) else { return as_it_is() };
        let value = match given.map(parse_context) {
            Some(None) => return as_it_is(),
            value => value.flatten(),
        };
        match fill_in.infer_context(self.context, value.as_ref(), &self.meta, look) {
            InferredContext::MustLook => None,
            InferredContext::AsGiven => as_it_is(),
            InferredContext::Filled(context) => {
                Some(replace_context(self.params.get(), given, &context).unwrap_or_else(|| self.params.clone()))
            }
        }
    }
}

/// A context as it was given; `None` when it has a name twice, which a map would not tell.
fn parse_context(given: &RawValue) -> Option<Value> {
    let value: Value = serde_json::from_str(given.get()).ok()?;
    let is_whole = match &value {
        Value::Object(map) => wire::read_members(given.get()).is_ok_and(|members| members.len() == map.len()),
        _ => true,
    };
    is_whole.then_some(value)
}

/// The params with a context in the place of the one that was given, if there was one; the rest as it stands.
fn replace_context(params: &str, given: Option<&RawValue>, context: &Map<String, Value>) -> Option<Box<RawValue>> {
    let context = serde_json::to_string(context).ok()?;
    let text = if let Some(given) = given {
        // It is borrowed from the params.
        let from = given.get().as_ptr().addr().checked_sub(params.as_ptr().addr())?;
        format!("{}{context}{}", params.get(..from)?, params.get(from + given.get().len()..)?)
    } else {
        let rest = params.trim_start().strip_prefix('{')?;
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        format!("{{\"context\":{context}{comma}{rest}")
    };
    RawValue::from_string(text).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use serde_json::json;

    use super::*;
    use crate::server::work::{CallerId, WorkPool};

    /// Adds a branch, as the inference adds what is left out.
    struct Branch;

    impl FillIn for Branch {
        fn infer_context(&self, _: ContextUse, given: Option<&Value>, _: &JsonObject, _: FileLook) -> InferredContext {
            let mut context = given.and_then(Value::as_object).cloned().unwrap_or_default();
            context.insert("branch".into(), json!("dev"));
            InferredContext::Filled(context)
        }

        fn learn_env_names(&self, _: EnvNames) {}
    }

    #[test]
    fn only_the_context_changes() {
        for (given, filled) in [
            ("{}", r#"{"context":{"branch":"dev"}}"#),
            (r#"{ "key" : 5.0, "key": 1 }"#, r#"{"context":{"branch":"dev"}, "key" : 5.0, "key": 1 }"#),
            (
                r#"{"a":1, "context": {"cwd":"/x"} ,"b":[12345678901234567890]}"#,
                r#"{"a":1, "context": {"cwd":"/x","branch":"dev"} ,"b":[12345678901234567890]}"#,
            ),
            (r#"{"context":null}"#, r#"{"context":{"branch":"dev"}}"#),
            // The service says what is wrong.
            (r#"{"context":{},"context":{}}"#, r#"{"context":{},"context":{}}"#),
            (r#"{"context":{"cwd":"/a","cwd":"/b"}}"#, r#"{"context":{"cwd":"/a","cwd":"/b"}}"#),
            ("[1]", "[1]"),
        ] {
            let call = ToolCall {
                method: "nudge.query".into(),
                context: ContextUse::Inferred,
                params: RawValue::from_string(given.into()).unwrap(),
                meta: Map::new(),
                keeps: None,
            };
            assert_eq!(call.fill_params(&Branch, FileLook::Here).unwrap().get(), filled, "{given}");
        }
    }

    /// A client on a disk that does not answer until the barrier falls.
    struct Hangs(Barrier);

    impl FillIn for Hangs {
        fn infer_context(&self, _: ContextUse, _: Option<&Value>, _: &JsonObject, look: FileLook) -> InferredContext {
            match look {
                FileLook::Elsewhere => InferredContext::MustLook,
                FileLook::Here => {
                    self.0.wait();
                    InferredContext::AsGiven
                }
                FileLook::Nowhere => InferredContext::Filled(Map::from_iter([("os".into(), json!("linux"))])),
            }
        }

        fn learn_env_names(&self, _: EnvNames) {}
    }

    fn desk() -> WorkDesk {
        Arc::new(WorkPool::default()).desk_for(CallerId::Looks)
    }

    #[test]
    fn a_disk_that_does_not_answer_is_waited_for_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let hangs = Arc::new(Hangs(Barrier::new(2)));
            let filler = ContextFiller {
                patience: Duration::from_millis(20),
                ..ContextFiller::new(Arc::clone(&hangs) as _, desk())
            };
            let call = Arc::new(ToolCall {
                method: "nudge.query".into(),
                context: ContextUse::Inferred,
                params: RawValue::from_string("{}".into()).unwrap(),
                meta: Map::new(),
                keeps: None,
            });
            // The second would hang for good if it looked, as the first takes the barrier's other place.
            for _ in 0..2 {
                assert_eq!(filler.fill_context(&call).await.get(), r#"{"context":{"os":"linux"}}"#);
                assert_eq!(filler.overdue.load(Ordering::Relaxed), 1);
            }
            hangs.0.wait();
            while filler.overdue.load(Ordering::Relaxed) > 0 {
                tokio::task::yield_now().await;
            }
            // Now it is looked at again.
            let waits = std::thread::spawn(move || hangs.0.wait().is_leader());
            let filler = ContextFiller { patience: PATIENCE, ..filler };
            assert_eq!(filler.fill_context(&call).await.get(), "{}");
            waits.join().unwrap();
        });
    }
}
