//! `nudge watch`

use std::time::Duration;

use nudge::{ErrorKind, Result};
use serde_json::{Map, Value};

use super::{CommandOutput, RunningSession, TextForm, add_field, parse_value, print_note, print_text};
use crate::args::{GlobalFlags, WatchArgs};
use crate::output;

/// The time for which the server may hold a call while there is no change, in seconds.
const WAIT_S: f64 = 5.0;

/// The pause between two tries to find the next server.
const LOOK: Duration = Duration::from_millis(200);

/// Prints changes until stdout closes. If the server ends, waits for the next server.
pub fn run(args: &WatchArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let mut session = RunningSession::open(global)?;
    let mut next = parse_value(&session.call("nudge.changes", &Map::new())?)?["next"].clone();
    if let Some(since) = &args.since {
        let params = Map::from_iter([("since".to_owned(), since.as_str().into()), ("limit".to_owned(), 1_000.into())]);
        let logged = parse_value(&session.call("nudge.change_log", &params)?)?;
        if !print_changes(&logged, args, global) {
            return Ok(String::new().into());
        }
    }
    loop {
        let mut params = Map::new();
        add_field(&mut params, "since", next.clone());
        add_field(&mut params, "wait_s", WAIT_S);
        let answer = match session.call("nudge.changes", &params) {
            Ok(answer) => parse_value(&answer)?,
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                print_note("the server has ended; waiting for the next one, until Ctrl-C");
                match next_session(global) {
                    Some(next) => session = next,
                    None => return Ok(String::new().into()),
                }
                print_note("a server answers again");
                continue;
            }
            Err(error) => return Err(error),
        };
        if let Some(missed @ 1..) = answer["missed"].as_u64() {
            print_note(&format!("{missed} changes came too fast and are not shown"));
        }
        if !print_changes(&answer, args, global) {
            return Ok(String::new().into());
        }
        if nobody_reads(ReaderWait::Not) {
            return Ok(String::new().into());
        }
        next = answer["next"].clone();
    }
}

/// Prints the wanted changes of an answer. Returns false when the reader of the output has closed the pipe.
fn print_changes(answer: &Value, args: &WatchArgs, global: &GlobalFlags) -> bool {
    let mut wanted = answer["changes"].as_array().into_iter().flatten().filter(|change| is_wanted(change, args));
    wanted.all(|change| {
        let (line, form) = if global.json {
            (format!("{change}\n"), TextForm::Json)
        } else {
            (output::render_change(change), TextForm::Pretty)
        };
        print_text(&line, form).is_ok_and(|open| open)
    })
}

/// Waits for a server that answers. Returns `None` when the reader of the output has closed the pipe.
fn next_session(global: &GlobalFlags) -> Option<RunningSession> {
    loop {
        if nobody_reads(ReaderWait::Not) {
            return None;
        }
        let found = RunningSession::open(global).ok();
        match found.filter(|session| session.call("nudge.changes", &Map::new()).is_ok()) {
            Some(session) => return Some(session),
            None => std::thread::sleep(LOOK),
        }
    }
}

/// How [`nobody_reads`] waits.
#[derive(Clone, Copy)]
pub enum ReaderWait {
    /// Does not wait; returns the present state.
    Not,
    /// Waits until the reader closes the pipe.
    ForIt,
}

/// Returns true when the reader of the output has closed the pipe. Without this, `nudge watch | head -1` would wait for
/// a second change.
#[cfg(unix)]
pub fn nobody_reads(wait: ReaderWait) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let stdout = std::io::stdout();
    let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let limit = match wait {
        ReaderWait::Not => Some(&at_once),
        ReaderWait::ForIt => None,
    };
    let answered = poll(&mut asked, limit).is_ok();
    answered && asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

#[cfg(not(unix))]
pub fn nobody_reads(_: ReaderWait) -> bool {
    false
}

/// Returns true for a change to print. With a component, only changes of its hints are printed. A change of many hints
/// at once names no component, so it is always printed.
fn is_wanted(change: &Value, args: &WatchArgs) -> bool {
    args.component.as_deref().is_none_or(|component| {
        change["source"] == nudge::HINTS && change.get("component").is_none_or(|name| name == component)
    })
}
