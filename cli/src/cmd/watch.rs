//! `nudge watch`

use nudge::Result;
use serde_json::{Map, Value};

use super::{CommandOutput, Form, RunningSession, add, parsed, print, tell};
use crate::args::{Global, Watch};
use crate::output;

/// Time for which the server may hold a call when nothing changes.
const WAIT_S: f64 = 5.0;

/// Prints changes until stdout closes or the server ends.
pub fn run(args: &Watch, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut next = parsed(&session.call("nudge.changes", &Map::new())?)?["next"].clone();
    loop {
        let mut params = Map::new();
        add(&mut params, "since", next);
        add(&mut params, "wait_s", WAIT_S);
        let answer = parsed(&session.call("nudge.changes", &params)?)?;
        if let Some(missed @ 1..) = answer["missed"].as_u64() {
            tell(&format!("{missed} changes came too fast and are not shown"));
        }
        for change in answer["changes"].as_array().into_iter().flatten().filter(|change| wanted(change, args)) {
            let (line, form) =
                if global.json { (format!("{change}\n"), Form::Json) } else { (output::change(change), Form::Pretty) };
            if !print(&line, form).is_ok_and(|open| open) {
                return Ok(String::new().into());
            }
        }
        if nobody_reads() {
            return Ok(String::new().into());
        }
        next = answer["next"].clone();
    }
}

/// Returns true when the reader of a pipe has gone. Without this `nudge watch | head -1` would wait for a second
/// change.
#[cfg(unix)]
fn nobody_reads() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let stdout = std::io::stdout();
    let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let answered = poll(&mut asked, Some(&at_once)).is_ok();
    answered && asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

#[cfg(not(unix))]
fn nobody_reads() -> bool {
    false
}

/// Returns true for a change to print: any, or those of a component's hints. A change of many hints at once has no
/// component, and may be of any.
fn wanted(change: &Value, args: &Watch) -> bool {
    args.component.as_deref().is_none_or(|component| {
        change["source"] == nudge::HINTS && change.get("component").is_none_or(|name| name == component)
    })
}
