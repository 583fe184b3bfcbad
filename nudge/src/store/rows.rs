//! Holds one small row for each hint, so that a search reads little memory. The search decides once for each distinct
//! scope whether it fits, computes scores from the numbers in the rows, and reads only the best hints themselves.

mod search;

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use nudge_core::clock::Millis;
use nudge_core::held::allocation_bytes;

use crate::hint::Hint;
use crate::scoring;

pub(crate) use search::{FittingRow, HintFilter, HintHit, Only};

const FREE: u32 = u32::MAX;

/// The part of a row that a search reads for every hint. It is enough to skip most hints, and small enough for the
/// processor's caches.
#[derive(Clone, Copy)]
struct HintGlance {
    /// The number of the hint's scope; `FREE` when the row has no hint.
    scope: u32,
    /// The upper bound of the hint's score at any time, without an open file.
    most: f32,
}

/// The part of a row that ranks a hint. A search reads it only for the few hints that their [`HintGlance`] does not
/// exclude.
struct RankRow {
    fixed: f64,
    updated_at: Millis,
    last_used_at: Millis,
    expires_at: Millis,
    use_count: u64,
    component: u32,
    specificity: u8,
    doubtful: bool,
    secret: bool,
    unproven: bool,
}

#[derive(Default)]
pub(super) struct HintRows {
    details: Vec<RankRow>,
    /// Has the same indices as `details`.
    glances: Vec<HintGlance>,
    /// Has the same indices as `details`.
    hints: Vec<Option<Arc<Hint>>>,
    free: Vec<u32>,
    /// The size of all hints in an export, in bytes.
    bytes: usize,
    /// The size of all hints in memory, in bytes.
    held: usize,
    components: Vec<ComponentRows>,
    component_ids: HashMap<Arc<str>, u32, RandomState>,
    free_components: Vec<u32>,
    /// The numbers of the rows with each tag, ascending.
    tags: HashMap<Arc<str>, Vec<u32>, RandomState>,
    pub(super) epoch: u64,
    /// The number of times that a hint has left its row.
    pub(super) gone: u64,
}

#[derive(Default)]
struct ComponentRows {
    name: Arc<str>,
    /// The numbers of the component's rows, ascending.
    rows: Vec<u32>,
}

/// The sizes of a store, including expired hints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreSizes {
    pub components: usize,
    pub hints: usize,
    pub bytes: usize,
    /// The size in memory, in bytes.
    pub held: usize,
}

impl HintRows {
    pub fn iter_hints(&self) -> impl Iterator<Item = &Arc<Hint>> {
        self.hints.iter().flatten()
    }

    pub fn list_component(&self, name: &str) -> Vec<Arc<Hint>> {
        let rows = self.component_ids.get(name).map_or(&[][..], |&id| &self.components[id as usize].rows);
        rows.iter().filter_map(|&row| self.hints[row as usize].clone()).collect()
    }

    pub fn intern(&self, text: &str) -> Option<Arc<str>> {
        let tag = self.tags.get_key_value(text).map(|(tag, _)| tag);
        tag.or_else(|| self.component_ids.get_key_value(text).map(|(name, _)| name)).cloned()
    }

    pub fn sizes(&self) -> StoreSizes {
        let (components, hints) = (self.component_ids.len(), self.details.len() - self.free.len());
        StoreSizes { components, hints, bytes: self.bytes, held: self.held }
    }

    pub fn component_len(&self, name: &str) -> usize {
        self.component_ids.get(name).map_or(0, |&id| self.components[id as usize].rows.len())
    }

    /// Returns the components that have live hints, with the number of these hints.
    pub fn count_live(&self, now: Millis) -> Vec<(Arc<str>, usize)> {
        let live = |rows: &[u32]| rows.iter().filter(|&&row| now < self.details[row as usize].expires_at).count();
        let counts = self.components.iter().map(|component| (Arc::clone(&component.name), live(&component.rows)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    pub fn list_expired(&self, now: Millis) -> Vec<Arc<Hint>> {
        let pairs = self.details.iter().zip(&self.hints).filter(|(row, _)| now >= row.expires_at);
        pairs.filter_map(|(_, hint)| hint.clone()).collect()
    }

    pub fn reserve(&mut self, more: usize) {
        self.details.reserve(more);
        self.glances.reserve(more);
        self.hints.reserve(more);
    }

    pub fn insert(&mut self, hint: &Arc<Hint>) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.details.push(RankRow::new_free());
            self.glances.push(HintGlance::FREE);
            self.hints.push(None);
            index(self.details.len() - 1)
        });
        let component = self.component_id(&hint.component);
        add_ascending(&mut self.components[component as usize].rows, id);
        self.details[id as usize].component = component;
        self.list_tags(id, hint);
        self.fill_row(id, hint);
        id
    }

