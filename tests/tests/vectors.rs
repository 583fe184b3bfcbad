//! Runs every vector with every driver. The name of each test is `driver::file::case`. `cargo test -p nudge-tests
//! --test vectors -- library::` runs the tests of one driver.

use std::process::ExitCode;

use nudge_tests::{drivers, trials};

/// Promise (bindings): C, Python, Node, HTTP and the command line answer every test vector as the library does.
fn main() -> ExitCode {
    trials::main(drivers::all())
}
