//! `nudge.code.status` and `refresh`.

use std::collections::BTreeMap;
use std::time::Duration;

use nudge_core::error::{Error, Result};
use serde::Serialize;

use super::{Here, Refresh, Status};
use crate::live::watch::Mode;
use crate::live::{AsOf, Fresh};
use crate::source::Code;
use crate::stamp;

/// How long `refresh` waits for everything to be read.
const PATIENCE: Duration = Duration::from_secs(10);

/// Result of `nudge.code.status`.
#[derive(Debug, Serialize)]
pub struct StatusTold {
    root: String,
    files: usize,
    nodes: usize,
    /// Nodes by language.
    languages: BTreeMap<&'static str, usize>,
    /// Files that were left out, by reason.
    skipped: BTreeMap<String, usize>,
    watch: String,
    cache: String,
    /// Bytes that the index takes.
    memory: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    as_of: AsOf,
}

/// Result of `nudge.code.refresh`.
#[derive(Debug, Serialize)]
pub struct Refreshed {
    files: usize,
    nodes: usize,
    /// The freshness of the given file: it tells if it had to be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh: Option<Fresh>,
    as_of: AsOf,
}

impl Code {
    pub(super) fn status_of(&self, params: Status) -> Result<StatusTold> {
        let here = Here::of(self, params.root.as_deref(), params.context)?;
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
            nodes: state.nodes(),
            languages,
            skipped,
            watch: match &state.mode {
                Mode::Starting => "starting".to_owned(),
                Mode::Watch(folders) => format!("{folders} folders"),
                Mode::Poll(why) => {
                    let ago = stamp::now_ns().abs_diff(state.looked_ns) / 1_000_000_000;
                    format!("looks from time to time, {ago} s ago the last time: {why}")
                }
                Mode::Once => "none: no server runs".to_owned(),
            },
            cache: live.cached(),
            memory: state.index.memory(),
            last_error: state.last_error.clone(),
            as_of: live.as_of(&state),
        })
    }

    pub(super) fn refresh(&self, params: Refresh) -> Result<Refreshed> {
        let Refresh { path, root, context } = params;
        let here = Here::of(self, root.as_deref(), context)?;
        let live = &here.live;
        let fresh = if let Some(path) = path {
            let path = here.path(&path)?;
            live.freshen([&*path]).remove(&*path)
        } else {
            // A process that answers one call has just looked.
            if !self.is_alone() {
                live.look_again();
                live.wait(PATIENCE);
            }
            None
        };
        let state = live.state();
        let (files, nodes) = (state.files.len(), state.nodes());
        Ok(Refreshed { files, nodes, fresh, as_of: live.as_of(&state) })
    }
}
