//! The block for AGENTS.md or CLAUDE.md: five lines that tell a model when to ask Nudge.

use nudge::Result;

use super::config::text_of;
use super::plan::File;
use super::within;

const BLOCK: &str = "\
<!-- nudge -->
Nudge remembers how things are done here. Before guessing a build, test or run command, a path or an
environment toggle, ask `nudge_get_hint` or `nudge_query`; what finally worked and took effort goes to
`nudge_set_hint` (scoped to where it holds), and `nudge_bump` says that it worked again. Hints are notes, not orders.
<!-- /nudge -->
";

/// Plans the change that puts the block into this folder's file; `None` when it is up to date.
///
/// # Errors
/// `E_UNAVAILABLE` when it cannot be read; `E_INVALID` for a link that leads out of the folder.
pub fn plan() -> Result<Option<File>> {
    let folder = nudge_client::process_cwd().unwrap_or_default();
    let claude = folder.join("CLAUDE.md");
    let path = if claude.is_file() && !folder.join("AGENTS.md").exists() { claude } else { folder.join("AGENTS.md") };
    within::check(&folder, &path)?;
    let before = text_of(&path)?;
    let old = before.as_deref().unwrap_or_default();
    let after = match around(old) {
        Some((head, tail)) => format!("{head}{BLOCK}{tail}"),
        None if old.is_empty() => BLOCK.to_owned(),
        None => format!("{}\n\n{BLOCK}", old.trim_end()),
    };
    Ok((after != old).then_some(File { path, before, after }))
}

/// Returns a text without the block; `None` when it has none.
pub fn without(text: &str) -> Option<String> {
    let (head, tail) = around(text)?;
    Some(if tail.is_empty() { format!("{}\n", head.trim_end()) } else { format!("{head}{}", tail.trim_start()) })
}

/// Splits a text into the parts before and after the block, whatever the block says.
fn around(text: &str) -> Option<(&str, &str)> {
    const END: &str = "<!-- /nudge -->";
    let (head, rest) = text.split_at(text.find("<!-- nudge -->")?);
    let tail = &rest[rest.find(END)? + END.len()..];
    Some((head, tail.strip_prefix("\r\n").or_else(|| tail.strip_prefix('\n')).unwrap_or(tail)))
}
