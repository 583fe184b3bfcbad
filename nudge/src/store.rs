//! The hints in memory: a map for lookups and, under a lock of its own, rows for searches.
//!
//! Plain data. It knows nothing of clocks (it takes `now`), of limits, or of who writes: the one
//! writer at a time is `cache`'s concern. Lock order: rows, then map: a writer that waits for a long
//! search must not hold up lookups meanwhile.

mod rows;

use std::collections::BinaryHeap;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table;
use nudge_core::clock::Millis;
use nudge_core::context::Context;
use nudge_core::scope::Scope;
use parking_lot::RwLock;
use smallvec::SmallVec;

use crate::hint::Hint;

use rows::Rows;
pub(crate) use rows::{Filter, Found, Sizes, component_bytes};

/// One change to the store: what a [`Log`](crate::Log) is given, as post-images.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// The hint as it stands after the change.
    Put(Arc<Hint>),
    /// The hint that goes.
    Delete(Arc<Hint>),
    /// The retained top-level keys of imports, as one JSON object.
    Extra(Arc<serde_json::value::RawValue>),
}

/// From how many changes on room is made for all of them at once.
const MANY: usize = 1000;

/// The variants of a key, copied out of the lock.
pub(crate) type Variants = SmallVec<[Arc<Hint>; 4]>;

#[derive(Default)]
pub(crate) struct Store {
    map: RwLock<Map>,
    rows: RwLock<Rows>,
}

#[derive(Default)]
struct Map {
    table: HashTable<SmallVec<[Slot; 1]>>,
    hasher: RandomState,
    epoch: u64,
}

#[derive(Clone)]
struct Slot {
    hint: Arc<Hint>,
    row: u32,
    /// Number of the hint's scope.
    scope: u32,
}

impl Slot {
    fn new(hint: &Arc<Hint>, row: u32) -> Self {
        Self { hint: Arc::clone(hint), row, scope: hint.scope.number() }
    }
}

impl Map {
    fn hash(&self, component: &str, key: &str) -> u64 {
        self.hasher.hash_one((component, key))
    }

    fn reserve(&mut self, more: usize) {
        let Self { table, hasher, .. } = self;
        table.reserve(more, |slots| rehash(hasher, slots));
    }

    fn find(&self, component: &str, key: &str) -> Option<&SmallVec<[Slot; 1]>> {
        self.table.find(self.hash(component, key), |slots| is(slots, component, key))
    }
}

fn rehash(hasher: &RandomState, slots: &[Slot]) -> u64 {
    slots.first().map_or(0, |slot| hasher.hash_one((&*slot.hint.component, &*slot.hint.key)))
}

fn is(slots: &[Slot], component: &str, key: &str) -> bool {
    slots.first().is_some_and(|slot| &*slot.hint.key == key && &*slot.hint.component == component)
}

impl Store {
    /// The variants stored under a key, expired ones included, and the epoch of the scope numbers.
    pub fn variants(&self, component: &str, key: &str) -> (u64, Variants) {
        let map = self.map.read();
        let slots = map.find(component, key);
        (map.epoch, slots.map_or_else(Variants::new, |slots| slots.iter().map(|slot| Arc::clone(&slot.hint)).collect()))
    }

    /// Chooses among the variants of a key by what `memo` knows of their scopes, under the lock, so
    /// that only the chosen one is copied out. `Err` has them all when some scope was never judged:
    /// judging is for outside the lock.
    pub fn choose<T>(
        &self,
        component: &str,
        key: &str,
        memo: &Memo,
        choose: impl FnOnce(&[&Arc<Hint>]) -> Option<T>,
    ) -> Result<Option<T>, (u64, Variants)> {
        let map = self.map.read();
        let Some(slots) = map.find(component, key) else { return Ok(None) };
        let mut fitting = SmallVec::<[_; 4]>::new();
        for slot in slots {
            match memo.known(map.epoch, slot.scope) {
                Some(true) => fitting.push(&slot.hint),
                Some(false) => {}
                None => return Err((map.epoch, slots.iter().map(|slot| Arc::clone(&slot.hint)).collect())),
            }
        }
        Ok(choose(&fitting))
    }

    /// Every hint, expired ones included, in no order.
    pub fn all(&self) -> Vec<Arc<Hint>> {
        self.rows.read().hints().cloned().collect()
    }

    /// The hints of one component, expired ones included, in no order.
    pub fn component(&self, component: &str) -> Vec<Arc<Hint>> {
        self.rows.read().component(component)
    }

    /// How much is stored, expired hints included.
    pub fn sizes(&self) -> Sizes {
        self.rows.read().sizes()
    }

    /// How many hints a component has, expired ones included.
    pub fn component_len(&self, component: &str) -> usize {
        self.rows.read().component_len(component)
    }

    /// The components that have live hints, with how many, in no order.
    pub fn counts(&self, now: Millis) -> Vec<(Arc<str>, usize)> {
        self.rows.read().counts(now)
    }

    /// The hints that have expired.
    pub fn expired(&self, now: Millis) -> Vec<Arc<Hint>> {
        self.rows.read().expired(now)
    }

    /// The distinct scopes of the hints that pass `filter`, in no order.
    pub fn scopes(&self, filter: &Filter<'_>) -> Vec<Arc<Scope>> {
        self.rows.read().scopes(filter)
    }

    /// The `limit` best hints that pass `filter`, best first, none of them before `after`.
    pub fn top(&self, filter: &Filter<'_>, verdicts: &mut Verdicts, after: Option<&Found>, limit: usize) -> Vec<Found> {
        self.rows.read().top(filter, verdicts, after, limit)
    }

