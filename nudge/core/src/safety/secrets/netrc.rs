//! Finds passwords in entries of a netrc file, on one line or several.

use super::classify::{is_passwordish, is_random};
use super::command::{bare, is_flag_value};

/// The meaning of the next word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing of an entry.
    Other,
    /// The machine's name.
    Machine,
    /// `login`, `account` or `password`.
    Key,
    /// The value of `login` or `account`.
    Value,
    Password,
}

/// Finds the literal password of an entry: `machine HOST login USER password X`, in any white space.
pub(super) fn find(text: &str) -> Option<&'static str> {
    if !text.contains("password") || !(text.contains("machine") || text.contains("default")) {
        return None;
    }
    let (mut next, mut login) = (Next::Other, false);
    // A line break may also be written out, as in the argument of `printf`.
    let lines = text.split_ascii_whitespace().flat_map(|words| words.split("\\n")).flat_map(|words| words.split("\\t"));
    for word in lines.map(bare).filter(|word| !word.is_empty()) {
        next = match (next, word) {
            (Next::Machine | Next::Value, _) => Next::Key,
            (Next::Password, _) if is_password(word, login) => return Some("netrc-password"),
            (Next::Key, "login" | "account") => {
                login |= word == "login";
                Next::Value
            }
            (Next::Key, "password") => Next::Password,
            (_, "machine") => {
                login = false;
                Next::Machine
            }
            (_, "default") => {
                login = false;
                Next::Key
            }
            (Next::Password, _) => Next::Key,
            _ => Next::Other,
        };
    }
    None
}

/// Behind a login any literal is one; else prose may speak of a machine and of passwords.
fn is_password(word: &str, login: bool) -> bool {
    is_flag_value(word) && (login || is_passwordish(word) || is_random(word, 10))
}
