//! Reads Go modules. Every module is built and tested with the same commands.

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why};

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let Some(module) = file.text.lines().find_map(|line| line.strip_prefix("module ")) else { return Ok(Vec::new()) };
    let line = file.line_where(|line| line.starts_with("module ")).unwrap_or(1);
    let make_command = |name: &'static str, does: &str| FoundCommand {
        name: name.to_owned(),
        command: CommandLine::new("go").with_words(name).with_words("./..."),
        about: format!("{does} {}", module.trim()),
        line,
        folder: None,
    };
    Ok(vec![make_command("build", "builds"), make_command("test", "tests")])
}
