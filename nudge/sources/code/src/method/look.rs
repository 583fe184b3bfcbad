//! `nudge.code.node`, `file`, `callers`, `search`: looking at nodes and files.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use globset::{Glob, GlobMatcher};
use nudge_core::error::{Error, Result};
use nudge_core::explain::rounded;
use nudge_core::near::nearest;
use serde::Serialize;

use super::folder::FolderTold;
use super::tests::{self, Tested};
use super::{Callers, File, Here, Node, Search, limit};
use crate::index::{Imported, NodeId};
use crate::live::Fresh;
use crate::live::state::State;
use crate::lookup::tellable;
use crate::search::Query;
use crate::shown::{self, Answer, Brief, Edge, Shown, View, first_line};
use crate::source::Code;

/// Callers and callees that are shown of a node, and its tests.
const MAX_CALLERS: usize = 20;
const MAX_CALLEES: usize = 20;
const MAX_TESTS: usize = 5;
/// The most nodes whose callers are asked for, over several calls.
const MAX_ASKED: usize = 500;
/// Longest query.
const MAX_QUERY_BYTES: usize = 1 << 10;

/// Result of `nudge.code.node`.
#[derive(Debug, Serialize)]
pub struct NodeTold {
    node: Shown,
    /// The certain callers.
    callers: Vec<Edge>,
    /// How many more callers there are.
    omitted: usize,
    /// How many more calls have this name and no certain target.
    unresolved_same_name: usize,
    callees: Vec<Edge>,
    tests: Tested,
}

/// Result of `nudge.code.file`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Told {
    /// For a file.
    File(FileTold),
    /// For a folder.
    Folder(FolderTold),
}

/// The answer about a file.
#[derive(Debug, Serialize)]
pub struct FileTold {
    path: String,
    language: &'static str,
    /// Parts of it are not valid; the answer about the rest stands.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    parse_errors: bool,
    imports: Vec<Import>,
    imported_by: Vec<String>,
    nodes: Vec<Brief>,
    fresh: Fresh,
}

#[derive(Debug, Serialize)]
struct Import {
    module: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    line: u32,
}

/// Result of `nudge.code.callers`.
#[derive(Debug, Serialize)]
pub struct CallersTold {
    /// The node.
    id: String,
    /// Nearest first.
    callers: Vec<Reaching>,
    omitted: usize,
    unresolved_same_name: usize,
}

/// A call that leads to a node.
#[derive(Debug, Serialize)]
struct Reaching {
    #[serde(flatten)]
    edge: Edge,
    /// The node it calls.
    to: String,
    /// Over how many calls it leads there.
    depth: usize,
}

/// Result of `nudge.code.search`.
#[derive(Debug, Serialize)]
pub struct Found {
    nodes: Vec<FoundNode>,
    omitted: usize,
}

#[derive(Debug, Serialize)]
struct FoundNode {
    #[serde(flatten)]
    node: Brief,
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
    score: f64,
    reason: String,
    fresh: Fresh,
}

impl Code {
    pub(super) fn node(&self, params: Node) -> Result<Answer<NodeTold>> {
        let Node { id, path, name, line, root, context } = params;
        let here = Here::of(self, root.as_deref(), context)?;
        let meant = here.meant(id.as_deref(), path.as_deref(), name.as_deref(), line)?;
        let covered = tests::covered(&here.live, || {
            Ok(meant.fresh(&here.live, |view| Ok(tests::lines(view, &[meant.find(&here.live, view.state)?])))?.said)
        })?;
        meant.fresh(&here.live, |view| {
            let id = meant.find(&here.live, view.state)?;
            let called = view.calls.callers(id, MAX_CALLERS, false);
            let callers = called.edges.iter().map(|caller| Edge {
                id: caller.from.map(|from| view.state.index.id_of(from)),
                path: caller.path.to_string(),
                line: caller.line,
                how: caller.how,
                certain: caller.how.certain(),
                fresh: view.fresh(&caller.path),
            });
            Ok(NodeTold {
                node: Shown::of(view, id).ok_or_else(gone)?,
                callers: callers.collect(),
                omitted: called.omitted,
                unresolved_same_name: called.unresolved_same_name,
                callees: callees(view, id),
                tests: Tested::of(&here.live, view, &[id], &covered, MAX_TESTS),
            })
        })
    }

    pub(super) fn file(&self, params: File) -> Result<Answer<Told>> {
        let File { path, root, context } = params;
        let here = Here::of(self, root.as_deref(), context)?;
        if let Some(folder) = here.folder(&path) {
            return shown::fresh(&here.live, &[], |view| Ok(Told::Folder(FolderTold::of(view.state, &folder))));
        }
        let path = here.path(&path)?;
        shown::fresh(&here.live, &[&path], |view| {
            let fresh = view.fresh(&path);
            let index = &view.state.index;
            let facts = index.file(&path).ok_or_else(|| no_file(view.state, &path))?;
            let import =
                |Imported { module, path, line }| Import { module, path: path.map(|path| path.to_string()), line };
            Ok(Told::File(FileTold {
                path: path.clone(),
                language: facts.language.name(),
                parse_errors: facts.parse_errors,
                imports: index.imports(&path).into_iter().map(import).collect(),
                imported_by: index.imported_by(&path).iter().map(ToString::to_string).collect(),
                nodes: facts.nodes().map(|node| Brief::of(&path, &node)).collect(),
                fresh,
            }))
        })
    }

