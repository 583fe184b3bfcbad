//! Finds the node that a caller names.

use std::collections::HashMap;
use std::path::Path;

use nudge_code_index::{NodeId, NodeLookup};
use nudge_core::error::{Error, Result};
use nudge_core::near::find_nearest;
use nudge_core::wire::shorten_text;
use nudge_secrets::SecretGuard;

use crate::live::state::RootState;
use crate::live::{FileFreshness, LiveRoot};
use crate::search::NodeQuery;
use crate::shown::{self, AnswerView, FreshAnswer};
use crate::stamp;

/// The most candidates that the error for an ambiguous name lists.
const NAMED: usize = 10;
/// The most similar names that the error for an unknown node suggests.
const NEAR: usize = 3;

/// A node in the form in which a caller names it: `node:PATH:NAME`, `PATH:NAME`, `PATH:LINE`, or a name alone.
#[derive(Debug, Clone)]
pub struct NodeRef {
    /// The path of the file; `None` for a name alone.
    pub path: Option<String>,
    name: String,
    given: String,
    /// Is true when the file was compared with the disk just now and agrees with the index.
    is_fresh: bool,
}

impl NodeRef {
    /// Reads the node from the params of a caller.
    ///
    /// # Errors
    /// `E_INVALID` when the params name no node, or are too long.
    pub fn from_params(
        live: &LiveRoot,
        cwd: Option<&Path>,
        id: Option<&str>,
        path: Option<&str>,
        name: Option<&str>,
        number: Option<u32>,
    ) -> Result<Self> {
        let number = number.map(|number| number.to_string());
        let rest = name.or(number.as_deref());
        let mut is_fresh = false;
        let mut asked = |path: &str| {
            let found;
            (found, is_fresh) = resolve_path(live, cwd, path);
            found
        };
        let (path, name, given) = match (id, path, rest) {
            (Some(id), None, None) => {
                let bare = id.strip_prefix("node:").unwrap_or(id);
                // Names and paths may contain colons. The right split is the one whose path exists.
                let mut splits = bare.match_indices(':').map(|(colon, _)| (&bare[..colon], &bare[colon + 1..]));
                let split = splits
                    .clone()
                    .find_map(|(path, name)| Some((asked(path).filter(|path| is_known(live, path))?, name)))
                    .or_else(|| {
                        let (path, name) = splits.next_back()?;
                        Some((asked(path).unwrap_or_else(|| path.to_owned()), name))
                    });
                match split {
                    Some((path, name)) => (Some(path), name, id),
                    None => (None, bare, id),
                }
            }
            (None, Some(path), Some(name)) => (Some(asked(path).unwrap_or_else(|| path.to_owned())), name, name),
            _ => {
                return Err(Error::invalid("Give `id`, or `path` with `name` or `line`.")
                    .about("id")
                    .about("path")
                    .about("name")
                    .about("line"));
            }
        };
        Ok(Self { path, name: name.to_owned(), given: given.to_owned(), is_fresh })
    }

