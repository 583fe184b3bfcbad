//! The results of `nudge.suggest` and `nudge.recall`, in the form that clients receive.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;

use super::{MergedOffers, MoreCall, Offer};
use crate::explain::{MatchExplain, ScoreParts, four_decimals};
use crate::wire;

/// Result of `nudge.suggest`.
#[derive(Debug, Clone, serde::Serialize)]
pub struct SuggestAnswer<I = SourceItem> {
    /// The chosen lines, best first. They never hold a secret.
    pub suggestions: Vec<SuggestedLine<I>>,
    /// The changes of offers that the client session was told earlier.
    pub changes: Vec<ChangedLine>,
    /// The number of further suggestions and changes that were held back because of the limits.
    pub omitted: usize,
    /// The number held back in each source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<HeldBackPart>,
    /// Tells people which other lines could be told, and on which conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Sources that did not answer in time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<&'static str>,
    /// Is true when an earlier `start` told the client session a line, or when this is at least the second `start`.
    /// False without a client session.
    pub started: bool,
    /// The ticket with which `nudge.told` confirms that the suggestions were shown. Absent when there is nothing to
    /// confirm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// Result of `nudge.told`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct ToldAnswer {
    /// The number of suggestions that this call marked as told; 0 for a ticket that is unknown or was confirmed before.
    pub told: usize,
}

/// Result of `nudge.recall`.
#[derive(Debug, Clone, serde::Serialize)]
pub struct RecallAnswer<I = SourceItem> {
    /// The chosen lines, best first. They never hold a secret.
    pub items: Vec<SuggestedLine<I>>,
    /// The number of further lines that were held back because of the limits.
    pub omitted: usize,
    /// The number held back in each source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<HeldBackPart>,
    /// Sources that did not answer in time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<&'static str>,
}

impl<I> RecallAnswer<I> {
    /// Makes the result from the chosen offers and the names of the late sources.
    pub fn new(merged: MergedOffers<I>, late: Vec<&'static str>) -> Self {
        let MergedOffers { chosen, held_back, .. } = merged;
        Self {
            items: chosen.into_iter().map(|(source, offer)| SuggestedLine::new(source, offer)).collect(),
            omitted: held_back.iter().map(|held| held.count).sum(),
            held_back,
            late,
        }
    }
}

/// The correction of a line that the client session was told earlier and that is no longer true.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChangedLine {
    /// The source of the line.
    pub source: &'static str,
    /// The name of the offer in a list of names.
    pub name: String,
    /// The line that the model reads, with the new content.
    pub line: String,
}

/// The number of offers of one source that were held back because of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct HeldBackPart {
    /// The source.
    pub source: &'static str,
    /// The number of offers.
    pub count: usize,
}

/// A suggested line.
#[derive(Debug, Clone, serde::Serialize)]
pub struct SuggestedLine<I = SourceItem> {
    /// The item that the line is about.
    #[serde(flatten)]
    pub item: I,
    /// The reasons and the numbers that explain the choice.
    pub match_explain: MatchExplain,
    /// The reason for telling the line now, in a few words.
    pub why: String,
    /// The source of the line.
    pub source: &'static str,
    /// The strength of the offer, 0 to 1. A hint of default priority has 0.5 if its scope fits the agent's context.
    #[serde(serialize_with = "four_decimals")]
    pub strength: f64,
    /// The named addends of the strength.
    pub parts: ScoreParts,
    /// The name of the offer in a list of names.
    pub name: String,
    /// The line that the model reads.
    pub line: String,
    /// The files and folders that the line names, relative to the repository or to a folder of it. The program that
    /// shows the line adds a note if some of them are missing.
    pub paths: Vec<String>,
    /// The command line that the line tells the agent to run. It is not serialized, because the item has it too.
    #[serde(skip)]
    pub command: Option<String>,
    /// The call that returns the full content.
    pub more: MoreCall,
}

impl<I> SuggestedLine<I> {
    pub(super) fn new(source: &'static str, offer: Offer<I>) -> Self {
        let strength = offer.strength();
        let Offer { name, line, parts, paths, command, why, explain, more, item, .. } = offer;
        Self { item, match_explain: explain, why, source, strength, parts, name, line, paths, command, more }
    }
}

/// The item that a line is about, as a JSON object that the source wrote. The answer has the members of this object
/// beside the members of the [`SuggestedLine`].
#[derive(Debug, Clone)]
pub struct SourceItem(pub Box<RawValue>);

impl Serialize for SourceItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = wire::read_members(self.0.get()).map_err(serde::ser::Error::custom)?;
        let mut map = serializer.serialize_map(Some(members.len()))?;
        for (name, value) in members {
            map.serialize_entry(&name, value)?;
        }
        map.end()
    }
}
