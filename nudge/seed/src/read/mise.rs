//! Reads mise files: the tasks, and the tools that must be installed for a repository.

use nudge_core::text::before_mark;
use serde_json::Value;

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why, about_text, iter_members};

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    if file.name == ".tool-versions" {
        let tools = file.text.lines().map(|line| before_mark(line, &['#']).trim());
        return Ok(install_command(&tools.filter(|line| !line.is_empty()).collect::<Vec<_>>(), 1)
            .into_iter()
            .collect());
    }
    let config = file.parse_toml()?;
    let read_task = |(name, task): (&str, &Value)| {
        let command = CommandLine::new("mise run").word(name)?;
        (task["hide"] != true).then(|| FoundCommand {
            name: name.to_owned(),
            command,
            about: about_text(&task["description"], task),
            line: file.line_of(&["tasks", name]),
            folder: None,
        })
    };
    let mut out: Vec<FoundCommand> = iter_members(&config["tasks"]).filter_map(read_task).collect();
    let tools: Vec<_> = iter_members(&config["tools"])
        .map(|(name, version)| {
            let version = version.as_str().or(version["version"].as_str());
            version.map_or_else(|| name.to_owned(), |version| format!("{name} {version}"))
        })
        .collect();
    out.extend(install_command(&tools.iter().map(|tool| tool.trim()).collect::<Vec<_>>(), file.line_of(&["tools"])));
    Ok(out)
}

fn install_command(tools: &[&str], line: u32) -> Option<FoundCommand> {
    (!tools.is_empty()).then(|| FoundCommand {
        name: "install".to_owned(),
        command: CommandLine::new("mise install"),
        about: tools.join(", "),
        line,
        folder: None,
    })
}
