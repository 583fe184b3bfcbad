//! Chooses the best of a key's variants for a context (semantics section 3).

use std::sync::Arc;

use nudge_core::clock::Millis;
use nudge_core::context::Context;
use nudge_core::explain::{MatchExplain, Parts};
use nudge_core::steps::Steps;
use smallvec::SmallVec;

use crate::explain;
use crate::hint::Hint;
use crate::scoring;

/// Returns the best of `variants` that is live and `eligible`.
pub(crate) fn pick<E>(
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
    Ok(best(&fitting, open_file, now).map(|(hint, score)| Match {
        hint: Arc::clone(hint),
        score,
        context: context.clone(),
        now,
    }))
}

/// Returns the best of `hints` that is live, with its score. Among variants, doubt and specificity decide before
/// the score, which is therefore computed only for variants that are equal in both.
pub(crate) fn best<'a>(hints: &[&'a Arc<Hint>], open_file: bool, now: Millis) -> Option<(&'a Arc<Hint>, f64)> {
    let class = |hint: &Hint| (!hint.is_doubtful(), hint.scope.specificity());
    let mut live = hints.iter().copied().filter(|hint| !hint.is_expired(now));
    let mut best = live.next()?;
    let mut best_score = None;
    for hint in live {
        let order = class(hint).cmp(&class(best));
        if order.is_gt() {
            (best, best_score) = (hint, None);
        } else if order.is_eq() {
            let score = scoring::score(hint, open_file, now);
            let other = *best_score.get_or_insert_with(|| scoring::score(best, open_file, now));
            if scoring::compare_variants((hint, score), (best, other)).is_gt() {
                (best, best_score) = (hint, Some(score));
            }
        }
    }
    Some((best, best_score.unwrap_or_else(|| scoring::score(best, open_file, now))))
}

/// A hint that fits, with its score; reasons and parts are rendered when asked for.
#[derive(Debug, Clone)]
pub struct Match {
    pub(crate) hint: Arc<Hint>,
    pub(crate) score: f64,
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
        self.score
    }

    /// Returns the addends of the score, unrounded.
    pub fn parts(&self) -> Parts {
        scoring::parts(&self.hint, self.context.open_file_in(self.hint.component()).is_some(), self.now)
    }

    /// Returns the reasons for the match and for its score.
    pub fn reasons(&self) -> Vec<String> {
        // Unlimited steps suffice: it is one scope, and the choice has compared as much already.
        explain::reasons(&self.hint, &self.context, self.now, &mut Steps::unlimited()).unwrap_or_default()
    }

    /// Returns the whole explanation, as `nudge.get_hint` sends it.
    pub fn explain(&self) -> MatchExplain {
        MatchExplain { matched: true, score: self.score, parts: self.parts(), reasons: self.reasons() }
    }
}
