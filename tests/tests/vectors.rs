//! Runs every vector with every driver; each is a test named `driver::file::case`. `cargo test -p nudge-tests --test
//! vectors -- library::` runs a part of them.

use std::process::ExitCode;

use nudge_tests::{drivers, trials};

/// Promise (bindings): C, Python, Node, HTTP and the command line answer every test vector as the library does.
fn main() -> ExitCode {
    trials::main(drivers::all())
}
