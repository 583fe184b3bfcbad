//! The commands of the clone that a stdio client works in, for clients without hooks (semantics section 20).

use std::sync::Arc;

use nudge_client::process_cwd;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::Stdio;
use super::session::backend::Backend;
use crate::committed;
use crate::context::Inference;
use crate::running::{parsed_as, raw};
use crate::seed::{self, Clones};

/// Brings the hints of this process's clone in step with its files, beside everything else. If no clone was ever
/// seeded, this is one look for a file.
pub fn follow(stdio: &Stdio, backend: &Arc<Backend>) {
    if !matches!(stdio, Stdio::Mcp { profile: None, .. }) {
        return;
    }
    let Some(top) = process_cwd().and_then(|cwd| seed::top_of(&cwd)) else { return };
    let is_seeded = Clones::look().is_ok_and(|clones| clones.get(&top).is_some());
    if !is_seeded && !committed::is_there(&top) {
        return;
    }
    let (backend, here) = (Arc::clone(backend), Handle::current());
    spawn_blocking(move || {
        let call =
            |method: &str, params: &Map<String, Value>| parsed_as(&here.block_on(backend.call(method, &raw(params)?))?);
        if committed::is_there(&top)
            && let Some(repo) = Inference::of_files_alone().repository(&top)
            && let Err(error) = committed::load(&top, &repo, &call)
        {
            tracing::warn!(error = error.message(), "the hints that come with this clone are not told");
        }
        match seed::refresh(&top, &call, false) {
            Ok(Some(done)) => {
                tracing::info!(set = done.set.len(), deleted = done.deleted, "followed this clone's files");
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(error = error.message(), "the commands of this clone are not told"),
        }
    });
}
