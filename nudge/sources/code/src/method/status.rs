//! Answers `nudge.code.status` and `nudge.code.refresh`.

use std::collections::BTreeMap;
use std::time::Duration;

use nudge_core::error::{Error, Result};
use serde::Serialize;

use super::{CallRoot, CodeRefreshParams, CodeStatusParams};
use crate::live::watch::WatchMode;
use crate::live::{AsOf, FileFreshness};
use crate::source::CodeSource;
use crate::stamp;

/// The longest time that `refresh` waits until all files are read.
const PATIENCE: Duration = Duration::from_secs(10);

/// Result of `nudge.code.status`.
#[derive(Debug, Serialize)]
pub struct StatusTold {
    root: String,
    files: usize,
    nodes: usize,
    /// The number of nodes in each language.
    languages: BTreeMap<&'static str, usize>,
    /// The number of files that were left out, for each reason.
    skipped: BTreeMap<String, usize>,
    watch: String,
    cache: String,
    /// The memory that the index takes, in bytes.
    memory: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    as_of: AsOf,
}

/// Result of `nudge.code.refresh`.
#[derive(Debug, Serialize)]
pub struct CodeRefreshResult {
    files: usize,
    nodes: usize,
    /// The freshness of the given file. It says whether the file had to be read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh: Option<FileFreshness>,
    as_of: AsOf,
}

impl CodeSource {
    pub(super) fn status_of(&self, params: CodeStatusParams) -> Result<StatusTold> {
        let here = CallRoot::resolve_root(self, params.root.as_deref(), params.context)?;
        let live = &here.live;
        let busy = || Error::unavailable("The index is busy with a question that takes long; ask again in a moment.");
        let state = live.state_soon().ok_or_else(busy)?;
        let mut languages = BTreeMap::new();
        for (_, facts) in state.index.files() {
            *languages.entry(facts.language.name()).or_default() += facts.len();
        }
        let mut skipped: BTreeMap<String, usize> =
            state.left_out.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect();
        for skip in state.files.values().filter_map(|known| known.skip) {
            *skipped.entry(skip.to_string()).or_default() += 1;
        }
        Ok(StatusTold {
            root: live.root().path().display().to_string(),
            files: state.files.len(),
            nodes: state.node_count(),
            languages,
            skipped,
            watch: match &state.mode {
                WatchMode::Starting => "starting".to_owned(),
                WatchMode::Watch(folders) => format!("{folders} folders"),
                WatchMode::Poll(why) => {
                    let ago = stamp::now_ns().abs_diff(state.looked_ns) / 1_000_000_000;
                    format!("looks from time to time, {ago} s ago the last time: {why}")
                }
                WatchMode::Once => "none: no server runs".to_owned(),
            },
            cache: live.cache_status(),
            memory: state.index.memory_bytes() + state.words.memory_bytes(),
            last_error: state.last_error.clone(),
            as_of: live.as_of(&state),
        })
    }

    pub(super) fn answer_refresh(&self, params: CodeRefreshParams) -> Result<CodeRefreshResult> {
        let CodeRefreshParams { path, root, context } = params;
        let here = CallRoot::resolve_root(self, root.as_deref(), context)?;
        let live = &here.live;
        let fresh = if let Some(path) = path {
            let path = here.resolve_path(&path)?;
            live.freshen_files([&*path]).remove(&*path)
        } else {
            // A process that answers one call has just walked over all files.
            if !self.is_alone() {
                live.look_again();
                live.wait_complete(PATIENCE);
            }
            None
        };
        let state = live.state();
        let (files, nodes) = (state.files.len(), state.node_count());
        Ok(CodeRefreshResult { files, nodes, fresh, as_of: live.as_of(&state) })
    }
}
