//! Answers a task with the units of the brain that match it.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use nudge_core::clock::rfc3339;
use nudge_core::embed::{QuestionVector, TextEmbedder};
use nudge_core::error::{Error, Result};
use nudge_core::explain::{four_decimals, round_number};
use nudge_core::text::{escape_hidden, is_hidden};
use nudge_secrets::SecretGuard;
use nudge_storage::TransactionFailure;
use nudge_storage::rusqlite::Connection;
use nudge_storage::search::QuestionWords;
use serde::Serialize;

use crate::config::BrainConfig;
use crate::fusion::{ChunkCandidate, RankedUnit};
use crate::graph::IndexRelations;
use crate::index::BrainIndex;
use crate::method::{AskContext, AskedChars};
use crate::mirror::{GraphMirror, MirrorWalk, read_state};
use crate::rerank;
use crate::retrieve::{
    BrainQuestion, RetrievedUnits, ScoreExplanation, UnitFilter, find_units, format_reason, takes_related,
};
use crate::source::BrainSource;

/// The most bytes of a task.
const MAX_QUESTION_BYTES: usize = 64 << 10;
/// The longest time that a question waits until the model is loaded. After that time the search uses words only.
const MODEL_WAIT: Duration = Duration::from_secs(2);
/// The most sections that an answer shows of one unit. A further section must have this share of the best section's
/// score.
const SECTIONS: usize = 3;
const NEARLY_AS_GOOD: f64 = 0.85;
/// A section is cut only if at least this many of its characters fit. A shorter text would say nothing.
pub(crate) const FEW_CHARS: usize = 200;
/// The text that replaces a section which may contain a credential.
const WITHHELD: &str = "[withheld: it may hold a credential; open the file]";

/// Result of `nudge.brain.context`.
#[derive(Debug, Serialize)]
pub struct BrainAnswer {
    /// The units that the search found, the best first.
    pub units: Vec<FoundUnit>,
    /// The units that are related to the found units. They may take up to a fifth of `limit`.
    pub related: Vec<RelatedUnit>,
    /// Is true when it is uncertain whether any unit is about the task.
    pub weak: bool,
    /// The reasons why the answer may be incomplete, for the user.
    pub degraded: Vec<String>,
    /// The amount of text that was searched.
    pub searched: SearchCounts,
}

/// The amount of text that was searched.
#[derive(Debug, Serialize)]
pub struct SearchCounts {
    pub units: usize,
    pub chunks: usize,
}

/// A unit that the search found.
#[derive(Debug, Serialize)]
pub struct FoundUnit {
    pub id: String,
    pub title: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub domain: String,
    pub path: String,
    /// The score, from 0 to 1.
    #[serde(serialize_with = "four_decimals")]
    pub score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    pub updated_at: String,
    pub sections: Vec<FoundSection>,
    /// The reason why the search found the unit, in words.
    pub why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<ScoreExplanation>,
}

/// A unit that is related to a found unit.
#[derive(Debug, Serialize)]
pub struct RelatedUnit {
    pub id: String,
    pub title: String,
    pub path: String,
    /// The id of the unit to which this unit is related. `relation` is the kind of the relation.
    pub via: String,
    pub relation: String,
    pub hop: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<FoundSection>,
}

/// A section of a file.
#[derive(Debug, Serialize)]
pub struct FoundSection {
    pub breadcrumb: String,
    pub text: String,
    /// The lines of the section in its file, counted from 1: `3-9`.
    pub lines: String,
}

/// The columns of a unit that answers show.
pub struct UnitRow {
    pub id: String,
    pub path: String,
    pub title: String,
    pub summary: Option<String>,
    pub kind: Option<String>,
    pub domain: String,
    pub confidence: Option<f64>,
    pub updated_at: String,
}

impl UnitRow {
    /// Reads the row of a unit.
    pub fn read(c: &Connection, unit: i64) -> Result<Self, TransactionFailure> {
        let sql =
            "SELECT uid, path, title, summary, kind, domain, confidence, modified, mtime_ns FROM unit WHERE id = ?1";
        Ok(c.prepare_cached(sql)?.query_row([unit], |row| {
            let changed = rfc3339::format_time(row.get::<_, i64>(8)? / 1_000_000);
            Ok(Self {
                id: row.get(0)?,
                path: row.get(1)?,
                title: row.get(2)?,
                summary: row.get(3)?,
                kind: row.get(4)?,
                domain: row.get(5)?,
                confidence: row.get(6)?,
                updated_at: row.get::<_, Option<String>>(7)?.unwrap_or(changed),
            })
        })?)
    }
}

