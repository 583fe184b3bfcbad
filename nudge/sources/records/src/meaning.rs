//! Manages the vectors of records: makes them in the background, stores them in the database, and searches them in
//! memory.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use nudge_core::embed::{TextEmbedder, understood_share};
use nudge_core::error::Result;
use nudge_core::number::to_column;
use nudge_storage::rusqlite::{Connection, params};
use nudge_storage::search::QuestionWords;
use nudge_storage::vectors::{VectorCosines, VectorIndex, decode, encode};
use nudge_storage::{Db, TransactionFailure};
use parking_lot::Mutex;

use crate::record::{Kind, Status};

/// The number of records that get vectors in one batch.
const BATCH: usize = 8;
/// The most parts of a record; each part has its own vector. The first part fills the token limit of the model.
const MAX_PARTS: usize = 5;
/// The number of the part that is the title alone.
const TITLE: u32 = 1;
/// The share of a text, from 0 to 1, that the model must understand before the text is compared with near duplicates.
const HALF: f64 = 0.5;
/// The tokens of each later part, not counting the title before it.
const PART_TOKENS: usize = 200;

/// Splits a record into texts; each text gets a vector. The texts are the title with the beginning of the body, the
/// title alone, and the title with each later part of the body. The text that is nearest to a question decides how near
/// the record is.
pub fn split_parts(title: &str, body: &str, model: &dyn TextEmbedder) -> Vec<String> {
    let mut parts = vec![format!("{title} {body}"), title.to_owned()];
    let mut room = model.max_tokens().saturating_sub(model.count_tokens(title));
    let mut begin = 0;
    let mut used = 0;
    // The first part is in `parts` already, so its words are skipped here.
    let mut is_first = true;
    for (offset, word) in iter_words(body) {
        let tokens = model.count_tokens(word);
        if used + tokens > room {
            if !is_first {
                parts.push(format!("{title} {}", body[begin..offset].trim()));
            }
            if parts.len() == MAX_PARTS {
                return parts;
            }
            (is_first, begin, used, room) = (false, offset, 0, PART_TOKENS);
        }
        used += tokens;
    }
    if !is_first && begin < body.len() {
        parts.push(format!("{title} {}", body[begin..].trim()));
    }
    parts
}

/// Returns true when the model understands enough of a record to compare it with near duplicates. The vector of a text
/// that the model does not understand, such as a text in another script, may be near to any text or to none. With a
/// single unknown word, two texts that differ in this word alone would have the same vector.
pub fn is_understood(title: &str, body: &str, model: &dyn TextEmbedder) -> bool {
    let whole = format!("{title} {body}");
    understood_share(model, &whole, count_pieces(&whole)) > HALF
        && model.count_unknown(&whole) == 0
        && !QuestionWords::of_query(&whole).is_empty()
}

/// Counts the words and the punctuation marks of a text. Texts about programs have many marks, and each mark is a token
/// too.
fn count_pieces(text: &str) -> usize {
    let mut in_word = false;
    let begins = |c: char| {
        let begins = !(c.is_whitespace() || in_word && c.is_alphanumeric());
        in_word = c.is_alphanumeric();
        begins
    };
    text.chars().map(begins).filter(|begins| *begins).count()
}

/// Iterates over the words of a text, each with its offset in bytes.
fn iter_words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = text.as_ptr() as usize;
    text.split_whitespace().map(move |word| (word.as_ptr() as usize - start, word))
}

/// The facts about a record that memory holds beside its vectors.
#[derive(Debug, Clone, Copy)]
pub struct RecordFacts {
    pub project: i64,
    pub kind: Kind,
    pub status: Status,
}

/// The vectors of one model, in memory, with the facts of their records.
pub struct RecordMemory {
    /// The vectors of the texts that include the body.
    pub vectors: VectorIndex,
    /// The vectors of the titles alone. A title shows the subject of a record, but not that two records say the same.
    titles: VectorIndex,
    pub about: HashMap<i64, RecordFacts, RandomState>,
    /// The generation of the database file. `seq` is the number of the last change that was read, and `vector` the
    /// number of the last vector that was read. Both numbers are valid only in this generation.
    generation: Vec<u8>,
    seq: i64,
    vector: i64,
    /// The value of [`Db::read_change_number`] at the last read.
    changes: Option<i64>,
}

impl RecordMemory {
    fn new(model: &str, dims: usize) -> Self {
        Self {
            vectors: VectorIndex::new(model, dims),
            titles: VectorIndex::new(model, dims),
            about: HashMap::default(),
            generation: Vec::new(),
            seq: 0,
            vector: 0,
            changes: None,
        }
    }

    /// Returns true when any record has no vector yet.
    pub fn is_partial(&self) -> bool {
        self.vectors.count_texts() < self.about.len()
    }

