//! Reads the sessions of nox from the lines of the file. It does not run the file.

use nudge_core::text::before_mark;

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why};

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let mut out: Vec<FoundCommand> = Vec::new();
    // The number of the line of a session's decorator, and the name that the decorator gives to the session.
    let mut session: Option<(u32, Option<String>)> = None;
    let mut is_after_def = false;
    for (line, number) in file.text.lines().zip(1..) {
        let text = line.trim();
        if ["@nox.session", "@session", "@nox_session"].iter().any(|start| text.starts_with(start)) {
            session = Some((number, None));
        }
        if let Some((_, name)) = session.as_mut().filter(|(_, name)| name.is_none()) {
            *name = text.split_once("name=").and_then(|(_, rest)| rest.split(['"', '\'']).nth(1)).map(str::to_owned);
        }
        if let Some(rest) = text.strip_prefix("def ")
            && let Some((line, given)) = session.take()
        {
            let name = given.unwrap_or_else(|| before_mark(rest, &['(']).trim().to_owned());
            let command = CommandLine::new("nox -s").word(&name).filter(|_| !name.starts_with('_'));
            is_after_def = command.is_some();
            if let Some(command) = command {
                out.push(FoundCommand { name, command, about: String::new(), line, folder: None });
            }
        } else if is_after_def && !text.ends_with("):") && !text.is_empty() {
            if let (Some(last), true) = (out.last_mut(), text.starts_with("\"\"\"")) {
                text.trim_matches('"').trim().clone_into(&mut last.about);
            }
            is_after_def = text.ends_with(',');
        }
    }
    Ok(out)
}
