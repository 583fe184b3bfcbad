//! The command `nudge`.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    nudge_cli::cmd::run(nudge_cli::args::Args::parse())
}
