//! Names the environment variables of a caller on which an answer can depend. No other variables are sent (semantics
//! section 9).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// The environment variables that an answer can depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvNames {
    /// Every name, in byte order.
    pub names: BTreeSet<String>,
    /// The names whose values matter (`env_match`). For the other names it matters only whether they are set.
    pub values: BTreeSet<String>,
}

impl EnvNames {
    /// Adds all names of `other`.
    pub fn add_all(&mut self, other: Self) {
        self.names.extend(other.names);
        self.values.extend(other.values);
    }
}

impl Error {
    /// Returns the names that the caller must send when it repeats the call; `None` when the call was refused for
    /// another reason. Only a call that [asked for them](crate::service::Caller::asking_env) gets them. The repeated
    /// call need not ask again.
    pub fn env_names(&self) -> Option<EnvNames> {
        EnvNames::deserialize(self.data().get("env")?).ok()
    }
}

/// Calls [`ask_env`] for the `context` of a call's params, if they have one.
///
/// # Errors
/// The errors of [`ask_env`].
pub fn ask_env_of(params: &RawValue, only_if_given: bool, wanted: impl FnOnce() -> EnvNames) -> Result<()> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct ContextParam {
        context: Value,
    }
    // A list is no context, but serde would read its elements as the members of the struct.
    if !params.get().starts_with('{') {
        return Ok(());
    }
    let Ok(ContextParam { context }) = serde_json::from_str(params.get()) else { return Ok(()) };
    ask_env(&context, only_if_given, wanted)
}

/// Refuses a call when the `env` of its `context` lacks names on which the answer can depend, or values that matter.
/// `wanted` is called only when the call has an environment or could have one. An `env` of null says that the
/// environment is unknown, so the call is accepted. The method itself refuses malformed input.
///
/// # Errors
/// `E_INVALID` with the names in `data.env`. [`Error::env_names`] reads them.
pub fn ask_env(context: &Value, only_if_given: bool, wanted: impl FnOnce() -> EnvNames) -> Result<()> {
    let given = match context {
        Value::Null => None,
        Value::Array(list) if list.is_empty() => None,
        Value::Object(given) => Some(given).filter(|given| !given.is_empty()),
        _ => return Ok(()),
    };
    if given.is_none() && only_if_given {
        return Ok(());
    }
    let env = match given.and_then(|given| given.get("env")) {
        None => None,
        Some(Value::Array(list)) if list.is_empty() => None,
        Some(Value::Object(env)) => Some(env),
        Some(_) => return Ok(()),
    };
    let value = |name: &String| env.and_then(|env| env.get(name));
    let EnvNames { names, values } = wanted();
    let is_complete = names.iter().all(|name| value(name).is_some())
        && values.iter().all(|name| value(name).and_then(Value::as_str) != Some(""));
    if is_complete {
        return Ok(());
    }
    let message = "Scopes mention environment variables that context.env lacks; make the call again with those that data.env names.";
    Err(Error::invalid(message).with_data("env", json!({"names": names, "values": values})))
}
