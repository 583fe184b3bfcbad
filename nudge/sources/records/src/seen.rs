//! Compares a text with the stored records before the text is written: computes its vectors and finds similar records.
//! The model is slow, so this happens before the transaction begins.

use std::collections::HashMap;
use std::time::Duration;

use nudge_core::embed::{ModelState, TextEmbedder};
use nudge_core::error::Result;
use nudge_core::explain::round_number;
use nudge_storage::Db;

use crate::incoming::ReadRecord;
use crate::meaning;
use crate::project::{self, ProjectChoice};
use crate::record::Kind;
use crate::rows;
use crate::source::RecordSource;
use crate::write::{ALIKE, CheckedUpsert, SeenText};

/// The longest time that a save waits until the model is loaded. After that time the record is saved without a
/// comparison.
const SAVE_WAIT: Duration = Duration::from_secs(2);
/// The most similar records that the answer to a save names.
const MAX_NEAR: usize = 5;
/// The most records of an import that are compared by meaning while the caller waits. Each takes a fifth of a second.
const MAX_SEEN: usize = 20;

/// Counts the records of an import that were compared by meaning.
#[derive(Debug, Default)]
pub struct ComparisonCount(usize);

impl ComparisonCount {
    fn is_over(&self) -> bool {
        self.0 >= MAX_SEEN
    }
}

impl RecordSource {
    /// Compares a new record with the stored records before it is written.
    pub(crate) fn compare_upsert(&self, ready: &CheckedUpsert) -> Result<SeenText> {
        let params = &ready.params;
        let (None, Some(kind), Some(title)) = (params.id, params.kind, &params.title) else {
            return Ok(SeenText::default());
        };
        // A record that cannot be compared is saved anyway, and gets its vectors later. A caller that sets `distinct`
        // does not want a comparison.
        let uncompared = |why: &str| {
            let degraded = (!params.distinct).then(|| format!("{why}; it was compared with no other record"));
            Ok(SeenText { degraded, ..SeenText::default() })
        };
        let model = match self.models().get(SAVE_WAIT) {
            ModelState::Ready(model) => model,
            // Without a model, the answer needs no note: every answer would have the same note, and `nudge doctor` and
            // each search report the missing model.
            ModelState::Absent => return Ok(SeenText::default()),
            ModelState::Loading => return uncompared("the embedding model is being loaded"),
            ModelState::Failed(error) => return uncompared(error.message().trim_end_matches('.')),
        };
        let body = params.body.as_deref().unwrap_or("");
        let vectors = match embed_parts(title, body, &*model) {
            Ok(vectors) => vectors,
            Err(error) => return uncompared(error.message().trim_end_matches('.')),
        };
        let seen = SeenText { vectors: Some((model.id().to_owned(), vectors)), ..SeenText::default() };
        let Some(db) = self.find_db()? else { return Ok(seen) };
        self.make_up_alone(db, &*model)?;
        let project = db.read(|c| {
            let project = match project::choose_project(c, params.project.as_deref(), ready.here.as_ref())? {
                ProjectChoice::One(id) => id,
                ProjectChoice::All | ProjectChoice::None(_) => return Ok(None),
            };
            // A record with exactly the same words is updated without a question, so it needs no comparison.
            Ok(rows::find_same(c, project, kind, title, body)?.is_none().then_some(project))
        })?;
        let Some(project) = project.filter(|_| !params.distinct && meaning::is_understood(title, body, &*model)) else {
            return Ok(seen);
        };
        self.with_near(seen, db, &*model, project, kind)
    }

    /// Compares the first new records of a batch. Returns the results by the position in the batch.
    pub(crate) fn see_moved(
        &self,
        batch: &[ReadRecord],
        made: &mut ComparisonCount,
    ) -> Result<HashMap<usize, SeenText>> {
        let mut all = HashMap::new();
        if made.is_over() {
            return Ok(all);
        }
        let Some(db) = self.find_db()? else { return Ok(all) };
        let ModelState::Ready(model) = self.models().get(SAVE_WAIT) else {
            // Later batches must not wait for the model again.
            *made = ComparisonCount(MAX_SEEN);
            return Ok(all);
        };
        self.make_up_alone(db, &*model)?;
        let moved = batch.iter().enumerate().filter_map(|(index, result)| Some((index, result.as_ref().ok()?)));
        for (index, record) in moved {
            if made.is_over() {
                break;
            }
            let (kind, title, body) = (record.kind, record.to_title(), &record.body);
            let project = db.read(|c| {
                let Some(project) = project::by_name(c, &record.project)? else { return Ok(None) };
                Ok(rows::find_same(c, project, kind, &title, body)?.is_none().then_some(project))
            })?;
            let Some(project) = project.filter(|_| meaning::is_understood(&title, body, &*model)) else { continue };
            let Ok(vectors) = embed_parts(&title, body, &*model) else { continue };
            let seen = SeenText { vectors: Some((model.id().to_owned(), vectors)), ..SeenText::default() };
            all.insert(index, self.with_near(seen, db, &*model, project, kind)?);
            made.0 += 1;
        }
        Ok(all)
    }

    /// Adds the similar records of the same project and kind.
    fn with_near(
        &self,
        seen: SeenText,
        db: &Db,
        model: &dyn TextEmbedder,
        project: i64,
        kind: Kind,
    ) -> Result<SeenText> {
        let (near, is_partial) = self.meanings().with_memory(db, model, |memory| {
            let is_of_it =
                |id: i64| memory.about.get(&id).is_some_and(|record| record.project == project && record.kind == kind);
            let first = seen.vectors.as_ref().and_then(|(_, vectors)| vectors.first());
            let near = first.map(|first| memory.vectors.top(first, MAX_NEAR, is_of_it));
            (near, memory.is_partial())
        })?;
        let near = near.into_iter().flatten().map(|(id, cosine)| (id, round_number(1.0 - f64::from(cosine))));
        let near = near.filter(|(_, distance)| *distance <= ALIKE).collect();
        let degraded = is_partial.then(|| "some records have no vector yet; it was not compared with these".to_owned());
        Ok(SeenText { near, degraded, ..seen })
    }
}

fn embed_parts(title: &str, body: &str, model: &dyn TextEmbedder) -> Result<Vec<Vec<f32>>> {
    let texts = meaning::split_parts(title, body, model);
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    model.embed(&texts)
}
