//! Holds the hints in memory: in a map for lookups, and in rows for searches. Map and rows have separate locks.
//!
//! The store has no clock (callers pass `now`) and no limits, and `cache` allows only one writer at a time. The lock of
//! the rows is always taken before the lock of the map, so a writer that waits for a long search does not block
//! lookups.

mod rows;
mod verdicts;

use std::collections::BinaryHeap;
use std::hash::BuildHasher as _;
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table;
use nudge_core::clock::Millis;
use nudge_core::context::Context;
use nudge_core::scope::Scope;
use nudge_core::steps::{StepBudget, TooMany};
use nudge_core::sync::atomic::{AtomicU64, Ordering};
use nudge_core::sync::{Mutex, RwLock};
use smallvec::SmallVec;

use crate::hint::Hint;

use rows::HintRows;
pub(crate) use rows::{FittingRow, HintFilter, HintHit, Only, StoreSizes, component_bytes, component_held};
use verdicts::KnownVerdicts;
pub(crate) use verdicts::{ScopeVerdicts, SearchVerdicts};

/// A change to the store, as a [`ChangeLog`](crate::ChangeLog) records it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum StoreChange {
    /// The hint after the change.
    Put(Arc<Hint>),
    /// The deleted hint.
    Delete(Arc<Hint>),
    /// A hint in its state before a call replaced its value. The store keeps it for `undo`.
    Replaced(Arc<Hint>),
    /// The unknown top-level keys of imports that the store keeps, as one JSON object.
    Extra(Arc<serde_json::value::RawValue>),
}

impl StoreChange {
    /// Returns the version of a secret after the change; `None` when the change is not about a secret.
    pub(crate) fn version_of_secret(&self) -> Option<u64> {
        match self {
            Self::Put(hint) | Self::Delete(hint) if hint.is_secret() => Some(hint.version()),
            _ => None,
        }
    }
}

/// From this number of changes on, the memory for all changes is reserved in one step.
const MANY: usize = 1000;

/// The variants of a key, copied under the lock.
pub(crate) type Variants = SmallVec<[Arc<Hint>; 4]>;

#[derive(Default)]
pub(crate) struct HintStore {
    map: RwLock<HintMap>,
    rows: RwLock<HintRows>,
    /// The context and the verdicts of the last search for fitting hints. An agent asks again and again from one folder,
    /// and the hints of other folders then cost it nothing.
    last: Mutex<Option<(Context, KnownVerdicts)>>,
}

#[derive(Default)]
struct HintMap {
    table: HashTable<SmallVec<[VariantSlot; 1]>>,
    hasher: RandomState,
    epoch: u64,
}

#[derive(Clone)]
struct VariantSlot {
    hint: Arc<Hint>,
    row: u32,
    /// The number of the hint's scope, with the class of the hint in the low bits. The class decides first between
    /// variants (semantics section 1): not doubtful, then specificity. Therefore a lookup reads only the hint that it
    /// chooses.
    scope: u32,
}

/// The number of bits of the class in a [`VariantSlot`]: three for the specificity, which is at most 6, and one for
/// doubt.
const CLASS_BITS: u32 = 4;
const NOT_DOUBTFUL: u32 = 8;

impl VariantSlot {
    fn new(hint: &Arc<Hint>, row: u32) -> Self {
        let class = u32::from(hint.scope.specificity()) | if hint.is_doubtful() { 0 } else { NOT_DOUBTFUL };
        Self { hint: Arc::clone(hint), row, scope: hint.scope.number() << CLASS_BITS | class }
    }

    fn scope_number(&self) -> u32 {
        self.scope >> CLASS_BITS
    }

    /// Returns the class. The greater class is better.
    fn class(&self) -> u32 {
        self.scope & ((1 << CLASS_BITS) - 1)
    }
}

impl HintMap {
    fn hash(&self, component: &str, key: &str) -> u64 {
        self.hasher.hash_one((component, key))
    }

