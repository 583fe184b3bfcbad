//! `nudge.code.context`: what a prompt brings to mind, asked for.

use nudge_core::error::{Error, Result};
use nudge_core::explain::rounded;
use serde::Serialize;

use super::{ForPrompt, Here};
use crate::line;
use crate::prompt::{Wanted, candidates};
use crate::shown::{self, Answer};
use crate::source::Code;

/// Most bytes of lines, when the caller does not say, and the most.
const BYTES: usize = 2_000;
const MAX_BYTES: usize = 64 << 10;
/// Longest prompt, and most files.
const MAX_PROMPT_BYTES: usize = 64 << 10;
const MAX_FILES: usize = 256;

/// Result of `nudge.code.context`.
#[derive(Debug, Serialize)]
pub struct Told {
    /// Best first.
    lines: Vec<String>,
    items: Vec<Reasoned>,
    /// How many more there are.
    omitted: usize,
}

#[derive(Debug, Serialize)]
struct Reasoned {
    id: String,
    score: f64,
    reason: String,
}

impl Code {
    pub(super) fn context(&self, params: ForPrompt) -> Result<Answer<Told>> {
        // Whoever asks is told again what was told: they may have lost it.
        let ForPrompt { prompt, files, max_bytes, client_session: _, root, context } = params;
        let prompt = prompt.unwrap_or_default();
        if prompt.len() > MAX_PROMPT_BYTES || files.len() > MAX_FILES {
            return Err(Error::invalid("`prompt` may have 64 KiB, and `files` 256 entries; send the end of it."));
        }
        let room = max_bytes.unwrap_or(BYTES).min(MAX_BYTES);
        let here = Here::of(self, root.as_deref(), context)?;
        let files: Vec<_> = files.iter().filter_map(|file| here.path(file).ok()).collect();
        shown::fresh(&here.live, &[], |view| {
            let mut told = Told { lines: Vec::new(), items: Vec::new(), omitted: 0 };
            let mut bytes = 0;
            for one in candidates(&here.live, view.state, &prompt, &files, Wanted::Anything) {
                let Some(line) = line::of(view, one.id) else { continue };
                if bytes + line.len() > room {
                    told.omitted += 1;
                    continue;
                }
                bytes += line.len();
                told.lines.push(line);
                let (id, score) = (view.state.index.id_of(one.id), rounded(one.score.min(1.0)));
                told.items.push(Reasoned { id, score, reason: one.reason });
            }
            Ok(told)
        })
    }
}
