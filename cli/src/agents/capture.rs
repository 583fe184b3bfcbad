//! Does a hook's work for captures. The end of a session is noted and worked on by a process that outlives the client;
//! its start tells the user, and goes on with work that was left.

use nudge::Result;
use nudge_core::clock::{Clock as _, SystemClock};
use nudge_core::settings::Values;
use std::path::Path;

use super::event::Event;
use crate::cmd::behind;
use crate::settings;
use crate::sources;
use crate::sources::capture::{Jobs, SessionEnd, is_denied, root};

/// The source that sessions go to, and its command that works on noted sessions, in the background.
const SOURCE: &str = "brain";
const WORDS: [&str; 2] = ["capture", "--detach"];
/// How long after its beginning a job counts as left behind.
const LEFT_MS: i64 = 60_000;

/// Returns the brain for sessions in this folder; `None` when they are not captured.
fn brain(values: &Values, cwd: Option<&Path>) -> Option<std::path::PathBuf> {
    let is_wanted = values.is_on("capture") && !is_denied(&values.list("capture_deny"), cwd);
    root(values).filter(|_| is_wanted)
}

/// Notes the end of a session and starts the work on it.
pub fn ended(event: &Event, transcript: &Path, values: &Values) -> Result<()> {
    let Some(brain) = brain(values, event.cwd.as_deref()) else { return Ok(()) };
    let end = SessionEnd {
        session: event.session.clone().unwrap_or_default(),
        transcript: transcript.to_owned(),
        cwd: event.cwd.clone(),
    };
    let noted = Jobs::open(&settings::data_dir(values))?.note(&end, &brain, SystemClock.now())?;
    if noted.is_some() { start() } else { Ok(()) }
}

/// Returns the text for the user when a session begins. Work that was left is begun again.
pub fn begins(event: &Event, values: &Values) -> Option<String> {
    let brain = brain(values, event.cwd.as_deref())?;
    if let Ok(jobs) = Jobs::open(&settings::data_dir(values))
        && jobs.are_left(SystemClock.now().saturating_sub(LEFT_MS))
    {
        let _ = start();
    }
    Some(format!(
        "Nudge: when this session ends it will be analysed for {} (`nudge brain jobs` says what became of it)",
        brain.display()
    ))
}

fn start() -> Result<()> {
    sources::named(SOURCE).map_or(Ok(()), |source| behind(source, &WORDS))
}
