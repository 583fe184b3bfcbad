//! Names that are assigned anew, and so are not what they were declared as.

use crate::facts::{Binding, Bound, ExprId, FileFacts, Kind, Name, Number, flag};

/// Most assignments of a file that are looked at.
const MAX_LOOKED_AT: usize = 5_000;

/// Marks names that are assigned anew: from then on nothing is known of them. The bindings are in the order of their
/// names.
pub(super) fn bind(facts: &mut FileFacts, all: &[(Name, u32, ExprId)]) {
    let mut marks: Vec<Binding<Number>> = Vec::new();
    for (name, at, value) in all.iter().take(MAX_LOOKED_AT) {
        let seen = facts.bindings_of(*name).filter(|b| b.from <= *at && *at < b.to);
        let Some(declared) = seen.max_by_key(|binding| binding.from).filter(|b| is_open(facts, b, *value)) else {
            continue;
        };
        let mark = Binding { at: *at, sure: 0, bound: Bound::Value(ExprId::NONE), ..declared }.into_of();
        if !marks.iter().any(|known| (known.name, known.from, known.to) == (mark.name, mark.from, mark.to)) {
            marks.push(mark);
        }
    }
    facts.bindings.extend(marks);
    facts.bindings.sort_by_key(|b| b.name);
}

/// Returns true if a declared name may become something else by this value. A name with a declared type keeps it.
fn is_open(facts: &FileFacts, declared: &Binding, value: ExprId) -> bool {
    match declared.bound {
        Bound::Value(first) => first != value && declared.sure != declared.to,
        Bound::Node(node) => facts
            .nodes
            .get(node as usize)
            .is_some_and(|node| node.kind != Kind::Constant || node.flags & flag::ANNOTATED == 0),
        _ => false,
    }
}
