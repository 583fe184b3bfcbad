//! Reads Taskfiles.

use serde_json::Value;

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why, command_text, iter_members};

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let tasks = &file.parse_yaml()?["tasks"];
    let read_task = |(name, task): (&str, &Value)| {
        let is_internal = task["internal"] == true || name.contains('*') || name == "default";
        let needs = task["requires"]["vars"].is_array();
        let about = ["desc", "summary"].iter().find_map(|field| task[*field].as_str()).map(str::to_owned);
        let runs =
            || task["cmds"].as_array().and_then(|lines| lines.iter().find_map(command_text)).or(command_text(task));
        let command = CommandLine::new("task").word(name)?;
        (!is_internal && !needs).then(|| FoundCommand {
            name: name.to_owned(),
            command,
            about: about.or_else(runs).unwrap_or_default(),
            line: file.line_of(&["tasks", name]),
            folder: None,
        })
    };
    Ok(iter_members(tasks).filter_map(read_task).collect())
}
