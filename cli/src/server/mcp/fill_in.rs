//! Completing what the stdio client asks: the context it leaves out, and the environment variables that
//! turn out to matter (semantics section 9).

use std::sync::Arc;

use nudge::{Caller, ContextUse, EnvNames, Result};
use nudge_core::wire;
use rmcp::model::JsonObject;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;

use crate::context::Inferred;
use crate::server::session::backend::Backend;
use crate::server::session::calls::MAX_INLINE_BYTES;

/// Knows where the client is.
pub trait FillIn: Send + Sync {
    /// The context of a call, given what the call says of it and the client's `_meta`. When it would have to wait for
    /// another program and may not, it says so.
    fn infer(&self, usage: ContextUse, given: Option<&Value>, meta: &JsonObject, may_wait: bool) -> Inferred;

    /// Which environment variables to tell from now on.
    fn learn(&self, names: EnvNames);
}

/// A call of a tool.
pub struct ToolCall {
    /// The method behind it.
    pub method: String,
    /// How its context is filled in.
    pub context: ContextUse,
    /// Its arguments as they came.
    pub params: Box<RawValue>,
    /// The client's `_meta`.
    pub meta: JsonObject,
}

/// Makes a call, with the context that `fill_in` infers; once more when the PRIMARY names variables that it lacks.
///
/// # Errors
/// What the method says; `E_UNAVAILABLE` when the PRIMARY does not answer.
pub async fn call(
    backend: &Backend,
    by: &str,
    call: ToolCall,
    fill_in: Option<&Arc<dyn FillIn>>,
) -> Result<Box<RawValue>> {
    let caller = Caller::named(by).by_agent();
    let Some(fill_in) = fill_in.filter(|_| call.context != ContextUse::None) else {
        return backend.call_by(caller, &call.method, &call.params).await;
    };
    let call = Arc::new(call);
    let filled = filled_in(&call, fill_in).await;
    let refused = match backend.call_by(caller.asking_env(), &call.method, &filled).await {
        Err(refused) => refused,
        answered => return answered,
    };
    fill_in.learn(refused.env_names().ok_or(refused)?);
    let filled = filled_in(&call, fill_in).await;
    backend.call_by(caller, &call.method, &filled).await
}

async fn filled_in(call: &Arc<ToolCall>, fill_in: &Arc<dyn FillIn>) -> Box<RawValue> {
    if call.params.get().len() <= MAX_INLINE_BYTES
        && let Some(filled) = call.fill(fill_in, false)
    {
        return filled;
    }
    let (waiting, fill_in) = (Arc::clone(call), Arc::clone(fill_in));
    let filled = spawn_blocking(move || waiting.fill(&fill_in, true)).await.ok().flatten();
    filled.unwrap_or_else(|| call.params.clone())
}

impl ToolCall {
    /// The params with their context. What is no object, or has its context twice, is passed on as it is: the service
    /// says what is wrong with it.
    fn fill(&self, fill_in: &Arc<dyn FillIn>, may_wait: bool) -> Option<Box<RawValue>> {
        #[derive(Deserialize)]
        struct Given<'a> {
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
        let Ok(Given { context: given }) = serde_json::from_str(self.params.get()) else { return as_it_is() };
        let value = match given.map(value) {
            Some(None) => return as_it_is(),
            value => value.flatten(),
        };
        match fill_in.infer(self.context, value.as_ref(), &self.meta, may_wait) {
            Inferred::MustWait => None,
            Inferred::AsGiven => as_it_is(),
            Inferred::Filled(context) => {
                Some(within(self.params.get(), given, &context).unwrap_or_else(|| self.params.clone()))
            }
        }
    }
}

/// A context as it was given; `None` when it has a name twice, which a map would not tell.
fn value(given: &RawValue) -> Option<Value> {
    let value: Value = serde_json::from_str(given.get()).ok()?;
    let is_whole = match &value {
        Value::Object(map) => wire::members(given.get()).is_ok_and(|members| members.len() == map.len()),
        _ => true,
    };
    is_whole.then_some(value)
}

/// The params with a context in the place of the one that was given, if there was one; the rest as it stands.
fn within(params: &str, given: Option<&RawValue>, context: &Map<String, Value>) -> Option<Box<RawValue>> {
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
    use serde_json::json;

    use super::*;

    /// Adds a branch, as the inference adds what is left out.
    struct Branch;

    impl FillIn for Branch {
        fn infer(&self, _: ContextUse, given: Option<&Value>, _: &JsonObject, _: bool) -> Inferred {
            let mut context = given.and_then(Value::as_object).cloned().unwrap_or_default();
            context.insert("branch".into(), json!("dev"));
            Inferred::Filled(context)
        }

        fn learn(&self, _: EnvNames) {}
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
            };
            let fill_in: Arc<dyn FillIn> = Arc::new(Branch);
            assert_eq!(call.fill(&fill_in, false).unwrap().get(), filled, "{given}");
        }
    }
}
