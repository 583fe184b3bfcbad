//! Computes the score of a hint, by pure functions of the hint, the open files and the time (semantics section 3).

use std::cmp::Ordering;

use nudge_core::clock::Millis;
use nudge_core::explain::ScoreParts;

use crate::hint::Hint;

const FRECENCY: f64 = 0.30;
const PRIORITY: f64 = 0.20;
const CONFIDENCE: f64 = 0.20;
const SPECIFICITY: f64 = 0.20;
pub(crate) const RECENCY: f64 = 0.10;
/// The largest addend for an open file.
pub(crate) const FILES_OPEN: f64 = 0.05;

const HOUR_MS: f64 = 3_600_000.0;
/// The time after which a use has half its weight.
const USE_HALF_LIFE_MS: f64 = 12.0 * HOUR_MS;
/// The time after which an update has half its weight.
const UPDATE_HALF_LIFE_MS: f64 = 24.0 * HOUR_MS;
/// The number of decayed uses at which the frecency has half of its maximum.
const HALF_FRECENCY_USES: f64 = 4.0;
/// The number of fields that a scope can have.
const SCOPE_FIELDS: f64 = 6.0;

const DEFAULT_PRIORITY: u8 = 5;
const DEFAULT_CONFIDENCE: f64 = 0.5;

/// Returns the part of a score that does not change with time: priority, confidence, specificity.
pub(crate) fn compute_fixed(hint: &Hint) -> f64 {
    score_priority(hint) + score_confidence(hint) + score_specificity(hint)
}

fn score_priority(hint: &Hint) -> f64 {
    PRIORITY * (f64::from(hint.priority().unwrap_or(DEFAULT_PRIORITY)) / 10.0)
}

fn score_confidence(hint: &Hint) -> f64 {
    CONFIDENCE * hint.confidence().unwrap_or(DEFAULT_CONFIDENCE)
}

fn score_specificity(hint: &Hint) -> f64 {
    SPECIFICITY * (f64::from(hint.scope().specificity()) / SCOPE_FIELDS)
}

/// Returns the factor of an exponential decay from `since` to `now`.
fn decay_factor(since: Millis, now: Millis, half_life_ms: f64) -> f64 {
    // The conversion is exact below 2^53 ms, which is 285,000 years.
    #[allow(clippy::cast_precision_loss)]
    let ms = now.saturating_sub(since).max(0) as f64;
    libm::exp2(-ms / half_life_ms)
}

pub(crate) fn frecency(use_count: u64, last_used_at: Option<Millis>, now: Millis) -> f64 {
    let Some(last) = last_used_at.filter(|_| use_count > 0) else { return 0.0 };
    // The precision of counts beyond 2^53 does not matter, because the curve is practically at its maximum there.
    #[allow(clippy::cast_precision_loss)]
    let decayed = use_count as f64 * decay_factor(last, now, USE_HALF_LIFE_MS);
    FRECENCY * (1.0 - libm::exp2(-decayed / HALF_FRECENCY_USES))
}

pub(crate) fn recency(updated_at: Millis, now: Millis) -> f64 {
    RECENCY * decay_factor(updated_at, now, UPDATE_HALF_LIFE_MS)
}

/// Returns the score without an open file. Every caller adds in this order, so that the scores of equal hints are equal
/// to the last bit.
pub(crate) fn sum_score(fixed: f64, frecency: f64, recency: f64) -> f64 {
    fixed + frecency + recency
}

/// Returns an upper bound of the score that `hint` can have at any time, without an open file.
pub(crate) fn bound_score(hint: &Hint) -> f64 {
    sum_score(compute_fixed(hint), frecency(hint.use_count, hint.last_used_at(), Millis::MIN), RECENCY)
}

/// Returns the addend for an open file, cut so that the whole score is at most 1. `rest` is the sum of the other
/// addends.
pub(crate) fn files_open(rest: f64) -> f64 {
    FILES_OPEN.min(1.0 - rest).max(0.0)
}

/// Returns the unrounded score of `hint`.
pub(crate) fn score_hint(hint: &Hint, open_file: bool, now: Millis) -> f64 {
    let rest = sum_score(
        compute_fixed(hint),
        frecency(hint.use_count, hint.last_used_at(), now),
        recency(hint.updated_at, now),
    );
    if open_file { rest + files_open(rest) } else { rest }
}