/// A question to one index.
#[derive(Clone, Copy)]
struct IndexQuestion<'a> {
    index: &'a BrainIndex,
    words: &'a QuestionWords,
    thought: Option<&'a (Arc<dyn TextEmbedder>, QuestionVector)>,
    filter: UnitFilter<'a>,
}

impl BrainSource {
    pub(crate) fn find_context(&self, params: AskContext) -> Result<BrainAnswer> {
        let AskContext { task_description, limit, domain, tags, max_chars, hops, explain, context } = params;
        if task_description.len() > MAX_QUESTION_BYTES {
            return Err(
                Error::invalid("`task_description` may have 64 KiB; say it in fewer words.").about("task_description")
            );
        }
        if task_description.trim().is_empty() {
            return Err(Error::invalid("`task_description` is empty; say in a sentence what you are about to do.")
                .about("task_description"));
        }
        let index = self.open_brain(&context.build()?)?;
        self.count_question();
        let config = BrainConfig::load(index.folder.path());
        let (limit, hops, chars) =
            (limit.get_or(config.limit), hops.get_or(config.hops), max_chars.get_or(config.max_chars));
        let mut degraded = self.refresh_index(&index)?;
        let thought = QuestionVector::embed_text(&task_description, self.models(), MODEL_WAIT)
            .map_err(|why| degraded.push(why))
            .ok();
        let model = thought.as_ref().map(|(model, _)| &**model);
        if let Some(Err(error)) = model.map(|model| self.make_up_alone(&index, model)) {
            degraded.push(error.message().to_owned());
        }
        let words = QuestionWords::of_query(&task_description);
        let mirror = self.open_mirror(&index).filter(|_| takes_related(limit, hops));
        let mirror = mirror.map(|mirror| self.in_step(&index, mirror)).transpose()?;
        let mirror = mirror.and_then(|mirror| mirror.map_err(|why| degraded.push(why)).ok());
        let unanswered = RefCell::default();
        let filter = UnitFilter { domain: domain.as_deref(), tags: &tags };
        let asked = IndexQuestion { index: &index, words: &words, thought: thought.as_ref(), filter };
        let first = self.rerank_units(&task_description, asked).unwrap_or_else(|why| {
            degraded.push(why);
            Vec::new()
        });
        let (answer, without) = index.meanings.with_memory(&index.db, model, |c, memory| {
            let thought = thought.as_ref().map(|(_, thought)| thought);
            let fusion = self.fusion;
            let question = BrainQuestion {
                words: &words,
                known: &index.known,
                thought,
                memory,
                fusion,
                first: &first,
                limit,
                hops,
            };
            let without = if thought.is_some() { memory.count_without_vector() } else { 0 };
            let answer = find_units(c, &MirrorWalk::new(c, mirror, &unanswered), question, filter)?;
            let searched = SearchCounts { units: memory.paths.len(), chunks: memory.chunks.len() };
            Ok((BrainAnswer { searched, ..build_answer(c, answer, chars, explain)? }, without))
        })?;
        if without > 0 {
            self.work_on();
            degraded.push(format!("{without} sections have no vector yet; they are found by words"));
        }
        degraded.extend(unanswered.take());
        Ok(BrainAnswer { degraded, ..answer })
    }

    /// Makes a language model choose the units that come first, if the settings want that. If the model does not
    /// answer, returns the reason. No lock is held while the model works.
    fn rerank_units(&self, task: &str, asked: IndexQuestion<'_>) -> Result<Vec<i64>, String> {
        let Some(reranker) = &self.reranker else { return Ok(Vec::new()) };
        let IndexQuestion { index, words, thought, filter } = asked;
        let (model, thought) = thought.map(|(model, thought)| (&**model, thought)).unzip();
        let found = index.meanings.with_memory(&index.db, model, |c, memory| {
            let (known, fusion) = (&index.known, self.fusion);
            let question =
                BrainQuestion { words, known, thought, memory, fusion, first: &[], limit: rerank::MOST, hops: 0 };
            let units = find_units(c, &IndexRelations(c), question, filter)?.units;
            let note = |ranked: &RankedUnit| {
                let mut room = AskedChars::default().get();
                let best =
                    ranked.chunks.first().map(|best| read_section(c, best.chunk, &mut room)).transpose()?.flatten();
                let text = best.map(|section| section.text).unwrap_or_default();
                Ok((ranked.unit, (make_safe(&UnitRow::read(c, ranked.unit)?.title), text)))
            };
            units.iter().map(note).collect::<Result<Vec<_>, TransactionFailure>>()
        });
        let found = found.map_err(|error| error.message().to_owned())?;
        // A single unit needs no order.
        if found.len() < 2 {
            return Ok(Vec::new());
        }
        let (units, notes): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        Ok(reranker.order_notes(task, &notes)?.into_iter().map(|position| units[position]).collect())
    }

