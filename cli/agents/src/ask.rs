//! Asks the user questions at the terminal.

use std::io::{BufRead as _, Write as _};

/// Asks the user a yes-or-no question at the terminal. Without an answer, the result is false.
pub fn ask_yes(question: &str) -> bool {
    is_yes(&ask_which(question, "y/N"))
}

/// Asks the user a yes-or-no question at the terminal; the default is yes.
pub fn ask_unless_no(question: &str) -> bool {
    let answer = ask_which(question, "Y/n");
    answer.is_empty() || is_yes(&answer)
}

/// Asks the user at the terminal to choose. Returns the answer in lower case.
pub fn ask_which(question: &str, choices: &str) -> String {
    let _ = write!(std::io::stderr(), "{question} [{choices}] ");
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    answer.trim().to_lowercase()
}

/// Returns true for the answers `y` and `yes`.
pub fn is_yes(answer: &str) -> bool {
    matches!(answer, "y" | "yes")
}
