//! Drops bindings that no query needs.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use crate::facts::{BindingTarget, Expr, FileFacts, NameId, NodeKind};
use crate::index::of_file;

/// Drops the bindings of local variables, parameters and type parameters whose name occurs in no expression of the
/// file. Code outside their function cannot refer to them.
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
        // An attribute is bound under the joined name `owner.member`, which no expression holds as one name. A query
        // looks it up in this form, so the binding is kept.
        let is_member = texts.get(binding.name).contains('.');
        !is_local || is_seen_outside || is_member || named.contains(&binding.name)
    });
}
