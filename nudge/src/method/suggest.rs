//! `nudge.suggest`, `nudge.digest`, `nudge.told` and `nudge.recall` for hints: selects the hints that fit and are worth
//! telling now (semantics section 10).

mod changes;
mod failure;
mod index;
mod line;
mod meaning;
mod message;
mod paths;
mod place;
mod rank;
mod usual;

use std::sync::Arc;

use nudge_core::error::Result;
use nudge_core::explain::{ScoreParts, four_decimals};
use nudge_core::steps::{StepBudget, TooMany};
use nudge_core::suggest::{
    self, DIGEST, DigestText, MoreCall, Offer, RECALL, RecallAnswer, RecallParams, SUGGEST, SourceOffers,
    SuggestMoment, SuggestParams, SuggestRequest, TOLD, ToldAnswer, ToldParams,
};
use nudge_core::table::{TableRow, answer_typed};
use nudge_core::wire::raw_json;
use serde::Serialize;

use super::query::{QueryRow, explain_row};
use crate::cache::Nudge;
use crate::choice::{Match, pick_variant};
use crate::hint::{Hint, NAME};

pub(crate) use changes::make_told_id;
pub(crate) use index::WordIndex;
use line::{format_line, is_longer, name};
pub(crate) use meaning::HintMeanings;
pub(crate) use paths::find_paths as named_paths;
pub(super) use rank::explain_weak;

/// The conditions on which a start suggests a hint, as the end of a sentence.
const HOW_TOLD: &str = "from priority 8 on, with a scope of this place, or to a caller without folder and repository";
/// The bytes of the shortest possible line.
const SHORTEST_LINE: usize = 16;
/// After this number of hints that are too long for the answer, the search for a shorter one ends.
const MAX_WITHOUT_ROOM: usize = 1_000;

pub(super) static ROW: TableRow<Nudge> =
    TableRow { method: SUGGEST.vital(), run: |nudge, _, params| answer_typed(params, |params| nudge.suggest(params)) };

pub(super) static DIGEST_ROW: TableRow<Nudge> =
    TableRow { method: DIGEST.vital(), run: |nudge, _, params| answer_typed(params, |params| nudge.digest(params)) };

pub(super) static TOLD_ROW: TableRow<Nudge> =
    TableRow { method: TOLD, run: |nudge, _, params| answer_typed(params, |params| nudge.told(&params)) };

pub(super) static RECALL_ROW: TableRow<Nudge> =
    TableRow { method: RECALL.vital(), run: |nudge, _, params| answer_typed(params, |params| nudge.recall(params)) };

/// Result of [`Nudge::suggest`].
pub type Suggestions = suggest::SuggestAnswer<SuggestedHint>;

/// A suggested hint.
pub type Suggestion = suggest::SuggestedLine<SuggestedHint>;

/// The hint of a [`Suggestion`].
#[derive(Debug, Clone, Serialize)]
pub struct SuggestedHint {
    /// The hint. It is never a secret.
    #[serde(serialize_with = "super::set::serialize_redacted")]
    pub hint: Arc<Hint>,
    /// The score, 0 to 1. It has four decimals in JSON.
    #[serde(serialize_with = "four_decimals")]
    pub score: f64,
}

impl Nudge {
    /// Suggests the hints that an agent should be told at an event (semantics section 10).
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn suggest(&self, params: SuggestParams) -> Result<Suggestions> {
        self.suggester.answer_suggest(
            params,
            || self.now(),
            |request| (vec![(NAME, self.make_offers(request))], Vec::new()),
        )
    }

    /// Returns the lines of `suggest` as one text for a prompt. The text has a heading and a line for each hint, and at
    /// most `max_bytes` bytes (default 2,000).
    ///
    /// ```
    /// # use nudge::{Nudge, SetHint, SuggestParams, SuggestEvent};
    /// let store = Nudge::default();
    /// let mut hint = SetHint::new("api", "build", "make api");
    /// hint.meta.scope.repo = vec!["org/shop".into()];
    /// store.set(hint)?;
    /// let mut start = SuggestParams::at_event(SuggestEvent::Start);
    /// start.context = start.context.repo("org/shop");
    /// assert!(store.digest(start)?.text.ends_with("\n- api/build: make api (now, somebody)"));
    /// # Ok::<(), nudge::Error>(())
    /// ```
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn digest(&self, params: SuggestParams) -> Result<DigestText> {
        let lists = |source: &str| (source == NAME).then_some(crate::SOURCE.list);
        suggest::answer_digest(params, lists, |params| self.suggest(params))
    }

