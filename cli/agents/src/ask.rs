//! Questions to the user at the terminal.

use std::io::{BufRead as _, Write as _};

/// Asks the user a yes-or-no question at the terminal; the default is no.
pub fn ask_yes(question: &str) -> bool {
    is_yes(&ask_which(question, "y/N"))
}

/// Asks the user at the terminal to choose; returns the answer in lower case.
pub fn ask_which(question: &str, choices: &str) -> String {
    let _ = write!(std::io::stderr(), "{question} [{choices}] ");
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    answer.trim().to_lowercase()
}

/// Returns true for an answer that consents.
pub fn is_yes(answer: &str) -> bool {
    matches!(answer, "y" | "yes")
}
