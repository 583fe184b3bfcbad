//! Chooses the best of a key's variants for a context (semantics section 3).

use std::cmp::Ordering;
use std::sync::Arc;

use nudge_core::clock::Millis;
use nudge_core::context::Context;
use nudge_core::explain::{MatchExplain, ScoreParts};
use nudge_core::steps::StepBudget;
use smallvec::SmallVec;

use crate::explain;
use crate::hint::Hint;
use crate::scoring;

/// Returns the best live hint of `variants` for which `eligible` is true.
pub(crate) fn pick_variant<E>(
    variants: &[Arc<Hint>],
    context: &Context,
    now: Millis,
    mut eligible: impl FnMut(&Arc<Hint>) -> Result<bool, E>,
) -> Result<Option<Match>, E> {
    let mut fitting = SmallVec::<[_; 4]>::new();
    for hint in variants {
        if eligible(hint)? {
            fitting.push(hint);
        }
    }
    let open_file = fitting.first().is_some_and(|hint| context.open_file_in(&hint.component).is_some());
    let chosen = pick_best(&fitting, open_file, now);
    Ok(chosen.map(|hint| Match { hint: Arc::clone(hint), open_file, context: context.clone(), now }))
}

/// Returns the best live hint of `hints`, which are variants of one key. Doubt and specificity decide before the score,
/// so the score is computed only for hints that are equal in both.
pub(crate) fn pick_best<'a>(hints: &[&'a Arc<Hint>], open_file: bool, now: Millis) -> Option<&'a Arc<Hint>> {
    let class = |hint: &Hint| (!hint.is_doubtful(), hint.scope.specificity());
    let score = |hint: &Hint| scoring::score_hint(hint, open_file, now);
    let mut live = hints.iter().copied().filter(|hint| !hint.is_expired(now));
    let mut best = live.next()?;
    for hint in live {
        let by_score = || match scoring::compare_plainly(hint, best) {
            // These two hints differ only in the name of the variant. The smaller name wins.
            Some(Ordering::Equal) => best.variant().cmp(hint.variant()),
            Some(plain) => plain,
            None => scoring::compare_variants((hint, score(hint)), (best, score(best))),
        };
        if class(hint).cmp(&class(best)).then_with(by_score).is_gt() {
            best = hint;
        }
    }
    Some(best)
}

/// A hint that fits the context. The score, the reasons and the parts are computed on demand.
#[derive(Debug, Clone)]
pub struct Match {
    pub(crate) hint: Arc<Hint>,
    /// Is true when a file of the hint's component is open.
    pub(crate) open_file: bool,
    pub(crate) context: Context,
    pub(crate) now: Millis,
}

impl Match {
    /// Returns the hint.
    pub fn hint(&self) -> &Arc<Hint> {
        &self.hint
    }

    /// Returns the score, 0 to 1, unrounded.
    pub fn score(&self) -> f64 {
        scoring::score_hint(&self.hint, self.open_file, self.now)
    }

    /// Returns the addends of the score, unrounded.
    pub fn parts(&self) -> ScoreParts {
        scoring::score_parts(&self.hint, self.open_file, self.now)
    }

    /// Returns the reasons for the match and for its score.
    ///
    /// # Panics
    /// Never: the choice has already compared the same scope.
    pub fn reasons(&self) -> Vec<String> {
        explain::collect_reasons(&self.hint, &self.context, self.now, &mut StepBudget::unlimited())
            .expect("there are steps for one scope, which the choice has compared already")
    }

    /// Returns the whole explanation, as `nudge.get_hint` sends it.
    pub fn explain(&self) -> MatchExplain {
        MatchExplain { matched: true, score: self.score(), parts: self.parts(), reasons: self.reasons() }
    }
}
