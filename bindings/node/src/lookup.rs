//! `get`: the one call that is made often enough for its path into JavaScript to count.
//!
//! JavaScript keeps the object that it made of an answer and is told, each time, whether the answer is
//! still the same. The lookup itself is made every time; only its rendering is remembered.

mod export;

use std::sync::Arc;

use nudge::{Context, Error, Hint, HintValue, Match, Millis, Nudge, Result};
use nudge_client::Store;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A store seen from one context.
pub enum StoreView {
    /// A store of this process.
    Own(Box<OwnView>),
    /// The running session; it is asked each time.
    Session(Context),
}

/// The answers that a view has given.
pub struct OwnView {
    nudge: Arc<Nudge>,
    view: nudge::View<Arc<Nudge>>,
    /// By pair.
    given: Vec<Option<GivenAnswer>>,
    /// The last token: whole numbers from 1, which JavaScript has up to 2^53.
    last: f64,
}

/// An answer that JavaScript was given.
struct GivenAnswer {
    /// How JavaScript knows it.
    token: f64,
    /// Held, so that no other hint can be taken for it.
    hint: Arc<Hint>,
    /// When it last was the same.
    at: Millis,
    /// Score and reasons as JavaScript has them.
    explain: Box<RawValue>,
}

impl StoreView {
    /// Binds `store` to `context`.
    pub fn new(store: &Store, context: Context) -> Self {
        match store.as_nudge() {
            None => Self::Session(context),
            Some(nudge) => {
                let view = nudge::View::new(Arc::clone(nudge), context);
                Self::Own(Box::new(OwnView { nudge: Arc::clone(nudge), view, given: Vec::new(), last: 0.0 }))
            }
        }
    }

    /// The context it is bound to.
    pub fn context(&self) -> &Context {
        match self {
            Self::Own(own) => own.view.context(),
            Self::Session(context) => context,
        }
    }

    /// The token of the best hint under a key as it would be rendered now; 0 when nothing fits. The same
    /// token means the same text, byte for byte. `None` in a session.
    pub fn get(&mut self, component: &str, key: &str, pair: u32) -> Option<f64> {
        let Self::Own(own) = self else { return None };
        // Read before the lookup: an answer of the same instant may be given again.
        let now = own.nudge.now();
        Some(match own.view.get(component, key) {
            None => 0.0,
            Some(found) => own.token(pair as usize, found, now),
        })
    }

    /// The answer that the last `get` of a pair gave a token to, as JSON.
    pub fn rendered(&mut self, pair: u32) -> Result<String> {
        let Self::Own(own) = self else { return Ok("null".into()) };
        let Some(slot) = own.given.get_mut(pair as usize) else { return Ok("null".into()) };
        let Some(given) = slot else { return Ok("null".into()) };
        let (hint, explain) = (&*given.hint, &given.explain);
        let json = json_of(&RenderedMatch { text: hint.text(), hint, match_explain: explain })?;
        if hint.is_secret() {
            // It stays no longer than the store keeps it.
            *slot = None;
        }
        Ok(json)
    }
}

impl OwnView {
    fn token(&mut self, pair: usize, found: Match, now: Millis) -> f64 {
        if pair >= self.given.len() {
            self.given.resize_with(pair + 1, || None);
        }
        let slot = &mut self.given[pair];
        let same = slot.as_mut().filter(|given| Arc::ptr_eq(&given.hint, found.hint()));
        if let Some(given) = &same
            && given.at == now
        {
            return given.token;
        }
        let explain = to_raw_value(&found.explain()).expect("numbers, booleans and strings are JSON");
        if let Some(given) = same
            && given.explain.get() == explain.get()
        {
            given.at = now;
            return given.token;
        }
        self.last += 1.0;
        *slot = Some(GivenAnswer { token: self.last, hint: Arc::clone(found.hint()), at: now, explain });
        self.last
    }
}

/// The data of JavaScript's object.
#[derive(Serialize)]
struct RenderedMatch<'a, H> {
    text: &'a str,
    hint: H,
    match_explain: &'a RawValue,
}

/// The result of `nudge.get_hint` in the form of [`StoreView::rendered`].
pub fn with_text(result: &RawValue) -> Result<String> {
    #[derive(Deserialize)]
    struct GetHintReply<'a> {
        #[serde(borrow)]
        hint: &'a RawValue,
        #[serde(borrow)]
        match_explain: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct HintValueField {
        value: HintValue,
    }
    let read = || {
        let GetHintReply { hint, match_explain } = serde_json::from_str(result.get())?;
        let HintValueField { value } = serde_json::from_str(hint.get())?;
        serde_json::to_string(&RenderedMatch { text: value.text(), hint, match_explain })
    };
    read().map_err(|_| Error::unavailable("The session answers in a form unknown here; upgrade this package."))
}

fn json_of(rendered: &impl Serialize) -> Result<String> {
    serde_json::to_string(rendered).map_err(|_| Error::invalid("The result cannot be written as JSON."))
}
