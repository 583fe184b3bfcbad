//! Makes the speed table of Nudge. Each row measures Nudge and a peer, which does the same work in the same run.
//! `tests/bench/run` builds this program, pins it to processors and runs it. `README.md` explains the rows.

mod allocations;
mod data;
mod growth;
mod measure;
mod peers;
mod process;
mod project;
mod records;
mod rows;
mod table;
mod vault;

use std::process::ExitCode;
use std::time::Duration;

use measure::Turns;
use peers::{bare_http::BARE_HTTP, echo_tool::ECHO_TOOL};
use table::Scale;

const USAGE: &str = "usage: nudge-bench --list | --head | [--smoke] --row NAME \
    | --probe HINTS QUERIES | --growth [(fill | ask) SOURCE ITEMS FOLDER] | --bare-http [BYTES] | --echo-tool";

const FULL: Scale = Scale {
    small: 5_000,
    large: 100_000,
    turns: Turns { rounds: 301, slice: Duration::from_micros(500) },
    long_rounds: 7,
    latencies: 2_000_000,
    counted: 10,
};

/// The scale of a smoke run, which only checks that every row yields figures. The figures mean nothing.
const SMOKE: Scale = Scale {
    small: 200,
    large: 2_000,
    turns: Turns { rounds: 3, slice: Duration::from_micros(20) },
    long_rounds: 1,
    latencies: 20_000,
    counted: 2,
};

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["--list"] => {
            for row in rows::ALL {
                println!("{} {} {}", row.name, row.cpus.as_str(), row.programs.join(","));
            }
            ExitCode::SUCCESS
        }
        ["--head"] => {
            table::print_head();
            ExitCode::SUCCESS
        }
        ["--row", name] => run(name, &FULL),
        ["--smoke", "--row", name] => {
            // A smoke run ignores the goals. It fails only if a figure is missing.
            if run(name, &SMOKE) == ExitCode::from(2) { ExitCode::from(2) } else { ExitCode::SUCCESS }
        }
        ["--probe", hints, queries] => {
            rows::growth::probe(hints.parse().unwrap_or_default(), queries.parse().unwrap_or_default());
            ExitCode::SUCCESS
        }
        ["--growth"] => {
            growth::sources().for_each(|source| println!("{source}"));
            ExitCode::SUCCESS
        }
        ["--growth", does @ ("fill" | "ask"), source, items, folder] => {
            let folder = std::path::Path::new(folder);
            let items = items.parse().unwrap_or_default();
            let done = if does == "fill" { growth::fill } else { growth::ask }(source, folder, items);
            ExitCode::from(u8::from(!done) * 2)
        }
        [BARE_HTTP] => served(peers::bare_http::serve(None)),
        [BARE_HTTP, bytes] => served(peers::bare_http::serve(Some(bytes.parse().unwrap_or_default()))),
        [ECHO_TOOL] => served(peers::echo_tool::serve()),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Returns the exit code of a peer, which runs as a separate process.
fn served(end: std::io::Result<()>) -> ExitCode {
    end.map_or_else(
        |error| {
            eprintln!("{error}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}

/// Runs a row. Returns 0 if it passes, 1 if it misses a goal, and 2 if there is no such row or a figure is missing.
fn run(name: &str, scale: &Scale) -> ExitCode {
    let Some(row) = rows::ALL.iter().find(|row| row.name == name) else {
        eprintln!("no such row; --list names them");
        return ExitCode::from(2);
    };
    let lines = (row.run)(scale);
    lines.iter().for_each(table::Line::print);
    let missing = lines.is_empty() || lines.iter().any(|line| line.measured.is_some_and(f64::is_nan));
    match (missing, lines.iter().any(table::Line::fails)) {
        (true, _) => ExitCode::from(2),
        (false, true) => ExitCode::from(1),
        (false, false) => ExitCode::SUCCESS,
    }
}
