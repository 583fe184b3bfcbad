//! Reach: a hint that a caller stores without a scope inside a git repository is limited to that repository (semantics
//! section 12). The command line and the server of a stdio client can see their caller's folder. They put the
//! repository's name into the call's context, and the method limits the hint to that repository.

use nudge_core::settings::SettingValues;

/// The method that stores a hint.
pub const SET_HINT: &str = "nudge.set_hint";
/// The setting that decides where hints without a scope apply.
const SETTING: &str = "default_reach";
/// The value of the setting that limits no hint to a repository.
const EVERYWHERE: &str = "everywhere";

/// Returns true when the settings limit hints without a scope to the caller's repository.
pub fn is_of_repository(values: &SettingValues) -> bool {
    values.get_text(SETTING) != EVERYWHERE
}

/// Returns the pattern that matches everything below a folder.
pub fn pattern_below(folder: &str) -> String {
    format!("{}/**", escape_pattern(folder.trim_end_matches('/')))
}

/// Returns the pattern that matches one folder exactly, even if its name contains pattern characters.
pub fn escape_pattern(folder: &str) -> String {
    let plain = |c: char| if "*?[]{}".contains(c) { format!("[{c}]") } else { c.to_string() };
    folder.chars().map(plain).collect()
}
