//! Measures `get` in Node with the script in `bindings/node/bench`, which also runs the peers.

use std::process::Command;

use serde::Deserialize;

use crate::process::program;
use crate::table::{Line, Scale, versus};

/// The command that runs the script; `tests/bench/run` builds it.
pub const PROGRAMS: &[&str] = &["node-get"];

/// The names of the lines that the script prints, and their goals.
const GOALS: [(&str, f64); 4] = [
    ("picomatch, 1 variant", 1.5),
    ("micromatch, 1 variant", 0.15),
    ("picomatch, 4 variants", 1.5),
    ("micromatch, 4 variants", 0.15),
];

/// A line in the script's output.
#[derive(Deserialize)]
struct Printed {
    what: String,
    ratio: f64,
    ours_ns: f64,
    peer_ns: f64,
}

/// Measures lookups with one context. The peer is a lookup with scopes in pure JavaScript.
pub fn get(scale: &Scale) -> Vec<Line> {
    let printed = program(PROGRAMS[0]).map(|program| {
        let arguments = [scale.turns.rounds.to_string(), scale.turns.slice.as_micros().to_string()];
        let output = Command::new(program).args(arguments).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8_lossy(&output.stdout);
        lines.lines().map(|line| serde_json::from_str(line).expect("a line of figures")).collect::<Vec<Printed>>()
    });
    GOALS.into_iter().map(|(what, limit)| line(what, limit, printed.as_deref())).collect()
}

fn line(what: &str, limit: f64, printed: Option<&[Printed]>) -> Line {
    let (glob, variants) = what.split_once(", ").unwrap_or((what, ""));
    let found = printed.map(|all| all.iter().find(|figure| figure.what == what));
    let figures = found.flatten();
    Line {
        what: format!("Node get, Context kept, {variants}"),
        limit,
        unit: "x",
        // A line that the script does not print becomes NaN, which misses the goal.
        measured: found.map(|found| found.map_or(f64::NAN, |figure| figure.ratio)),
        peer: format!("pure JavaScript, {glob}{}", if glob == "picomatch" { " compiled" } else { " each call" }),
        absolute: figures.map_or_else(String::new, |figure| versus(figure.ours_ns, figure.peer_ns)),
    }
}
