//! Judges the proposals of a model before Nudge writes them into files. Each gate is a plain rule, so the same proposal
//! always gets the same result. A model's own rating can make a gate refuse a proposal, but never makes a gate accept
//! one.

use std::path::Path;

use nudge_core::text::{is_hidden, one_line};
use nudge_core::words::split_words;
use nudge_secrets::SecretGuard;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::view::normalize_text;
use crate::wording;

/// The types of unit that a model may propose. A unit is a note of the brain.
pub const KINDS: [&str; 5] = ["pattern", "concept", "decision", "bug", "belief"];
/// Largest number of units that one session may add.
pub const MAX_UNITS: usize = 8;
const TITLE_CHARS: std::ops::RangeInclusive<usize> = 8..=120;
const BODY_CHARS: std::ops::RangeInclusive<usize> = 80..=6_000;
/// Allowed length of a quote in characters. A shorter quote proves nothing.
const QUOTE_CHARS: std::ops::RangeInclusive<usize> = 12..=200;
/// Largest number of times that a body may name the project. A body with more names is about the project.
const NAMED: usize = 2;
const MAX_TAGS: usize = 8;
const MAX_RELATED: usize = 8;
const MAX_WORD_CHARS: usize = 40;
/// The relations to other units that a proposal may have.
pub const RELATIONS: [&str; 5] =
    ["uses", "implements", "requires_understanding_of", "informed_by", "often_combined_with"];

/// A unit that a model proposes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct UnitProposal {
    /// The type of the unit, one of [`KINDS`].
    #[serde(rename = "type")]
    pub kind: String,
    /// The title.
    pub title: String,
    /// The text of the unit, in markdown.
    pub body: String,
    /// The subject of the unit, in one word.
    pub domain: String,
    /// Words by which a reader can find the unit.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The model's confidence in the unit, from 0 to 1.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// `general`, or `project` for a unit that is true only in one project.
    pub scope: String,
    /// True when the unit will still be true next year.
    pub durable: bool,
    /// The words of the session that prove the unit.
    pub quote: String,
    /// Relations to existing units.
    #[serde(default)]
    pub related: Vec<ProposedRelation>,
    /// The id of the existing unit that this proposal corrects or completes.
    #[serde(default)]
    pub updates: Option<String>,
}

/// A relation from a proposal to an existing unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposedRelation {
    /// The id of the other unit.
    pub id: String,
    /// The type of the relation, one of [`RELATIONS`].
    #[serde(rename = "type")]
    pub kind: String,
}

/// A proposal that a gate has refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RejectedProposal {
    /// The title; `(withheld)` if the title looks like a credential.
    pub title: String,
    /// The name of the gate that refused the proposal.
    pub gate: String,
    /// The id of the existing unit that says the same. A caller may replace the id by the unit's path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The proposed text, if an existing unit says the same. A caller may extend that unit by the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl RejectedProposal {
    /// Makes the refusal of a proposal by a gate. Replaces a title that looks like a credential by `(withheld)`.
    pub fn new(title: &str, gate: &str) -> Self {
        let title = one_line(title, 80);
        let is_secret = SecretGuard::new().check(None, &title).is_some();
        Self { title: if is_secret { "(withheld)".into() } else { title }, gate: gate.into(), of: None, text: None }
    }
}

/// The facts, apart from the proposal, that the gates need.
pub struct GateFacts<'a> {
    /// The words of the user and the agent that were sent to the model, in the form of [`normalize_text`]. The output
    /// of tools is left out, because it proves nothing.
    pub sent: &'a str,
    /// The names of the project: the name of its folder and the name of its repository.
    pub project: &'a [String],
    /// The user's home folder. Paths in it are useless to other readers.
    pub home: Option<&'a Path>,
    /// A function that returns true when a unit with this id exists.
    pub has: &'a dyn Fn(&str) -> bool,
    /// A function that returns the id of the unit that says the same as this title and body.
    pub same: &'a dyn Fn(&str, &str) -> Option<String>,
}

