//! Finds passwords in entries of a netrc file, on one line or several.

use super::classify::{is_passwordish, is_random};
use super::command::{is_flag_value, strip_quotes};

/// The meaning of the next word of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextWord {
    /// The word belongs to no entry.
    Other,
    /// The word is the name of a machine.
    Machine,
    /// The word is `login`, `account` or `password`.
    Key,
    /// The word is the value of `login` or `account`.
    Value,
    Password,
}

/// Finds the literal password of an entry `machine HOST login USER password X`. Any white space may be between the
/// words.
pub(super) fn find_netrc_password(text: &str) -> Option<&'static str> {
    if !text.contains("password") || !(text.contains("machine") || text.contains("default")) {
        return None;
    }
    let (mut next, mut login) = (NextWord::Other, false);
    // Also splits at escaped line breaks and tabs, as in an argument of `printf`.
    let lines = text.split_ascii_whitespace().flat_map(|words| words.split("\\n")).flat_map(|words| words.split("\\t"));
    for word in lines.map(strip_quotes).filter(|word| !word.is_empty()) {
        next = match (next, word) {
            (NextWord::Machine | NextWord::Value, _) => NextWord::Key,
            (NextWord::Password, _) if is_password(word, login) => return Some("netrc-password"),
            (NextWord::Key, "login" | "account") => {
                login |= word == "login";
                NextWord::Value
            }
            (NextWord::Key, "password") => NextWord::Password,
            (_, "machine") => {
                login = false;
                NextWord::Machine
            }
            (_, "default") => {
                login = false;
                NextWord::Key
            }
            (NextWord::Password, _) => NextWord::Key,
            _ => NextWord::Other,
        };
    }
    None
}

/// Returns true when a word is a password. After a login, every literal counts. Otherwise the word must look like a
/// password and not like prose.
fn is_password(word: &str, login: bool) -> bool {
    is_flag_value(word) && (login || is_passwordish(word) || is_random(word, 10))
}