/// Compares two hints of one component without their full scores, if no addend of one hint is smaller than that of the
/// other. This avoids computing powers of two, which take most of the time of a lookup. `None` if the comparison needs
/// the scores.
pub(crate) fn compare_plainly(a: &Hint, b: &Hint) -> Option<Ordering> {
    // Most pairs have the same fixed parts, which this comparison finds without a sum.
    let made_of = |hint: &Hint| (hint.priority(), hint.confidence(), hint.scope().specificity());
    let by_fixed =
        if made_of(a) == made_of(b) { Ordering::Equal } else { compute_fixed(a).total_cmp(&compute_fixed(b)) };
    let all = [
        by_fixed,
        a.use_count.cmp(&b.use_count),
        a.last_used_at().cmp(&b.last_used_at()),
        a.updated_at.cmp(&b.updated_at),
    ];
    match (all.contains(&Ordering::Greater), all.contains(&Ordering::Less)) {
        (true, false) => Some(Ordering::Greater),
        (false, true) => Some(Ordering::Less),
        (false, false) => Some(Ordering::Equal),
        (true, true) => None,
    }
}

/// Returns the addends of [`score_hint`]. The addend for an open file is left out when it is 0.
pub(crate) fn score_parts(hint: &Hint, open_file: bool, now: Millis) -> ScoreParts {
    let mut parts = ScoreParts::from([
        ("frecency", frecency(hint.use_count, hint.last_used_at(), now)),
        ("priority", score_priority(hint)),
        ("confidence", score_confidence(hint)),
        ("scope_specificity", score_specificity(hint)),
        ("recency", recency(hint.updated_at, now)),
    ]);
    let open_file = if open_file { files_open(score_hint(hint, false, now)) } else { 0.0 };
    if open_file > 0.0 {
        parts.push("files_open", open_file);
    }
    parts
}

/// The sort key of a hint, before its names decide; the greater key is better.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScoreRank {
    pub doubtful: bool,
    pub score: f64,
    pub specificity: u8,
    pub updated_at: Millis,
}

impl ScoreRank {
    /// Compares in the order of semantics section 3: not doubtful, then score, specificity and time.
    pub fn compare(&self, other: &Self) -> Ordering {
        (other.doubtful.cmp(&self.doubtful))
            .then_with(|| self.score.total_cmp(&other.score))
            .then_with(|| self.specificity.cmp(&other.specificity))
            .then_with(|| self.updated_at.cmp(&other.updated_at))
    }
}

/// Compares names in byte order. The greater result is better, so the smaller name wins.
pub(crate) fn compare_names(a: &Hint, b: &Hint) -> Ordering {
    b.component.cmp(&a.component).then_with(|| b.key.cmp(&a.key)).then_with(|| b.variant().cmp(a.variant()))
}

/// Compares variants of one key: not doubtful first, then by specificity, then in the order of semantics section 3
/// (semantics section 1).
pub(crate) fn compare_variants(a: (&Hint, f64), b: (&Hint, f64)) -> Ordering {
    b.0.is_doubtful().cmp(&a.0.is_doubtful()).then_with(|| compare_specific(a, b))
}

/// Compares by specificity, then in the order of semantics section 3.
pub(crate) fn compare_specific(a: (&Hint, f64), b: (&Hint, f64)) -> Ordering {
    let rank = |(hint, score): (&Hint, f64)| ScoreRank {
        doubtful: hint.is_doubtful(),
        score,
        specificity: hint.scope().specificity(),
        updated_at: hint.updated_at,
    };
    let (rank_a, rank_b) = (rank(a), rank(b));
    (rank_a.specificity.cmp(&rank_b.specificity))
        .then_with(|| rank_a.compare(&rank_b))
        .then_with(|| compare_names(a.0, b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves() {
        const HOUR: Millis = 3_600_000;
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(frecency(0, Some(0), 0), 0.0);
        close(frecency(4, Some(0), 0), 0.15);
        close(frecency(8, Some(0), 12 * HOUR), 0.15);
        close(frecency(u64::MAX, Some(0), 0), 0.30);
        close(frecency(1, Some(5 * HOUR), 0), frecency(1, Some(0), 0));
        close(recency(0, 24 * HOUR), 0.05);
        close(recency(HOUR, 0), 0.10);
        close(files_open(0.5), 0.05);
        close(files_open(0.98), 0.02);
        close(files_open(1.0), 0.0);
    }
}
