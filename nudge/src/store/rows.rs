//! One small row per hint, so that a search touches little memory: eligibility once per distinct
//! scope, then a score from numbers, and the hints themselves only for the best.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::Verdicts;
use crate::clock::Millis;
use crate::context::Context;
use crate::hint::Hint;
use crate::scope::Scope;
use crate::scoring::{self, Rank};

const FREE: u32 = u32::MAX;

/// What a search reads of every hint: enough to pass over most of them, and so small that a pass
/// stays in the processor's caches.
#[derive(Clone, Copy)]
struct Glance {
    /// `FREE` when the row holds no hint.
    scope: u32,
    /// No less than the hint's score will ever be, without an open file.
    most: f32,
}

/// What places a hint, for the few that a glance does not rule out.
struct Row {
    fixed: f64,
    updated_at: Millis,
    last_used_at: Millis,
    expires_at: Millis,
    use_count: u64,
    component: u32,
    specificity: u8,
    doubtful: bool,
}

#[derive(Default)]
pub(super) struct Rows {
    details: Vec<Row>,
    /// Beside `details`, at the same index.
    glances: Vec<Glance>,
    /// Beside `details`, at the same index.
    hints: Vec<Option<Arc<Hint>>>,
    free: Vec<u32>,
    /// Of all hints, as exported.
    bytes: usize,
    components: Vec<Component>,
    component_ids: HashMap<Arc<str>, u32, RandomState>,
    free_components: Vec<u32>,
    /// Row numbers by tag, ascending.
    tags: HashMap<Arc<str>, Vec<u32>, RandomState>,
    pub(super) epoch: u64,
}

#[derive(Default)]
struct Component {
    name: Arc<str>,
    /// Row numbers, ascending.
    rows: Vec<u32>,
}

/// What a search asks for; empty lists ask for anything.
pub(crate) struct Filter<'a> {
    pub component: Option<&'a str>,
    pub keys: &'a [String],
    pub tags: &'a [String],
    pub context: &'a Context,
    /// Hints whose scope does not fit follow those whose scope does.
    pub include_ineligible: bool,
    /// Asked last, but before the score; inside the lock, so it must be quick.
    pub only: Option<&'a dyn Fn(&Hint) -> bool>,
    pub now: Millis,
}

/// A hint that a search found, with what places it; greater is better.
#[derive(Clone)]
pub(crate) struct Found<H = Arc<Hint>> {
    pub hint: H,
    pub eligible: bool,
    pub rank: Rank,
}

/// As it is inside the lock.
type Candidate<'a> = Found<&'a Arc<Hint>>;

impl Candidate<'_> {
    fn take(self) -> Found {
        Found { hint: Arc::clone(self.hint), eligible: self.eligible, rank: self.rank }
    }
}

impl<H: AsRef<Hint>> Found<H> {
    fn compare<O: AsRef<Hint>>(&self, other: &Found<O>) -> Ordering {
        (self.eligible.cmp(&other.eligible))
            .then_with(|| self.rank.compare(&other.rank))
            .then_with(|| scoring::compare_names(self.hint.as_ref(), other.hint.as_ref()))
    }
}

impl<H: AsRef<Hint>> PartialEq for Found<H> {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }
}

impl<H: AsRef<Hint>> Eq for Found<H> {}

impl<H: AsRef<Hint>> PartialOrd for Found<H> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<H: AsRef<Hint>> Ord for Found<H> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}

/// How much there is, expired hints included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub components: usize,
    pub hints: usize,
    pub bytes: usize,
}

impl Rows {
    pub fn hints(&self) -> impl Iterator<Item = &Arc<Hint>> {
        self.hints.iter().flatten()
    }

    pub fn component(&self, name: &str) -> Vec<Arc<Hint>> {
        let rows = self.component_ids.get(name).map_or(&[][..], |&id| &self.components[id as usize].rows);
        rows.iter().filter_map(|&row| self.hints[row as usize].clone()).collect()
    }

    pub fn intern(&self, text: &str) -> Option<Arc<str>> {
        let tag = self.tags.get_key_value(text).map(|(tag, _)| tag);
        tag.or_else(|| self.component_ids.get_key_value(text).map(|(name, _)| name)).cloned()
    }

    pub fn sizes(&self) -> Sizes {
        Sizes { components: self.component_ids.len(), hints: self.details.len() - self.free.len(), bytes: self.bytes }
    }

