//! Describes the rows of a table in the form of `nudge.methods`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ContextUse, MethodSpec};

/// The name of the method that lists all methods.
pub const METHODS: &str = "nudge.methods";

/// A method in the answer of `nudge.methods`.
// The flags are independent, as in [`MethodSpec`].
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MethodInfo {
    /// The JSON-RPC name.
    pub name: String,
    /// A few words for people; absent when the caller did not request it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The effect of a call and when to make it, for agents; absent when the caller did not request it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The source that answers the method; absent when the server itself answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Is true when the method is a tool and its source is in use.
    pub tool: bool,
    /// Agents need the tool so often that hosts should load it at once.
    pub frequent: bool,
    /// A call changes nothing.
    pub read_only: bool,
    /// A call may remove or overwrite stored data.
    pub destructive: bool,
    /// The same call twice has the effect of one call.
    pub idempotent: bool,
    /// The way in which front ends fill in the context.
    pub context: ContextUse,
    /// The JSON Schema of the params; absent when the caller did not request it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
}

impl MethodInfo {
    /// Describes a row of `source`. `is_in_use` is true if the source is in use. If `is_whole` is true, the description
    /// includes title, description and schema: they are most of the bytes, and only models and people read them.
    pub fn new(row: &MethodSpec, source: Option<&str>, is_in_use: bool, is_whole: bool) -> Self {
        let words = |words: &str| if is_whole { words.to_owned() } else { String::new() };
        Self {
            name: row.name.into(),
            title: words(row.title),
            description: words(row.description),
            source: source.map(Into::into),
            tool: row.tool && is_in_use,
            frequent: row.frequent,
            read_only: row.read_only,
            destructive: row.destructive,
            idempotent: row.idempotent,
            context: row.context,
            params: match is_whole.then(|| (row.params)()) {
                Some(Value::Object(schema)) => schema,
                _ => Map::new(),
            },
        }
    }

    /// Returns the name of the MCP tool. Hosts reject dots, so `nudge.get_hint` becomes `nudge_get_hint`.
    pub fn tool_name(&self) -> String {
        tool_name(&self.name)
    }
}

/// Returns the name of a method's MCP tool. Hosts reject dots, so `nudge.get_hint` becomes `nudge_get_hint`.
pub fn tool_name(method: &str) -> String {
    method.replace('.', "_")
}

/// Result of `nudge.methods`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MethodInfos {
    /// All methods of the session; each occurs once.
    pub methods: Vec<MethodInfo>,
    /// The description of each source in use, for agents.
    #[serde(default)]
    pub guides: Vec<String>,
    /// Is true when hints outlive the session; absent in answers of servers that do not report this yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps: Option<bool>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::table::{NoParams, build_schema};

    #[test]
    fn a_row_is_told_whole_or_without_what_is_read() {
        let row = MethodSpec::new("nudge.x.y", "A title", "What it is for.", build_schema::<NoParams>);
        let told = |is_whole| serde_json::to_value(MethodInfo::new(&row, Some("x"), true, is_whole)).unwrap();
        let names = |told: &Value| told.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let (whole, short) = (told(true), told(false));
        let left_out = &names(&whole) - &names(&short);
        assert_eq!(left_out, ["title", "description", "params"].map(str::to_owned).into());
        assert_eq!(serde_json::from_value::<MethodInfo>(short).unwrap().name, "nudge.x.y");
    }
}
