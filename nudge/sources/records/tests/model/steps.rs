//! Defines the steps of a sequence, and the texts that they use.

use std::collections::BTreeMap;

use nudge_core::embed::TextEmbedder;
use nudge_core::error::Result;
use proptest::prelude::*;

use super::plain::{At, KINDS, PROJECTS, STATUSES, Text};

/// The first three titles differ only in case, spaces, quotes and punctuation.
pub const TITLES: [&str; 5] =
    ["Uploads are refused", "uploads  are REFUSED.", "Uploads are \"refused\"", "Is it ready?", "It is ready"];
/// The words of the second and the third body are nearly the same. The fourth body is similar to both.
pub const BODIES: [&str; 4] =
    ["", "nginx had a limit of 1m.", "Nginx had a limit of 2m.", "nginx had the limit of 3m."];

/// A record in a file of another program.
#[derive(Debug, Clone)]
pub struct Moved {
    project: usize,
    kind: usize,
    /// The index of the title; `None` makes an entry that is not a record.
    pub title: Option<usize>,
    body: usize,
    status: usize,
    hours: i64,
}

impl Moved {
    /// Returns the text, the time of creation and the time of the last change, or `None` without a title.
    pub fn record(&self, now: i64) -> Option<(Text, i64, i64)> {
        let Self { project, kind, title, body, status, hours } = *self;
        let changed = now - hours * 3_600_000;
        title.map(|title| (text(project, kind, title, body, status), changed - 5_000, changed))
    }
}

#[derive(Debug, Clone)]
pub enum Step {
    Save {
        project: usize,
        kind: usize,
        title: usize,
        body: usize,
        status: Option<usize>,
        distinct: bool,
        merge: bool,
    },
    Change {
        at: At,
        title: Option<usize>,
        body: Option<usize>,
        status: Option<usize>,
        expect: Option<usize>,
    },
    Delete {
        at: At,
        forever: bool,
    },
    Restore {
        at: At,
        version: Option<usize>,
    },
    Merge {
        into: At,
        ids: [At; 2],
    },
    Join {
        from: usize,
        into: usize,
        here: bool,
    },
    Export {
        project: Option<usize>,
    },
    Backup,
    Import(Vec<Moved>),
    Take {
        file: usize,
    },
    Recover {
        file: usize,
    },
    Duplicates {
        project: Option<usize>,
    },
    /// Lists the records of a project. The project is given by its name, or by the repository of the caller if `here`
    /// is true.
    List {
        project: Option<usize>,
        here: bool,
        kind: Option<usize>,
        status: Option<usize>,
    },
    Search {
        title: usize,
    },
    Wait {
        days: i64,
    },
    Again,
    Reopen,
}

pub fn text(project: usize, kind: usize, title: usize, body: usize, status: usize) -> Text {
    Text { project, kind, title: TITLES[title].to_owned(), body: BODIES[body].to_owned(), status }
}

