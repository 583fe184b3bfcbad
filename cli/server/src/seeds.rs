//! Updates hints from the files of the clone in which an agent works (semantics section 20).

use std::path::Path;
use std::sync::Arc;

use nudge_app::committed::{self, TrustFile};
use nudge_app::context::ContextInference;
use nudge_app::seed::{self, Call, RefreshRule, SeededClones};
use nudge_app::wire::{parsed_as, to_raw};
use nudge_client::process_cwd;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::StdioUse;
use super::session::backend::CallBackend;

/// Updates the hints of this process's clone in the background. A session starts without the hints of files, and a
/// client without hooks reports no event that would update them. In a clone without seeds and without `.nudge.json`,
/// this function only checks for two files.
pub fn follow_clone_files(stdio: &StdioUse, backend: &Arc<CallBackend>) {
    if matches!(stdio, StdioUse::Mcp { profile: Some(_), .. }) {
        return;
    }
    let Some(top) = process_cwd().and_then(|cwd| seed::top_of(&cwd)) else { return };
    let is_seeded = SeededClones::read_unlocked().is_ok_and(|clones| clones.get(&top).is_some());
    if !is_seeded && !committed::is_there(&top) {
        return;
    }
    let (backend, here) = (Arc::clone(backend), Handle::current());
    spawn_blocking(move || {
        let call = |method: &str, params: &Map<String, Value>| {
            parsed_as(&here.block_on(backend.call(method, &to_raw(params)?))?)
        };
        let repo = || ContextInference::of_files_alone().find_repository(&top);
        match committed::find_session(&call) {
            Ok(session) => follow_clone(&top, RefreshRule::IfChanged, repo, &session, &call),
            Err(error) => tracing::warn!(error = error.message(), "the files of this clone are not followed"),
        }
    });
}

/// Updates the hints of a clone in this session from the files that the user trusts or has seeded. `repo` returns the
/// name of the clone's repository.
pub fn follow_clone(
    top: &Path,
    rule: RefreshRule<'_>,
    repo: impl FnOnce() -> Option<String>,
    session: &str,
    call: Call<'_>,
) {
    if committed::is_there(top)
        && let Some(repo) = repo()
        && let Err(error) = committed::load_trusted(top, &repo, call)
    {
        tracing::warn!(error = error.message(), "the hints that come with this clone are not told");
    }
    match seed::refresh_clone(top, rule, session, call) {
        Ok(Some(done)) => {
            tracing::info!(set = done.set.len(), deleted = done.deleted, "followed this clone's files");
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(error = error.message(), "the commands of this clone are not told"),
    }
}

/// Returns true if the folder may be inside a clone whose files the user wants to follow. Reads no file of the clone.
pub fn may_follow(cwd: &Path) -> bool {
    let has_seeds =
        || SeededClones::read_shared().is_ok_and(|clones| cwd.ancestors().any(|top| clones.get(top).is_some()));
    let is_trusted = || TrustFile::read_unlocked().is_ok_and(|trust| cwd.ancestors().any(|top| trust.is_trusted(top)));
    has_seeds() || is_trusted()
}
