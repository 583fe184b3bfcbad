//! Selects the part of an environment that a client sends: only the variables that the server asked for (semantics
//! section 9). The server refuses a call whose answer depends on other variables, and names them. The client then makes
//! the call again with these variables.

use nudge::{Caller, EnvNames, Error, Result};
use nudge_core::sync::Mutex;
use serde_json::{Map, Value};

/// Limits of a context (semantics section 5).
const MAX_NAMES: usize = 256;
const MAX_VALUE_BYTES: usize = 32 << 10;

/// The environment variables that a session asked for last.
#[derive(Debug, Default)]
pub struct AskedEnv(Mutex<EnvNames>);

impl AskedEnv {
    /// Builds `context.env` of the next call: the value of a variable only if a scope compares it, `""` for other
    /// variables that are set, null for variables that are not set.
    pub fn build_env(&self, look_up: impl Fn(&str) -> Option<String>) -> Map<String, Value> {
        let asked = self.0.lock();
        let value = |name: &String| match look_up(name) {
            // Null means "known not to be set"; a missing name would mean "unknown".
            None => Value::Null,
            // A longer value exceeds the limit of a context, and no scope can match it.
            Some(value) if asked.values.contains(name) && value.len() <= MAX_VALUE_BYTES => value.into(),
            Some(_) => "".into(),
        };
        // Set variables come first, because names beyond the limit are cut off and then count as not set.
        let mut told: Vec<_> = asked.names.iter().map(|name| (name.clone(), value(name))).collect();
        told.sort_by_key(|(_, value)| value.is_null());
        told.truncate(MAX_NAMES);
        told.into_iter().collect()
    }

    /// Sets the names to send in later calls.
    pub fn set_names(&self, names: EnvNames) {
        *self.0.lock() = names;
    }

    /// Takes the names from the refusal of a call that [asked for them](Caller::asking_env). Returns true for such a
    /// refusal; the caller then makes the call again, without asking.
    pub fn learn_from<T>(&self, answer: &Result<T>) -> bool {
        let names = answer.as_ref().err().and_then(Error::env_names);
        names.map(|names| self.set_names(names)).is_some()
    }

    /// Makes a call, and makes it again when the session names missing variables. `try_call` fills in the context each
    /// time.
    ///
    /// # Errors
    /// The errors of the last call.
    pub fn call<'a, T>(&self, caller: Caller<'a>, try_call: impl Fn(Caller<'a>) -> Result<T>) -> Result<T> {
        let answer = try_call(caller.asking_env());
        if self.learn_from(&answer) { try_call(caller) } else { answer }
    }
}
