//! Measures how the cost of a brain grows with its number of notes.

use std::path::Path;

use serde_json::json;

use super::of;
use crate::records::{QUESTIONS, Texts};
use crate::vault::{Vault, opened, path, status_in_step, write_notes};

/// Writes the notes and builds their index.
pub fn fill(folder: &Path, items: usize) {
    write_notes(folder, items);
    let source = opened(folder, folder);
    assert_eq!(status_in_step(&*source)["units"], items);
    source.close();
}

/// Calls all verbs of the brain.
pub fn ask(folder: &Path, items: usize) {
    let vault = Vault::at(folder, items);
    let questions = Texts::questions();
    let note = |step: usize| {
        let path = path(Path::new(""), step * 7_919 % items).with_extension("");
        path.to_str().expect("it is of ASCII").to_owned()
    };
    of("context", 8, |step| {
        vault.call("context", &json!({"task_description": questions[step % QUESTIONS]}));
    });
    of("get", 8, |step| drop(vault.call("get", &json!({"id": note(step)}))));
    of("list", 4, |_| drop(vault.call("list", &json!({}))));
    of("status", 2, |_| drop(vault.call("status", &json!({}))));
    of("check", 1, |_| drop(vault.call("check", &json!({}))));
    of("set_field", 4, |step| {
        vault.call("set_field", &json!({"id": note(step), "field": "status", "value": format!("seen {step}")}));
    });
    of("add, and found", 4, |step| {
        let word = format!("added{step}word");
        vault.call("add", &json!({"title": format!("What {word} means"), "body": "It is said once."}));
        let found = vault.call("context", &json!({"task_description": word}));
        assert!(found["units"].as_array().is_some_and(|units| !units.is_empty()), "{found}");
    });
}
