//! Selects the environment variables that a client sends: only those that the server asked for (semantics section 9).
//! If an answer depends on other variables, the server refuses the call and names them. The client then makes the call
//! again with these variables.

use nudge::{Caller, EnvNames, Error, Result};
use nudge_core::sync::Mutex;
use serde_json::{Map, Value};

/// Limits of a context (semantics section 5).
const MAX_NAMES: usize = 256;
const MAX_VALUE_BYTES: usize = 32 << 10;

/// The names of the environment variables that the session asked for in its last refusal.
#[derive(Debug, Default)]
pub struct AskedEnv(Mutex<EnvNames>);

impl AskedEnv {
    /// Builds `context.env` of the next call. A variable that some scope compares has its value, another variable that
    /// is set has `""`, and a variable that is not set has null.
    pub fn build_env(&self, look_up: impl Fn(&str) -> Option<String>) -> Map<String, Value> {
        let asked = self.0.lock();
        let value = |name: &String| match look_up(name) {
            // Null means that the variable is not set. A missing name would mean that its value is unknown.
            None => Value::Null,
            // A longer value would exceed the limit of a context, and no scope can match it.
            Some(value) if asked.values.contains(name) && value.len() <= MAX_VALUE_BYTES => value.into(),
            Some(_) => "".into(),
        };
        // Variables that are set come first. Names beyond the limit are cut off, and the server treats them as not set.
        let mut told: Vec<_> = asked.names.iter().map(|name| (name.clone(), value(name))).collect();
        told.sort_by_key(|(_, value)| value.is_null());
        told.truncate(MAX_NAMES);
        told.into_iter().collect()
    }

    /// Replaces the names of the variables that later calls send.
    pub fn set_names(&self, names: EnvNames) {
        *self.0.lock() = names;
    }

    /// Stores the names from the refusal of a call that [asked for them](Caller::asking_env). Returns true for such a
    /// refusal. The caller then makes the call again and does not ask for names.
    pub fn learn_from<T>(&self, answer: &Result<T>) -> bool {
        let names = answer.as_ref().err().and_then(Error::env_names);
        names.map(|names| self.set_names(names)).is_some()
    }

    /// Makes a call. If the session names missing variables, makes the call again. `try_call` must fill in the context
    /// at each call.
    ///
    /// # Errors
    /// The errors of the last call.
    pub fn call<'a, T>(&self, caller: Caller<'a>, try_call: impl Fn(Caller<'a>) -> Result<T>) -> Result<T> {
        let answer = try_call(caller.asking_env());
        if self.learn_from(&answer) { try_call(caller) } else { answer }
    }
}
