//! Rows, what they measure, and the table they end up in.

use crate::measure::{Times, Turns};

/// One entry of the registry in [`crate::rows::ALL`]: a run that yields one or more lines.
pub struct Row {
    /// What `--row` calls it.
    pub name: &'static str,
    /// Where it runs.
    pub cpus: Cpus,
    /// Programs that `tests/bench/run` must build before, see [`crate::process::program`].
    pub programs: &'static [&'static str],
    /// Measures.
    pub run: fn(&Scale) -> Vec<Line>,
}

/// The processors a row needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpus {
    /// Pinned to one.
    One,
    /// Its threads run at the same time.
    Two,
}

impl Cpus {
    /// As `--list` prints it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
        }
    }
}

/// How big and how long.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Hints in a store of the default size.
    pub small: usize,
    /// Hints in a large store.
    pub large: usize,
    /// For work of less than a few milliseconds.
    pub turns: Turns,
    /// Turns for work of a tenth of a second and more.
    pub long_rounds: usize,
    /// Gets of which latencies are taken at a time.
    pub latencies: usize,
    /// Queries by which two counted runs differ.
    pub counted: usize,
}

/// One line of the table.
pub struct Line {
    /// What is measured.
    pub what: String,
    /// At most this.
    pub limit: f64,
    /// What `limit` and `measured` are in; `x` for times the peer's.
    pub unit: &'static str,
    /// `None` where this machine cannot tell.
    pub measured: Option<f64>,
    /// What it is compared with.
    pub peer: String,
    /// Both sides in plain units.
    pub absolute: String,
}

impl Line {
    /// The time of the first contender in terms of the second's.
    pub fn of_times(what: String, limit: f64, peer: &str, times: &Times) -> Self {
        let (measured, absolute) = (Some(times.ratio(0, 1)), versus(times.median(0), times.median(1)));
        Self { what, limit, unit: "x", measured, peer: peer.into(), absolute }
    }

    /// Whether the goal is missed; what cannot be measured is not. A figure that is no number misses.
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

/// A time, in the unit that suits it.
pub fn time(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e4 => format!("{:.2} us", ns / 1e3),
        _ if ns < 1e6 => format!("{:.0} us", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

/// Two times, ours first.
pub fn versus(ours: f64, peer: f64) -> String {
    format!("{} / {}", time(ours), time(peer))
}
