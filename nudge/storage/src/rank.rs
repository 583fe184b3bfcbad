//! Computes how relevant a text is to a question: a score from 0 to 1, with the addends as the reasons. All sources use
//! this computation, so callers can compare their scores.
//!
//! The score has a part from meaning, computed by a model, and a part from words. The weight of each part depends on
//! how well the model understands the question. Most models know one language. For another language, or for a line of
//! identifiers, they compute a vector that is near to any text.
//!
//! The tokenizer shows how much the model understands. It was made for the texts that the model learned from, and
//! splits other questions into many pieces. So a model of many languages gets more weight without any setting.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;
use nudge_core::explain::ScoreParts;

/// Weight of the share of words (`coverage`) in the part of meaning, where it is added to the cosine.
const WORDS_BESIDE: f64 = 0.2;
/// Weight of the share of names (`names`), which is added to both parts. A model splits a name into pieces with other
/// meanings, so it needs this addend. In the part of words, the other words of a sentence would outweigh a name that
/// only one text holds.
const NAMES: f64 = 0.2;
/// Weight that is added when the text comes from the project in which the caller asks.
const PROJECT: f64 = 0.1;
/// The weights of stems, of the share of words, and of trigrams in the part of words.
const STEMS: f64 = 0.6;
const WORDS: f64 = 0.4;
const GRAMS: f64 = 0.3;
/// The FTS5 weights for which stems and trigrams give half of their largest addend.
const HALF_STEMS: f64 = 5.0;
const HALF_GRAMS: f64 = 10.0;
/// The facts about a text and a question, from which the score follows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MatchEvidence {
    /// The FTS5 weight of the question's words in the text, 0 or more.
    pub bm25: f64,
    /// The share of the question's words that the text holds, 0 to 1. Rare words weigh more.
    pub coverage: f64,
    /// The share of the question's names that the text holds letter by letter, 0 to 1. Rare names weigh more.
    pub names: f64,
    /// The FTS5 weight of the question's trigrams in the text, 0 or more.
    pub trigrams: f64,
    /// The cosine between the vectors of the text and of the question, -1 to 1; `None` when a vector is missing.
    pub cosine: Option<f64>,
    /// The share of the question that the model understands, 0 to 1; see
    /// [`understood`](nudge_core::embed::understood_share).
    pub understood: f64,
    /// True when the text is from the project in which the caller asks.
    pub is_here: bool,
}

/// The relevance of a text to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct TextRelevance {
    /// The relevance, 0 to 1.
    pub score: f64,
    /// The named addends. Their sum may exceed 1; the score is cut at 1.
    pub parts: ScoreParts,
}

impl MatchEvidence {
    /// Returns the weight of the part of meaning, 0 to 1; 0 without a vector. The part of words has the rest.
    pub fn by_meaning(&self) -> f64 {
        if self.cosine.is_some() { self.understood } else { 0.0 }
    }

    /// Returns the cosine; 0 when it is negative or missing.
    fn similarity(&self) -> f64 {
        self.cosine.map_or(0.0, |cosine| cosine.max(0.0))
    }

    /// Returns the part of meaning, 0 or more. It is the cosine and a little for words, multiplied by the share of the
    /// question that the model understands.
    pub fn score_meaning(&self) -> f64 {
        self.by_meaning() * (self.similarity() + WORDS_BESIDE * self.coverage)
    }

    /// Returns the addend of the stems, 0 to 0.6.
    fn score_stems(&self) -> f64 {
        STEMS * to_share(self.bm25, HALF_STEMS)
    }

    /// Returns how relevant the text is. The part of meaning and the part of words are mixed by the share of the
    /// question that the model understands. Names and the project add a little.
    ///
    /// ```
    /// use nudge_storage::rank::MatchEvidence;
    ///
    /// let words = MatchEvidence { bm25: 5.0, coverage: 1.0, trigrams: 10.0, ..MatchEvidence::default() };
    /// assert!((words.relevance().score - (0.3 + 0.4 + 0.15)).abs() < 1e-9);
    /// let understood = MatchEvidence { cosine: Some(0.5), understood: 1.0, ..words };
    /// assert!((understood.relevance().score - (0.5 + 0.2)).abs() < 1e-9);
    /// let half = MatchEvidence { understood: 0.5, ..understood };
    /// assert!((half.relevance().score - (0.7 + 0.85) / 2.0).abs() < 1e-9);
    /// ```
    pub fn relevance(&self) -> TextRelevance {
        let mut parts = ScoreParts::default();
        self.addends().into_iter().filter(|(_, part)| *part > 0.0).for_each(|(name, part)| parts.push(name, part));
        TextRelevance { score: self.score(), parts }
    }

    /// Returns the score without the addends, 0 to 1.
    pub fn score(&self) -> f64 {
        self.sum().clamp(0.0, 1.0)
    }

    /// Returns the sum of the addends, by which a caller orders texts. The sum is not cut at 1, so it also orders two
    /// texts that both have the score 1.
    pub fn sum(&self) -> f64 {
        self.addends().iter().map(|(_, part)| part).sum()
    }

