//! Reads Composer's scripts.

use serde_json::Value;

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why, about_text, iter_members};

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let package = file.parse_json()?;
    let read_script = |(name, script): (&str, &Value)| {
        let is_event = name.starts_with("pre-") || name.starts_with("post-");
        let command = CommandLine::new("composer run").word(name)?;
        (!is_event && name != "auto-scripts").then(|| FoundCommand {
            name: name.to_owned(),
            command,
            about: about_text(&package["scripts-descriptions"][name], script),
            line: file.line_of(&["scripts", name]),
            folder: None,
        })
    };
    Ok(iter_members(&package["scripts"]).filter_map(read_script).collect())
}
