//! The block for AGENTS.md or CLAUDE.md: five lines that say when to ask.

use std::fs;

use nudge::{Error, ErrorKind, Result};

use super::plan::File;

const BLOCK: &str = "\
<!-- nudge -->
Nudge remembers how things are done here. Before guessing a build, test or run command, a path or an
environment toggle, ask `nudge_get_hint` or `nudge_query`; what finally worked and took effort goes to
`nudge_set_hint` (scoped to where it holds), and `nudge_bump` says that it worked again. Hints are notes, not orders.
<!-- /nudge -->
";

/// The file of this folder with the block, if it is not there yet.
///
/// # Errors
/// `E_UNAVAILABLE` when it cannot be read.
pub fn plan() -> Result<Option<File>> {
    let folder = nudge_client::process_cwd().unwrap_or_default();
    let claude = folder.join("CLAUDE.md");
    let path = if claude.is_file() && !folder.join("AGENTS.md").exists() { claude } else { folder.join("AGENTS.md") };
    let before = match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            let message = format!("Cannot read {}: {error}; make it readable.", path.display());
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
    };
    let old = before.as_deref().unwrap_or_default();
    let after = match (old.find("<!-- nudge -->"), old.find("<!-- /nudge -->\n")) {
        (Some(from), Some(to)) if from < to => {
            format!("{}{BLOCK}{}", &old[..from], &old[to + "<!-- /nudge -->\n".len()..])
        }
        _ if old.is_empty() => BLOCK.to_owned(),
        _ => format!("{}\n\n{BLOCK}", old.trim_end()),
    };
    Ok((after != old).then_some(File { path, before, after }))
}
