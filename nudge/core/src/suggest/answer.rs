//! The results of `nudge.suggest` and `nudge.recall`, as they travel.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;

use super::{MergedOffers, MoreCall, Offer};
use crate::explain::{MatchExplain, ScoreParts, four_decimals};
use crate::wire;

/// Result of `nudge.suggest`.
#[derive(Debug, Clone, serde::Serialize)]
pub struct SuggestAnswer<I = SourceItem> {
    /// Best first; never a secret.
    pub suggestions: Vec<SuggestedLine<I>>,
    /// The changes of offers that the client session was told.
    pub changes: Vec<ChangedLine>,
    /// The number of further suggestions and changes that the limits held back.
    pub omitted: usize,
    /// The same by source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<HeldBackPart>,
    /// Says, for people, what else would be told and what has it told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Sources that did not answer in time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<&'static str>,
    /// Is true when a `start` had told the client session something before, or had been asked for twice; false without
    /// one.
    pub started: bool,
    /// Confirms that the suggestions were shown, by `nudge.told`; absent when there is nothing to confirm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// Result of `nudge.told`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct ToldAnswer {
    /// The number of suggestions that count as told by this call; 0 for a ticket that was confirmed before or is not
    /// known.
    pub told: usize,
}

/// Result of `nudge.recall`.
#[derive(Debug, Clone, serde::Serialize)]
pub struct RecallAnswer<I = SourceItem> {
    /// Best first; never a secret.
    pub items: Vec<SuggestedLine<I>>,
    /// The number of further ones that the limits held back.
    pub omitted: usize,
    /// The same by source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<HeldBackPart>,
    /// Sources that did not answer in time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<&'static str>,
}

impl<I> RecallAnswer<I> {
    /// Makes the result from the offers that were chosen and the sources that were late.
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

/// Something that the client session was told and that does not hold any more.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChangedLine {
    /// The source that told it.
    pub source: &'static str,
    /// The name in a list.
    pub name: String,
    /// The line that the model reads, with the new content.
    pub line: String,
}

/// The part of a source that was held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct HeldBackPart {
    /// The source.
    pub source: &'static str,
    /// The number of offers.
    pub count: usize,
}

/// A line worth telling.
#[derive(Debug, Clone, serde::Serialize)]
pub struct SuggestedLine<I = SourceItem> {
    /// The thing itself.
    #[serde(flatten)]
    pub item: I,
    /// The reasons and the numbers by which it was chosen.
    pub match_explain: MatchExplain,
    /// The reason for telling it now.
    pub why: String,
    /// The source that offers it.
    pub source: &'static str,
    /// How strong an offer it is, 0 to 1; 0.5 is a hint of default priority that is scoped to where the agent stands.
    #[serde(serialize_with = "four_decimals")]
    pub strength: f64,
    /// The named addends of the strength.
    pub parts: ScoreParts,
    /// The name in a list.
    pub name: String,
    /// The line that the model reads.
    pub line: String,
    /// The files and folders that the line names, relative to the repository or a folder of it. The program that shows
    /// the line notes the missing ones.
    pub paths: Vec<String>,
    /// The command line that the line tells to run; the item holds it, too.
    #[serde(skip)]
    pub command: Option<String>,
    /// The call that gets the whole of it.
    pub more: MoreCall,
}

impl<I> SuggestedLine<I> {
    pub(super) fn new(source: &'static str, offer: Offer<I>) -> Self {
        let strength = offer.strength();
        let Offer { name, line, parts, paths, command, why, explain, more, item, .. } = offer;
        Self { item, match_explain: explain, why, source, strength, parts, name, line, paths, command, more }
    }
}

/// A thing as its source has it, a JSON object. In the answer its members stand beside those of the [`SuggestedLine`].
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
