//! Caches the verdicts on scopes for one context and one call.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use nudge_core::context::Context;
use nudge_core::scope::Scope;
use nudge_core::steps::{StepBudget, TooMany};

/// The most steps for scopes that are judged while the rows are locked. They take a fraction of a millisecond.
const STEPS_UNDER_LOCK: u64 = 1 << 17;

/// The verdicts by the address of the scope. The cache keeps each scope in memory, so no other scope gets its address.
#[derive(Default)]
pub(crate) struct ScopeVerdicts(HashMap<*const Scope, (Arc<Scope>, bool), RandomState>);

impl ScopeVerdicts {
    /// Judges a scope, or returns the cached verdict.
    ///
    /// # Errors
    /// [`TooMany`] when the steps are used up.
    pub fn judge_scope(
        &mut self,
        scope: &Arc<Scope>,
        context: &Context,
        steps: &mut StepBudget,
    ) -> Result<bool, TooMany> {
        if let Some(verdict) = self.get_verdict(scope) {
            return Ok(verdict);
        }
        // At least one step is taken, so that a loop over scopes ends.
        steps.take_steps(1)?;
        let verdict = scope.judge(context, steps)?;
        self.0.insert(Arc::as_ptr(scope), (Arc::clone(scope), verdict));
        Ok(verdict)
    }

    /// Returns the verdict on a scope, if it is cached.
    pub fn get_verdict(&self, scope: &Arc<Scope>) -> Option<bool> {
        self.0.get(&Arc::as_ptr(scope)).map(|(_, verdict)| *verdict)
    }
}

/// The verdicts of an earlier search, by the scope's number.
pub(crate) struct KnownVerdicts {
    epoch: u64,
    by_scope: Vec<Option<bool>>,
}

/// The verdicts of one search, cached by the scope's number.
pub(crate) struct SearchVerdicts {
    epoch: u64,
    by_scope: Vec<Option<bool>>,
    /// The steps that are left for judging scopes without the lock.
    steps: StepBudget,
    /// The steps that are left for judging scopes under the lock.
    under_lock: StepBudget,
    /// The scopes that wait to be judged without the lock, by number.
    asked: BTreeMap<u32, Arc<Scope>>,
    /// The scopes that have been judged, in all epochs.
    judged: ScopeVerdicts,
    /// The number of undecided hints; `None` until [`Self::leave_undecided`] begins to count them.
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

    /// Takes over the verdicts of an earlier search with a context that every scope judges alike.
    pub fn adopt(&mut self, known: KnownVerdicts) {
        (self.epoch, self.by_scope) = (known.epoch, known.by_scope);
    }

    /// Returns the verdicts for a later search.
    pub fn into_known(self) -> KnownVerdicts {
        KnownVerdicts { epoch: self.epoch, by_scope: self.by_scope }
    }

    /// Makes verdicts for an empty context. Judging a scope costs nothing then.
    pub fn of_nowhere() -> Self {
        Self { under_lock: StepBudget::unlimited(), ..Self::new(StepBudget::of_a_call()) }
    }

    /// Clears the cache if a new epoch of scope numbers has begun.
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

    /// Returns the verdict of `context` on the stored `scope` if it is cached or quick to compute. `None` means that
    /// judging the scope takes long; [`SearchVerdicts::settle_undecided`] does it later. Every call must pass the same
    /// context.
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

    /// Judges the scopes that were postponed. Returns true if there were any; the search must then run again.
    ///
    /// # Errors
    /// [`TooMany`] when the steps are used up.
    pub fn settle_undecided(&mut self, context: &Context) -> Result<bool, TooMany> {
        let asked = std::mem::take(&mut self.asked);
        for (index, scope) in &asked {
            self.by_scope[*index as usize] = Some(self.judged.judge_scope(scope, context, &mut self.steps)?);
        }
        Ok(!asked.is_empty())
    }

    /// Begins to count the hints whose scope is undecided, and postpones no further scopes.
    pub fn leave_undecided(&mut self) {
        self.undecided = Some(0);
    }

    /// Counts a hint whose scope is undecided.
    pub fn pass_over(&mut self) {
        self.undecided = self.undecided.map(|count| count + 1);
    }

    /// Returns the number of undecided hints.
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

#[cfg(test)]
mod tests {
    use nudge_core::context::Context;
    use nudge_core::steps::StepBudget;
    use serde_json::json;

    use crate::store::HintFilter;
    use crate::{Nudge, SetHint, SuggestParams};

    /// Promise (agents): A prompt gets the hints that fit its place, whatever was asked before from another place.
    #[test]
    fn verdicts_of_an_earlier_prompt_hold_only_where_they_are_the_same() {
        let nudge = Nudge::default();
        let set = |key: &str, scope: serde_json::Value| {
            let hint =
                json!({"component": "api", "key": key, "value": format!("make {key}"), "meta": {"scope": scope}});
            nudge.set(serde_json::from_value::<SetHint>(hint).unwrap()).unwrap();
        };
        let told = |context: serde_json::Value| {
            let params = json!({"event": "prompt", "prompt": "the zebra, the walrus, the badger, the otter and the heron", "context": context});
            let answer = nudge.suggest(serde_json::from_value::<SuggestParams>(params).unwrap()).unwrap();
            let mut keys: Vec<_> = answer.suggestions.iter().map(|told| told.name.clone()).collect();
            keys.sort();
            keys.join(" ")
        };
        set("zebra", json!({"cwd_glob": ["/work/a/**"]}));
        set("walrus", json!({"cwd_glob": ["/work/b/**"]}));
        let (a, b) = (json!({"cwd": "/work/a"}), json!({"cwd": "/work/b"}));
        for _ in 0..2 {
            assert_eq!(told(a.clone()), "api/zebra");
            assert_eq!(told(b.clone()), "api/walrus");
            assert_eq!(told(b.clone()), "api/walrus");
        }
        // New scopes get numbers that the cache does not have.
        set("badger", json!({"cwd_glob": ["/work/b/**"], "branch": ["dev"]}));
        set("otter", json!({"cwd_glob": ["/work/{b,c}/**"]}));
        assert_eq!(told(b), "api/otter api/walrus");
        assert_eq!(told(json!({"cwd": "/work/b", "branch": "dev"})), "api/badger api/otter api/walrus");
        set("heron", json!({"cwd_glob": ["/else/**"], "env_match": {"MODE": "x"}}));
        for (mode, names) in [("x", "api/heron"), ("y", ""), ("x", "api/heron")] {
            assert_eq!(told(json!({"cwd": "/else", "env": {"MODE": mode}})), names);
        }
    }

    #[test]
    fn a_second_search_from_one_place_judges_no_scope() {
        let nudge = Nudge::default();
        let scope = json!({"cwd_glob": ["**/work/**"]});
        let hint = json!({"component": "api", "key": "k", "value": "make", "meta": {"scope": scope}});
        nudge.set(serde_json::from_value::<SetHint>(hint).unwrap()).unwrap();
        let search = |cwd: &str, steps: u64| {
            let context = Context::builder().cwd(cwd).build().unwrap();
            let filter = HintFilter::for_context(&context, 0);
            let (found, undecided) = nudge.store.find_fitting(&filter, StepBudget::of_a_call().split_off(steps));
            (found.len(), undecided)
        };
        assert_eq!(search("/work/a", 0), (0, 1), "without steps the scope is undecided");
        assert_eq!(search("/work/a", 1_000), (1, 0));
        assert_eq!(search("/work/a", 0), (1, 0));
        assert_eq!(search("/else", 0), (0, 1), "another place");
    }
}
