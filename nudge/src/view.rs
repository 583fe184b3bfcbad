//! [`View`]: lookups in a store from one context.

use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;

use nudge_core::context::Context;

use crate::cache::Nudge;
use crate::choice::{Match, pick_best, pick_variant};
use crate::hint::Hint;
use crate::store::VerdictMemo;

/// A store bound to one [`Context`]. It caches for each scope whether the context meets the scope, so a repeated lookup
/// takes little longer than a lookup in a map. Make one view for each context and keep it.
///
/// `S` is the reference to the store: `&Nudge` or `Arc<Nudge>`. Threads may share a view.
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
    memo: VerdictMemo,
}

impl<S: Deref<Target = Nudge>> View<S> {
    /// Binds `store` to `context`.
    pub fn new(store: S, context: Context) -> Self {
        Self { store, context, memo: VerdictMemo::default() }
    }

    /// Returns the best variant of a key that fits, or `None`. The call allocates nothing when the cache has all
    /// verdicts. The time for the comparison of new scopes has no limit.
    pub fn get(&self, component: &str, key: &str) -> Option<Match> {
        let now = self.store.now();
        // The list of open files may have any length, so it is searched before the lock is taken.
        let open_file = self.context.open_file_in(component).is_some();
        let chosen = self
            .store
            .store
            .choose_variant(component, key, &self.memo, |hints| pick_best(hints, open_file, now).map(Arc::clone));
        match chosen {
            Ok(chosen) => chosen.map(|hint| Match { hint, open_file, context: self.context.clone(), now }),
            Err((epoch, variants)) => {
                let eligible = |hint: &Arc<Hint>| Ok(self.memo.allows(epoch, &hint.scope, &self.context));
                let Ok::<_, Infallible>(found) = pick_variant(&variants, &self.context, now, eligible);
                found
            }
        }
    }

    /// Returns the context of the view.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

#[cfg(test)]
mod tests {
    use nudge_core::clock::ManualClock;
    use nudge_core::context::ContextSpec;

    use super::*;
    use crate::{Config, SetHint};

    /// A view finds the same hint as `get`, with and without cached verdicts: for variants of one class and of several
    /// classes, and after expiry, change and deletion.
    #[test]
    fn a_view_finds_what_get_does() {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let store = Nudge::with_clock(Config::default(), Arc::<ManualClock>::clone(&clock));
        let place = |branch: &str| ContextSpec::default().repo("o/r").branch(branch).build().unwrap();
        let contexts = ["dev", "main", "other"].map(place);
        let views = contexts.each_ref().map(|context| View::new(&store, context.clone()));
        let set = |value: &str, branch: &str, repo: &str, ttl: Option<&str>| {
            let mut hint = SetHint::new("api", "build", value);
            hint.meta.scope.branch = (!branch.is_empty()).then(|| branch.into()).into_iter().collect();
            hint.meta.scope.repo = (!repo.is_empty()).then(|| repo.into()).into_iter().collect();
            hint.meta.ttl = ttl.map(|ttl| ttl.parse().unwrap());
            store.set(hint).unwrap();
        };
        let found = |expected: [&str; 3]| {
            // In the second round, the verdicts are cached.
            for _ in 0..2 {
                for ((view, context), expected) in views.iter().zip(&contexts).zip(expected) {
                    let seen = view.get("api", "build");
                    let got = store.get("api", "build", context);
                    let text = |found: &Option<Match>| found.as_ref().map(|found| found.hint().text().to_owned());
                    assert_eq!(text(&seen), text(&got));
                    assert_eq!(text(&seen).unwrap_or_default(), expected);
                }
            }
        };
        found(["", "", ""]);
        set("anywhere", "", "", None);
        found(["anywhere", "anywhere", "anywhere"]);
        set("on dev", "dev", "", Some("PT1H"));
        set("on main", "main", "", None);
        found(["on dev", "on main", "anywhere"]);
        set("here", "", "o/r", None);
        set("here on dev", "dev", "o/r", Some("PT2H"));
        found(["here on dev", "here", "here"]);
        clock.advance_by(2 * 3_600_000);
        found(["here", "here", "here"]);
        store
            .delete(&crate::DeleteHint { component: "api".into(), key: "build".into(), variant: None, all: true })
            .unwrap();
        found(["", "", ""]);
    }
    /// Verdicts are cached by the numbers of scopes, and a number can be used again for another scope.
    #[test]
    fn a_view_knows_nothing_of_a_scope_that_got_the_number_of_another() {
        let store = Nudge::default();
        let view = View::new(&store, ContextSpec::default().branch("dev").build().unwrap());
        let set = |branch: &str| {
            let mut hint = SetHint::new("api", "build", branch);
            hint.meta.scope.branch = vec![branch.into()];
            store.set(hint).unwrap();
            let found = view.get("api", "build").map(|found| found.hint().text().to_owned());
            store
                .delete(&crate::DeleteHint { component: "api".into(), key: "build".into(), variant: None, all: true })
                .unwrap();
            found
        };
        for _ in 0..3 {
            assert_eq!(set("dev").as_deref(), Some("dev"));
            assert_eq!(set("main"), None);
        }
    }
}
