//! Runs every test vector through the library. `tests/tests/vectors.rs` runs them through every surface.

use std::process::ExitCode;

use nudge_tests::drivers::library::Library;
use nudge_tests::trials;

fn main() -> ExitCode {
    trials::main(vec![|| Box::new(Library::default())])
}
