//! The method table: one row per method, each in a file of its own. JSON-RPC, MCP tools, the command
//! line and every binding are driven by it.

mod bump;
mod delete;
mod env_names;
mod export;
mod get;
mod import;
mod list;
mod outcome;
mod query;
mod set;
mod stats;
mod status;
mod suggest;
mod undo;
mod why;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::cache::{Call, Nudge};
use crate::error::{Error, Result};
use crate::service::{Caller, Method, Service, unknown_method};
use crate::wire;

pub use bump::{Bump, Bumped};
pub use delete::{Delete, Deleted};
pub use env_names::{EnvNames, EnvNamesAsked};
pub use export::{Export, Exported};
pub use get::{GetHint, GotHint};
pub use import::{Import, ImportError, ImportMode, Imported};
pub use list::{ComponentCount, Components};
pub use outcome::{Matched, Outcome};
pub use query::{Query, QueryRow, QueryRows};
pub use set::{SetHint, SetResult};
pub use stats::{Counts, SessionStats, Stats};
pub use status::{Limits, Status};
pub(crate) use suggest::Shown;
pub use suggest::{Suggest, SuggestEvent, Suggestion, Suggestions};
pub use undo::{Deletion, Deletions, Undo, Undone};
pub use why::{ConditionMet, Why, WhyVariant, Whys};

/// A row with the function that answers it.
struct Row {
    method: Method,
    run: fn(&Nudge, Caller<'_>, &RawValue) -> Result<Box<RawValue>>,
}

static TABLE: [&Row; 16] = [
    &get::ROW,
    &query::ROW,
    &set::ROW,
    &bump::ROW,
    &delete::ROW,
    &list::ROW,
    &export::ROW,
    &import::ROW,
    &suggest::ROW,
    &outcome::ROW,
    &env_names::ROW,
    &why::ROW,
    &undo::DELETIONS,
    &undo::ROW,
    &status::ROW,
    &stats::ROW,
];

impl Service for Nudge {
    fn methods(&self) -> Vec<&'static Method> {
        methods()
    }

    fn method(&self, name: &str) -> Option<&'static Method> {
        TABLE.iter().map(|row| &row.method).find(|row| row.name == name)
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let row = TABLE.iter().find(|row| row.method.name == method).ok_or_else(unknown_method)?;
        let run = |caller: Caller<'_>| {
            if caller.env {
                self.ask_env(row.method.context, params)?;
            }
            (row.run)(self, caller, params)
        };
        match caller.key {
            Some(key) if !row.method.read_only => {
                let call = Call::new(row.method.name, params.get());
                self.once(key, call, |made| {
                    // It was made before, with all that it depended on.
                    let env = caller.env && made.is_none();
                    run(Caller { env, call: Some(call), made, ..caller })
                })
            }
            _ => run(caller),
        }
    }
}

/// The rows of the hint cache.
pub fn methods() -> Vec<&'static Method> {
    TABLE.iter().map(|row| &row.method).collect()
}

/// Reads typed params, runs a verb, writes its typed result.
fn answer<P: DeserializeOwned, R: Serialize>(
    params: &RawValue,
    verb: impl FnOnce(P) -> Result<R>,
) -> Result<Box<RawValue>> {
    let out = verb(wire::params(params)?)?;
    to_raw_value(&out).map_err(|_| Error::invalid("The result cannot be written as JSON."))
}

/// The JSON Schema (2020-12) of a params type, without references: hosts load it into a prompt.
fn schema<P: JsonSchema>() -> serde_json::Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<P>().to_value();
    // The method's own description says what it is for.
    schema.as_object_mut().map(|root| root.remove("description"));
    tidy(&mut schema);
    schema
}

/// Drops what costs tokens and says nothing: titles, `null` beside a type, defaults, number formats,
/// a description of each constant.
fn tidy(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(map) => {
            for name in ["title", "default", "format"] {
                if map.get(name).is_some_and(|value| !value.is_object() || name == "default") {
                    map.remove(name);
                }
            }
            if let Some(serde_json::Value::Array(types)) = map.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            if let Some(serde_json::Value::Array(options)) = map.get_mut("anyOf") {
                options.retain(|option| option["type"] != "null");
                if let [serde_json::Value::Object(only)] = &options[..] {
                    let only = only.clone();
                    map.remove("anyOf");
                    for (name, value) in only {
                        map.entry(name).or_insert(value);
                    }
                }
            }
            let constants = |list: &serde_json::Value| {
                list.as_array()?.iter().map(|one| one.get("const").cloned()).collect::<Option<Vec<_>>>()
            };
            if let Some(names) = map.get("oneOf").and_then(constants) {
                map.remove("oneOf");
                map.insert("type".into(), "string".into());
                map.insert("enum".into(), names.into());
            }
            if let Some(serde_json::Value::Array(names)) = map.get_mut("enum") {
                names.retain(|name| !name.is_null());
            }
            map.values_mut().for_each(tidy);
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// Params of methods that take none.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_plain_and_short() {
        for method in methods() {
            let schema = (method.params)();
            let text = schema.to_string();
            assert_eq!(schema["type"], "object", "{}", method.name);
            assert_eq!(schema["additionalProperties"], false, "{}", method.name);
            for word in ["$ref", "$defs", "$schema", "title", "\"null\"", "oneOf"] {
                assert!(!text.contains(word), "{} holds {word}: {text}", method.name);
            }
        }
        let tools = methods().into_iter().filter(|method| method.tool);
        let bytes: usize = tools.map(|method| (method.params)().to_string().len() + method.description.len()).sum();
        assert!(bytes < 8_500, "{bytes} bytes");
    }
}
