//! Searches for the hints that pass a filter, best first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use nudge_core::clock::Millis;
use nudge_core::context::Context;
use nudge_core::scope::Scope;

use super::super::SearchVerdicts;
use super::{HintGlance, HintRows, RankRow, index, to_f32};
use crate::hint::Hint;
use crate::scoring::{self, ScoreRank};

/// A condition on the number of a row and on its hint.
pub(crate) type Only<'a> = dyn Fn(u32, &Hint) -> bool + 'a;

/// The conditions of a search. An empty list accepts every hint.
pub(crate) struct HintFilter<'a> {
    /// The rows to search, ascending; `None` for all rows.
    pub rows: Option<&'a [u32]>,
    pub component: Option<&'a str>,
    pub keys: &'a [String],
    pub tags: &'a [String],
    pub context: &'a Context,
    /// Is true to include hints whose scope does not fit, after the hints whose scope fits.
    pub include_ineligible: bool,
    /// Is true to skip secrets.
    pub no_secrets: bool,
    /// Is true to skip learned hints that are told only after their own failure.
    pub no_unproven: bool,
    /// A further condition on the row's number and the hint. It is checked last before the score. It runs under the
    /// lock, so it must be quick.
    pub only: Option<&'a Only<'a>>,
    pub now: Millis,
}

impl<'a> HintFilter<'a> {
    /// Accepts every hint that fits a context.
    pub fn for_context(context: &'a Context, now: Millis) -> Self {
        Self {
            rows: None,
            component: None,
            keys: &[],
            tags: &[],
            context,
            include_ineligible: false,
            no_secrets: false,
            no_unproven: false,
            only: None,
            now,
        }
    }
}

/// The row of a hint that passes a filter, and the hint's address, which identifies the hint.
pub(crate) type FittingRow = (u32, *const Hint);

/// A hint that a search found, with its rank. The greater rank is better.
#[derive(Clone)]
pub(crate) struct HintHit<H = Arc<Hint>> {
    pub hint: H,
    /// The number of the hint's row. No other hint has this row while this hint is stored.
    pub row: u32,
    pub eligible: bool,
    pub rank: ScoreRank,
}

/// A hint that a search found, borrowed under the lock.
type Candidate<'a> = HintHit<&'a Arc<Hint>>;

impl Candidate<'_> {
    fn into_hit(self) -> HintHit {
        HintHit { hint: Arc::clone(self.hint), row: self.row, eligible: self.eligible, rank: self.rank }
    }
}

impl<H: AsRef<Hint>> HintHit<H> {
    fn compare<O: AsRef<Hint>>(&self, other: &HintHit<O>) -> Ordering {
        (self.eligible.cmp(&other.eligible))
            .then_with(|| self.rank.compare(&other.rank))
            .then_with(|| scoring::compare_names(self.hint.as_ref(), other.hint.as_ref()))
    }
}

impl<H: AsRef<Hint>> PartialEq for HintHit<H> {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }
}

impl<H: AsRef<Hint>> Eq for HintHit<H> {}

impl<H: AsRef<Hint>> PartialOrd for HintHit<H> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<H: AsRef<Hint>> Ord for HintHit<H> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}

impl HintRows {
    /// Returns the `limit` best hints that pass `filter` and come after `after`, best first.
    pub fn search_top(
        &self,
        filter: &HintFilter<'_>,
        verdicts: &mut SearchVerdicts,
        after: Option<&HintHit>,
        limit: usize,
    ) -> Vec<HintHit> {
        verdicts.renew_epoch(self.epoch);
        let mut search = HintSearch::new(self, filter, verdicts, after, limit);
        self.choose_postings(filter).for_each(self, |id| search.visit(id));
        let mut found: Vec<_> = search.best.into_iter().map(|Reverse(candidate)| candidate.into_hit()).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found
    }

    /// Returns every hint that passes `filter`, in a heap that sorts only the hints that are popped.
    pub fn best_first(&self, filter: &HintFilter<'_>, verdicts: &mut SearchVerdicts) -> BinaryHeap<HintHit> {
        verdicts.renew_epoch(self.epoch);
        let mut search = HintSearch::new(self, filter, verdicts, None, usize::MAX);
        let mut found = Vec::new();
        self.choose_postings(filter).for_each(self, |id| {
            if let Some(glance) = search.read_glance(id) {
                found.extend(search.make_candidate(id, glance).map(Candidate::into_hit));
            }
        });
        found.into()
    }