    fn reserve(&mut self, more: usize) {
        let Self { table, hasher, .. } = self;
        table.reserve(more, |slots| hash_slots(hasher, slots));
    }

    #[inline]
    fn find_slots(&self, component: &str, key: &str) -> Option<&SmallVec<[VariantSlot; 1]>> {
        self.table.find(self.hash(component, key), |slots| is_key(slots, component, key))
    }
}

fn hash_slots(hasher: &RandomState, slots: &[VariantSlot]) -> u64 {
    slots.first().map_or(0, |slot| hasher.hash_one((&*slot.hint.component, &*slot.hint.key)))
}

fn is_key(slots: &[VariantSlot], component: &str, key: &str) -> bool {
    slots.first().is_some_and(|slot| &*slot.hint.key == key && &*slot.hint.component == component)
}

impl HintStore {
    /// Returns the variants of a key, including expired ones, and the epoch of the scope numbers.
    pub fn find_variants(&self, component: &str, key: &str) -> (u64, Variants) {
        let map = self.map.read();
        let slots = map.find_slots(component, key);
        (map.epoch, slots.map_or_else(Variants::new, |slots| slots.iter().map(|slot| Arc::clone(&slot.hint)).collect()))
    }

    /// Returns one variant of a key, whether it has expired or not.
    pub fn find_variant(&self, component: &str, key: &str, variant: &str) -> Option<Arc<Hint>> {
        let map = self.map.read();
        let mut slots = map.find_slots(component, key)?.iter();
        slots.find(|slot| slot.hint.variant() == variant).map(|slot| Arc::clone(&slot.hint))
    }

    /// Returns true when this hint is stored and is the only variant of its key.
    pub fn is_only_variant(&self, hint: &Arc<Hint>) -> bool {
        let map = self.map.read();
        let slots = map.find_slots(&hint.component, &hint.key);
        slots.is_some_and(|slots| matches!(&slots[..], [only] if Arc::ptr_eq(&only.hint, hint)))
    }

    /// Chooses a variant of a key under the lock, so that only this variant is copied. `choose` gets the variants of
    /// the best class that fit. If all of them have expired, `choose` gets all variants that fit. `memo` has the
    /// verdicts on the scopes. If a verdict is missing, `Err` returns all variants, because scopes are not compared
    /// under the lock.
    pub fn choose_variant<T>(
        &self,
        component: &str,
        key: &str,
        memo: &VerdictMemo,
        choose: impl Fn(&[&Arc<Hint>]) -> Option<T>,
    ) -> Result<Option<T>, (u64, Variants)> {
        let map = self.map.read();
        let Some(slots) = map.find_slots(component, key) else { return Ok(None) };
        let (mut best, mut class, mut others) = (SmallVec::<[_; 4]>::new(), 0, false);
        for slot in slots {
            match memo.find_cached(map.epoch, slot.scope_number()) {
                Some(true) if best.is_empty() || slot.class() > class => {
                    others |= !best.is_empty();
                    best.clear();
                    best.push(&slot.hint);
                    class = slot.class();
                }
                Some(true) if slot.class() == class => best.push(&slot.hint),
                Some(true) => others = true,
                Some(false) => {}
                None => return Err((map.epoch, slots.iter().map(|slot| Arc::clone(&slot.hint)).collect())),
            }
        }
        let chosen = choose(&best);
        if chosen.is_some() || !others {
            return Ok(chosen);
        }
        let fits = |slot: &&VariantSlot| memo.find_cached(map.epoch, slot.scope_number()) == Some(true);
        Ok(choose(&slots.iter().filter(fits).map(|slot| &slot.hint).collect::<SmallVec<[_; 4]>>()))
    }

    /// Returns every hint, including expired ones, in no order.
    pub fn list_all(&self) -> Vec<Arc<Hint>> {
        self.rows.read().iter_hints().cloned().collect()
    }

