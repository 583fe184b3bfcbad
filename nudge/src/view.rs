//! [`View`]: lookups in a store from one context.

use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;

use nudge_core::context::Context;

use crate::cache::Nudge;
use crate::choice::{Match, best, pick};
use crate::hint::Hint;
use crate::store::Memo;

/// A store bound to one [`Context`]. It caches whether the context meets each scope, so repeated
/// lookups cost little more than the map; make one per context and keep it.
///
/// `S` is the reference to the store: `&Nudge` or `Arc<Nudge>`. A view may be shared between threads.
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
    memo: Memo,
}

impl<S: Deref<Target = Nudge>> View<S> {
    /// Binds `store` to `context`.
    pub fn new(store: S, context: Context) -> Self {
        Self { store, context, memo: Memo::default() }
    }

    /// Returns the best eligible variant of a key, or `None`. Allocates nothing once the cache is warm. Scopes that it
    /// does not know yet take as long as they take.
    pub fn get(&self, component: &str, key: &str) -> Option<Match> {
        let now = self.store.now();
        // The open files, a list of any length that the caller sent, are searched before the lock is taken.
        let open_file = self.context.open_file_in(component).is_some();
        let chosen =
            self.store.store.choose(component, key, &self.memo, |hints| best(hints, open_file, now).map(Arc::clone));
        match chosen {
            Ok(chosen) => chosen.map(|hint| Match { hint, open_file, context: self.context.clone(), now }),
            Err((epoch, variants)) => {
                let eligible = |hint: &Arc<Hint>| Ok(self.memo.allows(epoch, &hint.scope, &self.context));
                let Ok::<_, Infallible>(found) = pick(&variants, &self.context, now, eligible);
                found
            }
        }
    }

    /// Returns the context of the view.
    pub fn context(&self) -> &Context {
        &self.context
    }
}
