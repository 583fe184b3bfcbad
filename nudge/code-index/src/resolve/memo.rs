//! Caches the intermediate results of a group of queries. The cache ends with the group.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use foldhash::fast::FixedState;

use crate::facts::ExprId;
use crate::index::NodeId;

use super::{ExprValue, ModulePlace, NameSpace, order::ClassBase, rust::MethodMatch};

type Table<K, V> = RefCell<HashMap<K, V, FixedState>>;

#[derive(Default)]
pub(super) struct ResolverMemo {
    /// Counts the steps that were left out because a search went in a circle or too deep. A result with such a gap may
    /// be incomplete, so it is not cached.
    cuts: Cell<u32>,
    pub roots: Table<u32, Rc<[u32]>>,
    pub named: Table<Rc<str>, Rc<[(u32, u32)]>>,
    pub methods: Table<(NodeId, Rc<str>), MemoSlot<MethodMatch>>,
    pub orders: Table<NodeId, MemoSlot<Option<Rc<[ClassBase]>>>>,
    pub exports: Table<(ModulePlace, Rc<str>, NameSpace, bool), MemoSlot<ExprValue>>,
    pub values: Table<(u32, ExprId, u32, NameSpace), MemoSlot<ExprValue>>,
    pub externs: Table<(u32, Rc<str>), Option<ExprValue>>,
}

/// A cached result, or `Open` while the search for the result runs.
#[derive(Clone)]
pub(super) enum MemoSlot<T> {
    Open,
    Known(T),
}

impl ResolverMemo {
    pub fn note_cut(&self) {
        self.cuts.set(self.cuts.get() + 1);
    }

    /// Returns the cached result, or finds it with a search. Returns `otherwise` if the search needs its own result.
    pub fn answer_once<K: Hash + Eq + Clone, V: Clone>(
        &self,
        table: &Table<K, MemoSlot<V>>,
        key: K,
        otherwise: V,
        run: impl FnOnce() -> V,
    ) -> V {
        match table.borrow().get(&key) {
            Some(MemoSlot::Known(value)) => return value.clone(),
            Some(MemoSlot::Open) => {
                self.note_cut();
                return otherwise;
            }
            None => {}
        }
        let before = self.cuts.get();
        table.borrow_mut().insert(key.clone(), MemoSlot::Open);
        let value = run();
        if self.cuts.get() == before {
            table.borrow_mut().insert(key, MemoSlot::Known(value.clone()));
        } else {
            table.borrow_mut().remove(&key);
        }
        value
    }
}
