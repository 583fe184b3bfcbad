//! Shows the progress while a project is read for the first time: one line on the terminal, which is erased at the end.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::{Duration, Instant};

/// The time before the line appears. `EVERY` is the time between two updates of the line.
const BEGINS: Duration = Duration::from_millis(400);
const EVERY: Duration = Duration::from_millis(100);

/// The progress line.
pub struct ProgressLine {
    next: Instant,
    is_seen: bool,
    is_shown: bool,
}

impl ProgressLine {
    /// Makes a progress line. The line is visible only on a terminal.
    pub fn new() -> Self {
        Self { next: Instant::now() + BEGINS, is_seen: stderr().is_terminal(), is_shown: false }
    }

    /// Shows how many files of all files are read.
    pub fn show_count(&mut self, read: usize, all: usize) {
        let now = Instant::now();
        if self.is_seen && now >= self.next {
            self.next = now + EVERY;
            self.is_shown = true;
            // Write errors are ignored: progress output is optional.
            let _ = write!(stderr(), "\r{}\x1b[K", format_line(read, all));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

fn format_line(read: usize, all: usize) -> String {
    format!("reading the code: {read} of {all} files")
}