/// A function that returns true when a proposal passes a gate.
type Gate = fn(&UnitProposal, &GateFacts<'_>) -> bool;

/// Reads the answer of a model. Returns the proposals, and the refusals of entries that do not have the form of a
/// proposal. Returns `None` when the answer contains no list.
pub fn read(answer: &Value) -> Option<(Vec<UnitProposal>, Vec<RejectedProposal>)> {
    let list = answer.get("units").unwrap_or(answer).as_array()?;
    let mut proposals = Vec::new();
    let mut rejected = Vec::new();
    for unit in list {
        match serde_json::from_value::<UnitProposal>(unit.clone()) {
            Ok(proposal) => proposals.push(proposal),
            Err(_) => rejected.push(RejectedProposal::new(unit["title"].as_str().unwrap_or("(no title)"), "schema")),
        }
    }
    Some((proposals, rejected))
}

/// Checks a proposal with all gates in order. Returns the tidied proposal, or the refusal by the first gate that it
/// does not pass.
pub fn apply_gates(proposal: UnitProposal, scene: &GateFacts<'_>) -> Result<UnitProposal, RejectedProposal> {
    let proposal = tidy_proposal(proposal, scene);
    let gates: [(&str, Gate); 9] = [
        ("schema", fits_schema),
        ("length", is_of_length),
        ("scope", |proposal, _| proposal.scope == "general"),
        ("durable", |proposal, _| proposal.durable),
        ("secret", is_open),
        ("quote", is_quoted),
        ("private", names_nothing_private),
        ("project", is_not_of_the_project),
        ("refusal", is_no_refusal),
    ];
    if let Some((gate, _)) = gates.iter().find(|(_, passes)| !passes(&proposal, scene)) {
        return Err(RejectedProposal::new(&proposal.title, gate));
    }
    match (scene.same)(&proposal.title, &proposal.body) {
        Some(id) => {
            let rejected = RejectedProposal::new(&proposal.title, "duplicate");
            Err(RejectedProposal { of: Some(id), text: Some(proposal.body), ..rejected })
        }
        None => Ok(proposal),
    }
}

/// Repairs the form of a proposal: trims blanks, normalises tags, and drops relations to units that do not exist.
fn tidy_proposal(proposal: UnitProposal, scene: &GateFacts<'_>) -> UnitProposal {
    let word = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("-").to_lowercase().chars().take(MAX_WORD_CHARS).collect::<String>()
    };
    let mut tags: Vec<_> = proposal.tags.iter().map(|tag| word(tag)).filter(|tag| !tag.is_empty()).collect();
    tags.sort();
    tags.dedup();
    tags.truncate(MAX_TAGS);
    let mut related = proposal.related;
    related.retain(|relation| RELATIONS.contains(&relation.kind.as_str()) && (scene.has)(&relation.id));
    related.truncate(MAX_RELATED);
    UnitProposal {
        title: proposal.title.trim().to_owned(),
        body: proposal.body.trim().replace("\r\n", "\n"),
        domain: Some(word(&proposal.domain)).filter(|domain| !domain.is_empty()).unwrap_or_else(|| "general".into()),
        confidence: proposal.confidence.filter(|confidence| (0.0..=1.0).contains(confidence)),
        updates: proposal.updates.filter(|id| (scene.has)(id)),
        tags,
        related,
        ..proposal
    }
}

fn fits_schema(proposal: &UnitProposal, _: &GateFacts<'_>) -> bool {
    let is_hidden = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    KINDS.contains(&proposal.kind.as_str())
        && !proposal.title.chars().any(nudge_core::text::is_hidden)
        && !proposal.body.chars().any(is_hidden)
}

fn is_of_length(proposal: &UnitProposal, _: &GateFacts<'_>) -> bool {
    TITLE_CHARS.contains(&proposal.title.chars().count()) && BODY_CHARS.contains(&proposal.body.chars().count())
}

/// Returns true when no text of the proposal looks like a credential, neither alone nor joined with the others.
fn is_open(proposal: &UnitProposal, _: &GateFacts<'_>) -> bool {
    let tags = proposal.tags.join(" ");
    let all = [&proposal.title, &proposal.body, &proposal.quote, &proposal.domain, &tags].map(String::as_str);
    let guard = SecretGuard::new();
    all.iter().all(|text| guard.check(None, text).is_none()) && guard.check(None, &all.join("\n")).is_none()
}

/// Returns true when the quote occurs in the words that were sent. So each unit is based on words of the session.
fn is_quoted(proposal: &UnitProposal, scene: &GateFacts<'_>) -> bool {
    let quote = normalize_text(&proposal.quote);
    QUOTE_CHARS.contains(&quote.chars().count()) && !quote.contains("[line withheld") && scene.sent.contains(&quote)
}

/// Returns true when the text names no path in a person's home, no commit and no ticket. Such names are useless to
/// other readers.
fn names_nothing_private(proposal: &UnitProposal, scene: &GateFacts<'_>) -> bool {
    let text = format!("{}\n{}", proposal.title, proposal.body);
    !wording::names_a_home(&text, scene.home) && !wording::names_a_commit(&text) && !wording::names_a_ticket(&text)
}

fn is_not_of_the_project(proposal: &UnitProposal, scene: &GateFacts<'_>) -> bool {
    let (title, body) = (proposal.title.to_lowercase(), proposal.body.to_lowercase());
    let parts = |text: &str, name: &str| {
        let is_part = |c: char| c.is_alphanumeric();
        let is_whole = |(offset, _): &(usize, &str)| {
            !text[..*offset].ends_with(is_part) && !text[offset + name.len()..].starts_with(is_part)
        };
        text.match_indices(name).filter(is_whole).count()
    };
    scene
        .project
        .iter()
        .map(|name| name.to_lowercase())
        .filter(|name| is_a_name(name))
        .all(|name| parts(&title, &name) == 0 && parts(&body, &name) <= NAMED)
}

/// Returns true when the name of a folder is distinctive. Common names such as `src`, `test` and `app` are not.
fn is_a_name(name: &str) -> bool {
    const WORDS: [&str; 20] = [
        "src", "app", "api", "lib", "web", "test", "tests", "main", "code", "work", "repo", "project", "tmp", "home",
        "server", "client", "backend", "frontend", "docs", "rust",
    ];
    name.chars().count() >= 3 && !WORDS.contains(&name)
}

/// Returns false for a model's refusal, for a text without content, and for an agent's words about itself.
fn is_no_refusal(proposal: &UnitProposal, _: &GateFacts<'_>) -> bool {
    // A body with fewer than 8 different words only repeats itself.
    let mut different: Vec<_> = split_words(&proposal.body).into_iter().map(|word| word.folded).collect();
    different.sort();
    different.dedup();
    different.len() >= 8 && !wording::is_chatter(&proposal.title) && !wording::is_chatter(&proposal.body)
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
