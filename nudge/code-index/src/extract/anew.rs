//! Handles names that the code assigns again. After that, the declaration no longer gives the value.

use crate::facts::{BindingTarget, CompactNumber, ExprId, FileFacts, NameBinding, NameId, NodeKind, flag};

/// Largest number of assignments in a file that are read.
const MAX_LOOKED_AT: usize = 5_000;

/// Gives each name that is assigned again an additional binding to an unknown value. Afterwards the bindings are sorted
/// by name.
pub(super) fn mark_reassigned(facts: &mut FileFacts, all: &[(NameId, u32, ExprId)]) {
    let mut marks: Vec<NameBinding<CompactNumber>> = Vec::new();
    for (name, offset, value) in all.iter().take(MAX_LOOKED_AT) {
        let seen = facts.bindings_of(*name).filter(|b| b.from <= *offset && *offset < b.to);
        let Some(declared) = seen.max_by_key(|binding| binding.from).filter(|b| is_open(facts, b, *value)) else {
            continue;
        };
        let mark = NameBinding { value_place: *offset, sure: 0, bound: BindingTarget::Value(ExprId::NONE), ..declared }
            .into_of();
        if !marks.iter().any(|known| (known.name, known.from, known.to) == (mark.name, mark.from, mark.to)) {
            marks.push(mark);
        }
    }
    facts.bindings.extend(marks);
    facts.bindings.sort_by_key(|b| b.name);
}

/// Returns true if assigning this value may change the meaning of the name. A declared type cannot change.
fn is_open(facts: &FileFacts, declared: &NameBinding, value: ExprId) -> bool {
    match declared.bound {
        BindingTarget::Value(first) => first != value && declared.sure != declared.to,
        BindingTarget::Node(node) => facts
            .nodes
            .get(node as usize)
            .is_some_and(|node| node.kind != NodeKind::Constant || node.flags & flag::ANNOTATED == 0),
        _ => false,
    }
}