    fn addends(&self) -> [(&'static str, f64); 6] {
        let by_meaning = self.by_meaning();
        let by_words = 1.0 - by_meaning;
        [
            ("similarity", by_meaning * self.similarity()),
            ("stems", by_words * self.score_stems()),
            ("words", (by_meaning * WORDS_BESIDE + by_words * WORDS) * self.coverage),
            ("trigrams", by_words * GRAMS * to_share(self.trigrams, HALF_GRAMS)),
            ("names", NAMES * self.names),
            ("project", if self.is_here { PROJECT } else { 0.0 }),
        ]
    }
}

/// Merges two lists of texts by their ranks: the score of a text is the sum of `weight / (k + rank)`. Nudge does not
/// rank by it; the evaluations compare it with [`MatchEvidence`] (`tests/brain/orders`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OrderFusion {
    /// The constant in the formula. A larger `k` makes the difference between the first ranks smaller.
    pub k: f64,
    /// The weight of the list that is ordered by words.
    pub words: f64,
    /// The weight of the list that is ordered by meaning.
    pub meaning: f64,
}

impl OrderFusion {
    /// The weights that gave the best results on the questions of `tests/brain/`.
    pub const CHOSEN: Self = Self { k: 10.0, words: 0.3, meaning: 1.0 };
    /// The weights that the brain's specification demands.
    pub const SPECIFIED: Self = Self { k: 60.0, words: 1.0, meaning: 1.0 };

    /// Returns the merged score of each text, as a share of the largest possible score. Each list begins with its best
    /// text. If one list is empty, the other one has the whole weight.
    ///
    /// ```
    /// use nudge_storage::rank::OrderFusion;
    ///
    /// let fused = OrderFusion::SPECIFIED.fuse(&["a", "b"], &["b", "c"]);
    /// assert!(fused["b"].total() > fused["a"].total() && fused["a"].total() > fused["c"].total());
    /// assert!((OrderFusion::CHOSEN.fuse(&["a"], &[])["a"].total() - 1.0).abs() < 1e-9);
    /// ```
    pub fn fuse<K: Copy + Eq + Hash>(&self, words: &[K], meaning: &[K]) -> HashMap<K, ScoreParts, RandomState> {
        let lists = [("words", words, self.words), ("similarity", meaning, self.meaning)];
        let lists = lists.into_iter().filter(|(_, list, _)| !list.is_empty());
        let most: f64 = lists.clone().map(|(.., weight)| weight / (self.k + 1.0)).sum();
        let mut scores: HashMap<K, ScoreParts, RandomState> = HashMap::default();
        for (name, list, weight) in lists {
            let mut rank = self.k;
            for text in list {
                rank += 1.0;
                scores.entry(*text).or_default().push(name, weight / rank / most);
            }
        }
        scores
    }
}

/// Maps a weight of 0 or more to a number from 0 to 1; `half` is the weight that gives 0.5.
fn to_share(weight: f64, half: f64) -> f64 {
    weight / (weight + half)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence() -> MatchEvidence {
        MatchEvidence {
            bm25: 5.0,
            coverage: 0.5,
            trigrams: 10.0,
            cosine: Some(0.4),
            understood: 0.25,
            is_here: true,
            names: 0.5,
        }
    }

    #[test]
    fn the_addends_have_names_and_sum_to_the_score() {
        let TextRelevance { score, parts } = evidence().relevance();
        let addend = |name| parts.get_part(name).unwrap_or_default();
        for (name, expected) in [
            ("similarity", 0.25 * 0.4),
            ("stems", 0.75 * 0.3),
            ("words", 0.25 * 0.1 + 0.75 * 0.2),
            ("trigrams", 0.75 * 0.15),
            ("names", 0.1),
            ("project", 0.1),
        ] {
            assert!((addend(name) - expected).abs() < 1e-9, "{name} {parts:?}");
        }
        assert!((parts.total() - score).abs() < 1e-9);
    }

    #[test]
    fn a_question_that_is_not_understood_and_a_text_without_a_vector_go_by_words() {
        let words = MatchEvidence { cosine: None, ..evidence() }.relevance();
        assert_eq!(words, MatchEvidence { cosine: Some(0.9), understood: 0.0, ..evidence() }.relevance());
        assert_eq!(words, MatchEvidence { cosine: None, understood: 1.0, ..evidence() }.relevance());
        assert_eq!(words.parts.get_part("similarity"), None);
    }

    #[test]
    fn what_meaning_says() {
        let meaning = evidence().score_meaning();
        assert!((meaning - 0.25 * (0.4 + WORDS_BESIDE * 0.5)).abs() < 1e-9, "{meaning}");
    }

    #[test]
    fn ranks_are_shares_of_the_most_that_both_orders_give() {
        let fused = OrderFusion { k: 10.0, words: 0.5, meaning: 1.0 }.fuse(&["a", "b"], &["b", "c"]);
        let most = 1.5 / 11.0;
        for (text, words, similarity) in [("a", 0.5 / 11.0, 0.0), ("b", 0.5 / 12.0, 1.0 / 11.0), ("c", 0.0, 1.0 / 12.0)]
        {
            let parts = &fused[text];
            for (name, expected) in [("words", words), ("similarity", similarity)] {
                let part = parts.get_part(name).unwrap_or_default();
                assert!((part - expected / most).abs() < 1e-9, "{text} {name}: {part}");
            }
        }
    }

    #[test]
    fn a_meaning_that_points_away_takes_nothing() {
        let away = MatchEvidence { cosine: Some(-0.5), understood: 1.0, ..MatchEvidence::default() };
        assert!((away.relevance().score).abs() < 1e-9 && away.score_meaning().abs() < 1e-9);
    }
}
