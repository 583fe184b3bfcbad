//! Describes the rows of a table as they travel: the answer of `nudge.methods`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ContextUse, MethodSpec};

/// The name of the method that lists the others.
pub const METHODS: &str = "nudge.methods";

/// A method as `nudge.methods` tells it.
// As of a [`MethodSpec`].
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MethodInfo {
    /// The JSON-RPC name.
    pub name: String,
    /// A few words for people; absent when it was not asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The effect and when to call it, for agents; absent when not asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The source that answers it; absent where that is the server itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Offered as a tool: it is one, and its source is in use.
    pub tool: bool,
    /// Wanted so often that hosts should load it at once.
    pub frequent: bool,
    /// Changes nothing.
    pub read_only: bool,
    /// May remove or overwrite stored data.
    pub destructive: bool,
    /// The same call twice has the effect of one call.
    pub idempotent: bool,
    /// How its context is filled in.
    pub context: ContextUse,
    /// JSON Schema of its params; absent when it was not asked for.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
}

impl MethodInfo {
    /// Makes a row of `source`, which is in use or not; whole, or without title, description and schema: models and
    /// people read them, and they are most of it.
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

    /// The name as a tool: hosts reject dots, so `nudge.get_hint` becomes `nudge_get_hint`.
    pub fn tool_name(&self) -> String {
        tool_name(&self.name)
    }
}

/// The name of a method as a tool: hosts reject dots, so `nudge.get_hint` becomes `nudge_get_hint`.
pub fn tool_name(method: &str) -> String {
    method.replace('.', "_")
}

/// Result of `nudge.methods`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MethodInfos {
    /// Every method once.
    pub methods: Vec<MethodInfo>,
    /// The description of each source in use, for agents.
    #[serde(default)]
    pub guides: Vec<String>,
    /// Is true when hints are kept for next time; absent from older servers.
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
