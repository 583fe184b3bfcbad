//! Finds told hints of a client session that hold no longer.

use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_core::steps::StepBudget;
use nudge_core::suggest::{OfferChange, SuggestRequest};
use nudge_core::text::make_visible;

use super::find_winner;
use super::line::{format_line, name};
use crate::cache::Nudge;
use crate::hint::{Hint, NAME};

/// The id by which a session remembers that it was told of a hint: of all variants of a key it is told one. A line
/// break separates component and key, as neither contains one.
pub(crate) fn make_told_id(hint: &Hint) -> Box<str> {
    [hint.component(), hint.key()].join("\n").into()
}

/// A number that is another one when something else is to be told: another variant, value, or doubt.
pub(super) fn compute_stamp(hint: &Hint) -> u64 {
    FixedState::default().hash_one((hint.variant(), hint.text(), hint.is_doubtful()))
}

impl Nudge {
    /// Returns the changes of the hints that the client session was told: another value, another variant that fits now,
    /// doubt, deletion, expiry. A hint that no longer fits is not a change: it still holds in its own scope.
    pub(super) fn find_changes(&self, request: &SuggestRequest, steps: &mut StepBudget) -> Vec<OfferChange> {
        let mut told: Vec<_> = request.told_offers(NAME).collect();
        told.sort_unstable();
        told.into_iter().filter_map(|(id, stamp)| self.change_of(id, stamp, request, steps)).collect()
    }

    /// Returns the change of a hint that was told with this stamp.
    fn change_of(&self, id: &str, told: u64, request: &SuggestRequest, steps: &mut StepBudget) -> Option<OfferChange> {
        let (component, key) = id.split_once('\n')?;
        let now = |stamp, name, line| Some(OfferChange { id: id.into(), name, line, stamp });
        let (_, variants) = self.store.find_variants(component, key);
        if variants.iter().all(|hint| hint.is_expired(request.now)) {
            let name = format!("{}/{}", make_visible(component), make_visible(key));
            let line = format!("{name}: no longer stored, it was deleted or has expired");
            return now(None, name, line);
        }
        // A hint that takes too long to compare stays as it was told.
        let winner = find_winner(&variants, request, steps).ok().flatten()?;
        let hint = winner.hint();
        let stamp = compute_stamp(hint);
        if stamp == told {
            return None;
        }
        if hint.is_secret() {
            return now(None, name(hint), format!("{}: changed, and secret now: nudge_get_hint tells it", name(hint)));
        }
        now(Some(stamp), name(hint), format_line(hint, &request.context, request.now))
    }
}
