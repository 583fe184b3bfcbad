//! Reads Cargo's packages, workspaces, programs and aliases.

use serde_json::Value;

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why, command_text, iter_members};

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let manifest = file.parse_toml()?;
    let package = manifest["package"]["name"].as_str();
    let is_workspace = manifest["workspace"].is_object();
    // Only the top of a workspace gets the commands that build and test the whole workspace. The members do not repeat
    // them.
    let is_member = !is_workspace && above_is_workspace(file);
    let mut out = Vec::new();
    let mut add = |name: &str, command: Option<CommandLine>, about: &str, line: u32| {
        let about = about.to_owned();
        out.extend(command.map(|command| FoundCommand { name: name.to_owned(), command, about, line, folder: None }));
    };
    if !is_member && (package.is_some() || is_workspace) {
        let has_all = is_workspace && package.is_some();
        let line_of = |words| {
            let line = CommandLine::new(words);
            Some(if has_all { line.with_words("--workspace") } else { line })
        };
        let scope = package.filter(|_| !is_workspace).unwrap_or("all packages of the workspace");
        let line = file.line_of(&[if is_workspace { "workspace" } else { "package" }]);
        add("build", line_of("cargo build"), &format!("builds {scope}"), line);
        add("test", line_of("cargo test"), &format!("tests {scope}"), line);
    }
    if let Some(package) = package {
        let bins: Vec<_> =
            manifest["bin"].as_array().into_iter().flatten().filter_map(|bin| bin["name"].as_str()).collect();
        let run = CommandLine::new("cargo run");
        let run = if is_member || is_workspace { run.with_words("-p").word(package) } else { Some(run) };
        match bins.as_slice() {
            [] if file.has_sibling("src/main.rs") => {
                add("run", run, &format!("runs {package}"), file.line_of(&["package", "name"]));
            }
            [] => {}
            [only] => add("run", run, &format!("runs {only}"), file.line_of(&["bin"])),
            bins => {
                for bin in bins {
                    add(
                        &format!("run.{bin}"),
                        run.clone().and_then(|run| run.with_words("--bin").word(bin)),
                        &format!("runs {bin}"),
                        file.line_of(&["bin"]),
                    );
                }
            }
        }
    }
    Ok(out)
}

/// Returns true when a Cargo.toml in a folder above this file defines a workspace.
fn above_is_workspace(file: &SeedFile<'_>) -> bool {
    let folder = file.top.join(file.folder);
    folder.ancestors().skip(1).take_while(|ancestor| ancestor.starts_with(file.top)).any(|ancestor| {
        let text =
            nudge_os::foreign::read_text(&ancestor.join("Cargo.toml"), nudge_os::foreign::LinkPolicy::Refused, 1 << 20);
        text.is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
    })
}

pub fn read_aliases(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let config = file.parse_toml()?;
    let read_alias = |(name, alias): (&str, &Value)| {
        let words = match alias {
            Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            other => command_text(other)?,
        };
        let line = file.line_of(&["alias", name]);
        Some(FoundCommand {
            name: name.to_owned(),
            command: CommandLine::new("cargo").word(name)?,
            about: format!("cargo {words}"),
            line,
            folder: None,
        })
    };
    Ok(iter_members(&config["alias"]).filter_map(read_alias).collect())
}
