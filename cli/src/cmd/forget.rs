//! `nudge forget`

use nudge::{Error, Result, Service as _};
use nudge_app::evidence::EvidenceStore;
use nudge_app::kept;
use nudge_app::kept::folder::KeptFolder;
use nudge_app::kept::state_folder::StateDirectory;
use nudge_app::unserved::count_kept;
use nudge_client::{PrimaryLock, RemoteServer, RuntimeDir, SessionState};
use serde::Deserialize;
use serde_json::{Map, json};

use super::{CommandOutput, ask_consent, parsed_as, to_raw};
use crate::args::{ForgetArgs, GlobalFlags};
use crate::output;

/// Removes the kept hints: through the session that keeps them now, or else the files themselves.
pub fn run(args: &ForgetArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let (folder, state_folder) = (KeptFolder::from_settings()?, StateDirectory::from_user().ok());
    let file = folder.database_path();
    let evidence = EvidenceStore::from_settings()?;
    let has_counts = evidence.is_used();
    let has_earlier = state_folder.as_ref().is_some_and(StateDirectory::has_earlier);
    if !folder.is_used() && !has_earlier && !has_counts {
        return Ok(report_forgotten(global, 0, "nothing is kept\n".into(), &folder));
    }
    // If the lock is free, no session keeps hints. The lock is released again before the user is asked.
    let keeper = match folder.lock(None)? {
        Some(_) => None,
        None => Some(connect_keeper(&folder, global)?),
    };
    let hints = match &keeper {
        Some(remote) => {
            let status = remote.call("nudge.status", &to_raw(&Map::new())?)?;
            kept::count_kept(&status)
        }
        // If the hints cannot be read, the command removes them too.
        None => count_kept().ok().map(|kept| kept.map_or(0, |(count, _)| count)),
    };
    let killed = keeper.is_none() && find_killed(&folder).is_some();
    let shown = output::make_visible(&file.display().to_string());
    let how_many = match hints {
        Some(1) => "1 hint is".to_owned(),
        Some(count) => format!("{count} hints are"),
        None => "Hints that cannot be counted are".to_owned(),
    };
    let has_files = folder.has_database() || folder.find_copy().is_some() || has_earlier || has_counts;
    if hints == Some(0) && keeper.is_none() && !killed && !has_files {
        return Ok(report_forgotten(global, 0, "nothing is kept\n".into(), &folder));
    }
    let mut beside =
        if has_counts { ", and the counts of earlier sessions beside it".to_owned() } else { String::new() };
    if killed {
        beside += ", and what the last session had not written when it was killed";
    }
    ask_consent(args.yes, &format!("{how_many} kept in {shown}{beside}. Forget them?"))?;
    let forgotten = if let Some(remote) = &keeper {
        #[derive(Deserialize)]
        struct ForgottenAnswer {
            forgotten: usize,
        }
        let done = remote.call("nudge.forget", &to_raw(&Map::new())?)?;
        parsed_as::<ForgottenAnswer>(&done)?.forgotten
    } else {
        let again = || Error::unavailable("A session has begun to keep hints meanwhile; try again.");
        let _lock = folder.lock(None)?.ok_or_else(again)?;
        folder.remove_database()?;
        let removed = state_folder.map_or(Ok(()), |state_folder| state_folder.remove_earlier());
        removed.map_err(|error| Error::unavailable(format!("An earlier copy stays: {error}; remove it.")))?;
        evidence.forget()?;
        // Ends a session that was killed; otherwise the next session would write its hints again, from its journal.
        if let Some((dir, lock)) = self::find_killed(&folder) {
            dir.remove_session(&lock)?;
        }
        hints.unwrap_or_default()
    };
    let count = if forgotten == 1 { "1 hint".to_owned() } else { format!("{forgotten} hints") };
    let beside = if keeper.is_some() { "; what the running session holds ends with it" } else { "" };
    Ok(report_forgotten(global, forgotten, format!("forgot {count} of {shown}{beside}\n"), &folder))
}

/// Returns the runtime directory of the session that last kept hints, and its lock, if all its processes were killed.
fn find_killed(folder: &KeptFolder) -> Option<(RuntimeDir, PrimaryLock)> {
    let dir = RuntimeDir::open(Some(&folder.read_owner()?)).ok()?;
    let lock = dir.try_lock().ok()??;
    let over = dir.session_is_over(&lock).ok()?;
    let kept = matches!(dir.read_session(), SessionState::Lives(session) if session.keep);
    (over && kept).then_some((dir, lock))
}

/// Connects to the session that holds the lock of the kept hints.
pub(super) fn connect_keeper(folder: &KeptFolder, global: &GlobalFlags) -> Result<RemoteServer> {
    let dir = RuntimeDir::open(folder.read_owner().as_deref().or(global.runtime_dir.as_deref()))?;
    RemoteServer::connect(&dir)
}

fn report_forgotten(global: &GlobalFlags, forgotten: usize, text: String, folder: &KeptFolder) -> CommandOutput {
    let earlier = StateDirectory::from_user().map_or_else(|_| Vec::new(), |folder| folder.list_aside());
    let aside: Vec<_> = folder.list_set_aside().iter().chain(&earlier).map(|path| path.display().to_string()).collect();
    if global.json {
        return format!("{}\n", json!({"forgotten": forgotten, "aside": aside})).into();
    }
    let left =
        aside.iter().map(|path| format!("  set aside before, and still there: {}\n", output::make_visible(path)));
    (text + &left.collect::<String>()).into()
}
