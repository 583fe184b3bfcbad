//! Answers `nudge.code.node`, `nudge.code.file`, `nudge.code.callers` and `nudge.code.search`.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use globset::{Glob, GlobMatcher};
use nudge_code_index::{NodeId, ResolvedImport};
use nudge_core::error::{Error, Result};
use nudge_core::explain::round_number;
use nudge_core::near::find_nearest;
use serde::Serialize;

use super::folder::FolderTold;
use super::tests::{self, Tested};
use super::{CallRoot, CodeCallersParams, CodeFileParams, CodeNodeParams, CodeSearchParams};
use crate::live::FileFreshness;
use crate::live::state::RootState;
use crate::lookup::to_safe_text;
use crate::search::NodeQuery;
use crate::shown::{self, AnswerView, BriefNode, FreshAnswer, ShownCall, ShownNode, first_line};
use crate::source::CodeSource;

/// The most callers that an answer shows for a node. `MAX_CALLEES` and `MAX_TESTS` limit the callees and the tests.
const MAX_CALLERS: usize = 20;
const MAX_CALLEES: usize = 20;
const MAX_TESTS: usize = 5;
/// The most nodes whose callers are looked up for one answer.
const MAX_ASKED: usize = 500;
/// The most bytes of a query.
const MAX_QUERY_BYTES: usize = 1 << 10;

/// Result of `nudge.code.node`.
#[derive(Debug, Serialize)]
pub struct NodeTold {
    node: ShownNode,
    /// The certain callers.
    callers: Vec<ShownCall>,
    /// The number of further callers that are left out.
    omitted: usize,
    /// The number of further calls with this name whose target is not certain.
    unresolved_same_name: usize,
    callees: Vec<ShownCall>,
    tests: Tested,
}

/// Result of `nudge.code.file`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum CodeFileResult {
    /// The answer about a file.
    File(FileTold),
    /// The answer about a folder.
    Folder(FolderTold),
}

/// The answer about a file.
#[derive(Debug, Serialize)]
pub struct FileTold {
    path: String,
    language: &'static str,
    /// Is true if parts of the file have syntax errors. The facts of the other parts are still right.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    parse_errors: bool,
    imports: Vec<FileImport>,
    imported_by: Vec<String>,
    nodes: Vec<BriefNode>,
    fresh: FileFreshness,
}

#[derive(Debug, Serialize)]
struct FileImport {
    module: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    line: u32,
}

/// Result of `nudge.code.callers`.
#[derive(Debug, Serialize)]
pub struct CallersTold {
    /// The id of the requested node.
    id: String,
    /// The calls that lead to the node, the nearest first.
    callers: Vec<ReachingCall>,
    omitted: usize,
    unresolved_same_name: usize,
}

/// A call that leads to a node.
#[derive(Debug, Serialize)]
struct ReachingCall {
    #[serde(flatten)]
    edge: ShownCall,
    /// The id of the node that this call calls.
    to: String,
    /// The number of calls on the way from here to the requested node.
    depth: usize,
}

/// Result of `nudge.code.search`.
#[derive(Debug, Serialize)]
pub struct CodeSearchResult {
    nodes: Vec<FoundNode>,
    omitted: usize,
}

#[derive(Debug, Serialize)]
struct FoundNode {
    #[serde(flatten)]
    node: BriefNode,
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
    score: f64,
    reason: String,
    fresh: FileFreshness,
}