    pub fn component_len(&self, name: &str) -> usize {
        self.component_ids.get(name).map_or(0, |&id| self.components[id as usize].rows.len())
    }

    /// The components that have live hints, with how many.
    pub fn counts(&self, now: Millis) -> Vec<(Arc<str>, usize)> {
        let live = |rows: &[u32]| rows.iter().filter(|&&row| now < self.details[row as usize].expires_at).count();
        let counts = self.components.iter().map(|component| (Arc::clone(&component.name), live(&component.rows)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    pub fn expired(&self, now: Millis) -> Vec<Arc<Hint>> {
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
            self.details.push(Row::free());
            self.glances.push(Glance::FREE);
            self.hints.push(None);
            index(self.details.len() - 1)
        });
        let component = self.component_id(&hint.component);
        add(&mut self.components[component as usize].rows, id);
        self.details[id as usize].component = component;
        self.list(id, hint);
        self.place(id, hint);
        id
    }

    /// Puts another version of the same hint into its row.
    pub fn replace(&mut self, id: u32, hint: &Arc<Hint>) {
        let old = self.hints[id as usize].as_ref();
        if let Some(old) = old.filter(|old| old.tags == hint.tags) {
            // Neither lists nor places change, and taking a row out of long lists is the dearest part.
            self.bytes -= old.bytes as usize;
        } else {
            self.empty(id);
            self.list(id, hint);
        }
        self.place(id, hint);
    }

    /// Lists a row under the hint's tags.
    fn list(&mut self, id: u32, hint: &Hint) {
        for tag in &hint.tags {
            add(self.tags.entry_ref(tag).or_default(), id);
        }
    }

    /// Puts a hint whose tags are listed into its row.
    fn place(&mut self, id: u32, hint: &Arc<Hint>) {
        self.bytes += hint.bytes as usize;
        let row = &mut self.details[id as usize];
        *row = Row { component: row.component, ..Row::new(hint) };
        self.glances[id as usize] = Glance::new(hint);
        self.hints[id as usize] = Some(Arc::clone(hint));
    }

    pub fn remove(&mut self, id: u32) {
        self.empty(id);
        let component = self.details[id as usize].component;
        let slot = &mut self.components[component as usize];
        drop_from(&mut slot.rows, id);
        if slot.rows.is_empty() {
            self.component_ids.remove(&slot.name);
            self.bytes -= component_bytes(&slot.name);
            *slot = Component::default();
            self.free_components.push(component);
        }
        self.details[id as usize] = Row::free();
        self.glances[id as usize] = Glance::FREE;
        self.free.push(id);
    }

    /// Takes the hint out of its row, its tags and the count of bytes.
    fn empty(&mut self, id: u32) {
        let Some(hint) = self.hints[id as usize].take() else { return };
        self.bytes -= hint.bytes as usize;
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
        let id = self.free_components.pop().unwrap_or_else(|| {
            self.components.push(Component::default());
            index(self.components.len() - 1)
        });
        self.components[id as usize] = Component { name: Arc::clone(name), rows: Vec::new() };
        self.component_ids.insert(Arc::clone(name), id);
        id
    }

    pub fn top(&self, filter: &Filter<'_>, verdicts: &mut Verdicts, after: Option<&Found>, limit: usize) -> Vec<Found> {
        verdicts.renew(self.epoch);
        let mut search = Search::new(self, filter, verdicts, after, limit);
        self.postings(filter).for_each(self, |id| search.visit(id));
        let mut found: Vec<_> = search.best.into_iter().map(|Reverse(candidate)| candidate.take()).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found
    }

    /// Every hint that passes `filter`, best first as far as they are taken.
    pub fn best_first(&self, filter: &Filter<'_>) -> BinaryHeap<Found> {
        let mut verdicts = Verdicts::default();
        verdicts.renew(self.epoch);
        let mut search = Search::new(self, filter, &mut verdicts, None, usize::MAX);
        let mut found = Vec::new();
        self.postings(filter).for_each(self, |id| {
            if let Some(glance) = search.glance(id) {
                found.extend(search.candidate(id, glance).map(Candidate::take));
            }
        });
        found.into()
    }

    /// The distinct scopes of the hints that pass `filter`.
    pub fn scopes(&self, filter: &Filter<'_>) -> Vec<Arc<Scope>> {
        let mut verdicts = Verdicts::default();
        verdicts.renew(self.epoch);
        let mut search = Search::new(self, filter, &mut verdicts, None, usize::MAX);
        let (mut seen, mut found) = (HashSet::with_hasher(RandomState::default()), Vec::new());
        self.postings(filter).for_each(self, |id| {
            let Some(glance) = search.glance(id).filter(|glance| !seen.contains(&glance.scope)) else { return };
            // Every stored scope has a number.
            if let Some((_, hint, _)) = search.passes(id, glance) {
                seen.insert(glance.scope);
                found.push(Arc::clone(&hint.scope));
            }
        });
        found
    }

    /// The fewest rows that can hold what the filter asks for.
    fn postings(&self, filter: &Filter<'_>) -> Postings<'_> {
        if let Some(name) = filter.component {
            return Postings::One(self.component_ids.get(name).map_or(&[], |&id| &self.components[id as usize].rows));
        }
        match filter.tags {
            [] => Postings::All,
            [tag] => Postings::One(self.tags.get(tag.as_str()).map_or(&[], Vec::as_slice)),
            tags => {
                let mut rows: Vec<_> =
                    tags.iter().filter_map(|tag| self.tags.get(tag.as_str())).flatten().copied().collect();
                rows.sort_unstable();
                rows.dedup();
                Postings::Many(rows)
            }
        }
    }

    /// The components of which a file is open.
    fn open_components(&self, context: &Context) -> Vec<u32> {
        if !context.has_open_files() {
            return Vec::new();
        }
        self.component_ids.iter().filter(|(name, _)| context.open_file_in(name).is_some()).map(|(_, &id)| id).collect()
    }
}

/// A search under way.
struct Search<'a, 'b> {
    rows: &'a Rows,
    filter: &'b Filter<'b>,
    verdicts: &'b mut Verdicts,
    /// Components of which a file is open.
    open: Vec<u32>,
    after: Option<&'b Found>,
    limit: usize,
    best: BinaryHeap<Reverse<Candidate<'a>>>,
    /// What cannot score this much cannot be among the best any more.
    floor: f32,
}

impl<'a, 'b> Search<'a, 'b> {
    fn new(
        rows: &'a Rows,
        filter: &'b Filter<'b>,
        verdicts: &'b mut Verdicts,
        after: Option<&'b Found>,
        limit: usize,
    ) -> Self {
        let open = rows.open_components(filter.context);
        Self { rows, filter, verdicts, open, after, limit, best: BinaryHeap::new(), floor: f32::NEG_INFINITY }
    }

    #[inline]
    fn visit(&mut self, id: u32) {
        if let Some(glance) = self.glance(id) {
            self.weigh(id, glance);
        }
    }

    /// What is known of a row, unless that rules it out.
    #[inline]
    fn glance(&self, id: u32) -> Option<Glance> {
        let glance = self.rows.glances[id as usize];
        let out = glance.most < self.floor
            || (!self.filter.include_ineligible && self.verdicts.known(self.rows.epoch, glance.scope) == Some(false));
        (!out).then_some(glance)
    }

    /// Keeps the hint if it is among the best so far.
    #[inline(never)]
    fn weigh(&mut self, id: u32, glance: Glance) {
        let Some(candidate) = self.candidate(id, glance) else { return };
        if self.after.is_some_and(|after| candidate.compare(after).is_ge()) {
            return;
        }
        if self.best.len() < self.limit {
            self.best.push(Reverse(candidate));
        } else if let Some(mut worst) = self.best.peek_mut()
            && candidate > worst.0
        {
            *worst = Reverse(candidate);
        }
        if self.best.len() == self.limit
            && let Some(Reverse(worst)) = self.best.peek()
            // Eligibility and doubt go before the score.
            && worst.eligible
            && !worst.rank.doubtful
        {
            let open_file = if self.open.is_empty() { 0.0 } else { scoring::FILES_OPEN };
            self.floor = to_f32(worst.rank.score - open_file).next_down();
        }
    }

    /// What passes the filter.
    fn passes(&mut self, id: u32, glance: Glance) -> Option<(&'a Row, &'a Arc<Hint>, bool)> {
        let Self { rows, filter, .. } = *self;
        let row = &rows.details[id as usize];
        if filter.now >= row.expires_at {
            return None;
        }
        // A free row has none.
        let hint = rows.hints[id as usize].as_ref()?;
        let known = self.verdicts.known(rows.epoch, glance.scope);
        let eligible = known.unwrap_or_else(|| self.verdicts.allows(rows.epoch, &hint.scope, filter.context));
        if !eligible && !filter.include_ineligible {
            return None;
        }
        if filter.component.is_some()
            && !filter.tags.is_empty()
            && !filter.tags.iter().any(|tag| hint.tags.iter().any(|have| **have == *tag))
        {
            return None;
        }
        if !filter.keys.is_empty() && !filter.keys.iter().any(|key| **key == *hint.key) {
            return None;
        }
        if filter.only.is_some_and(|only| !only(hint)) {
            return None;
        }
        Some((row, hint, eligible))
    }

    fn candidate(&mut self, id: u32, glance: Glance) -> Option<Candidate<'a>> {
        let (row, hint, eligible) = self.passes(id, glance)?;
        let filter = self.filter;
        let last_used_at = (row.use_count > 0).then_some(row.last_used_at);
        let recency = scoring::recency(row.updated_at, filter.now);
        // Frecency is the dearest part, and the age of a hint alone rules out most.
        if f64::from(glance.most) - (scoring::RECENCY - recency) < f64::from(self.floor) {
            return None;
        }
        let frecency = scoring::frecency(row.use_count, last_used_at, filter.now);
        let mut score = scoring::total(row.fixed, frecency, recency);
        if self.open.contains(&row.component) {
            score += scoring::files_open(score);
        }
        let rank = Rank { doubtful: row.doubtful, score, specificity: row.specificity, updated_at: row.updated_at };
        Some(Candidate { eligible, rank, hint })
    }
}

enum Postings<'a> {
    All,
    One(&'a [u32]),
    Many(Vec<u32>),
}

impl Postings<'_> {
    /// Backwards: the newest mostly score best, and the sooner the best are known, the fewer are weighed.
    #[inline]
    fn for_each(self, rows: &Rows, mut visit: impl FnMut(u32)) {
        match self {
            Self::All => (0..index(rows.details.len())).rev().for_each(visit),
            Self::One(rows) => rows.iter().rev().for_each(|&id| visit(id)),
            Self::Many(rows) => rows.into_iter().rev().for_each(visit),
        }
    }
}

