//! Finds likely targets: the called method is the only one of its name nearby. Such an edge never counts as certain.

use crate::facts::{CallFact, Expr, FileFacts, NodeKind, NodeOwner};
use crate::index::{NodeId, last_name};
use crate::language::CodeLanguage;

use super::CallResolver;

impl CallResolver<'_> {
    /// Returns the only method with the called name in the language. The receiver must be named like the class of the
    /// method. The file of the call must import the file of the method, directly or through one other file.
    pub fn find_likely(&self, file: u32, call: &CallFact) -> Option<NodeId> {
        let facts = self.store.facts_at(file)?;
        if facts.language != CodeLanguage::Python || !matches!(facts.exprs.get(call.callee)?, Expr::Member(..)) {
            return None;
        }
        let name = facts.text_of(facts.called_name(call));
        if name.len() < 3 || is_usual_name(name) {
            return None;
        }
        let mut all = self.store.nodes_named(name).into_iter().filter(|(slot, node)| {
            self.file_language(*slot) == Some(facts.language)
                && self.node_kind(NodeId { file: *slot, node: *node }) == Some(NodeKind::Method)
        });
        let (slot, node) = all.next()?;
        let named = self.named_like_its_class(facts, call, slot, node);
        (all.next().is_none() && named && self.is_near(file, slot)).then_some(NodeId { file: slot, node })
    }

    /// Returns true if the receiver has the name of the class, as in `response.json()` for `Response.json`.
    fn named_like_its_class(&self, facts: &FileFacts, call: &CallFact, slot: u32, node: u32) -> bool {
        let Some(Expr::Member(receiver, _)) = facts.exprs.get(call.callee) else { return false };
        let (Some(asked), Some(theirs)) = (last_name(facts, receiver), self.store.facts_at(slot)) else { return false };
        let NodeOwner::Node(class) = super::lookup::owner_of(theirs, node) else { return false };
        let class = theirs.nodes.get(class.get() as usize).map_or("", |class| theirs.text_of(class.name));
        let plain = |name: &str| name.replace('_', "").to_lowercase();
        let (asked, class) = (plain(facts.text_of(asked)), plain(class));
        asked.len() > 2 && class.ends_with(&asked)
    }

    /// Returns true if a file imports another one, directly or through one other file.
    fn is_near(&self, file: u32, other: u32) -> bool {
        if file == other {
            return true;
        }
        let direct = self.imported_files(file);
        direct.contains(&other) || direct.iter().any(|next| self.imported_files(*next).contains(&other))
    }
}

/// Returns true for names that the standard library uses. For them it proves nothing that the project has only one such
/// method.
fn is_usual_name(name: &str) -> bool {
    USUAL.binary_search(&name).is_ok()
}

#[rustfmt::skip]
const USUAL: &[&str] = &[
    "add", "all", "any", "append", "apply", "args", "bind", "build", "call", "cast", "clear", "close", "collect",
    "copy", "count", "debug", "decode", "delete", "encode", "end", "endswith", "error", "exec", "exists", "extend",
    "filter", "find", "finish", "first", "flush", "format", "get", "group", "index", "info", "insert", "items",
    "iter", "join", "keys", "last", "load", "lock", "log", "lower", "main", "map", "match", "max", "min", "mkdir",
    "name", "next", "now", "open", "output", "parent", "parse", "path", "pop", "push", "read", "recv", "register",
    "remove", "replace", "reverse", "run", "search", "seek", "send", "set", "setdefault", "size", "sort", "split",
    "splitlines", "start", "startswith", "status", "store", "strip", "sub", "sum", "test", "update", "upper",
    "values", "wait", "warn", "with", "write", "zip",
];
