//! Computes the order in which Python looks for a member. A class comes first, then its bases, each after all classes
//! that inherit from it. This is the C3 order, as in `__mro__`.

use std::rc::Rc;

use crate::index::NodeId;

use super::class::MemberQuery;
use super::{CallResolver, ClassMember, ExprValue};

/// Largest number of classes in one order. No real program has so many.
const ORDER_MAX: usize = 100;

/// A class or base in the order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassBase {
    Class(NodeId),
    /// A base outside the index, which may have any member. It is identified by the class that names it and its
    /// position there.
    Unknown(NodeId, usize),
}

impl CallResolver<'_> {
    /// Finds a member in the bases of a Python class, in the C3 order.
    pub(super) fn find_inherited(&self, id: NodeId, asked: &MemberQuery<'_>) -> Option<ClassMember> {
        for base in self.class_order(id)?.iter().skip(1) {
            match base {
                ClassBase::Class(base) => {
                    if let Some(member) = self.own_member(*base, asked) {
                        return Some(member);
                    }
                }
                ClassBase::Unknown(..) => return None,
            }
        }
        None
    }

    /// Returns a class and all its ancestors in order. Returns `None` when the bases contradict each other or form a
    /// circle.
    fn class_order(&self, id: NodeId) -> Option<Rc<[ClassBase]>> {
        self.run_with_fuel(None, || self.memo.answer_once(&self.memo.orders, id, None, || self.find_order(id)))
    }

    fn find_order(&self, id: NodeId) -> Option<Rc<[ClassBase]>> {
        let bases: Vec<ClassBase> = (0..)
            .zip(self.list_bases(id))
            .filter_map(|(place, base)| match base {
                ExprValue::Def(base, _) | ExprValue::Of(base, _) => Some(ClassBase::Class(base)),
                ExprValue::OuterType(name, _) if is_bare(&name) => None,
                _ => Some(ClassBase::Unknown(id, place)),
            })
            .collect();
        let mut lists = Vec::with_capacity(bases.len() + 1);
        for base in &bases {
            lists.push(match base {
                ClassBase::Class(base) => self.class_order(*base)?.to_vec(),
                ClassBase::Unknown(..) => vec![*base],
            });
        }
        lists.push(bases);
        let mut out = vec![ClassBase::Class(id)];
        loop {
            lists.retain(|list| !list.is_empty());
            let waits = |base: &ClassBase| lists.iter().any(|list| list[1..].contains(base));
            let Some(next) = lists.iter().map(|list| list[0]).find(|base| !waits(base)) else { break };
            for list in lists.iter_mut().filter(|list| list[0] == next) {
                list.remove(0);
            }
            out.push(next);
            if out.len() > ORDER_MAX {
                return None;
            }
        }
        lists.is_empty().then(|| out.into())
    }
}

/// Returns true for classes of the standard library that add no member for programs to call.
fn is_bare(name: &str) -> bool {
    matches!(name, "object" | "ABC" | "Generic" | "Protocol")
}
