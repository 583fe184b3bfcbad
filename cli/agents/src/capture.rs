//! The part of a hook that captures sessions. At the end of a session, the hook records a job, and starts a process for
//! it that outlives the client. At the start of a session, the hook tells the user that the session will be captured,
//! and starts unfinished jobs again.

use std::path::Path;

use nudge::Result;
use nudge_app::background::start_in_background;
use nudge_app::settings;
use nudge_app::sources;
use nudge_app::sources::capture::{JobFolder, SessionEnd, find_brain_root, is_denied};
use nudge_core::clock::{Clock as _, SystemClock};
use nudge_core::settings::SettingValues;

use super::event::HookEvent;

/// The name of the source that stores captured sessions.
const SOURCE: &str = "brain";
/// The command of this source that works on recorded jobs in the background.
const WORDS: [&str; 2] = ["capture", "--detach"];
/// The time after the creation or the last try of a job, in milliseconds. A job that is still unfinished then counts as
/// abandoned.
const LEFT_MS: i64 = 60_000;

/// Returns the brain for sessions in this folder. Returns `None` when the user does not want to capture them.
fn find_brain(values: &SettingValues, cwd: Option<&Path>) -> Option<std::path::PathBuf> {
    let is_wanted = values.is_on("capture") && !is_denied(&values.get_list("capture_deny"), cwd);
    find_brain_root(values).filter(|_| is_wanted)
}

/// Records a job for an ended session, and starts the work on the job.
pub fn note_end(event: &HookEvent, transcript: &Path, values: &SettingValues) -> Result<()> {
    let Some(brain) = find_brain(values, event.cwd.as_deref()) else { return Ok(()) };
    let end = SessionEnd {
        session: event.session.clone().unwrap_or_default(),
        transcript: transcript.to_owned(),
        cwd: event.cwd.clone(),
    };
    let noted = JobFolder::open(&settings::data_dir(values))?.note_end(&end, &brain, SystemClock.now())?;
    if noted.is_some() { start_work() } else { Ok(()) }
}

/// Returns the text for the user at the start of a session. Starts unfinished jobs again.
pub fn announce_capture(event: &HookEvent, values: &SettingValues) -> Option<String> {
    let brain = find_brain(values, event.cwd.as_deref())?;
    if let Ok(jobs) = JobFolder::open(&settings::data_dir(values))
        && jobs.has_unfinished_since(SystemClock.now().saturating_sub(LEFT_MS))
    {
        let _ = start_work();
    }
    Some(format!(
        "Nudge: when this session ends it will be analysed for {} (`nudge brain jobs` says what became of it)",
        brain.display()
    ))
}

fn start_work() -> Result<()> {
    sources::find_source(SOURCE).map_or(Ok(()), |source| start_in_background(source, &WORDS))
}