    /// Puts a new version of a hint into its row.
    pub fn replace(&mut self, id: u32, hint: &Arc<Hint>) {
        self.gone += 1;
        let old = self.hints[id as usize].as_ref();
        if let Some(old) = old.filter(|old| old.tags == hint.tags) {
            // If the tags are equal, the lists of rows stay, because removing a row from a long list is the most
            // expensive part.
            let (bytes, held) = (old.bytes as usize, old.held as usize);
            (self.bytes, self.held) = (self.bytes - bytes, self.held - held);
        } else {
            self.clear_row(id);
            self.list_tags(id, hint);
        }
        self.fill_row(id, hint);
    }

    /// Adds a row to the lists of its hint's tags.
    fn list_tags(&mut self, id: u32, hint: &Hint) {
        for tag in &hint.tags {
            add_ascending(self.tags.entry_ref(tag).or_default(), id);
        }
    }

    /// Puts a hint into its row. The row must already be in the lists of the hint's tags.
    fn fill_row(&mut self, id: u32, hint: &Arc<Hint>) {
        self.bytes += hint.bytes as usize;
        self.held += hint.held as usize;
        let row = &mut self.details[id as usize];
        *row = RankRow { component: row.component, ..RankRow::new(hint) };
        self.glances[id as usize] = HintGlance::new(hint);
        self.hints[id as usize] = Some(Arc::clone(hint));
    }

    pub fn remove(&mut self, id: u32) {
        self.gone += 1;
        self.clear_row(id);
        let component = self.details[id as usize].component;
        let slot = &mut self.components[component as usize];
        drop_from(&mut slot.rows, id);
        if slot.rows.is_empty() {
            self.component_ids.remove(&slot.name);
            self.bytes -= component_bytes(&slot.name);
            self.held -= component_held(&slot.name);
            *slot = ComponentRows::default();
            self.free_components.push(component);
        }
        self.details[id as usize] = RankRow::new_free();
        self.glances[id as usize] = HintGlance::FREE;
        self.free.push(id);
    }

    /// Removes the hint from its row and from the lists of its tags, and subtracts its sizes.
    fn clear_row(&mut self, id: u32) {
        let Some(hint) = self.hints[id as usize].take() else { return };
        self.bytes -= hint.bytes as usize;
        self.held -= hint.held as usize;
        for tag in &hint.tags {
            if let Some(rows) = self.tags.get_mut(tag) {
                drop_from(rows, id);
                if rows.is_empty() {
                    self.tags.remove(tag);
                }
            }
        }
    }

    fn component_id(&mut self, name: &Arc<str>) -> u32 {
        if let Some(&id) = self.component_ids.get(name) {
            return id;
        }
        self.bytes += component_bytes(name);
        self.held += component_held(name);
        let id = self.free_components.pop().unwrap_or_else(|| {
            self.components.push(ComponentRows::default());
            index(self.components.len() - 1)
        });
        self.components[id as usize] = ComponentRows { name: Arc::clone(name), rows: Vec::new() };
        self.component_ids.insert(Arc::clone(name), id);
        id
    }
}

impl HintGlance {
    const FREE: Self = Self { scope: FREE, most: f32::NEG_INFINITY };

    fn new(hint: &Hint) -> Self {
        Self { scope: hint.scope.number(), most: to_f32(scoring::bound_score(hint)).next_up() }
    }
}

/// Converts to the nearest `f32`. The caller moves the result by one step to get a safe bound.
#[allow(clippy::cast_possible_truncation)]
fn to_f32(number: f64) -> f32 {
    number as f32
}

impl RankRow {
    fn new_free() -> Self {
        Self {
            fixed: 0.0,
            updated_at: 0,
            last_used_at: 0,
            expires_at: Millis::MAX,
            use_count: 0,
            component: 0,
            specificity: 0,
            doubtful: false,
            secret: false,
            unproven: false,
        }
    }

    fn new(hint: &Hint) -> Self {
        Self {
            fixed: scoring::compute_fixed(hint),
            updated_at: hint.updated_at,
            last_used_at: hint.last_used_at().unwrap_or_default(),
            expires_at: hint.expires_at(),
            use_count: if hint.last_used_at().is_some() { hint.use_count } else { 0 },
            component: 0,
            specificity: hint.scope.specificity(),
            doubtful: hint.is_doubtful(),
            secret: hint.is_secret(),
            unproven: hint.is_unproven(),
        }
    }
}

/// Returns the bytes that a component adds to an export, without its hints.
pub(crate) fn component_bytes(name: &str) -> usize {
    name.len() + r#""":{"hints":{}},"#.len()
}

/// Returns the bytes of memory that a component takes without its hints: the text, and entries in two tables.
pub(crate) fn component_held(name: &str) -> usize {
    allocation_bytes(16 + name.len()) + 192
}

/// Converts a row's index to 32 bits. The index always fits: quotas are far lower, and 4 billion hints without quotas
/// would need terabytes.
#[allow(clippy::cast_possible_truncation)]
fn index(row: usize) -> u32 {
    row as u32
}

/// Adds a row to an ascending list.
fn add_ascending(list: &mut Vec<u32>, id: u32) {
    if let Err(index) = list.binary_search(&id) {
        list.insert(index, id);
    }
}

fn drop_from(list: &mut Vec<u32>, id: u32) {
    if let Ok(index) = list.binary_search(&id) {
        list.remove(index);
    }
}
