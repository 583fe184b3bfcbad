//! Decides which files are not source: a file that git ignores, a file in a build folder, and a generated or vendored
//! file.

use std::path::Path;

pub use nudge_core::walk::{FILES, FolderRules};
use nudge_core::walk::{RuleSources, common_dir};

use crate::root::ProjectRoot;

/// The folders that are left out when the project has no git, and so no `.gitignore` for them.
const NOT_SOURCE: &[&str] = &["node_modules", "target", "dist", "build", ".venv", "venv", "vendor", "__pycache__"];
/// The git attributes that mark a file as not source.
const ATTRIBUTES: &[&str] = &["linguist-generated", "linguist-vendored"];
/// The reasons for leaving out a file, in the order of `ATTRIBUTES`.
const REASONS: [&str; 2] = ["generated", "vendored"];

/// Calls `run` with the places from which the rules of a root are read.
pub fn with_sources<T>(root: &ProjectRoot, run: impl FnOnce(&RuleSources<'_>) -> T) -> T {
    let common = root.git_dir().map(common_dir);
    run(&RuleSources { git: common.as_deref(), first: &[], attributes: ATTRIBUTES })
}

/// Returns true if the name of a file or folder allows that it is source.
pub fn is_source(root: &ProjectRoot, path: &Path, is_folder: bool) -> bool {
    let may_be_built = is_folder && root.git_dir().is_none();
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_none_or(|name| !(name.starts_with('.') || may_be_built && NOT_SOURCE.contains(&name)))
}

/// Returns the reason why the attributes of a file leave it out; `None` if they do not.
pub fn skip_reason(rules: &FolderRules, path: &Path) -> Option<&'static str> {
    REASONS.get(rules.find_attribute(path)?).copied()
}