    /// Confirms that the caller showed the lines of an earlier answer of `suggest` or `digest`. That answer reserved
    /// the lines and named them by a ticket (semantics section 10). A ticket that is unknown, or was confirmed before,
    /// changes nothing.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn told(&self, params: &ToldParams) -> Result<ToldAnswer> {
        self.suggester.answer_told(params, self.now())
    }

    /// Finds the hints that fit a question in words. The hints do not count as told.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn recall(&self, params: RecallParams) -> Result<RecallAnswer<SuggestedHint>> {
        suggest::answer_recall(params, &[NAME], self.now(), |request| {
            (vec![(NAME, self.make_offers(request))], Vec::new())
        })
    }

    /// Returns the hints that are worth telling, best first, as many as fit into the answer.
    pub(crate) fn make_offers(&self, request: &SuggestRequest) -> SourceOffers<SuggestedHint> {
        if matches!(request.moment, SuggestMoment::Tool | SuggestMoment::Stop) {
            return SourceOffers::default();
        }
        let (mut steps, mut row_steps) = (StepBudget::of_a_call(), StepBudget::of_a_call());
        let (mut ranked, undecided) = self.rank_hints(request);
        let mut out = SourceOffers { omitted: undecided, ..SourceOffers::default() };
        if request.moment != SuggestMoment::Recall {
            out.changes = self.find_changes(request, &mut steps);
        }
        let (mut count, mut bytes) = (request.limit, request.max_bytes);
        // Only the variant that `get_hint` would return is offered. When no steps are left to compare the variants, the
        // hint counts as that variant.
        let is_any_needless = request.is_any_needless(NAME);
        let mut is_told = |hint: &Arc<Hint>| {
            let is_needless = is_any_needless && request.is_needless(NAME, &make_told_id(hint));
            !is_needless && self.is_winner(hint, request, &mut steps).unwrap_or(true)
        };
        let mut without_room = 0;
        // The heap sorts only the hints that are popped.
        while count > 0
            && bytes >= SHORTEST_LINE
            && without_room < MAX_WITHOUT_ROOM
            && let Some(best) = ranked.pop()
        {
            let hint = Arc::clone(&best.found.hint);
            if !is_told(&hint) {
                continue;
            }
            let fits = |line: &String| line.len() <= bytes;
            let made = || format_line(&hint, &request.context, request.now);
            let Some(line) = (!is_longer(&hint, bytes)).then(made).filter(fits) else {
                without_room += 1;
                continue;
            };
            (count, bytes) = (count - 1, bytes - line.len());
            let (parts, why) = (best.to_parts(), best.explain());
            match explain_row(best.found, &request.context, request.now, &mut row_steps) {
                Ok(found) => out.offers.push(make_offer(found, line, parts, why)),
                Err(TooMany { .. }) => out.omitted += 1,
            }
        }
        if request.moment == SuggestMoment::Start && out.offers.is_empty() {
            out.note = match self.count_weak(request) {
                0 => None,
                1 => Some(format!("1 hint names no place, and a start tells it {HOW_TOLD}")),
                count => Some(format!("{count} hints name no place, and a start tells them {HOW_TOLD}")),
            };
        }
        // The answer has only the number of the hints that do not fit into it.
        out.omitted += without_room + ranked.into_iter().filter(|ranked| is_told(&ranked.found.hint)).count();
        out
    }

    /// Returns true when `hint`, which fits, is the variant of its key that `get_hint` would return.
    fn is_winner(&self, hint: &Arc<Hint>, request: &SuggestRequest, steps: &mut StepBudget) -> Result<bool, TooMany> {
        if self.store.is_only_variant(hint) {
            return Ok(true);
        }
        let variants = self.store.find_variants(hint.component(), hint.key()).1;
        let winner = find_winner(&variants, request, steps)?;
        Ok(winner.is_some_and(|winner| Arc::ptr_eq(winner.hint(), hint)))
    }
}

/// Returns the variant of a key that `get_hint` would return.
fn find_winner(
    variants: &[Arc<Hint>],
    request: &SuggestRequest,
    steps: &mut StepBudget,
) -> Result<Option<Match>, TooMany> {
    pick_variant(variants, &request.context, request.now, |hint| hint.scope().judge(&request.context, steps))
}

fn make_offer(found: QueryRow, line: String, parts: ScoreParts, why: String) -> Offer<SuggestedHint> {
    let hint = &found.hint;
    let mut params = serde_json::json!({"component": hint.component(), "key": hint.key()});
    if !hint.variant().is_empty() {
        params["variant"] = hint.variant().into();
    }
    Offer {
        id: make_told_id(hint),
        name: name(hint),
        line,
        parts,
        stamp: changes::compute_stamp(hint),
        must: false,
        paths: paths::find_paths(hint.value()),
        command: hint.value().command_line().map(str::to_owned),
        why,
        explain: found.match_explain,
        // Strings can always be serialized.
        more: MoreCall { method: "nudge.get_hint", params: raw_json(&params) },
        item: SuggestedHint { score: found.score, hint: found.hint },
    }
}

#[cfg(test)]
mod tests {
    use nudge_core::suggest::SuggestEvent;

    use super::*;
    use crate::{Config, Limit, SetHint};

    #[test]
    fn a_shorter_line_is_looked_for_among_so_many() {
        for (long, is_short_told) in [(MAX_WITHOUT_ROOM, true), (MAX_WITHOUT_ROOM + 1, false)] {
            let store = Nudge::new(Config { max_hints_per_component: long + 1, ..Config::default() });
            let set = |key: &str, value: &str, priority| {
                let mut hint = SetHint::new("api", key, value);
                hint.meta.priority = Some(priority);
                store.set(hint).unwrap();
            };
            (0..long).for_each(|number| set(&format!("k{number}"), &"make it ".repeat(30), 9));
            set("short", "make", 8);
            let mut start = SuggestParams::at_event(SuggestEvent::Start);
            // The answer has room for one of the long hints and for the short one.
            start.max_bytes = Limit::new(320).unwrap();
            let told = store.suggest(start).unwrap();
            let short = told.suggestions.iter().filter(|told| told.item.hint.key() == "short").count();
            assert_eq!((told.suggestions.len() - short, short == 1), (1, is_short_told), "{long}");
            assert_eq!(told.suggestions.len() + told.omitted, long + 1, "whatever is not told is counted");
        }
    }
}