    /// Computes the cosine of a question's vector and each stored vector.
    pub fn compare_vector(&self, vector: &[f32]) -> RecordCosines<'_> {
        RecordCosines { texts: self.vectors.compute_cosines(vector), titles: self.titles.compute_cosines(vector) }
    }

    fn remove(&mut self, id: i64) {
        self.vectors.remove(id);
        self.titles.remove(id);
    }

    /// Adds a vector. A vector that cannot be decoded counts as missing until the record's text changes.
    fn add_vector(&mut self, id: i64, part: u32, bytes: &[u8]) {
        let vectors = if part == TITLE { &mut self.titles } else { &mut self.vectors };
        if let Some(vector) = decode(bytes) {
            vectors.upsert(id, part, &vector);
        }
    }
}

/// The cosines between a question and all records.
pub struct RecordCosines<'a> {
    texts: VectorCosines<'a>,
    titles: VectorCosines<'a>,
}

impl RecordCosines<'_> {
    /// Returns the records nearest to the question: up to `k` by their texts and up to `k` by their titles.
    pub fn find_nearest(&self, k: usize, keep: impl Fn(i64) -> bool) -> impl Iterator<Item = i64> {
        let (texts, titles) = (self.texts.top(k, &keep), self.titles.top(k, &keep));
        texts.into_iter().chain(titles).map(|(id, _)| id)
    }

    /// Returns the cosine of the record's part that is nearest to the question; `None` for a record without a vector.
    pub fn best_cosine(&self, id: i64) -> Option<f64> {
        let best_in = |cosines: &VectorCosines<'_>| cosines.get_best(id).map(f64::from);
        best_in(&self.texts).into_iter().chain(best_in(&self.titles)).reduce(f64::max)
    }
}

/// Holds the vectors in memory: reads them on first use, and updates them from the database.
#[derive(Default)]
pub struct RecordMeanings(Mutex<Option<RecordMemory>>);

impl RecordMeanings {
    /// Updates the vectors of a model, and calls `with` with them.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn with_memory<T>(
        &self,
        db: &Db,
        model: &dyn TextEmbedder,
        with: impl FnOnce(&RecordMemory) -> T,
    ) -> Result<T> {
        let mut memory = self.0.lock();
        let changes = Some(db.read_change_number()?);
        let mut known = match memory.take() {
            Some(known) if known.vectors.model() == model.id() => known,
            _ => RecordMemory::new(model.id(), model.dims()),
        };
        if known.changes != changes {
            db.read(|c| {
                let generation = nudge_storage::read_generation(c)?;
                if known.generation != generation {
                    known = RecordMemory { generation, ..RecordMemory::new(model.id(), model.dims()) };
                }
                catch_up(c, &mut known)
            })?;
            known.changes = changes;
        }
        let done = with(&known);
        *memory = Some(known);
        Ok(done)
    }

    /// Frees the memory; called when the model is unloaded.
    pub fn drop_memory(&self) {
        *self.0.lock() = None;
    }
}

/// Reads the changes that came after the last call.
fn catch_up(c: &Connection, known: &mut RecordMemory) -> Result<(), TransactionFailure> {
    let mut gone = c.prepare_cached("SELECT seq, record_id FROM gone WHERE seq > ?1")?;
    let mut rows = gone.query([known.seq])?;
    let mut seq = known.seq;
    while let Some(row) = rows.next()? {
        seq = seq.max(row.get(0)?);
        let id = row.get(1)?;
        known.about.remove(&id);
        known.remove(id);
    }
    let mut changed = c.prepare_cached("SELECT id, project_id, kind, status, seq FROM record WHERE seq > ?1")?;
    let mut rows = changed.query([known.seq])?;
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        known.about.insert(id, RecordFacts { project: row.get(1)?, kind: row.get(2)?, status: row.get(3)? });
        seq = seq.max(row.get(4)?);
        // The new vectors of a changed text are read below. A record that only moved to another project gets its old
        // vectors back here.
        known.remove(id);
        let mut own = c.prepare_cached("SELECT part, vector FROM embedding WHERE record_id = ?1 AND model = ?2")?;
        let mut own = own.query(params![id, known.vectors.model()])?;
        while let Some(row) = own.next()? {
            known.add_vector(id, row.get(0)?, &row.get::<_, Vec<u8>>(1)?);
        }
    }
    let mut new =
        c.prepare_cached("SELECT seq, record_id, part, vector FROM embedding WHERE seq > ?1 AND model = ?2")?;
    let model = known.vectors.model().to_owned();
    let mut rows = new.query(params![known.vector, model])?;
    while let Some(row) = rows.next()? {
        known.vector = known.vector.max(row.get(0)?);
        let id = row.get(1)?;
        if known.about.contains_key(&id) {
            known.add_vector(id, row.get(2)?, &row.get::<_, Vec<u8>>(3)?);
        }
    }
    known.seq = seq;
    Ok(())
}

