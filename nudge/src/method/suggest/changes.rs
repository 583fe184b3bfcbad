//! Finds told hints of a client session that hold no longer.

use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_core::steps::Steps;
use nudge_core::suggest::{Change, SuggestRequest};
use nudge_core::text::visible;

use super::line::{line, name};
use super::winner;
use crate::cache::Nudge;
use crate::hint::{Hint, NAME};

/// The id by which a session remembers that it was told of a hint: of all variants of a key it is told one. A line
/// break separates component and key, as neither contains one.
pub(crate) fn id(hint: &Hint) -> Box<str> {
    [hint.component(), hint.key()].join("\n").into()
}

/// A number that is another one when something else is to be told: another variant, value, or doubt.
pub(super) fn stamp(hint: &Hint) -> u64 {
    FixedState::default().hash_one((hint.variant(), hint.text(), hint.is_doubtful()))
}

impl Nudge {
    /// Returns the changes of the hints that the client session was told: another value, another variant that fits now,
    /// doubt, deletion, expiry. A hint that no longer fits is not a change: it still holds in its own scope.
    pub(super) fn changes(&self, request: &SuggestRequest, steps: &mut Steps) -> Vec<Change> {
        let mut told: Vec<_> = request.told(NAME).collect();
        told.sort_unstable();
        told.into_iter().filter_map(|(id, stamp)| self.change_of(id, stamp, request, steps)).collect()
    }

    /// Returns the change of a hint that was told with this stamp.
    fn change_of(&self, id: &str, told: u64, request: &SuggestRequest, steps: &mut Steps) -> Option<Change> {
        let (component, key) = id.split_once('\n')?;
        let now = |stamp, name, line| Some(Change { id: id.into(), name, line, stamp });
        let (_, variants) = self.store.variants(component, key);
        if variants.iter().all(|hint| hint.is_expired(request.now)) {
            let name = format!("{}/{}", visible(component), visible(key));
            let line = format!("{name}: no longer stored, it was deleted or has expired");
            return now(None, name, line);
        }
        // A hint that takes too long to compare stays as it was told.
        let winner = winner(&variants, request, steps).ok().flatten()?;
        let hint = winner.hint();
        let stamp = stamp(hint);
        if stamp == told {
            return None;
        }
        if hint.is_secret() {
            return now(None, name(hint), format!("{}: changed, and secret now: nudge_get_hint tells it", name(hint)));
        }
        now(Some(stamp), name(hint), line(hint, &request.context, request.now))
    }
}