/// Makes any step. `made` is the number of records made so far, and `files` the number of files.
pub fn of(made: usize, files: usize) -> BoxedStrategy<Step> {
    // The range goes one beyond the existing numbers, so some steps name a missing record.
    let any_number = || 0..=made;
    let some = prop::option::of::<std::ops::Range<usize>>;
    let (titles, bodies, statuses) = (|| 0..TITLES.len(), || 0..BODIES.len(), || 0..STATUSES.len());
    let (kinds, projects) = (|| 0..KINDS.len(), || 0..PROJECTS.len());
    let save = (projects(), kinds(), titles(), bodies(), some(statuses()), prop::bool::weighted(0.2), any::<bool>());
    let change =
        (any_number(), some(titles()), some(bodies()), some(statuses()), prop::option::weighted(0.2, 1..4_usize));
    let moved = (projects(), kinds(), prop::option::weighted(0.9, titles()), bodies(), statuses(), 0..100_i64);
    let moved = moved.prop_map(|(project, kind, title, body, status, hours)| Moved {
        project,
        kind,
        title,
        body,
        status,
        hours,
    });
    prop_oneof![
        8 => save.prop_map(|(project, kind, title, body, status, distinct, merge)| Step::Save { project, kind, title, body, status, distinct, merge }),
        6 => change.prop_map(|(at, title, body, status, expect)| Step::Change { at, title, body, status, expect }),
        3 => (any_number(), prop::bool::weighted(0.2)).prop_map(|(number, forever)| Step::Delete { at: number, forever }),
        5 => (any_number(), prop::option::of(0..5_usize)).prop_map(|(number, version)| Step::Restore { at: number, version }),
        2 => (any_number(), any_number(), any_number()).prop_map(|(into, one, other)| Step::Merge { into, ids: [one, other] }),
        2 => (projects(), projects(), any::<bool>()).prop_map(|(from, into, here)| Step::Join { from, into, here }),
        2 => some(projects()).prop_map(|project| Step::Export { project }),
        1 => Just(Step::Backup),
        2 => prop::collection::vec(moved, 1..4).prop_map(Step::Import),
        2 => (0..=files).prop_map(|file| Step::Take { file }),
        2 => (0..=files).prop_map(|file| Step::Recover { file }),
        2 => some(projects()).prop_map(|project| Step::Duplicates { project }),
        3 => (some(projects()), any::<bool>(), some(kinds()), some(statuses())).prop_map(|(project, here, kind, status)| Step::List { project, here, kind, status }),
        1 => titles().prop_map(|title| Step::Search { title }),
        1 => (1..20_i64).prop_map(|days| Step::Wait { days }),
        2 => Just(Step::Again),
        1 => Just(Step::Reopen),
    ]
    .boxed()
}

/// A title and a body in folded form.
pub type Texts = (String, String);

/// Folds a title and a body: removes differences of case, spaces, quotes, and punctuation at the end of words.
pub fn folded(title: &str, body: &str) -> Texts {
    let word = |word: &str| word.trim_matches('"').trim_end_matches(['.', ',', ';', ':', '"']).to_owned();
    let fold = |text: &str| text.to_lowercase().split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    (fold(title), fold(body))
}

/// Counts how often each word occurs in a text.
pub struct Meaning(BTreeMap<String, f64>);

impl Meaning {
    pub fn of(title: &str, body: &str) -> Self {
        let mut counts = BTreeMap::new();
        for word in words(&format!("{title} {body}")) {
            *counts.entry(word).or_insert(0.0) += 1.0;
        }
        Self(counts)
    }

    pub fn cosine(&self, other: &Self) -> f64 {
        let product =
            |a: &Self, b: &Self| a.0.iter().map(|(word, count)| count * b.0.get(word).unwrap_or(&0.0)).sum::<f64>();
        product(self, other) / (product(self, self) * product(other, other)).sqrt()
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let word = |word: &str| word.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    text.split_whitespace().map(word).filter(|word| !word.is_empty())
}

/// A model whose vectors count words: each word that occurs in `TITLES` or `BODIES` has its own dimension.
pub struct Words;

impl TextEmbedder for Words {
    fn id(&self) -> &'static str {
        "words"
    }

    fn dims(&self) -> usize {
        32
    }

    /// The limit is so high that every text is one part.
    fn max_tokens(&self) -> usize {
        1 << 20
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mut known: Vec<_> = TITLES.iter().chain(&BODIES).flat_map(|text| words(text)).collect();
        known.sort();
        known.dedup();
        assert!(known.len() <= self.dims());
        let embed = |text: &&str| {
            let mut counts = vec![0.0_f32; self.dims()];
            words(text).for_each(|word| counts[known.binary_search(&word).unwrap()] += 1.0);
            let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt().max(1.0);
            counts.into_iter().map(|count| count / length).collect()
        };
        Ok(texts.iter().map(embed).collect())
    }
}
