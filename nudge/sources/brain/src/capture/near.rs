//! Finds the units of a brain that are similar to a text. A request to a model lists similar units. A proposal is
//! compared with a unit that says the same.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nudge_capture::prompt::KnownUnit;
use nudge_core::context::ContextSpec;
use nudge_core::embed::QuestionVector;
use nudge_core::error::Result;
use nudge_core::limit::Limit;
use nudge_core::text::one_line;
use nudge_core::words::split_words;
use nudge_storage::rusqlite::OptionalExtension as _;
use nudge_storage::search::{QuestionWords, search};

use super::job::UnitDraft;
use crate::index::BrainIndex;
use crate::method::AskContext;
use crate::rows;
use crate::schema::FULL_TEXT;
use crate::source::{BrainSource, VARIABLE};

/// The most units that a request lists.
const TOLD: usize = 20;
/// The most bytes of a transcript, taken from its end, that are used to find these units.
const ASKED_BYTES: usize = 60 << 10;
/// A unit says the same as a proposal if it contains this share of the proposal's words, weighted by rarity, or if the
/// cosine is at least `COSINE`.
const COVER: f64 = 0.8;
const COSINE: f32 = 0.9;
/// The longest time to wait until the embedding model is loaded. It is long because no user waits for a capture.
const MODEL_WAIT: Duration = Duration::from_secs(30);

/// Looks up the units of a brain during the capture of one session.
pub struct UnitLookup<'a> {
    brains: &'a BrainSource,
    root: &'a Path,
    index: Arc<BrainIndex>,
}

impl<'a> UnitLookup<'a> {
    /// Opens the index of a brain, and updates it from the files.
    ///
    /// # Errors
    /// `E_NOT_FOUND` when the folder does not exist; else the errors of the index.
    pub fn open(brains: &'a BrainSource, root: &'a Path) -> Result<Self> {
        let index = brains.index(root)?;
        index.scan(None)?;
        Ok(Self { brains, root, index })
    }

    /// Finds the units that are most similar to a text.
    ///
    /// # Errors
    /// The errors of the index.
    pub fn find_near(&self, text: &str) -> Result<Vec<KnownUnit>> {
        let from = text.ceil_char_boundary(text.len().saturating_sub(ASKED_BYTES));
        let env = BTreeMap::from([(VARIABLE, self.root.to_string_lossy())]);
        let context = env.into_iter().fold(ContextSpec::default(), |context, (name, value)| context.env(name, value));
        let found = self.brains.find_context(AskContext {
            task_description: text[from..].to_owned(),
            limit: Limit::new(TOLD).expect("in its range"),
            domain: None,
            tags: Vec::new(),
            max_chars: Limit::default(),
            hops: Limit::new(0).expect("in its range"),
            explain: false,
            context,
        })?;
        let summary = |unit: &crate::context::FoundUnit| {
            unit.sections.first().map(|section| one_line(&section.text, 160)).unwrap_or_default()
        };
        Ok(found
            .units
            .iter()
            .map(|unit| KnownUnit { id: unit.id.clone(), title: unit.title.clone(), summary: summary(unit) })
            .collect())
    }

    /// Returns true when a unit with this id exists.
    pub fn has_unit(&self, id: &str) -> bool {
        self.find_path(id).is_some()
    }

    /// Returns the path of a unit's file; `None` if there is no such unit.
    pub fn find_path(&self, id: &str) -> Option<String> {
        let path = self.index.db.read(|c| {
            Ok(c.prepare_cached("SELECT path FROM unit WHERE uid = ?1")?
                .query_row([id], |row| row.get(0))
                .optional()?)
        });
        path.ok().flatten()
    }

    /// Finds a unit that says the same, by words or by meaning. Returns the unit's id.
    pub fn find_same(&self, title: &str, body: &str) -> Option<String> {
        let text = format!("{title}\n{body}");
        let unit_of = |chunk: i64| {
            let sql = "SELECT u.uid FROM chunk c JOIN unit u ON u.id = c.unit WHERE c.id = ?1";
            let found =
                self.index.db.read(|c| Ok(c.prepare_cached(sql)?.query_row([chunk], |row| row.get(0)).optional()?));
            found.ok().flatten()
        };
        let by_words = self.index.db.read(|c| {
            let found = search(c, &FULL_TEXT, &QuestionWords::from_text(&text), &self.index.known)?;
            let best = found
                .rows
                .iter()
                .max_by(|(a, held), (b, other)| held.coverage.total_cmp(&other.coverage).then(b.cmp(a)));
            Ok(best.filter(|(_, held)| held.coverage >= COVER).map(|(chunk, _)| *chunk))
        });
        if let Some(chunk) = by_words.ok().flatten() {
            return unit_of(chunk);
        }
        let (model, thought) =
            QuestionVector::embed_text(&rows::build_embedded_text(title, "", body), self.brains.models(), MODEL_WAIT)
                .ok()?;
        let nearest = self.index.meanings.with_memory(&self.index.db, Some(&*model), |_, memory| {
            let vectors = memory.vectors.as_ref();
            Ok(vectors.and_then(|vectors| vectors.top(&thought.vector, 1, |_| true).first().copied()))
        });
        nearest.ok().flatten().filter(|(_, cosine)| *cosine >= COSINE).and_then(|(chunk, _)| unit_of(chunk))
    }
}

/// Finds a draft of the same session that says the same as a proposal. Returns the draft's id.
pub fn same_draft(drafts: &[UnitDraft], title: &str, body: &str) -> Option<String> {
    let stems = |title: &str, body: &str| {
        split_words(title).into_iter().chain(split_words(body)).map(|word| word.stem).collect::<HashSet<_>>()
    };
    let own = stems(title, body);
    let is_same = |draft: &&UnitDraft| {
        let theirs = stems(&draft.title, &draft.body);
        // Compares whole numbers: eight of ten words must be equal.
        own.intersection(&theirs).count() * 10 >= own.len() * 8
    };
    drafts.iter().find(is_same).map(|draft| draft.id.clone())
}
