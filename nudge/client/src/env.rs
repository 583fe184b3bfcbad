//! The part of an environment that is sent to a server: the variables that it asked for, and no others
//! (semantics section 9).

use nudge::EnvNames;
use serde_json::{Map, Value};

/// Limits of a context (semantics section 5).
const MAX_NAMES: usize = 256;
const MAX_VALUE_BYTES: usize = 32 << 10;

/// Builds `context.env` for a call whose candidates mention the names in `asked`: the value only if it matters, `""`
/// for other variables that are set, null for variables that are not set.
pub fn asked_env(asked: &EnvNames, look_up: impl Fn(&str) -> Option<String>) -> Map<String, Value> {
    let value = |name: &String| match look_up(name) {
        // Null says "known not to be set"; a missing name would say "unknown".
        None => Value::Null,
        // A longer value cannot be sent, and no scope can match it.
        Some(value) if asked.values.contains(name) && value.len() <= MAX_VALUE_BYTES => value.into(),
        Some(_) => "".into(),
    };
    // Variables that are set come first: names beyond the limit are left out and count as not set.
    let mut told: Vec<_> = asked.names.iter().map(|name| (name.clone(), value(name))).collect();
    told.sort_by_key(|(_, value)| value.is_null());
    told.truncate(MAX_NAMES);
    told.into_iter().collect()
}
