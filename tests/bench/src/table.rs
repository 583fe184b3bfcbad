//! Defines the rows, their measurements, and the table.

use crate::measure::{Times, Turns};

/// An entry of [`crate::rows::ALL`]. A run of the row yields one or more lines.
pub struct Row {
    /// The name of the row, for `--row`.
    pub name: &'static str,
    /// The processors on which the row runs.
    pub cpus: Cpus,
    /// The programs that `tests/bench/run` must build first; see [`crate::process::program`].
    pub programs: &'static [&'static str],
    /// Measures the row.
    pub run: fn(&Scale) -> Vec<Line>,
}

/// The processors that a row needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpus {
    /// The row is pinned to one processor.
    One,
    /// The row has two processors, because its threads run at the same time.
    Two,
}

impl Cpus {
    /// Returns the text for `--list`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
        }
    }
}

/// The sizes of the stores and the numbers of turns.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// The number of hints in a store of the default size.
    pub small: usize,
    /// The number of hints in a large store.
    pub large: usize,
    /// The turns for work that takes less than a few milliseconds.
    pub turns: Turns,
    /// The number of turns for work that takes a tenth of a second or more.
    pub long_rounds: usize,
    /// The number of `get` calls whose latencies make one measurement.
    pub latencies: usize,
    /// The difference between the numbers of queries in two counted runs.
    pub counted: usize,
}

/// A line of the table.
pub struct Line {
    /// The work that is measured.
    pub what: String,
    /// The largest allowed figure.
    pub limit: f64,
    /// The unit of `limit` and `measured`. `x` means a ratio to the peer.
    pub unit: &'static str,
    /// The measured figure. `None` if this machine cannot measure it.
    pub measured: Option<f64>,
    /// The name of the peer.
    pub peer: String,
    /// The figures of both sides with their units.
    pub absolute: String,
}

impl Line {
    /// Makes a line with the ratio of the first contender's time to the second contender's time.
    pub fn of_times(what: String, limit: f64, peer: &str, times: &Times) -> Self {
        let (measured, absolute) = (Some(times.ratio(0, 1)), versus(times.median(0), times.median(1)));
        Self { what, limit, unit: "x", measured, peer: peer.into(), absolute }
    }

    /// Returns true if the line misses its goal. A missing figure passes, and NaN fails.
    pub fn fails(&self) -> bool {
        self.measured.is_some_and(|measured| measured.is_nan() || measured > self.limit)
    }

    fn cells(&self) -> [String; 6] {
        let measured = self.measured.map_or_else(|| "n/a".into(), |number| figure(number, self.unit));
        let verdict = if self.fails() {
            "FAIL"
        } else if self.measured.is_some() {
            "pass"
        } else {
            "n/a"
        };
        [
            self.what.clone(),
            format!("<= {}", figure(self.limit, self.unit)),
            self.peer.clone(),
            measured,
            self.absolute.clone(),
            verdict.into(),
        ]
    }

    /// Prints the line.
    pub fn print(&self) {
        print_cells(&self.cells());
    }
}

/// Prints the head of the table.
pub fn print_head() {
    let head = ["row", "goal", "peer in the same run", "ratio", "absolute", "pass"];
    print_cells(&head.map(Into::into));
    println!("|{}", "---|".repeat(head.len()));
}

fn print_cells([what, goal, peer, ratio, absolute, verdict]: &[String; 6]) {
    println!("| {what:<39} | {goal:<16} | {peer:<36} | {ratio:>13} | {absolute:<38} | {verdict} |");
}

fn figure(number: f64, unit: &str) -> String {
    let digits = if number.fract() == 0.0 || number >= 100.0 {
        0
    } else {
        usize::from(number < 10.0) + 1 + usize::from(number < 0.1)
    };
    if unit == "x" { format!("{number:.digits$}x") } else { format!("{number:.digits$} {unit}").trim_end().into() }
}

/// Formats a time in nanoseconds with a suitable unit.
pub fn time(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e4 => format!("{:.2} us", ns / 1e3),
        _ if ns < 1e6 => format!("{:.0} us", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

/// Formats two times. Nudge's time comes first.
pub fn versus(ours: f64, peer: f64) -> String {
    format!("{} / {}", time(ours), time(peer))
}
