//! Writes the methods for programs: one `OpenRPC` document, and one JSON Schema for the params of each method.

use nudge::{ErrorKind, MethodSpec};
use serde_json::{Map, Value, json};

use crate::HOW;

/// Makes the text of `openrpc.json`.
pub fn document(methods: &[&MethodSpec]) -> String {
    let errors = ErrorKind::ALL.into_iter().filter(|kind| kind.code() > 0);
    let errors: Vec<_> = errors.map(|kind| json!({"code": kind.code(), "message": kind.reason()})).collect();
    let methods: Vec<_> = methods.iter().map(|method| row(method)).collect();
    text(&json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "Nudge",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0"},
            "description": format!("What can be asked of a running session. Generated from the method tables; {HOW} writes it anew."),
        },
        "servers": [{"name": "this machine", "url": "http://127.0.0.1:8765/"}],
        "methods": methods,
        "components": {"errors": errors.into_iter().map(|error| (error["message"].as_str().unwrap().to_owned(), error)).collect::<Map<_, _>>()},
    }))
}

fn row(method: &MethodSpec) -> Value {
    let schema = (method.params)();
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    // OpenRPC requires that required params come first.
    let mut params: Vec<_> = properties
        .map(|(name, schema)| json!({"name": name, "required": required.contains(&&json!(name)), "schema": schema}))
        .collect();
    params.sort_by_key(|param| param["required"] == false);
    let errors = ErrorKind::ALL.into_iter().filter(|kind| kind.code() > 0);
    json!({
        "name": method.name,
        "summary": method.title,
        "description": method.description,
        "paramStructure": "by-name",
        "params": params,
        "result": {"name": "result", "schema": {"type": "object"}},
        "errors": errors.map(|kind| json!({"$ref": format!("#/components/errors/{}", kind.reason())})).collect::<Vec<_>>(),
    })
}

/// Makes the schema of each method's params; returns the names of the files and their texts.
pub fn schemas(methods: &[&MethodSpec]) -> Vec<(String, String)> {
    methods.iter().map(|method| (format!("{}.json", method.name), text(&(method.params)()))).collect()
}

fn text(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}