    /// Returns the mirror if it holds the same state as the index, and the time that is left to wait for the server.
    /// Else returns the reason why the server is not used.
    pub(crate) fn in_step<'a>(
        &self,
        index: &BrainIndex,
        mirror: GraphMirror<'a>,
    ) -> Result<Result<(GraphMirror<'a>, Duration), String>> {
        let left = mirror.in_step(&index.db.read(read_state)?);
        if left.is_err() {
            self.work_on();
        }
        Ok(left.map(|left| (mirror, left)))
    }
}

/// Builds the answer. All sections together have at most `chars` characters.
fn build_answer(
    c: &Connection,
    answer: RetrievedUnits,
    chars: usize,
    explain: bool,
) -> Result<BrainAnswer, TransactionFailure> {
    let mut room = chars;
    let mut units = Vec::new();
    // Each unit gets its best section before any unit gets a second section.
    for (ranked, words) in answer.units.iter().zip(answer.words) {
        let UnitRow { id, path, title, kind, domain, confidence, updated_at, .. } = UnitRow::read(c, ranked.unit)?;
        let best = ranked.chunks.first();
        let sections = match best {
            Some(best) => read_section(c, best.chunk, &mut room)?.into_iter().collect(),
            None => Vec::new(),
        };
        units.push(FoundUnit {
            why: best.map(|best| format_reason(best, &words, answer.words_asked)).unwrap_or_default(),
            explain: explain.then(|| ScoreExplanation {
                parts: ranked.score_parts(),
                words,
                of: answer.words_asked,
                similarity: best.and_then(|best| best.evidence.cosine).map(round_number),
            }),
            score: ranked.score.clamp(0.0, 1.0),
            id,
            title,
            kind,
            domain,
            path,
            confidence,
            updated_at,
            sections,
        });
    }
    let mut related = Vec::new();
    for reached in &answer.related {
        let (UnitRow { id, title, path, .. }, via) =
            (UnitRow::read(c, reached.unit)?, UnitRow::read(c, reached.via)?.id);
        let sql = "SELECT id FROM chunk WHERE unit = ?1 AND ord = 0";
        let first = c.prepare_cached(sql)?.query_map([reached.unit], |row| row.get(0))?.next().transpose()?;
        let section = first.map(|first| read_section(c, first, &mut room)).transpose()?.flatten();
        related.push(RelatedUnit { id, title, path, via, relation: reached.kind.clone(), hop: reached.hop, section });
    }
    for (ranked, told) in answer.units.iter().zip(&mut units) {
        for more in pick_further(&ranked.chunks) {
            told.sections.extend(read_section(c, more.chunk, &mut room)?);
        }
    }
    let searched = SearchCounts { units: 0, chunks: 0 };
    Ok(BrainAnswer { units, related, weak: answer.is_weak, degraded: Vec::new(), searched })
}

/// Returns the sections of a unit, after the best one, whose score is nearly that of the best.
fn pick_further(chunks: &[ChunkCandidate]) -> impl Iterator<Item = &ChunkCandidate> {
    let floor = chunks.first().map_or(f64::MAX, |best| best.evidence.score() * NEARLY_AS_GOOD);
    chunks.iter().skip(1).take(SECTIONS - 1).filter(move |chunk| chunk.evidence.score() >= floor)
}

/// Reads a section, and cuts it to the room that is left. Returns `None` if the room is too small.
fn read_section(c: &Connection, chunk: i64, room: &mut usize) -> Result<Option<FoundSection>, TransactionFailure> {
    if *room < FEW_CHARS {
        return Ok(None);
    }
    let sql = "SELECT breadcrumb, text, line, last_line FROM chunk WHERE id = ?1";
    let (breadcrumb, text, first, last) = c.prepare_cached(sql)?.query_row([chunk], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?))
    })?;
    let text = make_safe(&text);
    let text = match text.char_indices().nth(*room) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    *room = room.saturating_sub(text.chars().count());
    Ok(Some(FoundSection { breadcrumb: make_safe(&breadcrumb), text, lines: format!("{first}-{last}") }))
}

/// Makes a stranger's text safe to show to a model: makes hidden characters visible, and replaces a text that may
/// contain a credential.
pub fn make_safe(text: &str) -> String {
    if SecretGuard::new().check(None, text).is_some() {
        return WITHHELD.to_owned();
    }
    escape_hidden(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t' | '\r'), |_, _| {})
}

/// Opens the index of the caller's brain, and updates it from the files as far as time allows.
pub fn open_refreshed(
    brains: &BrainSource,
    context: nudge_core::context::ContextSpec,
) -> Result<std::sync::Arc<BrainIndex>> {
    let index = brains.open_brain(&context.build()?)?;
    brains.refresh_index(&index)?;
    Ok(index)
}
