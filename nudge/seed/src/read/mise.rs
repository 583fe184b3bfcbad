//! mise: tasks, and the tools that a repository wants installed.

use serde_json::Value;

use crate::command::CommandLine;
use crate::file::{File, Found, Why, command_text, members};

pub fn read(file: &File<'_>) -> Result<Vec<Found>, Why> {
    if file.name == ".tool-versions" {
        let tools = file.text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        return Ok(install(&tools.filter(|line| !line.is_empty()).collect::<Vec<_>>(), 1).into_iter().collect());
    }
    let config = file.toml()?;
    let of = |(name, task): (&str, &Value)| {
        let about = task["description"].as_str().map(str::to_owned).or_else(|| command_text(task));
        let command = CommandLine::new("mise run").word(name)?;
        (task["hide"] != true).then(|| Found {
            name: name.to_owned(),
            command,
            about: about.unwrap_or_default(),
            line: file.line_of(&["tasks", name]),
            folder: None,
        })
    };
    let mut out: Vec<Found> = members(&config["tasks"]).filter_map(of).collect();
    let tools: Vec<_> = members(&config["tools"])
        .map(|(name, version)| {
            format!("{name} {}", version.as_str().or(version["version"].as_str()).unwrap_or_default())
        })
        .collect();
    out.extend(install(&tools.iter().map(|tool| tool.trim()).collect::<Vec<_>>(), file.line_of(&["tools"])));
    Ok(out)
}

fn install(tools: &[&str], line: u32) -> Option<Found> {
    (!tools.is_empty()).then(|| Found {
        name: "install".to_owned(),
        command: CommandLine::new("mise install"),
        about: tools.join(", "),
        line,
        folder: None,
    })
}
