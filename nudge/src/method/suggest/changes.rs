//! Finds the told hints of a client session that are no longer valid.

use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_core::steps::StepBudget;
use nudge_core::suggest::{OfferChange, SuggestRequest};
use nudge_core::text::make_visible;

use super::find_winner;
use super::line::{format_line, name};
use crate::cache::Nudge;
use crate::hint::{Hint, NAME};

/// Returns the id under which a client session remembers a told hint. All variants of a key share one id, because only
/// one of them is told. A line break separates component and key, because neither may contain one.
pub(crate) fn make_told_id(hint: &Hint) -> Box<str> {
    [hint.component(), hint.key()].join("\n").into()
}

/// Computes a number that changes when the told line would change: for another variant, another value, or doubt.
pub(super) fn compute_stamp(hint: &Hint) -> u64 {
    FixedState::default().hash_one((hint.variant(), hint.text(), hint.is_doubtful()))
}

impl Nudge {
    /// Returns the changes of the hints that the client session was told: another value, another variant that fits now,
    /// doubt, deletion, or expiry. A hint that no longer fits has not changed, because it is still valid in its own
    /// scope.
    pub(super) fn find_changes(&self, request: &SuggestRequest, steps: &mut StepBudget) -> Vec<OfferChange> {
        let mut told: Vec<_> = request.told_offers(NAME).collect();
        told.sort_unstable();
        told.into_iter().filter_map(|(id, stamp)| self.change_of(id, stamp, request, steps)).collect()
    }

    /// Returns the change of one told hint, if there is one. `told` is the stamp with which the hint was told.
    fn change_of(&self, id: &str, told: u64, request: &SuggestRequest, steps: &mut StepBudget) -> Option<OfferChange> {
        let (component, key) = id.split_once('\n')?;
        let now = |stamp, name, line| Some(OfferChange { id: id.into(), name, line, stamp });
        let (_, variants) = self.store.find_variants(component, key);
        if variants.iter().all(|hint| hint.is_expired(request.now)) {
            let name = format!("{}/{}", make_visible(component), make_visible(key));
            let line = format!("{name}: no longer stored, it was deleted or has expired");
            return now(None, name, line);
        }
        // A hint whose comparison takes too many steps counts as unchanged.
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
