//! The commands of the clone that a stdio client works in, for clients without hooks (semantics section 20).

use std::sync::Arc;

use nudge_client::process_cwd;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::StdioUse;
use super::session::backend::CallBackend;
use crate::committed;
use crate::context::ContextInference;
use crate::running::{parsed_as, to_raw};
use crate::seed::{self, SeededClones};

/// Brings the hints of this process's clone in step with its files, beside everything else. If no clone was ever
/// seeded, this is one look for a file.
pub fn follow_clone_files(stdio: &StdioUse, backend: &Arc<CallBackend>) {
    if !matches!(stdio, StdioUse::Mcp { profile: None, .. }) {
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
        if committed::is_there(&top)
            && let Some(repo) = ContextInference::of_files_alone().find_repository(&top)
            && let Err(error) = committed::load_trusted(&top, &repo, &call)
        {
            tracing::warn!(error = error.message(), "the hints that come with this clone are not told");
        }
        match seed::refresh_clone(&top, &call, false) {
            Ok(Some(done)) => {
                tracing::info!(set = done.set.len(), deleted = done.deleted, "followed this clone's files");
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(error = error.message(), "the commands of this clone are not told"),
        }
    });
}
