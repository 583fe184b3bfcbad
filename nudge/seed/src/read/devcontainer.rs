//! Reads the setup commands of development containers.

use serde_json::Value;

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why};

/// The setup commands of a container that a checkout outside the container needs too.
const NAMES: &[&str] = &["onCreateCommand", "updateContentCommand", "postCreateCommand"];

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let config = file.parse_jsonc()?;
    let words = |value: &Value| match value {
        Value::String(text) => Some(CommandLine::of_shell(text)),
        Value::Array(words) => Some(CommandLine::of_words(words.iter().filter_map(Value::as_str))),
        _ => None,
    };
    let mut out = Vec::new();
    for name in NAMES {
        let value = &config[*name];
        let commands: Vec<_> = match value {
            Value::Object(several) => several.values().filter_map(words).collect(),
            single => words(single).into_iter().collect(),
        };
        for command in commands {
            let about = "prepares a new checkout".to_owned();
            let name = format!("setup.{}", name.trim_end_matches("Command"));
            out.push(FoundCommand {
                line: file.line_of(&[name.trim_start_matches("setup.")]),
                name,
                command,
                about,
                folder: None,
            });
        }
    }
    Ok(out)
}
