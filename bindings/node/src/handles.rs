//! Maps the numbers that JavaScript uses to stores and views. Each JavaScript thread has its own numbers. Several
//! threads may share a store under different numbers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use nudge::{Context, Error, Result};
use nudge_client::Store;

use crate::lookup::StoreView;

thread_local! {
    static HANDLES: RefCell<HandleTable> = RefCell::default();
}

#[derive(Default)]
struct HandleTable {
    by_number: HashMap<u32, StoreHandle>,
    last: u32,
}

/// A store that is open in this thread.
pub struct StoreHandle {
    store: Arc<Store>,
    views: Vec<StoreView>,
    pairs: Vec<(String, String)>,
}

/// Stores `store` under a new number. Returns the number.
pub fn open(store: Arc<Store>) -> u32 {
    HANDLES.with_borrow_mut(|handles| {
        // No number is used twice, except when a program opens 2^32 stores in one thread.
        handles.last = handles.last.wrapping_add(1);
        let number = handles.last;
        handles.by_number.insert(number, StoreHandle { store, views: Vec::new(), pairs: Vec::new() });
        number
    })
}

/// Closes the store with this number for this thread.
pub fn close(number: u32) {
    let handle = HANDLES.with_borrow_mut(|handles| handles.by_number.remove(&number));
    // Drops the store after the borrow, because the drop may close a connection.
    drop(handle);
}

/// Calls `look` with the store that has this number. `look` must not call JavaScript.
pub fn with_handle<T>(number: u32, look: impl FnOnce(&mut StoreHandle) -> T) -> Result<T> {
    HANDLES.with_borrow_mut(|handles| handles.by_number.get_mut(&number).map(look)).ok_or_else(closed)
}

impl StoreHandle {
    /// Returns the store.
    pub fn store(&mut self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// Returns a view by the number that [`StoreHandle::add_view`] has returned.
    pub fn view(&mut self, number: u32) -> Result<&mut StoreView> {
        self.views.get_mut(number as usize).ok_or_else(closed)
    }

    /// Makes a view of the store from `context`. Returns the number of the view.
    pub fn add_view(&mut self, context: Context) -> u32 {
        self.views.push(StoreView::new(&self.store, context));
        number(self.views.len() - 1)
    }

    /// Returns a new number for a pair of component and key.
    pub fn add_pair(&mut self, component: String, key: String) -> u32 {
        self.pairs.push((component, key));
        number(self.pairs.len() - 1)
    }

    /// Forgets the views. If `pairs` is true, forgets the pairs too.
    pub fn reset(&mut self, pairs: bool) {
        self.views.clear();
        if pairs {
            self.pairs.clear();
        }
    }

    /// Returns the token of a view's answer (see [`StoreView::get`]). Returns `None` when `view` or `pair` is unknown.
    pub fn get(&mut self, view: u32, pair: u32) -> Option<f64> {
        let (component, key) = self.pairs.get(pair as usize)?;
        self.views.get_mut(view as usize)?.get(component, key, pair)
    }
}

/// Converts an index to a number. JavaScript resets its numbers long before they can reach 2^32.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn closed() -> Error {
    Error::unavailable("The store is closed; open another.")
}