    pub(super) fn callers(&self, params: Callers) -> Result<Answer<CallersTold>> {
        let Callers { id, path, name, line, depth, limit: most, likely, root, context } = params;
        let depth = limit(depth, "depth", 1, 3)?;
        let most = limit(most, "limit", 50, 500)?;
        let here = Here::of(self, root.as_deref(), context)?;
        let meant = here.meant(id.as_deref(), path.as_deref(), name.as_deref(), line)?;
        meant.fresh(&here.live, |view| {
            let id = meant.find(&here.live, view.state)?;
            Ok(reaching(view, id, depth, most, likely))
        })
    }

    pub(super) fn search(&self, params: Search) -> Result<Answer<Found>> {
        let Search { query, kind, path, limit: most, root, context } = params;
        let most = limit(most, "limit", 20, 100)?;
        if query.len() > MAX_QUERY_BYTES {
            return Err(Error::invalid("`query` may have 1 KiB; ask in fewer words."));
        }
        let path = path.as_deref().map(glob).transpose()?;
        let here = Here::of(self, root.as_deref(), context)?;
        shown::fresh(&here.live, &[], |view| {
            let query = Query { text: &query, kind, path: path.as_ref(), limit: most };
            let (hits, omitted) = view.state.names.find(&view.state.index, &query);
            let node = |hit: &crate::search::Hit<'_>| FoundNode {
                node: Brief::of(hit.path, &hit.view),
                doc: hit.view.doc().map(first_line),
                score: rounded(hit.score),
                reason: hit.reason.clone(),
                fresh: view.fresh(hit.path),
            };
            Ok(Found { nodes: hits.iter().map(node).collect(), omitted })
        })
    }
}

/// Lists the callees of a node, each once.
fn callees(view: &View<'_>, id: NodeId) -> Vec<Edge> {
    let mut seen: HashSet<_, FixedState> = HashSet::default();
    let index = &view.state.index;
    let callees = view.calls.callees(id, false).into_iter().filter(|callee| seen.insert(callee.to)).take(MAX_CALLEES);
    let edge = |callee: crate::index::Callee| {
        let found = index.node(callee.to)?;
        Some(Edge {
            id: Some(shown::id(found.path, &found.view)),
            path: found.path.to_owned(),
            line: found.view.node().span.line,
            how: callee.how,
            certain: callee.how.certain(),
            fresh: view.fresh(found.path),
        })
    };
    callees.filter_map(edge).collect()
}

/// The calls that lead to a node over so many calls, nearest first.
fn reaching(view: &View<'_>, id: NodeId, depth: usize, most: usize, likely: bool) -> CallersTold {
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
            let called = view.calls.callers(to, most, likely);
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
                let edge = Edge {
                    id: caller.from.map(|from| index.id_of(from)),
                    path: caller.path.to_string(),
                    line: caller.line,
                    how: caller.how,
                    certain: caller.how.certain(),
                    fresh: view.fresh(&caller.path),
                };
                told.callers.push(Reaching { edge, to: index.id_of(to), depth });
            }
        }
        ring = next;
    }
    told
}

/// The refusal of a file that says nothing.
pub(super) fn no_file(state: &State, path: &str) -> Error {
    let shown = tellable(path);
    if let Some(skip) = state.files.get(path).and_then(|known| known.skip) {
        return Error::not_found(format!("`{shown}` is left out: it is {skip}.")).with("skipped", skip.to_string());
    }
    let near = nearest(path, state.index.files().map(|(path, _)| &**path));
    let advice = near.map_or_else(
        || "it is not there, ignored, or in no language that is read".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    let advice = advice.trim_end_matches('.').to_owned() + if advice.ends_with('?') { "" } else { "." };
    Error::not_found(format!("No file `{shown}` is indexed; {advice}"))
        .with("near_misses", near.into_iter().collect::<Vec<_>>())
}

/// A node went away while the answer was made of it.
fn gone() -> Error {
    Error::not_found("This node has just gone; ask again.")
}

fn glob(pattern: &str) -> Result<GlobMatcher> {
    let bad = |_| Error::invalid("`path` must be a glob, such as `src/**/*.py`.");
    // A folder stands for all files in it.
    let folder = pattern.trim_end_matches('/');
    let is_plain = !folder.contains(['*', '?', '[', '{']) && !folder.rsplit('/').next().unwrap_or(folder).contains('.');
    let pattern = if is_plain { format!("{folder}/**") } else { pattern.to_owned() };
    Ok(Glob::new(&pattern).map_err(bad)?.compile_matcher())
}
