//! Implements `get`. Programs call it so often that the cost of passing its result to JavaScript matters.
//!
//! JavaScript stores the object that it made from an answer. Each call of `get` looks the hint up again and returns a
//! token. If the token is the same as before, the answer is unchanged, and JavaScript uses its object again.

mod export;

use std::sync::Arc;

use nudge::{Context, Error, Hint, HintValue, Match, Millis, Nudge, Result};
use nudge_client::Store;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A store, seen from one context.
pub enum StoreView {
    /// A store of this process.
    Own(Box<OwnView>),
    /// The running session; every lookup is a call of the session.
    Session(Context),
}

/// A view of a store of this process, with the answers that the view has given.
pub struct OwnView {
    nudge: Arc<Nudge>,
    view: nudge::View<Arc<Nudge>>,
    /// The last answer for each pair, indexed by the number of the pair.
    given: Vec<Option<GivenAnswer>>,
    /// The last token. Tokens are whole numbers from 1; JavaScript represents whole numbers up to 2^53 exactly.
    last: f64,
}

/// An answer that JavaScript has.
struct GivenAnswer {
    /// The number that JavaScript compares to recognise the answer.
    token: f64,
    /// The hint. It stays alive here, so no other hint can get the same address.
    hint: Arc<Hint>,
    /// The time at which a lookup last gave this answer.
    at: Millis,
    /// The score and the reasons, as JavaScript has them.
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

    /// Returns the context of the view.
    pub fn context(&self) -> &Context {
        match self {
            Self::Own(own) => own.view.context(),
            Self::Session(context) => context,
        }
    }

    /// Returns the token of the best hint of a key; 0 when no hint fits. If the token is the same as before, the
    /// rendered text is also the same, byte for byte. Returns `None` in a session.
    pub fn get(&mut self, component: &str, key: &str, pair: u32) -> Option<f64> {
        let Self::Own(own) = self else { return None };
        // Reads the time before the lookup: an answer of the same millisecond is then used again.
        let now = own.nudge.now();
        Some(match own.view.get(component, key) {
            None => 0.0,
            Some(found) => own.token(pair as usize, found, now),
        })
    }

    /// Returns, as JSON, the answer whose token the last `get` of a pair returned.
    pub fn rendered(&mut self, pair: u32) -> Result<String> {
        let Self::Own(own) = self else { return Ok("null".into()) };
        let Some(slot) = own.given.get_mut(pair as usize) else { return Ok("null".into()) };
        let Some(given) = slot else { return Ok("null".into()) };
        let (hint, explain) = (&*given.hint, &given.explain);
        let json = json_of(&RenderedMatch { text: hint.text(), hint, match_explain: explain })?;
        if hint.is_secret() {
            // Secrets must not stay in memory after the store has dropped them, so the view forgets the hint at once.
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

/// The data from which JavaScript makes its object.
#[derive(Serialize)]
struct RenderedMatch<'a, H> {
    text: &'a str,
    hint: H,
    match_explain: &'a RawValue,
}

/// Converts the result of `nudge.get_hint` to the form of [`StoreView::rendered`].
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
