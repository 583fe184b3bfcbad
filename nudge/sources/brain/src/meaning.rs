//! Manages the vectors of chunks: makes them in the background, stores them under the hash of the chunk's text, and
//! searches them in memory.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use nudge_core::embed::TextEmbedder;
use nudge_core::error::Result;
use nudge_storage::rusqlite::{Connection, OptionalExtension as _, params};
use nudge_storage::vectors::{VectorIndex, decode, encode};
use nudge_storage::{Db, TransactionFailure};
use parking_lot::Mutex;

use crate::folder::Hash;
use crate::rows::{build_embedded_text, read_note};

/// The number of chunks that get vectors in one batch.
const BATCH: i64 = 8;
/// The most parts of a chunk; each part has its own vector. Chunks are cut by an estimate of their tokens. For text
/// without words that the model knows, such as Base64, the estimate is a few times too low, so a chunk may need many
/// parts.
const MAX_PARTS: usize = 16;
/// A cut keeps a word whole if the word ends within this many bytes.
const LONG_WORD: usize = 48;

/// If more than 1 in `MANY` units changed, all units are read again, which takes less time than to look up each changed
/// unit.
const MANY: usize = 4;

/// Selects the chunks whose present text has no vector from this model.
const WITHOUT: &str = "FROM chunk c WHERE NOT EXISTS (SELECT 1 FROM vector v WHERE v.hash = c.hash AND v.model = ?1)";

/// The part of the index that memory holds.
pub struct IndexMemory {
    /// The unit of each chunk.
    pub chunks: HashMap<i64, i64, RandomState>,
    /// The first chunk of each unit.
    pub firsts: HashMap<i64, i64, RandomState>,
    /// The paths of the units. They decide the order of units with equal scores.
    pub paths: HashMap<i64, Arc<str>, RandomState>,
    /// The vectors of one model, by chunk; `None` before a model is used.
    pub vectors: Option<VectorIndex>,
    /// The hash under which each chunk's vector is stored.
    hashes: HashMap<i64, Hash, RandomState>,
    /// The id of the index that was read, and the number of the last change that was read. `None` before the first
    /// read.
    seen: Option<(Option<String>, i64)>,
    /// The value of [`Db::read_change_number`] at the last read.
    changes: Option<i64>,
}

/// A chunk: its id, its unit, the hash of its vector, and true if it is the unit's first chunk.
type ChunkRow = (i64, i64, Hash, bool);

impl IndexMemory {
    fn new() -> Self {
        let (chunks, firsts, paths) = (HashMap::default(), HashMap::default(), HashMap::default());
        Self { chunks, firsts, paths, vectors: None, hashes: HashMap::default(), seen: None, changes: None }
    }

    /// Returns the number of chunks without a vector.
    pub fn count_without_vector(&self) -> usize {
        self.chunks.len().saturating_sub(self.vectors.as_ref().map_or(0, VectorIndex::count_texts))
    }

    /// Reads the changes since the last call. Reads only the changed units, or all units if the changed ones are
    /// unknown or many.
    fn catch_up(&mut self, c: &Connection) -> Result<(), TransactionFailure> {
        let now = (read_note(c, "index")?, last_touched(c)?);
        let touched = match &self.seen {
            // An index that was restored from an older copy has other changes under the same numbers.
            Some((index, seen)) if *index == now.0 && *seen <= now.1 => touched_since(c, *seen)?,
            _ => None,
        };
        let rows = match touched.filter(|touched| touched.len() * MANY < self.paths.len()) {
            Some(units) => self.read_units(c, &units)?,
            None => self.read_all(c)?,
        };
        for (id, unit, _, is_first) in &rows {
            self.chunks.insert(*id, *unit);
            if *is_first {
                self.firsts.insert(*unit, *id);
            }
        }
        self.read_vectors(c, &rows)?;
        self.seen = Some(now);
        Ok(())
    }

