//! The command `nudge`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::var_os(nudge_cli::args::COMPLETE_VARIABLE).is_some() {
        nudge_cli::args::complete();
    }
    nudge_cli::cmd::run(std::env::args_os().collect())
}
