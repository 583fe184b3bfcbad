//! The command `nudge`: its arguments, its commands and their output.
//!
//! This crate does not score hints: every answer comes from a [`nudge::Service`].

pub mod args;
pub mod cmd;
pub mod limits;
pub mod output;
pub mod usage;

/// Runs the command line of this process.
pub fn main() -> std::process::ExitCode {
    if std::env::var_os(args::COMPLETE_VARIABLE).is_some() {
        args::answer_completion();
    }
    limits::survive_file_size_limit();
    let code = cmd::run_command_line(&std::env::args_os().collect::<Vec<_>>());
    nudge_os::process::end_all();
    code
}