    /// Returns the hints of one component, including expired ones, in no order.
    pub fn list_component(&self, component: &str) -> Vec<Arc<Hint>> {
        self.rows.read().list_component(component)
    }

    /// Returns the sizes of the store, including expired hints.
    pub fn sizes(&self) -> StoreSizes {
        self.rows.read().sizes()
    }

    /// Returns the number of hints in a component, including expired ones.
    pub fn component_len(&self, component: &str) -> usize {
        self.rows.read().component_len(component)
    }

    /// Returns the components that have live hints, with the number of these hints, in no order.
    pub fn count_live(&self, now: Millis) -> Vec<(Arc<str>, usize)> {
        self.rows.read().count_live(now)
    }

    /// Returns the expired hints.
    pub fn list_expired(&self, now: Millis) -> Vec<Arc<Hint>> {
        self.rows.read().list_expired(now)
    }

    /// Returns the distinct scopes of the hints that pass `filter`, in no order.
    pub fn list_scopes(&self, filter: &HintFilter<'_>) -> Vec<Arc<Scope>> {
        self.rows.read().list_scopes(filter)
    }

    /// Returns the `limit` best hints that pass `filter` and come after `after`, best first. Scopes that take long are
    /// judged without the lock, between two passes over the rows, so that no writer waits for them.
    ///
    /// # Errors
    /// [`TooMany`] when the steps of `verdicts` are used up.
    pub fn search_top(
        &self,
        filter: &HintFilter<'_>,
        verdicts: &mut SearchVerdicts,
        after: Option<&HintHit>,
        limit: usize,
    ) -> Result<Vec<HintHit>, TooMany> {
        loop {
            let found = self.rows.read().search_top(filter, verdicts, after, limit);
            if !verdicts.settle_undecided(filter.context)? {
                return Ok(found);
            }
        }
    }

    /// Returns every hint that passes `filter`, in a heap that sorts only the hints that are popped. Also returns the
    /// number of hints that stayed undecided because the steps were used up.
    pub fn best_first(&self, filter: &HintFilter<'_>, steps: StepBudget) -> (BinaryHeap<HintHit>, usize) {
        let mut verdicts = SearchVerdicts::new(steps);
        loop {
            let found = self.rows.read().best_first(filter, &mut verdicts);
            match verdicts.settle_undecided(filter.context) {
                Ok(true) => {}
                Ok(false) => return (found, verdicts.count_undecided()),
                Err(_) => verdicts.leave_undecided(),
            }
        }
    }

    /// Returns the row and the address of every hint that passes `filter`, in no order. The address identifies the
    /// hint. Also returns the number of hints that stayed undecided because the steps were used up.
    pub fn find_fitting(&self, filter: &HintFilter<'_>, steps: StepBudget) -> (Vec<FittingRow>, usize) {
        let mut verdicts = SearchVerdicts::new(steps);
        let last = self.last.lock().take_if(|(context, _)| context.is_judged_like(filter.context));
        if let Some((_, known)) = last {
            verdicts.adopt(known);
        }
        loop {
            let found = self.rows.read().find_fitting(filter, &mut verdicts);
            match verdicts.settle_undecided(filter.context) {
                Ok(true) => {}
                Ok(false) => {
                    let undecided = verdicts.count_undecided();
                    *self.last.lock() = Some((filter.context.clone(), verdicts.into_known()));
                    return (found, undecided);
                }
                Err(_) => verdicts.leave_undecided(),
            }
        }
    }

    /// Returns those of the fitting rows whose component `is_meant`, in no order. `is_meant` runs under the lock, once
    /// for each component, and must be quick.
    pub fn rows_of(&self, fitting: &[FittingRow], is_meant: impl Fn(&str) -> bool) -> Vec<u32> {
        self.rows.read().of_components(fitting, is_meant)
    }

    /// Returns the number of times that a hint has left its row.
    pub fn count_gone(&self) -> u64 {
        self.rows.read().gone
    }

