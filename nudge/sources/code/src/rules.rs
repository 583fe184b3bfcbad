//! Decides which files are no source: ignored by git, in a build folder, generated or vendored.

use std::path::Path;

pub use nudge_core::walk::{FILES, FolderRules};
use nudge_core::walk::{RuleSources, common_dir};

use crate::root::ProjectRoot;

/// The folders that are left out if the project has no git to ignore them.
const NOT_SOURCE: &[&str] = &["node_modules", "target", "dist", "build", ".venv", "venv", "vendor", "__pycache__"];
/// The attributes that leave a file out.
const ATTRIBUTES: &[&str] = &["linguist-generated", "linguist-vendored"];
/// The reasons, in the order of the attributes.
const REASONS: [&str; 2] = ["generated", "vendored"];

/// Calls `run` with the sources of a root's rules.
pub fn with_sources<T>(root: &ProjectRoot, run: impl FnOnce(&RuleSources<'_>) -> T) -> T {
    let common = root.git_dir().map(common_dir);
    run(&RuleSources { git: common.as_deref(), first: &[], attributes: ATTRIBUTES })
}

/// Returns true if an entry is source by its name.
pub fn is_source(root: &ProjectRoot, path: &Path, is_folder: bool) -> bool {
    let may_be_built = is_folder && root.git_dir().is_none();
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_none_or(|name| !(name.starts_with('.') || may_be_built && NOT_SOURCE.contains(&name)))
}

/// Returns the reason for leaving out a file that is not ignored, if there is one.
pub fn skip_reason(rules: &FolderRules, path: &Path) -> Option<&'static str> {
    REASONS.get(rules.find_attribute(path)?).copied()
}
