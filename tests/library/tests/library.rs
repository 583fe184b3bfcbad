//! Runs every vector through the library, as `tests/tests/vectors.rs` does through every surface.

use std::process::ExitCode;

use nudge_tests::drivers::library::Library;
use nudge_tests::trials;

fn main() -> ExitCode {
    trials::main(vec![|| Box::new(Library::default())])
}
