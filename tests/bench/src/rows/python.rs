//! Measures `get` from Python. `bindings/python/bench.py` makes the comparison.

use std::process::Command;

use crate::process::program;
use crate::table::{Line, Scale, versus};

/// The program that runs `bench.py`, with a Python that has the binding and the libraries to which it is compared.
pub const PROGRAMS: &[&str] = &["nudge-python"];

/// Runs `bench.py`, which measures `get` of a store in its own process: with a reused context, and with a reused view.
pub fn get(scale: &Scale) -> Vec<Line> {
    let smoke = scale.turns.rounds < 100;
    let printed = program("nudge-python").map(|python| {
        let output = Command::new(python).args(smoke.then_some("--smoke")).output().expect("Python runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    });
    printed.map_or_else(
        || {
            vec![Line {
                what: "get from Python".into(),
                limit: 0.3,
                unit: "x",
                measured: None,
                peer: "cachetools.TTLCache get".into(),
                absolute: "not built here".into(),
            }]
        },
        |text| text.lines().map(line).collect(),
    )
}

fn line(text: &str) -> Line {
    let [what, limit, ratio, peer, ours, theirs] =
        text.split('\t').collect::<Vec<_>>().try_into().expect("six cells in a line");
    let number = |cell: &str| cell.parse::<f64>().expect("a number");
    Line {
        what: what.into(),
        limit: number(limit),
        unit: "x",
        measured: Some(number(ratio)),
        peer: peer.into(),
        absolute: versus(number(ours), number(theirs)),
    }
}