impl CodeSource {
    pub(super) fn answer_node(&self, params: CodeNodeParams) -> Result<FreshAnswer<NodeTold>> {
        let CodeNodeParams { id, path, name, line, root, context } = params;
        let here = CallRoot::resolve_root(self, root.as_deref(), context)?;
        let meant = here.read_node_ref(id.as_deref(), path.as_deref(), name.as_deref(), line)?;
        let covered = tests::covered(&here.live, || {
            Ok(meant
                .answer_fresh(&here.live, |view| Ok(tests::lines(view, &[meant.find_node(&here.live, view.state)?])))?
                .said)
        })?;
        meant.answer_fresh(&here.live, |view| {
            let id = meant.find_node(&here.live, view.state)?;
            let called = view.calls.callers_of(id, MAX_CALLERS, false);
            let callers = called.edges.iter().map(|caller| ShownCall {
                id: caller.from.map(|from| view.state.index.id_of(from)),
                path: caller.path.to_string(),
                line: caller.line,
                how: caller.how,
                certain: caller.how.is_certain(),
                fresh: view.check_fresh(&caller.path),
            });
            Ok(NodeTold {
                node: ShownNode::from_id(view, id).ok_or_else(gone_error)?,
                callers: callers.collect(),
                omitted: called.omitted,
                unresolved_same_name: called.unresolved_same_name,
                callees: list_callees(view, id),
                tests: Tested::of(&here.live, view, &[id], &covered, MAX_TESTS),
            })
        })
    }

    pub(super) fn answer_file(&self, params: CodeFileParams) -> Result<FreshAnswer<CodeFileResult>> {
        let CodeFileParams { path, root, context } = params;
        let here = CallRoot::resolve_root(self, root.as_deref(), context)?;
        if let Some(folder) = here.resolve_folder(&path) {
            return shown::answer_fresh(&here.live, &[], |view| {
                Ok(CodeFileResult::Folder(FolderTold::from_state(view.state, &folder)))
            });
        }
        let path = here.resolve_path(&path)?;
        shown::answer_fresh(&here.live, &[&path], |view| {
            let fresh = view.check_fresh(&path);
            let index = &view.state.index;
            let facts = index.file_facts(&path).ok_or_else(|| no_file(view.state, &path))?;
            let import = |ResolvedImport { module, path, line }| FileImport {
                module,
                path: path.map(|path| path.to_string()),
                line,
            };
            Ok(CodeFileResult::File(FileTold {
                path: path.clone(),
                language: facts.language.name(),
                parse_errors: facts.parse_errors,
                imports: index.list_imports(&path).into_iter().map(import).collect(),
                imported_by: index.imported_by(&path).iter().map(ToString::to_string).collect(),
                nodes: facts.nodes().map(|node| BriefNode::from_view(&path, &node)).collect(),
                fresh,
            }))
        })
    }

    pub(super) fn answer_callers(&self, params: CodeCallersParams) -> Result<FreshAnswer<CallersTold>> {
        let CodeCallersParams { id, path, name, line, depth, limit: most, likely, root, context } = params;
        let (depth, most) = (depth.get(), most.get());
        let here = CallRoot::resolve_root(self, root.as_deref(), context)?;
        let meant = here.read_node_ref(id.as_deref(), path.as_deref(), name.as_deref(), line)?;
        meant.answer_fresh(&here.live, |view| {
            let id = meant.find_node(&here.live, view.state)?;
            Ok(find_reaching(view, id, depth, most, likely))
        })
    }

    pub(super) fn answer_search(&self, params: CodeSearchParams) -> Result<FreshAnswer<CodeSearchResult>> {
        let CodeSearchParams { query, kind, path, limit: most, root, context } = params;
        if query.len() > MAX_QUERY_BYTES {
            return Err(Error::invalid("`query` may have 1 KiB; ask in fewer words.").about("query"));
        }
        let path = path.as_deref().map(compile_glob).transpose()?;
        let here = CallRoot::resolve_root(self, root.as_deref(), context)?;
        here.live.index_texts();
        shown::answer_fresh(&here.live, &[], |view| {
            let query = NodeQuery { text: &query, kind, path: path.as_ref(), limit: most.get() };
            let (hits, omitted) = view.state.words.find(&view.state.index, &query);
            let node = |hit: &crate::search::NodeHit<'_>| FoundNode {
                node: BriefNode::from_view(hit.path, &hit.view),
                doc: hit.view.doc().map(first_line),
                score: round_number(hit.score),
                reason: hit.reason.clone(),
                fresh: view.check_fresh(hit.path),
            };
            Ok(CodeSearchResult { nodes: hits.iter().map(node).collect(), omitted })
        })
    }
}

