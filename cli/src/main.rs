//! The command `nudge`.

use std::process::ExitCode;

fn main() -> ExitCode {
    nudge_cli::main()
}
