//! How relevant a record is to a question: one number from 0 to 1, whose addends say why.

use nudge_core::explain::Parts;

/// What the words count beside the meaning.
const WORDS: f64 = 0.2;
/// What it counts that a record is of the project where the question is asked.
const PROJECT: f64 = 0.1;
/// Without a model: what the weight of the words counts, the share of them, and the weight of their trigrams.
const STEMS: f64 = 0.6;
pub const SHARE: f64 = 0.4;
const GRAMS: f64 = 0.3;
/// The weights at which half of that is reached.
const HALF_STEMS: f64 = 5.0;
const HALF_GRAMS: f64 = 10.0;

/// What is known of a record and a question.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Evidence {
    /// The weight of the question's words in it, 0 and more.
    pub bm25: f64,
    /// The share of the question's words that it holds, weighed by how rare each is: 0 to 1.
    pub coverage: f64,
    /// The weight of their trigrams, 0 and more.
    pub trigrams: f64,
    /// Whether it is of the project where the question is asked.
    pub is_here: bool,
}

/// How relevant it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Relevance {
    /// 0 to 1.
    pub score: f64,
    /// The named addends, before the sum is cut at 1.
    pub parts: Parts,
}

fn sum<const N: usize>(addends: [(&'static str, f64); N]) -> Relevance {
    let mut parts = Parts::default();
    addends.into_iter().filter(|(_, part)| *part > 0.0).for_each(|(name, part)| parts.push(name, part));
    Relevance { score: parts.sum().clamp(0.0, 1.0), parts }
}

/// By meaning: `cosine` of the question and the record, and a little for words.
///
/// ```
/// use nudge_records::{Evidence, with_meaning};
///
/// let evidence = Evidence { coverage: 0.5, is_here: true, ..Evidence::default() };
/// assert!((with_meaning(0.6, evidence).score - 0.8).abs() < 1e-9);
/// ```
pub fn with_meaning(cosine: f64, of: Evidence) -> Relevance {
    let project = if of.is_here { PROJECT } else { 0.0 };
    sum([("similarity", cosine.max(0.0)), ("words", WORDS * of.coverage), ("project", project)])
}

/// By words alone.
///
/// ```
/// use nudge_records::{Evidence, lexical};
///
/// let evidence = Evidence { bm25: 5.0, coverage: 1.0, trigrams: 10.0, is_here: false };
/// assert!((lexical(evidence).score - (0.3 + 0.4 + 0.15)).abs() < 1e-9);
/// ```
pub fn lexical(of: Evidence) -> Relevance {
    let share = |weight: f64, half: f64| weight / (weight + half);
    let project = if of.is_here { PROJECT } else { 0.0 };
    sum([
        ("stems", STEMS * share(of.bm25, HALF_STEMS)),
        ("words", SHARE * of.coverage),
        ("trigrams", GRAMS * share(of.trigrams, HALF_GRAMS)),
        ("project", project),
    ])
}
