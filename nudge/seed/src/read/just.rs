//! Reads justfiles, and takes the recipes that need no argument.

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why};

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let mut out: Vec<FoundCommand> = Vec::new();
    let (mut comment, mut is_private) = (None, false);
    for (line, number) in file.text.lines().zip(1..) {
        if line.starts_with([' ', '\t']) {
            if let Some(last) = out.last_mut().filter(|last| last.about.is_empty()) {
                line.trim().trim_start_matches(['@', '-']).trim().clone_into(&mut last.about);
            }
            continue;
        }
        if let Some(text) = line.strip_prefix('#') {
            comment = Some(text.trim()).filter(|text| !text.starts_with('!'));
            continue;
        }
        if line.starts_with('[') {
            is_private |= line.contains("private");
            if let Some(doc) = line.strip_prefix("[doc(").and_then(|rest| rest.split(['\'', '"']).nth(1)) {
                comment = Some(doc);
            }
            continue;
        }
        let about = comment.take().unwrap_or_default();
        let is_private = std::mem::take(&mut is_private);
        let Some(name) = parse_recipe(line).filter(|name| !is_private && !name.starts_with('_')) else { continue };
        let Some(command) = CommandLine::new("just").word(name) else { continue };
        out.push(FoundCommand { name: name.to_owned(), command, about: about.to_owned(), line: number, folder: None });
    }
    Ok(out)
}

/// Returns the name of the recipe in a line; `None` if the recipe needs an argument or the line has no recipe.
fn parse_recipe(line: &str) -> Option<&str> {
    let (head, rest) = line.split_once(':')?;
    let mut words = head.trim_start_matches('@').split_whitespace();
    let name = words.next()?;
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
    let may_be_left_out = |param: &str| param.starts_with('*') || param.contains('=');
    let assigns = rest.starts_with('=');
    (is_name && !assigns && words.all(may_be_left_out)).then_some(name)
}
