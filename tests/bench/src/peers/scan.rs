//! Contains a store as a first version would have it: a list of hints, each with compiled globs. A query checks every
//! hint, scores the hints that fit, and sorts them.

use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use nudge::{Os, ScopeSpec};
use parking_lot::RwLock;

use crate::data::Seed;

/// A compiled scope. Hints with equal scopes share one, which saves memory in the processor's cache.
pub struct Scope {
    cwd: GlobSet,
    branch: GlobSet,
    spec: ScopeSpec,
    fields: u8,
}

pub struct Hint {
    component: String,
    key: String,
    tags: Vec<String>,
    scope: Arc<Scope>,
    priority: Option<u8>,
    confidence: Option<f64>,
    uses: u64,
    updated_at: i64,
}

/// The context of the peer. It has the same fields as [`crate::data::place`].
pub struct Place<'a> {
    pub cwd: &'a str,
    pub repo: &'a str,
    pub branch: &'a str,
    pub os: Os,
    pub env: &'a [(&'a str, &'a str)],
}

pub const PLACE: Place<'static> = Place {
    cwd: "/work/mono/svc-12/src",
    repo: "acme/mono",
    branch: "feature/login",
    os: Os::Linux,
    env: &[("CI", "1")],
};

/// A hint with its score and its reasons.
pub struct Hit {
    pub hint: Arc<Hint>,
    pub score: f64,
    pub reasons: Vec<String>,
}

impl Scope {
    pub fn new(spec: &ScopeSpec) -> Self {
        let fields = [
            spec.cwd_glob.is_empty(),
            spec.repo.is_empty(),
            spec.branch.is_empty(),
            spec.os.is_empty(),
            spec.env_required.is_empty(),
            spec.env_match.is_empty(),
        ];
        Self {
            cwd: globs(&spec.cwd_glob),
            branch: globs(&spec.branch),
            fields: fields.into_iter().map(|empty| u8::from(!empty)).sum(),
            spec: spec.clone(),
        }
    }

    fn fits(&self, place: &Place<'_>) -> bool {
        (self.spec.os.is_empty() || self.spec.os.contains(&place.os))
            && (self.spec.branch.is_empty() || self.branch.is_match(place.branch))
            && (self.spec.repo.is_empty() || self.spec.repo.iter().any(|repo| repo == place.repo))
            && (self.spec.cwd_glob.is_empty() || self.cwd.is_match(place.cwd))
            && self.spec.env_required.iter().all(|name| place.env.iter().any(|(have, _)| have == name))
    }

    fn reasons(&self, place: &Place<'_>) -> Vec<String> {
        let mut out = Vec::new();
        if !self.spec.cwd_glob.is_empty() {
            out.push(format!("cwd matched {}", self.spec.cwd_glob[0]));
        }
        if !self.spec.branch.is_empty() {
            out.push(format!("branch={} allowed", place.branch));
        }
        out
    }
}

fn globs(patterns: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(GlobBuilder::new(pattern).literal_separator(true).build().expect("a scope of the data compiles"));
    }
    set.build().expect("a scope of the data compiles")
}

#[derive(Default)]
pub struct Scan(RwLock<Vec<Arc<Hint>>>);

impl Scan {
    pub fn new<'a>(seeds: impl IntoIterator<Item = &'a Seed>, scopes: usize) -> Self {
        let scopes: Vec<_> = (0..scopes).map(|index| Arc::new(Scope::new(&crate::data::scope(index)))).collect();
        let hints = seeds.into_iter().map(|seed| {
            Arc::new(Hint {
                component: seed.set.component.clone(),
                key: seed.set.key.clone(),
                tags: seed.set.meta.tags.clone(),
                scope: Arc::clone(&scopes[seed.scope]),
                priority: seed.set.meta.priority,
                confidence: seed.set.meta.confidence,
                uses: seed.uses,
                updated_at: seed.updated_at,
            })
        });
        Self(RwLock::new(hints.collect()))
    }

    /// Returns the best `limit` hints with their reasons.
    pub fn query(&self, tag: Option<&str>, place: &Place<'_>, now: i64, limit: usize) -> Vec<Hit> {
        let mut hits: Vec<_> = self
            .0
            .read()
            .iter()
            .filter(|hint| tag.is_none_or(|tag| hint.tags.iter().any(|have| have == tag)) && hint.scope.fits(place))
            .map(|hint| (hint.score(now), Arc::clone(hint)))
            .collect();
        hits.sort_by(|(a_score, a), (b_score, b)| {
            let by_score = b_score.total_cmp(a_score).then_with(|| b.scope.fields.cmp(&a.scope.fields));
            let by_name = || a.component.cmp(&b.component).then_with(|| a.key.cmp(&b.key));
            by_score.then_with(|| b.updated_at.cmp(&a.updated_at)).then_with(by_name)
        });
        hits.truncate(limit);
        hits.into_iter().map(|(score, hint)| Hit { reasons: hint.scope.reasons(place), score, hint }).collect()
    }
}

impl Hint {
    /// Computes the score of semantics section 3; no file is open.
    fn score(&self, now: i64) -> f64 {
        let hours = (now - self.updated_at) as f64 / 3_600_000.0;
        let decayed = self.uses as f64 * (-hours / 12.0).exp2();
        0.20 * f64::from(self.priority.unwrap_or(5)) / 10.0
            + 0.20 * self.confidence.unwrap_or(0.5)
            + 0.20 * f64::from(self.scope.fields) / 6.0
            + 0.30 * (1.0 - (-decayed / 4.0).exp2())
            + 0.10 * (-hours / 24.0).exp2()
    }

    pub fn name(&self) -> (&str, &str) {
        (&self.component, &self.key)
    }
}

/// The least cost of a pass over all hints: one load from a row of 32 bytes for each hint.
pub struct Floor(Vec<[u64; 4]>);

impl Floor {
    pub fn new(count: usize) -> Self {
        Self((0..count as u64).map(|row| [row, 0, 0, 0]).collect())
    }

    /// Loads the first word of every row.
    pub fn touch(&self) -> u64 {
        self.0.iter().fold(0, |sum, row| sum.wrapping_add(std::hint::black_box(row)[0]))
    }
}
