//! tox: its environments.

use crate::file::{File, Found, Why, members};

pub fn read(file: &File<'_>) -> Result<Vec<Found>, Why> {
    if file.name != "tox.ini" {
        let config = file.toml()?;
        let config = if file.name == "tox.toml" { &config } else { &config["tool"]["tox"] };
        if !config["env_list"].is_array() && !config["env"].is_object() {
            return Ok(Vec::new());
        }
        let mut out = vec![env(None, "all environments", file.line_of(&["tox"]))];
        for (name, table) in members(&config["env"]).filter(|(_, table)| table.is_object()) {
            out.push(env(Some(name), table["description"].as_str().unwrap_or_default(), file.line_of(&["env", name])));
        }
        return Ok(out);
    }
    let mut out = vec![env(None, "all environments", 1)];
    let mut is_tox = false;
    let mut current: Option<usize> = None;
    // What it runs may begin on the line behind `commands =`.
    let mut begins = false;
    for (line, number) in file.text.lines().zip(1..) {
        if let Some(section) = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_tox |= section == "tox" || section.starts_with("testenv");
            let name = section.strip_prefix("testenv:").map(str::trim);
            current = name.filter(|name| name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))).map(|name| {
                out.push(env(Some(name), "", number));
                out.len() - 1
            });
        } else if begins && (line.trim().is_empty() || line.trim().starts_with(['#', ';'])) {
        } else if let Some(at) = current.filter(|_| std::mem::take(&mut begins) && line.starts_with([' ', '\t'])) {
            if out[at].about.is_empty() {
                line.trim().trim_end_matches('\\').trim().clone_into(&mut out[at].about);
            }
        } else if let (Some(at), Some((key, value))) = (current, line.split_once('='))
            && (key.trim() == "description" || (key.trim() == "commands" && out[at].about.is_empty()))
        {
            begins = key.trim() == "commands" && value.trim().is_empty();
            value.trim().clone_into(&mut out[at].about);
        }
    }
    if is_tox { Ok(out) } else { Ok(Vec::new()) }
}

fn env(name: Option<&str>, about: &str, line: u32) -> Found {
    Found {
        name: name.unwrap_or("all").to_owned(),
        command: name.map_or("tox".to_owned(), |name| format!("tox -e {name}")),
        about: about.to_owned(),
        line,
        folder: None,
    }
}