    /// Returns the row and the address of every hint that passes `filter`. The address identifies the hint. Hints are
    /// neither copied nor scored.
    pub fn find_fitting(&self, filter: &HintFilter<'_>, verdicts: &mut SearchVerdicts) -> Vec<FittingRow> {
        verdicts.renew_epoch(self.epoch);
        let mut search = HintSearch::new(self, filter, verdicts, None, usize::MAX);
        let mut found = Vec::new();
        self.choose_postings(filter).for_each(self, |id| {
            if let Some((_, hint, _)) = search.read_glance(id).and_then(|glance| search.pass_filter(id, glance)) {
                found.push((id, Arc::as_ptr(hint)));
            }
        });
        found
    }

    /// Returns the hint of a row.
    pub fn find_hint(&self, row: u32) -> Option<Arc<Hint>> {
        self.hints.get(row as usize)?.clone()
    }

    /// Returns the distinct scopes of the hints that pass `filter`. The context of the filter is ignored.
    pub fn list_scopes(&self, filter: &HintFilter<'_>) -> Vec<Arc<Scope>> {
        let mut verdicts = SearchVerdicts::of_nowhere();
        verdicts.renew_epoch(self.epoch);
        let mut search = HintSearch::new(self, filter, &mut verdicts, None, usize::MAX);
        let (mut seen, mut found) = (HashSet::with_hasher(RandomState::default()), Vec::new());
        self.choose_postings(filter).for_each(self, |id| {
            let Some(glance) = search.read_glance(id).filter(|glance| !seen.contains(&glance.scope)) else { return };
            // The number of a scope identifies it here, because every stored scope has its own number.
            if let Some((_, hint, _)) = search.pass_filter(id, glance) {
                seen.insert(glance.scope);
                found.push(Arc::clone(&hint.scope));
            }
        });
        found
    }

    /// Returns those of the fitting rows whose component `is_meant`. Calls it once for each component.
    pub fn of_components(&self, fitting: &[FittingRow], is_meant: impl Fn(&str) -> bool) -> Vec<u32> {
        let mut known = HashMap::with_hasher(RandomState::default());
        let mut is_of_one = |row: u32| {
            let component = self.details[row as usize].component;
            *known.entry(component).or_insert_with(|| is_meant(&self.components[component as usize].name))
        };
        fitting.iter().map(|(row, _)| *row).filter(|&row| is_of_one(row)).collect()
    }

    /// Returns the smallest set of rows that contains all matches of the filter's rows, component or tags.
    fn choose_postings<'a>(&'a self, filter: &'a HintFilter<'_>) -> RowPostings<'a> {
        if let Some(rows) = filter.rows {
            return RowPostings::One(rows);
        }
        if let Some(name) = filter.component {
            return RowPostings::One(
                self.component_ids.get(name).map_or(&[], |&id| &self.components[id as usize].rows),
            );
        }
        match filter.tags {
            [] => RowPostings::All,
            [tag] => RowPostings::One(self.tags.get(tag.as_str()).map_or(&[], Vec::as_slice)),
            tags => {
                let mut rows: Vec<_> =
                    tags.iter().filter_map(|tag| self.tags.get(tag.as_str())).flatten().copied().collect();
                rows.sort_unstable();
                rows.dedup();
                RowPostings::Many(rows)
            }
        }
    }

    /// Returns the components that have an open file.
    fn open_components(&self, context: &Context) -> Vec<u32> {
        if !context.has_open_files() {
            return Vec::new();
        }
        self.component_ids.iter().filter(|(name, _)| context.open_file_in(name).is_some()).map(|(_, &id)| id).collect()
    }
}

/// The state of a search.
struct HintSearch<'a, 'b> {
    rows: &'a HintRows,
    filter: &'b HintFilter<'b>,
    verdicts: &'b mut SearchVerdicts,
    /// The components that have an open file.
    open: Vec<u32>,
    after: Option<&'b HintHit>,
    limit: usize,
    best: BinaryHeap<Reverse<Candidate<'a>>>,
    /// The lower bound of the score. A hint with a lower score can no longer be among the best.
    floor: f32,
}