/// Stores the vectors of a record, in the transaction that writes the record.
pub fn keep_vectors(c: &Connection, id: i64, model: &str, vectors: &[Vec<f32>]) -> Result<(), TransactionFailure> {
    c.prepare_cached("DELETE FROM embedding WHERE record_id = ?1 AND model = ?2")?.execute(params![id, model])?;
    let mut insert =
        c.prepare_cached("INSERT INTO embedding(record_id, part, model, vector) VALUES (?1, ?2, ?3, ?4)")?;
    for (part, vector) in vectors.iter().enumerate() {
        insert.execute(params![id, to_column(part), model, encode(vector)])?;
    }
    Ok(())
}

/// Deletes the vectors of a record whose text has changed.
pub fn drop_of(c: &Connection, id: i64) -> Result<(), TransactionFailure> {
    c.prepare_cached("DELETE FROM embedding WHERE record_id = ?1")?.execute([id])?;
    Ok(())
}

/// Selects the records that have no vector from any model.
const WITHOUT: &str = "FROM record r WHERE NOT EXISTS (SELECT 1 FROM embedding e WHERE e.record_id = r.id)";

/// Returns true when any record has no vector from any model.
pub fn is_any_without(c: &Connection) -> Result<bool, TransactionFailure> {
    Ok(c.prepare_cached(&format!("SELECT 1 {WITHOUT}"))?.exists([])?)
}

/// Returns the number of records that have no vector from any model.
pub fn count_without(c: &Connection) -> Result<i64, TransactionFailure> {
    Ok(c.prepare_cached(&format!("SELECT count(*) {WITHOUT}"))?.query_row([], |row| row.get(0))?)
}

/// Makes vectors for a batch of the newest records that have no vector from this model. Returns the number of such
/// records that are left. When no such record is left, the call deletes the vectors of other models.
///
/// # Errors
/// `E_UNAVAILABLE` when the model or the database fails.
pub fn make_some(db: &Db, model: &dyn TextEmbedder) -> Result<i64> {
    let (batch, left) = db.read(|c| {
        let missing = "FROM record r WHERE NOT EXISTS
           (SELECT 1 FROM embedding e WHERE e.record_id = r.id AND e.model = ?1)";
        let sql = format!("SELECT r.id, r.version, r.title, r.body {missing} ORDER BY r.id DESC LIMIT ?2");
        let mut statement = c.prepare_cached(&sql)?;
        let rows = statement.query_map(params![model.id(), to_column(BATCH)], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?, row.get::<_, String>(3)?))
        })?;
        let batch: Vec<_> = rows.collect::<Result<_, _>>()?;
        // An incomplete batch is the last batch, so the database need not count the records that are left.
        let is_last = batch.len() < BATCH;
        let mut left = to_column(batch.len());
        if !is_last {
            let count = format!("SELECT count(*) {missing}");
            left = c.prepare_cached(&count)?.query_row([model.id()], |row| row.get(0))?;
        }
        Ok((batch, left))
    })?;
    if batch.is_empty() {
        let sql = "SELECT 1 FROM embedding WHERE model <> ?1";
        if db.read(|c| Ok(c.prepare_cached(sql)?.exists([model.id()])?))? {
            db.write(|tx| Ok(tx.execute("DELETE FROM embedding WHERE model <> ?1", [model.id()])?))?;
        }
        return Ok(0);
    }
    let done = to_column(batch.len());
    for (id, version, title, body) in batch {
        let texts = split_parts(&title, &body, model);
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        let vectors = model.embed(&texts)?;
        db.write(|tx| {
            // Another call may have changed or deleted the record in the meantime.
            let is_as_it_was = tx.prepare_cached("SELECT 1 FROM record WHERE id = ?1 AND version = ?2")?;
            let is_as_it_was = { is_as_it_was }.exists(params![id, version])?;
            if is_as_it_was { keep_vectors(tx, id, model.id(), &vectors) } else { Ok(()) }
        })?;
    }
    Ok((left - done).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model that counts each word, and each letter outside ASCII, as a token.
    struct Counts;

    impl TextEmbedder for Counts {
        fn id(&self) -> &'static str {
            "counts"
        }
        fn dims(&self) -> usize {
            1
        }
        fn max_tokens(&self) -> usize {
            6
        }
        fn count_tokens(&self, text: &str) -> usize {
            text.split_whitespace().count() + text.chars().filter(|c| !c.is_ascii()).count()
        }
        fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
            Ok(vec![vec![1.0]; texts.len()])
        }
    }

    #[test]
    fn a_record_has_the_meaning_of_its_title_and_of_each_part_of_its_body() {
        assert_eq!(split_parts("a title", "", &Counts), ["a title ", "a title"]);
        assert_eq!(split_parts("a title", "one two", &Counts), ["a title one two", "a title"]);
        let body: Vec<_> = (0..2_000).map(|number| format!("w{number}")).collect();
        let long = split_parts("a title", &body.join(" "), &Counts);
        assert_eq!((long.len(), &*long[TITLE as usize]), (MAX_PARTS, "a title"));
        // The first part has room for four words of the body. The next part begins after them.
        assert!(long[2].starts_with("a title w4 w5 ") && long[2].ends_with(" w203"), "{}", long[2]);
        assert!(long[3].starts_with("a title w204 "), "{}", long[3]);
    }
}
