//! The findings of a question so far. They live as long as the question: the index itself keeps no answers.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use foldhash::fast::FixedState;

use crate::facts::ExprId;
use crate::index::NodeId;

use super::{Place, Space, Val, order::Base, rust::Found};

type Table<K, V> = RefCell<HashMap<K, V, FixedState>>;

#[derive(Default)]
pub(super) struct Memo {
    /// Counts the steps left out, because a search went in a circle or too deep. An answer found with such a gap may be
    /// incomplete, and is not kept.
    cuts: Cell<u32>,
    pub roots: Table<u32, Rc<[u32]>>,
    pub named: Table<Rc<str>, Rc<[(u32, u32)]>>,
    pub methods: Table<(NodeId, Rc<str>), Slot<Found>>,
    pub orders: Table<NodeId, Slot<Option<Rc<[Base]>>>>,
    pub exports: Table<(Place, Rc<str>, Space, bool), Slot<Val>>,
    pub values: Table<(u32, ExprId, u32, Space), Slot<Val>>,
    pub externs: Table<(u32, Rc<str>), Option<Val>>,
}

/// An answer, or that it is being looked for.
#[derive(Clone)]
pub(super) enum Slot<T> {
    Open,
    Known(T),
}

impl Memo {
    pub fn cut(&self) {
        self.cuts.set(self.cuts.get() + 1);
    }

    /// The answer to a question: known, found now, or `otherwise` if it asks for itself.
    pub fn once<K: Hash + Eq + Clone, V: Clone>(
        &self,
        table: &Table<K, Slot<V>>,
        key: K,
        otherwise: V,
        run: impl FnOnce() -> V,
    ) -> V {
        match table.borrow().get(&key) {
            Some(Slot::Known(value)) => return value.clone(),
            Some(Slot::Open) => {
                self.cut();
                return otherwise;
            }
            None => {}
        }
        let before = self.cuts.get();
        table.borrow_mut().insert(key.clone(), Slot::Open);
        let value = run();
        if self.cuts.get() == before {
            table.borrow_mut().insert(key, Slot::Known(value.clone()));
        } else {
            table.borrow_mut().remove(&key);
        }
        value
    }
}