    /// Returns the hints of these rows. Rows without a hint are left out.
    pub fn hints_of(&self, rows: impl IntoIterator<Item = u32>) -> Vec<(u32, Arc<Hint>)> {
        let locked = self.rows.read();
        rows.into_iter().filter_map(|row| Some((row, locked.find_hint(row)?))).collect()
    }

    /// Returns the stored copy of a tag or component, so that equal texts share memory.
    pub fn intern(&self, text: &str) -> Option<Arc<str>> {
        self.rows.read().intern(text)
    }

    /// Applies planned changes; this cannot fail. Returns the hints that are no longer stored.
    pub fn apply_changes(&self, changes: &[StoreChange]) -> Vec<Arc<Hint>> {
        let mut rows = self.rows.write();
        let mut map = self.map.write();
        if changes.len() > MANY {
            map.reserve(changes.len());
            rows.reserve(changes.len());
        }
        let gone = changes.iter().filter_map(|change| match change {
            StoreChange::Put(hint) => put_hint(&mut map, &mut rows, hint),
            StoreChange::Delete(hint) => delete_hint(&mut map, &mut rows, hint),
            StoreChange::Replaced(_) | StoreChange::Extra(_) => None,
        });
        gone.collect()
    }

    /// Begins a new epoch of scope numbers. All verdicts that were cached by number are then invalid.
    pub fn renumber_scopes(&self) {
        let mut rows = self.rows.write();
        let mut map = self.map.write();
        map.epoch += 1;
        rows.epoch = map.epoch;
    }
}

fn put_hint(map: &mut HintMap, rows: &mut HintRows, hint: &Arc<Hint>) -> Option<Arc<Hint>> {
    let hash = map.hash(&hint.component, &hint.key);
    let HintMap { table, hasher, .. } = map;
    let entry = table.entry(hash, |slots| is_key(slots, &hint.component, &hint.key), |slots| hash_slots(hasher, slots));
    match entry {
        hash_table::Entry::Vacant(entry) => {
            let row = rows.insert(hint);
            entry.insert(SmallVec::from_buf([VariantSlot::new(hint, row)]));
            None
        }
        hash_table::Entry::Occupied(mut entry) => {
            let slots = entry.get_mut();
            if let Some(slot) = slots.iter_mut().find(|slot| slot.hint.variant() == hint.variant()) {
                rows.replace(slot.row, hint);
                return Some(std::mem::replace(slot, VariantSlot::new(hint, slot.row)).hint);
            }
            let row = rows.insert(hint);
            slots.push(VariantSlot::new(hint, row));
            None
        }
    }
}

fn delete_hint(map: &mut HintMap, rows: &mut HintRows, hint: &Arc<Hint>) -> Option<Arc<Hint>> {
    let hash = map.hash(&hint.component, &hint.key);
    let mut entry = map.table.find_entry(hash, |slots| is_key(slots, &hint.component, &hint.key)).ok()?;
    let slots = entry.get_mut();
    let index = slots.iter().position(|slot| slot.hint.variant() == hint.variant())?;
    let slot = slots.remove(index);
    rows.remove(slot.row);
    if slots.is_empty() {
        entry.remove();
    }
    Some(slot.hint)
}

/// The number of scopes in one piece of a [`VerdictMemo`].
const PIECE: usize = 256;
/// The number of pieces of a [`VerdictMemo`]. Scopes with higher numbers are compared on every call.
const PIECES: usize = 32;

/// The verdicts of one context on each scope, cached by the scope's number, for many threads. The cache needs no lock,
/// because each verdict is stored together with its epoch.
#[derive(Default)]
pub(crate) struct VerdictMemo([OnceLock<Box<[AtomicU64; PIECE]>>; PIECES]);