/// Lists the nodes that a node calls, each once.
fn list_callees(view: &AnswerView<'_>, id: NodeId) -> Vec<ShownCall> {
    let mut seen: HashSet<_, FixedState> = HashSet::default();
    let index = &view.state.index;
    let callees =
        view.calls.callees_of(id, false).into_iter().filter(|callee| seen.insert(callee.to)).take(MAX_CALLEES);
    let edge = |callee: nudge_code_index::CalleeSite| {
        let found = index.find_node(callee.to)?;
        Some(ShownCall {
            id: Some(shown::to_node_id(found.path, &found.view)),
            path: found.path.to_owned(),
            line: found.view.node().span.line,
            how: callee.how,
            certain: callee.how.is_certain(),
            fresh: view.check_fresh(found.path),
        })
    };
    callees.filter_map(edge).collect()
}

/// Finds the calls that lead to a node over at most `depth` calls, the nearest first.
fn find_reaching(view: &AnswerView<'_>, id: NodeId, depth: usize, most: usize, likely: bool) -> CallersTold {
    let index = &view.state.index;
    let mut told = CallersTold { id: index.id_of(id), callers: Vec::new(), omitted: 0, unresolved_same_name: 0 };
    let (mut ring, mut seen, mut asked) = (vec![id], HashSet::from([id]), 0);
    for depth in 1..=depth {
        let mut next = Vec::new();
        for to in ring {
            asked += 1;
            if asked > MAX_ASKED {
                return told;
            }
            let called = view.calls.callers_of(to, most, likely);
            told.omitted += called.omitted;
            if to == id {
                told.unresolved_same_name = called.unresolved_same_name;
            }
            for caller in called.edges {
                next.extend(caller.from.filter(|from| seen.insert(*from)));
                if told.callers.len() >= most {
                    told.omitted += 1;
                    continue;
                }
                let edge = ShownCall {
                    id: caller.from.map(|from| index.id_of(from)),
                    path: caller.path.to_string(),
                    line: caller.line,
                    how: caller.how,
                    certain: caller.how.is_certain(),
                    fresh: view.check_fresh(&caller.path),
                };
                told.callers.push(ReachingCall { edge, to: index.id_of(to), depth });
            }
        }
        ring = next;
    }
    told
}

/// Makes the error for a file that is not indexed.
pub(super) fn no_file(state: &RootState, path: &str) -> Error {
    let shown = to_safe_text(path);
    if let Some(skip) = state.files.get(path).and_then(|known| known.skip) {
        return Error::not_found(format!("`{shown}` is left out: it is {skip}."))
            .with_data("skipped", skip.to_string());
    }
    let near = find_nearest(path, state.index.files().map(|(path, _)| &**path));
    let advice = near.map_or_else(
        || "it is not there, ignored, or in no language that is read".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    let advice = advice.trim_end_matches('.').to_owned() + if advice.ends_with('?') { "" } else { "." };
    Error::not_found(format!("No file `{shown}` is indexed; {advice}"))
        .with_data("near_misses", near.into_iter().collect::<Vec<_>>())
}

/// Makes the error for a node that was removed during the call.
fn gone_error() -> Error {
    Error::not_found("This node has just gone; ask again.")
}

fn compile_glob(pattern: &str) -> Result<GlobMatcher> {
    let bad = |_| Error::invalid("`path` must be a glob, such as `src/**/*.py`.").about("path");
    // A pattern that names a folder means all files in the folder.
    let folder = pattern.trim_end_matches('/');
    let is_plain = !folder.contains(['*', '?', '[', '{']) && !folder.rsplit('/').next().unwrap_or(folder).contains('.');
    let pattern = if is_plain { format!("{folder}/**") } else { pattern.to_owned() };
    Ok(Glob::new(&pattern).map_err(bad)?.compile_matcher())
}