impl Glance {
    const FREE: Self = Self { scope: FREE, most: f32::NEG_INFINITY };

    fn new(hint: &Hint) -> Self {
        Self { scope: hint.scope.id, most: to_f32(scoring::most(hint)).next_up() }
    }
}

/// The nearest, so that one step up or down is on the safe side.
#[allow(clippy::cast_possible_truncation)]
fn to_f32(number: f64) -> f32 {
    number as f32
}

impl Row {
    fn free() -> Self {
        Self {
            fixed: 0.0,
            updated_at: 0,
            last_used_at: 0,
            expires_at: Millis::MAX,
            use_count: 0,
            component: 0,
            specificity: 0,
            doubtful: false,
        }
    }

    fn new(hint: &Hint) -> Self {
        Self {
            fixed: scoring::fixed(hint),
            updated_at: hint.updated_at,
            last_used_at: hint.last_used_at().unwrap_or_default(),
            expires_at: hint.expires_at(),
            use_count: if hint.last_used_at().is_some() { hint.use_count } else { 0 },
            component: 0,
            specificity: hint.scope.specificity(),
            doubtful: hint.is_doubtful(),
        }
    }
}

/// What a component adds to an export besides its hints.
pub(crate) fn component_bytes(name: &str) -> usize {
    name.len() + r#""":{"hints":{}},"#.len()
}

/// Rows are numbered in 32 bits: quotas end long before, and a store without them at 4 billion hints
/// would need terabytes.
#[allow(clippy::cast_possible_truncation)]
fn index(at: usize) -> u32 {
    at as u32
}

/// Adds to an ascending list.
fn add(list: &mut Vec<u32>, id: u32) {
    if let Err(at) = list.binary_search(&id) {
        list.insert(at, id);
    }
}

fn drop_from(list: &mut Vec<u32>, id: u32) {
    if let Ok(at) = list.binary_search(&id) {
        list.remove(at);
    }
}