    /// Reads all units again, but keeps the vectors. Returns all chunks.
    fn read_all(&mut self, c: &Connection) -> Result<Vec<ChunkRow>, TransactionFailure> {
        let mut statement = c.prepare_cached("SELECT id, path FROM unit")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get_ref(1)?.as_str()?.into())))?;
        self.paths = rows.collect::<Result<_, _>>()?;
        let mut statement =
            c.prepare_cached("SELECT id, unit, meaning, ord = 0 FROM chunk INDEXED BY chunk_meaning")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        let rows: Vec<ChunkRow> = rows.collect::<Result<_, _>>()?;
        let there: HashSet<i64, RandomState> = rows.iter().map(|(id, ..)| *id).collect();
        let gone: Vec<_> = self.chunks.keys().filter(|id| !there.contains(id)).copied().collect();
        self.forget_vectors(&gone);
        self.chunks.clear();
        self.firsts.clear();
        Ok(rows)
    }

    /// Reads these units again. Returns their chunks.
    fn read_units(
        &mut self,
        c: &Connection,
        units: &HashSet<i64, RandomState>,
    ) -> Result<Vec<ChunkRow>, TransactionFailure> {
        let mut path = c.prepare_cached("SELECT path FROM unit WHERE id = ?1")?;
        let mut chunks = c.prepare_cached("SELECT id, unit, meaning, ord = 0 FROM chunk WHERE unit = ?1")?;
        let mut rows: Vec<ChunkRow> = Vec::new();
        for unit in units {
            self.firsts.remove(unit);
            let path: Option<String> = path.query_row([unit], |row| row.get(0)).optional()?;
            match path {
                Some(path) => drop(self.paths.insert(*unit, path.into())),
                None => drop(self.paths.remove(unit)),
            }
            let own = chunks.query_map([unit], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
            for row in own {
                rows.push(row?);
            }
        }
        let there: HashSet<i64, RandomState> = rows.iter().map(|(id, ..)| *id).collect();
        let mut gone = Vec::new();
        self.chunks.retain(|id, unit| {
            let stays = !units.contains(unit);
            gone.extend((!stays && !there.contains(id)).then_some(*id));
            stays
        });
        self.forget_vectors(&gone);
        Ok(rows)
    }

    fn forget_vectors(&mut self, chunks: &[i64]) {
        for id in chunks {
            self.hashes.remove(id);
            self.vectors.iter_mut().for_each(|vectors| vectors.remove(*id));
        }
    }

    /// Reads the vectors of the chunks whose hash has changed.
    fn read_vectors(&mut self, c: &Connection, rows: &[ChunkRow]) -> Result<(), TransactionFailure> {
        let Some(vectors) = &mut self.vectors else { return Ok(()) };
        let model = vectors.model().to_owned();
        let mut own = c.prepare_cached("SELECT part, vector FROM vector WHERE hash = ?1 AND model = ?2")?;
        for (id, _, hash, _) in rows {
            if self.hashes.get(id) == Some(hash) {
                continue;
            }
            let mut own = own.query(params![hash, model])?;
            let mut is_first = true;
            while let Some(row) = own.next()? {
                if std::mem::take(&mut is_first) {
                    vectors.remove(*id);
                    self.hashes.insert(*id, *hash);
                }
                // A vector that cannot be decoded counts as missing.
                if let Some(vector) = row.get_ref(1)?.as_blob().ok().and_then(decode) {
                    vectors.upsert(*id, row.get(0)?, &vector);
                }
            }
        }
        Ok(())
    }
}

/// Returns the number of the last change; 0 before the first change.
fn last_touched(c: &Connection) -> Result<i64, TransactionFailure> {
    Ok(c.prepare_cached("SELECT coalesce(max(seq), 0) FROM touched")?.query_row([], |row| row.get(0))?)
}

/// Returns the units that changed after the change `seen`. Returns `None` when the list of changes does not reach back
/// so far.
fn touched_since(c: &Connection, seen: i64) -> Result<Option<HashSet<i64, RandomState>>, TransactionFailure> {
    let first: i64 = c.prepare_cached("SELECT coalesce(min(seq), 1) FROM touched")?.query_row([], |row| row.get(0))?;
    if seen + 1 < first {
        return Ok(None);
    }
    let mut statement = c.prepare_cached("SELECT unit FROM touched WHERE seq > ?1")?;
    let units = statement.query_map([seen], |row| row.get(0))?;
    Ok(Some(units.collect::<Result<_, _>>()?))
}

/// Holds a part of the index in memory: reads it on first use, and updates it from the database.
#[derive(Default)]
pub struct IndexMeanings(Mutex<Option<IndexMemory>>);