impl VerdictMemo {
    /// Returns the verdict on a scope number, if it is cached.
    pub fn find_cached(&self, epoch: u64, scope: u32) -> Option<bool> {
        let index = scope as usize;
        let word = self.0.get(index / PIECE)?.get()?[index % PIECE].load(Ordering::Relaxed);
        // The bits from the lowest on: the verdict, a flag that is set when there is a verdict, and the epoch.
        (word >> 1 == (epoch << 1 | 1)).then_some(word & 1 == 1)
    }

    /// Returns true when `context` meets `scope`, which was read at `epoch`. Every call must pass the same context.
    pub fn allows(&self, epoch: u64, scope: &Scope, context: &Context) -> bool {
        self.find_cached(epoch, scope.number()).unwrap_or_else(|| {
            let verdict = scope.matches(context);
            let index = scope.number() as usize;
            if let Some(piece) = self.0.get(index / PIECE) {
                let piece = piece.get_or_init(|| Box::new([const { AtomicU64::new(0) }; PIECE]));
                piece[index % PIECE].store(epoch << 2 | 2 | u64::from(verdict), Ordering::Relaxed);
            }
            verdict
        })
    }
}

#[cfg(test)]
mod tests {
    use nudge_core::context::ContextSpec;
    use nudge_core::scope::ScopeSpec;

    use super::*;
    use crate::{DeleteHint, Nudge, SetHint};

    #[test]
    fn a_memo_keeps_the_verdict_on_each_scope_for_its_epoch() {
        let scope =
            |branch: &str| Scope::new(&ScopeSpec { branch: vec![branch.into()], ..ScopeSpec::default() }).unwrap();
        let (fits, fails) = (scope("dev"), scope("main"));
        let context = ContextSpec::default().branch("dev").build().unwrap();
        let memo = VerdictMemo::default();
        let last = u32::try_from(PIECE * PIECES).unwrap() - 1;
        for (index, number) in [0, 1, 255, 256, 511, 512, last].into_iter().enumerate() {
            let (scope, verdict) = if index % 2 == 0 { (&fits, true) } else { (&fails, false) };
            assert_eq!(memo.find_cached(7, number), None);
            assert_eq!(memo.allows(7, &scope.with_number(number), &context), verdict);
            assert_eq!(memo.find_cached(7, number), Some(verdict), "{number}");
            assert_eq!((memo.find_cached(6, number), memo.find_cached(8, number)), (None, None), "{number}");
        }
        // A cached verdict is not computed again. The memo has no entry for a scope with a higher number.
        assert!(memo.allows(7, &fails.with_number(0), &context));
        assert!(!memo.allows(7, &fails.with_number(last + 1), &context));
        assert_eq!(memo.find_cached(7, last + 1), None);
    }
    #[test]
    fn what_is_gone_takes_no_room() {
        let store = Nudge::default();
        let sizes = || {
            let StoreSizes { components, hints, bytes, held } = store.store.sizes();
            [components, hints, bytes, held]
        };
        let empty = sizes();
        for name in ["a", "b"] {
            let mut hint = SetHint::new(name.repeat(100), "k", "make it");
            hint.meta.tags = vec!["t".into()];
            store.set(hint).unwrap();
        }
        let two = sizes();
        assert!(two.iter().zip(empty).all(|(now, before)| *now > before));
        for name in ["a", "b"] {
            let gone = DeleteHint { component: name.repeat(100), key: "k".into(), variant: None, all: false };
            store.delete(&gone).unwrap();
        }
        assert_eq!(sizes(), empty);
        store.set(SetHint::new("b", "k", "make it")).unwrap();
        let first = sizes();
        assert_eq!(first[..2], [1, 1]);
        store.set(SetHint::new("b", "k", "make it ".repeat(50))).unwrap();
        assert!(sizes()[2..].iter().zip(&first[2..]).all(|(now, before)| now > before));
        store.set(SetHint::new("b", "k", "make it")).unwrap();
        assert_eq!(sizes(), first);
    }
}
