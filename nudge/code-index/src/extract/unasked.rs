//! Removes bindings that no query needs.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use crate::facts::{BindingTarget, Expr, FileFacts, NameId, NodeKind};
use crate::index::of_file;

/// Removes the bindings of local variables, parameters and type parameters whose names no expression of the file
/// contains. Code outside their function cannot refer to them.
pub(super) fn drop(facts: &mut FileFacts) {
    let named = |expr| if let Expr::Name(name) = expr { Some(name) } else { None };
    let named: HashSet<NameId, FixedState> = facts.exprs.iter().filter_map(named).collect();
    let modules = facts.nodes.iter().filter(|node| node.kind == NodeKind::Module);
    let ends: HashSet<u32, FixedState> = modules.map(|node| node.span.end).collect();
    let texts = &facts.names;
    facts.bindings.retain(|binding| {
        let (from, to) = (binding.from.get(), binding.to.get());
        let is_seen_outside = of_file(from, to) || ends.contains(&to);
        let is_local =
            matches!(binding.bound, BindingTarget::Value(_) | BindingTarget::Param(..) | BindingTarget::TypeParam(..));
        // An attribute is bound under the joined name `owner.member`. No expression contains this name, but queries
        // look it up, so the binding stays.
        let is_member = texts.get(binding.name).contains('.');
        !is_local || is_seen_outside || is_member || named.contains(&binding.name)
    });
}
