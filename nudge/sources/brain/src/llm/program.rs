//! Runs a program that gets a text and answers with a text, within a time limit.

use std::time::Duration;

use nudge_core::source::StopFlag;
use nudge_os::process::{ChildProgram, RunFailure, RunLimits};

use super::RequestFault;

/// The most bytes of an answer.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// The environment variables that an agent sets for its children. They are removed, so that a child agent does not run
/// as a part of the parent agent.
const OF_THE_CALLER: [&str; 5] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SESSION_ATTENDED",
];

/// Runs a program, and returns its output. The variable `NUDGE_CAPTURE=0` keeps Nudge's hooks from capturing the
/// session of this program.
pub fn run_program(
    program: &mut ChildProgram,
    name: &str,
    stdin: &str,
    limit: Duration,
    stop: &StopFlag,
) -> Result<String, RequestFault> {
    program.input(stdin).env("NUDGE_CAPTURE", "0");
    for name in OF_THE_CALLER {
        program.env_remove(name);
    }
    let limits = RunLimits { time: limit, output_bytes: MAX_ANSWER_BYTES, is_given_up: &|| stop.is_set() };
    let output = program.run(limits).map_err(|failure| match failure {
        RunFailure::GivenUp => RequestFault::new_passing(format!("{name} was interrupted")),
        RunFailure::Late(_) => RequestFault::new_passing(format!("{name} gave no answer in {} s", limit.as_secs())),
        RunFailure::TooLong(bytes) => {
            RequestFault::new_passing(format!("{name} answered with more than {bytes} bytes"))
        }
        failure => RequestFault::new_lasting(format!("{name} {failure}")),
    })?;
    if !output.status.success() {
        let how = output.status.code().map_or_else(|| "by a signal".to_owned(), |code| format!("with code {code}"));
        return Err(RequestFault::new_passing(format!("{name} ended {how}")));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| RequestFault::new_passing(format!("{name} answered with what is no text")))
}