    /// Computes an answer about the node, from an index that agrees with the node's file.
    ///
    /// # Errors
    /// The errors that `say` returns.
    pub fn answer_fresh<T>(
        &self,
        live: &LiveRoot,
        say: impl Fn(&AnswerView<'_>) -> Result<T>,
    ) -> Result<FreshAnswer<T>> {
        let looked = match &self.path {
            Some(path) if self.is_fresh => HashMap::from_iter([(path.as_str().into(), FileFreshness::Yes)]),
            path => live.freshen_files(path.iter().map(String::as_str)),
        };
        shown::fresh_beyond(live, looked, say)
    }

    /// Finds the node in the index.
    ///
    /// # Errors
    /// `E_NOT_FOUND` with similar names. `E_INVALID` with the candidates when several nodes have this name.
    pub fn find_node(&self, live: &LiveRoot, state: &RootState) -> Result<NodeId> {
        let found = match &self.path {
            Some(path) => {
                let is_known = state.index.file_facts(path).is_some();
                let path = if is_known { path } else { state.only_file(path).unwrap_or(path) };
                match self.name.parse() {
                    Ok(number) => state.index.by_line(path, number).map_or(NodeLookup::Unknown, NodeLookup::One),
                    Err(_) => state.index.by_name(path, &self.name),
                }
            }
            None => self.find_anywhere(state),
        };
        match found {
            NodeLookup::One(id) => Ok(id),
            NodeLookup::Ambiguous(candidates) => Err(ambiguous_error(state, &candidates)),
            NodeLookup::Unknown => Err(self.unknown_error(live, state)),
        }
    }

    /// Finds the only node of this name in the project. The name may be bare, or may include its owners, as in
    /// `Flask.route`.
    fn find_anywhere(&self, state: &RootState) -> NodeLookup {
        let last = self.name.rsplit(['.', ':']).next().unwrap_or(&self.name);
        let dotted = self.name.replace("::", ".");
        let is_it = |id: &NodeId| {
            state.index.find_node(*id).is_some_and(|found| {
                let qual = found.view.qual();
                dotted == last || qual == dotted || qual.strip_suffix(&*dotted).is_some_and(|rest| rest.ends_with('.'))
            })
        };
        let found: Vec<_> = state.index.nodes_by_name(last).into_iter().filter(is_it).collect();
        let mut found = state.index.keep_definitions(&found);
        match found.len() {
            0 => NodeLookup::Unknown,
            1 => found.pop().map_or(NodeLookup::Unknown, NodeLookup::One),
            _ => NodeLookup::Ambiguous(found),
        }
    }

    fn unknown_error(&self, live: &LiveRoot, state: &RootState) -> Error {
        let last = self.name.rsplit(['.', ':']).next().unwrap_or(&self.name);
        let in_file = self.path.as_deref().and_then(|path| Some((path, state.index.file_facts(path)?)));
        let mut near: Vec<String> = match in_file {
            Some((path, facts)) => {
                let name = find_nearest(&self.name, facts.nodes().map(|node| node.qual()))
                    .or_else(|| find_nearest(last, facts.nodes().map(|node| node.name())));
                let find_node = |name| facts.nodes().find(|node| node.qual() == name || node.name() == name);
                name.and_then(find_node).map(|node| shown::to_node_id(path, &node)).into_iter().collect()
            }
            None => Vec::new(),
        };
        let query = NodeQuery { text: last, kind: None, path: None, limit: NEAR };
        near.extend(state.words.find(&state.index, &query).0.iter().map(|hit| shown::to_node_id(hit.path, &hit.view)));
        near.dedup();
        near.truncate(NEAR);
        let what = match (&self.path, in_file) {
            (Some(path), None) => format!("No file `{}` is indexed", to_safe_text(path)),
            _ => format!("There is no node `{}`", to_safe_text(&self.given)),
        };
        let pending = live.as_of(state).pending;
        let unread = match pending {
            0 => None,
            1 => Some("one file is not read yet".to_owned()),
            more => Some(format!("{more} files are not read yet")),
        };
        let advice = match (near.first(), unread) {
            (Some(first), None) => format!("did you mean `{first}`?"),
            (Some(first), Some(unread)) => format!("did you mean `{first}`? Else ask again in a moment: {unread}."),
            (None, Some(unread)) => format!("{unread}, so ask again in a moment."),
            (None, None) => "look with `nudge.code.search`.".to_owned(),
        };
        Error::not_found(format!("{what}; {advice}")).with_data("near_misses", near).with_data("pending", pending)
    }
}

fn ambiguous_error(state: &RootState, candidates: &[NodeId]) -> Error {
    let ids: Vec<_> = candidates.iter().take(NAMED).map(|id| state.index.id_of(*id)).collect();
    let more = candidates.len().saturating_sub(ids.len());
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    Error::invalid(format!("Several nodes have this name; give one of these as `id`: {}{more}.", ids.join(", ")))
        .about("id")
        .with_data("candidates", ids)
}

/// Resolves the path that a caller names. Also returns true if the file is certainly unchanged since it was read.
fn resolve_path(live: &LiveRoot, cwd: Option<&Path>, path: &str) -> (Option<String>, bool) {
    // Most callers use a path from an earlier answer. A file that is unchanged since it was indexed is no link, so its
    // path needs no check.
    let known = live.state().files.get(path).copied();
    if known.is_some_and(|known| stamp::read_stamp(live.root(), path).is_some_and(|now| known.is_current(&now))) {
        return (Some(path.to_owned()), true);
    }
    (live.root().resolve_path(path, cwd), false)
}

fn is_known(live: &LiveRoot, path: &str) -> bool {
    live.state().files.contains_key(path) || live.root().join(path).is_file()
}

/// Returns the caller's text in a form that an error may repeat: shortened, and without a secret.
pub fn to_safe_text(text: &str) -> String {
    match SecretGuard::new().check(None, text) {
        None => shorten_text(text),
        Some(_) => "[secret]".to_owned(),
    }
}
