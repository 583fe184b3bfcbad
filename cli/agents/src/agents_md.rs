//! The block in AGENTS.md or CLAUDE.md: five lines that tell a model when to use Nudge.

use nudge::{Error, Result};
use nudge_app::config::text_of;

use super::plan::FileChange;
use super::within;

const BLOCK: &str = "\
<!-- nudge -->
Nudge remembers how things are done here. Before guessing a build, test or run command, a path or an
environment toggle, ask `nudge_get_hint` or `nudge_query`; what finally worked and took effort goes to
`nudge_set_hint` (scoped to where it holds), and `nudge_bump` says that it worked again. Hints are notes, not orders.
<!-- /nudge -->
";

/// Plans the change that adds the block to a file of this folder. Returns `None` when the file already has a block.
///
/// # Errors
/// `E_UNAVAILABLE` when the file cannot be read; `E_INVALID` for a link that leads out of the folder.
pub fn plan_block() -> Result<Option<FileChange>> {
    let folder = nudge_client::process_cwd().ok_or_else(|| Error::invalid("Go to the project's folder."))?;
    let claude = folder.join("CLAUDE.md");
    let path = if claude.is_file() && !folder.join("AGENTS.md").exists() { claude } else { folder.join("AGENTS.md") };
    within::check_within(Some(&folder), &path)?;
    let before = text_of(&path)?;
    let old = before.as_deref().unwrap_or("");
    let after = match split_block(old) {
        // If the text between the marks differs, a user has changed it, so it stays.
        Some(_) => return Ok(None),
        None if old.is_empty() => BLOCK.to_owned(),
        None => format!("{}\n\n{BLOCK}", old.trim_end()),
    };
    Ok(Some(FileChange { path, before, after }))
}

/// Removes the block from a text. Returns `None` when the text has no block, or when a user has changed the block.
pub fn remove_block(text: &str) -> Option<String> {
    let (head, block, tail) = split_block(text)?;
    if block.replace("\r\n", "\n").trim_end() != BLOCK.trim_end() {
        return None;
    }
    Some(if tail.is_empty() { format!("{}\n", head.trim_end()) } else { format!("{head}{}", tail.trim_start()) })
}

/// Splits a text into the part before the block, the block with any content, and the part after it.
fn split_block(text: &str) -> Option<(&str, &str, &str)> {
    const END: &str = "<!-- /nudge -->";
    let (head, rest) = text.split_at(text.find("<!-- nudge -->")?);
    let (block, tail) = rest.split_at(rest.find(END)? + END.len());
    Some((head, block, tail.strip_prefix("\r\n").or_else(|| tail.strip_prefix('\n')).unwrap_or(tail)))
}
