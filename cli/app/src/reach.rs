//! Reach: a hint that is stored without a scope from inside a git repository is limited to that repository (semantics
//! section 12). The command line and the server of a stdio client have their caller's folder. They name the
//! repository in the call's context, and the method limits the hint to it.

use nudge_core::settings::SettingValues;

/// The method that stores a hint.
pub const SET_HINT: &str = "nudge.set_hint";
/// The setting that says where hints without a scope apply.
const SETTING: &str = "default_reach";
/// The value of the setting that limits no hint to a repository.
const EVERYWHERE: &str = "everywhere";

/// Returns true when hints without a scope are limited to the caller's repository.
pub fn is_of_repository(values: &SettingValues) -> bool {
    values.get_text(SETTING) != EVERYWHERE
}

/// Returns the pattern of a folder and everything below it.
pub fn pattern_below(folder: &str) -> String {
    format!("{}/**", escape_pattern(folder.trim_end_matches('/')))
}

/// Returns the pattern of exactly one folder, whatever characters its name has.
pub fn escape_pattern(folder: &str) -> String {
    let plain = |c: char| if "*?[]{}".contains(c) { format!("[{c}]") } else { c.to_string() };
    folder.chars().map(plain).collect()
}