impl IndexMeanings {
    /// Calls `with` with the database and the memory. The memory has the vectors of `model`, if a model is given.
    /// Database and memory show the same state, even while others write.
    ///
    /// # Errors
    /// The error that `with` returns; `E_UNAVAILABLE` when the database cannot be read.
    pub fn with_memory<T>(
        &self,
        db: &Db,
        model: Option<&dyn TextEmbedder>,
        mut with: impl FnMut(&Connection, &IndexMemory) -> Result<T, TransactionFailure>,
    ) -> Result<T> {
        let mut memory = self.0.lock();
        let known = memory.get_or_insert_with(IndexMemory::new);
        // Without a model, the vectors of the last model stay in memory, because that model may be used again.
        if let Some(model) = model
            && known.vectors.as_ref().is_none_or(|vectors| vectors.model() != model.id())
        {
            known.vectors = Some(VectorIndex::new(model.id(), model.dims()));
            known.hashes.clear();
            (known.seen, known.changes) = (None, None);
        }
        let before = db.read_change_number()?;
        db.read(|c| {
            // The rows that are read now are at least as new as `before`. If a write comes in between, the next call
            // reads the changes again.
            if known.changes != Some(db.read_change_number()?) {
                known.changes = None;
                if let Err(error) = known.catch_up(c) {
                    // The update may have ended in the middle, so the memory starts empty again.
                    *known = IndexMemory::new();
                    return Err(error);
                }
                known.changes = Some(before);
            }
            with(c, known)
        })
    }

    /// Frees the memory.
    pub fn drop_memory(&self) {
        *self.0.lock() = None;
    }
}

/// Returns true when the present text of any chunk has no vector from any model.
pub fn is_any_without(c: &Connection) -> Result<bool, TransactionFailure> {
    let sql = "SELECT 1 FROM chunk c WHERE NOT EXISTS (SELECT 1 FROM vector v WHERE v.hash = c.hash)";
    Ok(c.prepare_cached(sql)?.exists([])?)
}

