//! Completing what the stdio client asks: the context it leaves out, and the environment variables that
//! turn out to matter (semantics section 9).

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use nudge::{Caller, ContextUse, EnvNames, Method, Result};
use rmcp::model::JsonObject;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;

use super::backend::Backend;
use super::calls::MAX_INLINE_BYTES;

/// Knows where the client is.
pub trait FillIn: Send + Sync {
    /// Completes the params of a call to `method`, given the client's `_meta`. When it would have to wait
    /// for another program and may not, it answers false and changes nothing.
    fn fill_in(&self, method: &Method, params: &mut Map<String, Value>, meta: &JsonObject, may_wait: bool) -> bool;

    /// Which environment variables to tell from now on.
    fn learn(&self, names: EnvNames);
}

/// Makes a call, with what `fill_in` knows.
///
/// # Errors
/// What the method says; `E_UNAVAILABLE` when the PRIMARY does not answer.
pub async fn call(
    backend: &Backend,
    by: &str,
    method: &'static Method,
    params: Box<RawValue>,
    fill_in: Option<(Arc<dyn FillIn>, JsonObject)>,
) -> Result<Box<RawValue>> {
    let caller = Caller::named(by);
    let Some(fill_in) = fill_in.filter(|_| method.context != ContextUse::None) else {
        return backend.call_by(caller, method.name, &params).await;
    };
    let filling = Arc::new(Filling { method, params, fill_in: fill_in.0, meta: fill_in.1 });
    let filled = filling.filled_in().await;
    let refused = match backend.call_by(caller.asking_env(), method.name, &filled).await {
        Err(refused) => refused,
        answered => return answered,
    };
    let names = refused.env_names().ok_or(refused)?;
    filling.fill_in.learn(names);
    let filled = filling.filled_in().await;
    backend.call_by(caller, method.name, &filled).await
}

struct Filling {
    method: &'static Method,
    params: Box<RawValue>,
    fill_in: Arc<dyn FillIn>,
    meta: JsonObject,
}

impl Filling {
    async fn filled_in(self: &Arc<Self>) -> Box<RawValue> {
        if self.params.get().len() <= MAX_INLINE_BYTES
            && let Some(filled) = self.fill(false)
        {
            return filled;
        }
        let waiting = Arc::clone(self);
        let filled = spawn_blocking(move || waiting.fill(true)).await.ok().flatten();
        filled.unwrap_or_else(|| self.params.clone())
    }

    /// Params that are no object, or hold a key twice, are passed on as they are: the service says what
    /// is wrong with them.
    fn fill(&self, may_wait: bool) -> Option<Box<RawValue>> {
        let Some(mut map) = object(&self.params) else { return Some(self.params.clone()) };
        let filled = self.fill_in.fill_in(self.method, &mut map, &self.meta, may_wait);
        filled.then(|| to_raw_value(&map).unwrap_or_else(|_| self.params.clone()))
    }
}

/// The members of an object in which no object has two of one name.
fn object(params: &RawValue) -> Option<Map<String, Value>> {
    // First what ends at once where the nesting is endless.
    let map = serde_json::from_str(params.get()).ok()?;
    no_name_twice(params).then_some(map)
}

fn no_name_twice(json: &RawValue) -> bool {
    match json.get().as_bytes().first() {
        Some(b'{') => serde_json::from_str::<Members<'_>>(json.get()).is_ok_and(|Members(members)| {
            let names: HashSet<_> = members.iter().map(|(name, _)| name).collect();
            names.len() == members.len() && members.iter().all(|(_, value)| no_name_twice(value))
        }),
        Some(b'[') => {
            serde_json::from_str::<Vec<&RawValue>>(json.get()).is_ok_and(|list| list.into_iter().all(no_name_twice))
        }
        _ => true,
    }
}

/// An object as it is written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}
