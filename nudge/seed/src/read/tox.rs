//! Reads the environments of tox.

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why, iter_members};

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    if file.name != "tox.ini" {
        let config = file.parse_toml()?;
        let config = if file.name == "tox.toml" { &config } else { &config["tool"]["tox"] };
        if !config["env_list"].is_array() && !config["env"].is_object() {
            return Ok(Vec::new());
        }
        let mut out: Vec<_> = env_command(None, "all environments", file.line_of(&["tox"])).into_iter().collect();
        for (name, table) in iter_members(&config["env"]).filter(|(_, table)| table.is_object()) {
            out.extend(env_command(
                Some(name),
                table["description"].as_str().unwrap_or(""),
                file.line_of(&["env", name]),
            ));
        }
        return Ok(out);
    }
    let mut out: Vec<_> = env_command(None, "all environments", 1).into_iter().collect();
    let mut is_tox = false;
    let mut current: Option<usize> = None;
    // Is true when the commands may begin on the next line, after `commands =`.
    let mut begins = false;
    for (line, number) in file.text.lines().zip(1..) {
        if let Some(section) = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_tox |= section == "tox" || section.starts_with("testenv");
            let name = section.strip_prefix("testenv:").map(str::trim);
            // A name such as `py{312,313}` stands for several environments, so it is skipped.
            let is_name = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
            let found = name.filter(is_name).and_then(|name| env_command(Some(name), "", number));
            current = found.map(|found| {
                out.push(found);
                out.len() - 1
            });
        } else if begins && (line.trim().is_empty() || line.trim().starts_with(['#', ';'])) {
        } else if let Some(index) = current.filter(|_| std::mem::take(&mut begins) && line.starts_with([' ', '\t'])) {
            if out[index].about.is_empty() {
                line.trim().trim_end_matches('\\').trim().clone_into(&mut out[index].about);
            }
        } else if let (Some(index), Some((key, value))) = (current, line.split_once('='))
            && (key.trim() == "description" || (key.trim() == "commands" && out[index].about.is_empty()))
        {
            begins = key.trim() == "commands" && value.trim().is_empty();
            value.trim().clone_into(&mut out[index].about);
        }
    }
    if is_tox { Ok(out) } else { Ok(Vec::new()) }
}

fn env_command(name: Option<&str>, about: &str, line: u32) -> Option<FoundCommand> {
    let tox = CommandLine::new("tox");
    Some(FoundCommand {
        name: name.unwrap_or("all").to_owned(),
        command: name.map_or(Some(tox.clone()), |name| tox.with_words("-e").word(name))?,
        about: about.to_owned(),
        line,
        folder: None,
    })
}
