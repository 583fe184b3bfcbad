//! A store seen from one place.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cache::Nudge;
use crate::clock::Millis;
use crate::context::Context;
use crate::explain::{self, MatchExplain};
use crate::hint::Hint;
use crate::scoring::{self, Parts};
use crate::store::{Variants, Verdicts};

/// A store bound to one [`Context`]. It remembers what the context makes of each scope, so repeated
/// lookups cost little more than the map; make one per context and keep it.
///
/// `S` is how the store is held: `&Nudge` or `Arc<Nudge>`. May be shared between threads.
///
/// ```
/// use nudge::{Context, Nudge, SetHint, View};
/// let store = Nudge::default();
/// store.set(SetHint::new("http-proxy", "build", "docker compose build router"))?;
/// let view = View::new(&store, Context::default());
/// assert_eq!(view.get("http-proxy", "build").unwrap().hint().text(), "docker compose build router");
/// # Ok::<(), nudge::Error>(())
/// ```
pub struct View<S: Deref<Target = Nudge>> {
    store: S,
    context: Context,
    verdicts: Mutex<Verdicts>,
}

impl<S: Deref<Target = Nudge>> View<S> {
    /// Binds `store` to `context`.
    pub fn new(store: S, context: Context) -> Self {
        Self { store, context, verdicts: Mutex::default() }
    }

    /// The best eligible variant of a key, or `None`. Allocates nothing once warm.
    pub fn get(&self, component: &str, key: &str) -> Option<Match> {
        let (epoch, variants) = self.store.store.variants(component, key);
        if variants.is_empty() {
            return None;
        }
        let now = self.store.now();
        let mut verdicts = self.verdicts.lock();
        verdicts.renew(epoch);
        pick(variants, &self.context, now, |hint| verdicts.allows(epoch, &hint.scope, &self.context))
    }

    /// The context it is bound to.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

/// The best of `variants` that is live and `eligible`.
pub(crate) fn pick(
    variants: Variants,
    context: &Context,
    now: Millis,
    mut eligible: impl FnMut(&Hint) -> bool,
) -> Option<Match> {
    let mut best: Option<(Arc<Hint>, f64)> = None;
    for hint in variants {
        if hint.is_expired(now) || !eligible(&hint) {
            continue;
        }
        let score = scoring::score(&hint, context.open_file_in(&hint.component).is_some(), now);
        if best
            .as_ref()
            .is_none_or(|(best, best_score)| scoring::compare_variants((&hint, score), (best, *best_score)).is_gt())
        {
            best = Some((hint, score));
        }
    }
    best.map(|(hint, score)| Match { hint, score, context: context.clone(), now })
}

/// A hint that fits, with its score; reasons and parts are rendered when asked for.
#[derive(Debug, Clone)]
pub struct Match {
    hint: Arc<Hint>,
    score: f64,
    context: Context,
    now: Millis,
}

impl Match {
    /// The hint.
    pub fn hint(&self) -> &Arc<Hint> {
        &self.hint
    }

    /// 0 to 1, unrounded.
    pub fn score(&self) -> f64 {
        self.score
    }

    /// The addends of the score, unrounded.
    pub fn parts(&self) -> Parts {
        scoring::parts(&self.hint, self.context.open_file_in(self.hint.component()).is_some(), self.now)
    }

    /// Why it matched and what speaks for it.
    pub fn reasons(&self) -> Vec<String> {
        explain::reasons(&self.hint, &self.context, self.now)
    }

    /// All of it at once, as on the wire.
    pub fn explain(&self) -> MatchExplain {
        MatchExplain { matched: true, score: self.score, parts: self.parts(), reasons: self.reasons() }
    }
}
