//! Reads Python projects: the programs, the tasks of poe, pdm, hatch and rye, and the configured tools.

use serde_json::Value;

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why, about_text, iter_members};

/// The programs that run a command in the project's environment. The existing lock file decides which one is used.
const RUNNERS: &[(&str, &str)] =
    &[("uv.lock", "uv run"), ("poetry.lock", "poetry run"), ("pdm.lock", "pdm run"), ("Pipfile.lock", "pipenv run")];

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let run = || CommandLine::new(file.find_nearest(RUNNERS).unwrap_or(""));
    let mut out = Vec::new();
    if file.name != "pyproject.toml" {
        let section = if file.name == "pytest.ini" { "[pytest]" } else { "[tool:pytest]" };
        let line = file.line_where(|line| line.trim() == section);
        out.extend(line.map(|line| tool_command("pytest", run().with_words("pytest"), "all tests", line)));
        return Ok(out);
    }
    let project = file.parse_toml()?;
    let tools = &project["tool"];
    for (name, entry) in iter_members(&project["project"]["scripts"]).chain(iter_members(&tools["poetry"]["scripts"])) {
        let about = format!("runs {}", entry.as_str().unwrap_or(name));
        let line = file.line_of(&["scripts", name]);
        let command = run().word(name);
        out.extend(command.map(|command| FoundCommand { name: name.to_owned(), command, about, line, folder: None }));
    }
    if tools["pytest"].is_object() {
        let line = file.line_of(&["tool", "pytest"]);
        out.push(tool_command("pytest", run().with_words("pytest"), "all tests", line));
    }
    if tools["ruff"].is_object() {
        out.push(tool_command("ruff", run().with_words("ruff check"), "lint", file.line_of(&["tool", "ruff"])));
    }
    let has_files = ["files", "packages", "modules"].iter().any(|field| !tools["mypy"][*field].is_null());
    if has_files {
        out.push(tool_command("mypy", run().with_words("mypy"), "types", file.line_of(&["tool", "mypy"])));
    }
    Ok(out)
}

fn tool_command(name: &str, command: CommandLine, about: &str, line: u32) -> FoundCommand {
    FoundCommand { name: name.to_owned(), command, about: about.to_owned(), line, folder: None }
}

/// Reads the tasks of a table. Leaves out tasks that only other tasks use, and tasks that need an argument.
fn read_tasks(
    file: &SeedFile<'_>,
    table: &Value,
    below: &[&str],
    command: impl Fn(&str) -> Option<CommandLine>,
) -> Vec<FoundCommand> {
    let read_task = |(name, task): (&str, &Value)| {
        let is_around = ["pre_", "post_", "_"].iter().any(|start| name.starts_with(start));
        let needs = task["args"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|arg| arg["required"] == true || arg["positional"] == true);
        let command = command(name)?;
        (!is_around && !needs).then(|| FoundCommand {
            name: name.to_owned(),
            command,
            about: about_text(&task["help"], task),
            line: file.line_of(&[below, &[name]].concat()),
            folder: None,
        })
    };
    iter_members(table).filter_map(read_task).collect()
}

pub fn read_poe(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let runner = file.find_nearest(RUNNERS).unwrap_or("");
    let run = |name: &str| CommandLine::new(runner).with_words("poe").word(name);
    Ok(read_tasks(file, &file.parse_toml()?["tool"]["poe"]["tasks"], &["tasks"], run))
}

pub fn read_pdm(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    Ok(read_tasks(file, &file.parse_toml()?["tool"]["pdm"]["scripts"], &["scripts"], |name| {
        CommandLine::new("pdm run").word(name)
    }))
}

pub fn read_rye(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    Ok(read_tasks(file, &file.parse_toml()?["tool"]["rye"]["scripts"], &["scripts"], |name| {
        CommandLine::new("rye run").word(name)
    }))
}

pub fn read_hatch(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let config = file.parse_toml()?;
    let is_own = file.name == "hatch.toml";
    Ok(read_environments(file, if is_own { &config["envs"] } else { &config["tool"]["hatch"]["envs"] }))
}

fn read_environments(file: &SeedFile<'_>, envs: &Value) -> Vec<FoundCommand> {
    let read_environment = |(env, table): (&str, &Value)| {
        let place = if env == "default" { String::new() } else { format!("{env}:") };
        read_tasks(file, &table["scripts"], &[env, "scripts"], |name| {
            CommandLine::new("hatch run").word(&format!("{place}{name}"))
        })
        .into_iter()
        .map(|found| FoundCommand { name: format!("{place}{}", found.name), ..found })
        .collect::<Vec<_>>()
    };
    iter_members(envs).flat_map(read_environment).collect()
}
