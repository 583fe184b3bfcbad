//! Measures in instructions how the work of a query grows with the store. Times would also contain cache misses.

use std::process::Command;

use nudge::QueryHints;

use super::contention::count;
use crate::data;
use crate::table::{Line, Scale};

/// Runs in the child process whose instructions are counted: fills a store, then queries it.
pub fn probe(hints: usize, queries: usize) {
    let nudge = data::store(&data::seeds(hints));
    for _ in 0..queries {
        let query = QueryHints { context: data::place(), ..QueryHints::default() };
        std::hint::black_box(nudge.query(query).expect("the query is valid"));
    }
}

/// Returns the instructions of one query: the difference between two counted runs. Returns `None` without valgrind.
fn instructions(hints: usize, queries: usize) -> Option<f64> {
    let run = |queries: usize| {
        let out = Command::new("valgrind")
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(std::env::current_exe().ok()?)
            .args(["--probe", &hints.to_string(), &queries.to_string()])
            .output()
            .ok()?;
        let report = String::from_utf8_lossy(&out.stderr);
        let total = report.lines().find_map(|line| line.split_once(" refs:"))?.1;
        total.trim().replace(',', "").parse::<f64>().ok()
    };
    Some((run(1 + queries)? - run(1)?) / queries as f64)
}

/// Computes the exponent of growth: how the instructions of a query grow from the small store to the large one.
pub fn query(scale: &Scale) -> Vec<Line> {
    // Both stores check the same number of hints in all. Other differences between the runs then have the same weight.
    let factor = scale.large / scale.small;
    let small = instructions(scale.small, scale.counted * factor);
    let large = small.and_then(|_| instructions(scale.large, scale.counted));
    let exponent = small.zip(large).map(|(small, large)| (large / small).ln() / (factor as f64).ln());
    let absolute = small.zip(large).map(|(small, large)| format!("{large:.0} / {small:.0}"));
    vec![Line {
        what: format!("query, instructions, {} to {}", count(scale.small), count(scale.large)),
        limit: 1.05,
        unit: "exponent",
        measured: exponent,
        peer: "itself".into(),
        absolute: absolute.unwrap_or_else(|| "needs valgrind".into()),
    }]
}