    /// Every hint that passes `filter`, best first as far as they are taken.
    pub fn best_first(&self, filter: &Filter<'_>) -> BinaryHeap<Found> {
        self.rows.read().best_first(filter)
    }

    /// The stored text of a tag or component, so that equal ones share memory.
    pub fn intern(&self, text: &str) -> Option<Arc<str>> {
        self.rows.read().intern(text)
    }

    /// Applies planned changes; cannot fail. Returns the hints that are no longer stored.
    pub fn apply(&self, changes: &[Change]) -> Vec<Arc<Hint>> {
        let mut rows = self.rows.write();
        let mut map = self.map.write();
        if changes.len() > MANY {
            map.reserve(changes.len());
            rows.reserve(changes.len());
        }
        let gone = changes.iter().filter_map(|change| match change {
            Change::Put(hint) => put(&mut map, &mut rows, hint),
            Change::Delete(hint) => delete(&mut map, &mut rows, hint),
            Change::Extra(_) => None,
        });
        gone.collect()
    }

    /// Says that scope numbers will be given out again: what was remembered by number is void.
    pub fn renumber(&self) {
        let mut rows = self.rows.write();
        let mut map = self.map.write();
        map.epoch += 1;
        rows.epoch = map.epoch;
    }
}

fn put(map: &mut Map, rows: &mut Rows, hint: &Arc<Hint>) -> Option<Arc<Hint>> {
    let hash = map.hash(&hint.component, &hint.key);
    let Map { table, hasher, .. } = map;
    let entry = table.entry(hash, |slots| is(slots, &hint.component, &hint.key), |slots| rehash(hasher, slots));
    match entry {
        hash_table::Entry::Vacant(entry) => {
            let row = rows.insert(hint);
            entry.insert(SmallVec::from_buf([Slot::new(hint, row)]));
            None
        }
        hash_table::Entry::Occupied(mut entry) => {
            let slots = entry.get_mut();
            if let Some(slot) = slots.iter_mut().find(|slot| slot.hint.variant() == hint.variant()) {
                rows.replace(slot.row, hint);
                return Some(std::mem::replace(slot, Slot::new(hint, slot.row)).hint);
            }
            let row = rows.insert(hint);
            slots.push(Slot::new(hint, row));
            None
        }
    }
}

fn delete(map: &mut Map, rows: &mut Rows, hint: &Arc<Hint>) -> Option<Arc<Hint>> {
    let hash = map.hash(&hint.component, &hint.key);
    let mut entry = map.table.find_entry(hash, |slots| is(slots, &hint.component, &hint.key)).ok()?;
    let slots = entry.get_mut();
    let at = slots.iter().position(|slot| slot.hint.variant() == hint.variant())?;
    let slot = slots.remove(at);
    rows.remove(slot.row);
    if slots.is_empty() {
        entry.remove();
    }
    Some(slot.hint)
}

/// What one context makes of each scope, remembered by the scope's number.
#[derive(Default)]
pub(crate) struct Verdicts {
    epoch: u64,
    by_scope: Vec<Option<bool>>,
}

impl Verdicts {
    /// Starts over when scope numbers have been given out again since.
    pub fn renew(&mut self, epoch: u64) {
        if epoch > self.epoch {
            self.by_scope.clear();
            self.epoch = epoch;
        }
    }

    /// Whether `context`, always the same one, meets `scope`, read at `epoch`.
    pub fn allows(&mut self, epoch: u64, scope: &Scope, context: &Context) -> bool {
        let at = scope.number() as usize;
        // Another thread has seen a later epoch: this number may mean another scope by now.
        if epoch != self.epoch || scope.number() == u32::MAX {
            return scope.matches(context);
        }
        if at >= self.by_scope.len() {
            self.by_scope.resize(at + 1, None);
        }
        *self.by_scope[at].get_or_insert_with(|| scope.matches(context))
    }

    /// The verdict on a scope number, if it was asked for before.
    pub fn known(&self, epoch: u64, scope: u32) -> Option<bool> {
        if epoch == self.epoch { self.by_scope.get(scope as usize).copied().flatten() } else { None }
    }
}

/// Scopes that share a piece of a [`Memo`].
const PIECE: usize = 256;
/// Pieces of a [`Memo`]; scopes with higher numbers are matched every time.
const PIECES: usize = 32;

/// As [`Verdicts`], for one context in many threads: no lock, because each verdict carries its epoch.
#[derive(Default)]
pub(crate) struct Memo([OnceLock<Box<[AtomicU64; PIECE]>>; PIECES]);

impl Memo {
    /// The verdict on a scope number, if it was asked for before.
    pub fn known(&self, epoch: u64, scope: u32) -> Option<bool> {
        let at = scope as usize;
        let word = self.0.get(at / PIECE)?.get()?[at % PIECE].load(Ordering::Relaxed);
        // From the lowest bit: the verdict, whether there is one, the epoch.
        (word >> 1 == (epoch << 1 | 1)).then_some(word & 1 == 1)
    }

    /// Whether `context`, always the same one, meets `scope`, read at `epoch`.
    pub fn allows(&self, epoch: u64, scope: &Scope, context: &Context) -> bool {
        self.known(epoch, scope.number()).unwrap_or_else(|| {
            let verdict = scope.matches(context);
            let at = scope.number() as usize;
            if let Some(piece) = self.0.get(at / PIECE) {
                let piece = piece.get_or_init(|| Box::new([const { AtomicU64::new(0) }; PIECE]));
                piece[at % PIECE].store(epoch << 2 | 2 | u64::from(verdict), Ordering::Relaxed);
            }
            verdict
        })
    }
}