impl<'a, 'b> HintSearch<'a, 'b> {
    fn new(
        rows: &'a HintRows,
        filter: &'b HintFilter<'b>,
        verdicts: &'b mut SearchVerdicts,
        after: Option<&'b HintHit>,
        limit: usize,
    ) -> Self {
        let open = rows.open_components(filter.context);
        Self { rows, filter, verdicts, open, after, limit, best: BinaryHeap::new(), floor: f32::NEG_INFINITY }
    }

    #[inline]
    fn visit(&mut self, id: u32) {
        if let Some(glance) = self.read_glance(id) {
            self.weigh_hint(id, glance);
        }
    }

    /// Returns the row's glance; `None` if the glance already excludes the hint.
    #[inline]
    fn read_glance(&self, id: u32) -> Option<HintGlance> {
        let glance = self.rows.glances[id as usize];
        let out = glance.most < self.floor
            || (!self.filter.include_ineligible
                && self.verdicts.find_cached(self.rows.epoch, glance.scope) == Some(false));
        (!out).then_some(glance)
    }

    /// Keeps the hint if it is one of the best so far.
    #[inline(never)]
    fn weigh_hint(&mut self, id: u32, glance: HintGlance) {
        let Some(candidate) = self.make_candidate(id, glance) else { return };
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
            // The score decides only between hints that fit and are not doubtful.
            && worst.eligible
            && !worst.rank.doubtful
        {
            let open_file = if self.open.is_empty() { 0.0 } else { scoring::FILES_OPEN };
            self.floor = to_f32(worst.rank.score - open_file).next_down();
        }
    }

    /// Returns the data of the row if its hint passes the filter.
    fn pass_filter(&mut self, id: u32, glance: HintGlance) -> Option<(&'a RankRow, &'a Arc<Hint>, bool)> {
        let Self { rows, filter, .. } = *self;
        let row = &rows.details[id as usize];
        if filter.now >= row.expires_at || (filter.no_secrets && row.secret) || (filter.no_unproven && row.unproven) {
            return None;
        }
        // A free row has no hint.
        let hint = rows.hints[id as usize].as_ref()?;
        if filter.component.is_some()
            && !filter.tags.is_empty()
            && !filter.tags.iter().any(|tag| hint.tags.iter().any(|have| **have == *tag))
        {
            return None;
        }
        if !filter.keys.is_empty() && !filter.keys.iter().any(|key| **key == *hint.key) {
            return None;
        }
        let known = self.verdicts.find_cached(rows.epoch, glance.scope);
        let verdict = known.or_else(|| self.verdicts.allows(&hint.scope, filter.context));
        if verdict == Some(false) && !filter.include_ineligible {
            return None;
        }
        if filter.only.is_some_and(|only| !only(id, hint)) {
            return None;
        }
        let Some(eligible) = verdict else {
            self.verdicts.pass_over();
            return None;
        };
        Some((row, hint, eligible))
    }

    fn make_candidate(&mut self, id: u32, glance: HintGlance) -> Option<Candidate<'a>> {
        let (row, hint, eligible) = self.pass_filter(id, glance)?;
        let filter = self.filter;
        let last_used_at = (row.use_count > 0).then_some(row.last_used_at);
        let recency = scoring::recency(row.updated_at, filter.now);
        // The frecency is the most expensive part of the score. The age of a hint alone already excludes most hints.
        if f64::from(glance.most) - (scoring::RECENCY - recency) < f64::from(self.floor) {
            return None;
        }
        let frecency = scoring::frecency(row.use_count, last_used_at, filter.now);
        let mut score = scoring::sum_score(row.fixed, frecency, recency);
        if self.open.contains(&row.component) {
            score += scoring::files_open(score);
        }
        let rank =
            ScoreRank { doubtful: row.doubtful, score, specificity: row.specificity, updated_at: row.updated_at };
        Some(Candidate { hint, row: id, eligible, rank })
    }
}

enum RowPostings<'a> {
    All,
    One(&'a [u32]),
    Many(Vec<u32>),
}

impl RowPostings<'_> {
    /// Visits the rows from the last to the first. The newest hints usually have the best scores, and more hints can be
    /// skipped when the best ones are found early.
    #[inline]
    fn for_each(self, rows: &HintRows, mut visit: impl FnMut(u32)) {
        match self {
            Self::All => (0..index(rows.details.len())).rev().for_each(visit),
            Self::One(rows) => rows.iter().rev().for_each(|&id| visit(id)),
            Self::Many(rows) => rows.into_iter().rev().for_each(visit),
        }
    }
}
