//! Answers `nudge.code.context`: the nodes that a prompt mentions.

use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_code_index::Hash;
use nudge_core::error::{Error, Result};
use nudge_core::explain::round_number;
use serde::Serialize;

use super::{CallRoot, ForPrompt};
use crate::line;
use crate::prompt::{NodeCandidate, WantedNodes, find_candidates};
use crate::shown::{self, AnswerView, FreshAnswer};
use crate::source::CodeSource;

/// The most bytes of all lines, even if the caller allows more.
const MAX_BYTES: usize = 64 << 10;
/// The most bytes of a prompt. `MAX_FILES` limits the given files.
const MAX_PROMPT_BYTES: usize = 64 << 10;
const MAX_FILES: usize = 256;

/// Result of `nudge.code.context`.
#[derive(Debug, Serialize)]
pub struct CodeContextResult {
    /// The lines, the best first. A line that the client session got before is left out.
    lines: Vec<String>,
    items: Vec<ReasonedNode>,
    /// The number of further lines that did not fit.
    omitted: usize,
}

#[derive(Debug, Serialize)]
struct ReasonedNode {
    id: String,
    score: f64,
    reason: String,
}

impl CodeSource {
    pub(super) fn answer_context(&self, params: ForPrompt) -> Result<FreshAnswer<CodeContextResult>> {
        let ForPrompt { prompt, files, max_bytes, client_session, root, context } = params;
        let prompt = prompt.unwrap_or_default();
        if prompt.len() > MAX_PROMPT_BYTES || files.len() > MAX_FILES {
            return Err(Error::invalid("`prompt` may have 64 KiB, and `files` 256 entries; send the end of it.")
                .about("prompt")
                .about("files"));
        }
        let room = max_bytes.get().min(MAX_BYTES);
        let here = CallRoot::resolve_root(self, root.as_deref(), context)?;
        let files: Vec<_> = files.iter().filter_map(|file| here.resolve_path(file).ok()).collect();
        let found = shown::answer_fresh(&here.live, &[], |view| {
            let found = find_candidates(&here.live, view.state, &prompt, &files, WantedNodes::Anything);
            Ok(found
                .into_iter()
                .filter_map(|candidate| PromptNode::from_candidate(view, &candidate))
                .collect::<Vec<_>>())
        })?;
        let mut told = CodeContextResult { lines: Vec::new(), items: Vec::new(), omitted: 0 };
        let mut bytes = 0;
        for PromptNode { line, item, hash } in found.said {
            if bytes + line.len() > room {
                told.omitted += 1;
                continue;
            }
            let key = || FixedState::default().hash_one((&client_session, &item.id, hash));
            if client_session.is_some() && self.was_given(key()) {
                continue;
            }
            bytes += line.len();
            told.lines.push(line);
            told.items.push(item);
        }
        Ok(FreshAnswer { said: told, as_of: found.as_of })
    }
}

/// A node that the prompt mentions, in the form of the answer.
struct PromptNode {
    line: String,
    item: ReasonedNode,
    hash: Hash,
}

impl PromptNode {
    fn from_candidate(view: &AnswerView<'_>, candidate: &NodeCandidate) -> Option<Self> {
        let hash = view.state.index.find_node(candidate.id)?.view.node().hash;
        let (id, score) = (view.state.index.id_of(candidate.id), round_number(candidate.score.min(1.0)));
        let item = ReasonedNode { id, score, reason: candidate.reason.clone() };
        Some(Self { line: line::describe_node(view, candidate.id)?, item, hash })
    }
}