/// Counts the chunks whose present text has a vector from any model.
pub fn count_with(c: &Connection) -> Result<i64, TransactionFailure> {
    let sql = "SELECT count(*) FROM chunk c WHERE EXISTS (SELECT 1 FROM vector v WHERE v.hash = c.hash)";
    Ok(c.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Makes vectors for a batch of chunks that have no vector from this model. Returns true when there may be more such
/// chunks. When no such chunk is left, the call deletes the vectors that are not used.
///
/// # Errors
/// `E_UNAVAILABLE` when the model or the database fails.
pub fn make_some(db: &Db, model: &dyn TextEmbedder) -> Result<bool> {
    let batch = db.read(|c| {
        let sql = format!(
            "SELECT c.id, c.hash, (SELECT title FROM unit u WHERE u.id = c.unit), c.breadcrumb, c.text {WITHOUT} ORDER BY c.id LIMIT ?2"
        );
        let mut statement = c.prepare_cached(&sql)?;
        let rows = statement.query_map(params![model.id(), BATCH], |row| {
            let (title, breadcrumb, text): (String, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
            Ok((row.get::<_, i64>(0)?, row.get::<_, Hash>(1)?, (title, breadcrumb, text)))
        })?;
        Ok(rows.collect::<Result<Vec<_>, _>>()?)
    })?;
    if batch.is_empty() {
        drop_unused_vectors(db, model)?;
        return Ok(false);
    }
    let parts: Vec<_> =
        batch.iter().map(|(_, _, (title, breadcrumb, text))| split_parts(title, breadcrumb, text, model)).collect();
    let texts: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
    let vectors = model.embed(&texts)?;
    db.write(|tx| {
        let mut insert = tx.prepare_cached("INSERT OR REPLACE INTO vector VALUES(?1, ?2, ?3, ?4)")?;
        let mut update = tx.prepare_cached("UPDATE chunk SET meaning = hash WHERE hash = ?1")?;
        let mut vectors = vectors.iter();
        for ((_, hash, _), parts) in batch.iter().zip(&parts) {
            for (part, vector) in (0_i64..).zip(vectors.by_ref().take(parts.len())) {
                insert.execute(params![hash, model.id(), part, encode(vector)])?;
            }
            update.execute([hash])?;
        }
        Ok(())
    })?;
    Ok(true)
}

/// Deletes the vectors of other models, and the vectors of texts that no chunk has any more.
fn drop_unused_vectors(db: &Db, model: &dyn TextEmbedder) -> Result<()> {
    let needless = "FROM vector WHERE model <> ?1 OR NOT EXISTS (SELECT 1 FROM chunk c WHERE c.meaning = vector.hash)
                    AND NOT EXISTS (SELECT 1 FROM chunk c WHERE c.hash = vector.hash)";
    if db.read(|c| Ok(c.prepare_cached(&format!("SELECT 1 {needless}"))?.exists([model.id()])?))? {
        db.write(|tx| Ok(tx.execute(&format!("DELETE {needless}"), [model.id()])?))?;
    }
    Ok(())
}

/// Splits a chunk into texts that fit into the model, as few as possible. Each text begins with the headings of the
/// chunk. A model ignores all text beyond its limit, so the end of a longer text would never be found.
fn split_parts(title: &str, breadcrumb: &str, text: &str, model: &dyn TextEmbedder) -> Vec<String> {
    let room = model.max_tokens().max(1);
    let is_long = model.count_tokens(&build_embedded_text(title, breadcrumb, "")) > room / 2;
    // Headings that would leave too little room for the text are left out.
    let (title, breadcrumb) = if is_long { ("", "") } else { (title, breadcrumb) };
    let fewest = model.count_tokens(&build_embedded_text(title, breadcrumb, text)).div_ceil(room).clamp(1, MAX_PARTS);
    let cut = |count| -> Vec<_> {
        cut_evenly(text, count).map(|part| build_embedded_text(title, breadcrumb, part)).collect()
    };
    let fits = |parts: &Vec<String>| parts.iter().all(|part| model.count_tokens(part) <= room);
    (fewest..MAX_PARTS).map(cut).find(fits).unwrap_or_else(|| cut(MAX_PARTS))
}

/// Cuts a text into `count` parts of nearly equal length. The cut is after a word if the word ends soon. It is inside a
/// word otherwise, because some scripts have no spaces.
fn cut_evenly(text: &str, count: usize) -> impl Iterator<Item = &str> {
    let mut begin = 0;
    let parts = (1..=count).map(move |part| {
        let nearly = text.floor_char_boundary(text.len() * part / count);
        let soon = text.floor_char_boundary(nearly + LONG_WORD);
        let else_here = if soon == text.len() { soon } else { nearly };
        let after_word = text[nearly..soon].find(char::is_whitespace).map_or(else_here, |offset| nearly + offset);
        text[std::mem::replace(&mut begin, after_word)..after_word].trim()
    });
    parts.enumerate().filter(|(index, part)| *index == 0 || !part.is_empty()).map(|(_, part)| part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model that counts each word as one token.
    struct Words;

    impl TextEmbedder for Words {
        fn id(&self) -> &'static str {
            "words"
        }
        fn dims(&self) -> usize {
            1
        }
        fn max_tokens(&self) -> usize {
            6
        }
        fn count_tokens(&self, text: &str) -> usize {
            text.split_whitespace().count()
        }
        fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
            Ok(vec![vec![1.0]; texts.len()])
        }
    }

    #[test]
    fn what_does_not_fit_is_made_in_parts() {
        assert_eq!(split_parts("T", "", "one two", &Words), ["T\none two"]);
        let text = "one two three four five six seven eight";
        assert_eq!(split_parts("T", "", text, &Words), ["T\none two three four five", "T\nsix seven eight"]);
        assert_eq!(split_parts("T", "T > B", "", &Words), ["T > B\n"]);
        let long = "word ".repeat(500);
        assert_eq!(split_parts("T", "", &long, &Words).len(), MAX_PARTS);
        // A text without spaces is cut inside a word.
        let signs = "目录里的文件都是笔记".repeat(9);
        let cut: Vec<_> = cut_evenly(&signs, 3).collect();
        assert_eq!((cut.len(), cut.concat()), (3, signs));
    }

    #[test]
    fn each_part_fits_and_together_they_are_the_whole() {
        let long = "words that are longer than the others and then a b c d e f g h i j k l m n o p q r s t u v";
        for (title, text) in [("T", long), ("A title of four", long), ("A title of six words alone", long)] {
            let parts = split_parts(title, "", text, &Words);
            assert!(parts.iter().all(|part| Words.count_tokens(part) <= Words.max_tokens()), "{parts:?}");
            let words = parts.iter().flat_map(|part| part.rsplit('\n').next().unwrap_or_default().split_whitespace());
            assert!(words.eq(text.split_whitespace()), "{parts:?}");
        }
    }
}

#[cfg(test)]
#[path = "meaning_tests.rs"]
mod follows;
