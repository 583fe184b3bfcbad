//! Keeps the verdicts on scopes for one context and call.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use nudge_core::context::Context;
use nudge_core::scope::Scope;
use nudge_core::steps::{StepBudget, TooMany};

/// Most steps for scopes that are judged while the rows are locked: a fraction of a millisecond.
const STEPS_UNDER_LOCK: u64 = 1 << 17;

/// Verdicts by scope. It keeps each scope alive, so that no other takes its address.
#[derive(Default)]
pub(crate) struct ScopeVerdicts(HashMap<*const Scope, (Arc<Scope>, bool), RandomState>);

impl ScopeVerdicts {
    /// Judges a scope, unless it is judged already.
    ///
    /// # Errors
    /// When the steps do not suffice.
    pub fn judge_scope(
        &mut self,
        scope: &Arc<Scope>,
        context: &Context,
        steps: &mut StepBudget,
    ) -> Result<bool, TooMany> {
        if let Some(verdict) = self.get_verdict(scope) {
            return Ok(verdict);
        }
        // Take at least one step, so that repeated calls come to an end.
        steps.take_steps(1)?;
        let verdict = scope.judge(context, steps)?;
        self.0.insert(Arc::as_ptr(scope), (Arc::clone(scope), verdict));
        Ok(verdict)
    }

    /// Returns the verdict on a scope, if it is judged.
    pub fn get_verdict(&self, scope: &Arc<Scope>) -> Option<bool> {
        self.0.get(&Arc::as_ptr(scope)).map(|(_, verdict)| *verdict)
    }
}

/// The verdicts of one search, cached by the scope's number.
pub(crate) struct SearchVerdicts {
    epoch: u64,
    by_scope: Vec<Option<bool>>,
    /// The steps left for scopes that are judged without the lock.
    steps: StepBudget,
    /// The steps left for scopes that are judged under the lock.
    under_lock: StepBudget,
    /// The scopes to judge once the lock is free, by number.
    asked: BTreeMap<u32, Arc<Scope>>,
    /// The scopes that were judged, in any epoch.
    judged: ScopeVerdicts,
    /// The number of undecided hints; `None` until they are to be counted.
    undecided: Option<usize>,
}

impl SearchVerdicts {
    pub fn new(mut steps: StepBudget) -> Self {
        let under_lock = steps.split_off(STEPS_UNDER_LOCK);
        Self {
            epoch: 0,
            by_scope: Vec::new(),
            steps,
            under_lock,
            asked: BTreeMap::new(),
            judged: ScopeVerdicts::default(),
            undecided: None,
        }
    }

    /// Makes verdicts for an empty context, which costs nothing.
    pub fn of_nowhere() -> Self {
        Self { under_lock: StepBudget::unlimited(), ..Self::new(StepBudget::of_a_call()) }
    }

    /// Clears the cache in a new epoch of scope numbers.
    pub fn renew_epoch(&mut self, epoch: u64) {
        if epoch > self.epoch {
            self.by_scope.clear();
            self.epoch = epoch;
        }
    }

    /// Returns the verdict on a scope number, if it is cached.
    #[inline]
    pub fn find_cached(&self, epoch: u64, scope: u32) -> Option<bool> {
        if epoch == self.epoch { self.by_scope.get(scope as usize).copied().flatten() } else { None }
    }

    /// Returns whether `context` meets the stored `scope`; `None` leaves a slow one to
    /// [`SearchVerdicts::settle_undecided`]. Every call must pass the same context.
    #[inline(never)]
    pub fn allows(&mut self, scope: &Arc<Scope>, context: &Context) -> Option<bool> {
        let index = scope.number() as usize;
        if index >= self.by_scope.len() {
            self.by_scope.resize(index + 1, None);
        }
        if self.by_scope[index].is_none() {
            let verdict = self.judged.get_verdict(scope).or_else(|| scope.judge(context, &mut self.under_lock).ok());
            self.by_scope[index] = verdict;
            if verdict.is_none() && self.undecided.is_none() {
                self.asked.entry(scope.number()).or_insert_with(|| Arc::clone(scope));
            }
        }
        self.by_scope[index]
    }

    /// Judges the scopes that were left. Returns true when there were any: then the search must run again.
    ///
    /// # Errors
    /// When the steps do not suffice.
    pub fn settle_undecided(&mut self, context: &Context) -> Result<bool, TooMany> {
        let asked = std::mem::take(&mut self.asked);
        for (index, scope) in &asked {
            self.by_scope[*index as usize] = Some(self.judged.judge_scope(scope, context, &mut self.steps)?);
        }
        Ok(!asked.is_empty())
    }

    /// Starts to count the hints whose scope is undecided, and leaves no more scopes for later.
    pub fn leave_undecided(&mut self) {
        self.undecided = Some(0);
    }

    /// Notes a hint that is passed over.
    pub fn pass_over(&mut self) {
        self.undecided = self.undecided.map(|count| count + 1);
    }

    /// Returns the count.
    pub fn count_undecided(&self) -> usize {
        self.undecided.unwrap_or_default()
    }

    /// Returns the steps that are left for the rest of the call.
    pub fn into_steps(self) -> StepBudget {
        let Self { mut steps, under_lock, .. } = self;
        steps.give_back(&under_lock);
        steps
    }
}
