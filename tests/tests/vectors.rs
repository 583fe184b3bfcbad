//! Puts every vector through every driver; each is a test of its own, named
//! `driver::file::case`. Run a part with `cargo test -p nudge-tests --test vectors -- library::`.

use std::process::ExitCode;

use nudge_tests::{drivers, trials};

/// Promise (bindings): C, Python, Node, HTTP and the command line answer every test vector as the library does.
fn main() -> ExitCode {
    trials::main(drivers::all())
}
