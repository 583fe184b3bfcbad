//! Caches facts about the indexes between questions: reading them takes as long as the rest of the search.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use nudge_core::number::to_column;
use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::near::{self, SpeltTerm};
use super::{COMMON_SHARE, FullText, MIN_TEXTS};

/// Largest number of words and trigrams in the cache of counts.
const MAX_COUNTED: usize = 8_192;
/// Largest number of cached terms, which take a few megabytes.
const MAX_TERMS: usize = 100_000;
/// The row of an FTS5 table that changes with each version of the index: FTS5's list of its parts, with a count of
/// writes.
const STRUCTURE: i64 = 10;

/// Size limit of the cached lists of texts, in bytes. A list has 8 bytes for each text that holds the word, and 16 with
/// a weight.
const MAX_LISTED_BYTES: usize = 4_000_000;

/// A cache of the indexes of one database, one for each [`FullText`] and its trigrams: the common words and trigrams,
/// the terms, the texts that hold words of recent questions, and the weights of these words in them.
///
/// The cache counts only once whether more than a third of the texts hold a word. It counts again when the number of
/// texts has changed by a tenth, because a common word rarely becomes rare sooner. Terms, texts and weights are always
/// current: the cache reads them again after each change of the index.
#[derive(Debug, Default)]
pub struct TextIndexCache {
    counted: Mutex<CachedCounts>,
    spelt: Mutex<IndexVocabulary>,
    listed: Mutex<CachedLists>,
}

/// The cached results of queries. A query is one word, or the terms near it.
type ByQuery<T> = HashMap<String, Arc<[T]>, RandomState>;

#[derive(Debug, Default)]
struct CachedLists {
    /// The version of the index.
    version: Vec<u8>,
    /// The texts that match each query.
    matching: ByQuery<i64>,
    /// The texts that match each query, with the weight of its words in each.
    weights: ByQuery<(i64, f64)>,
    /// The size of the lists in bytes.
    bytes: usize,
}

#[derive(Debug, Default)]
struct CachedCounts {
    /// The number of texts when the first of these words was counted.
    texts: usize,
    /// The key has the table too, because the same three letters may be a trigram and a word.
    is_common: HashMap<(&'static str, String), bool, RandomState>,
}

#[derive(Debug, Default)]
struct IndexVocabulary {
    /// The version of the index.
    version: Vec<u8>,
    /// The terms, by their first letter.
    terms: HashMap<char, Arc<[SpeltTerm]>, RandomState>,
    /// All terms of scripts without spaces; `None` until a question needs them.
    clauses: Option<Arc<[Box<str>]>>,
}

impl TextIndexCache {
    /// Empties the cache when another file has replaced the database: the versions of two indexes may be equal.
    pub fn forget(&self) {
        *self.counted.lock() = CachedCounts::default();
        *self.spelt.lock() = IndexVocabulary::default();
        *self.listed.lock() = CachedLists::default();
    }

    /// Returns true when more than a third of all texts match, and there are enough texts for that to matter.
    pub(super) fn is_common(
        &self,
        c: &Connection,
        table: &'static str,
        query: &str,
        texts: usize,
    ) -> rusqlite::Result<bool> {
        if texts < MIN_TEXTS {
            return Ok(false);
        }
        let key = (table, query.to_owned());
        {
            let mut counted = self.counted.lock();
            if counted.texts.abs_diff(texts) * 10 > texts || counted.is_common.len() >= MAX_COUNTED {
                *counted = CachedCounts { texts, ..CachedCounts::default() };
            }
            if let Some(is_common) = counted.is_common.get(&key) {
                return Ok(*is_common);
            }
        }
        let most = texts / COMMON_SHARE;
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ?1 LIMIT ?2)");
        let limit = to_column(most + 1);
        let count: i64 = c.prepare_cached(&sql)?.query_row(params![query, limit], |row| row.get(0))?;
        let is_common = count == limit;
        self.counted.lock().is_common.insert(key, is_common);
        Ok(is_common)
    }

    /// Returns the texts that match, from the cached weights if there are any.
    pub(super) fn find_matching(
        &self,
        c: &Connection,
        full_text: &FullText,
        query: &str,
    ) -> rusqlite::Result<Arc<[i64]>> {
        let version = read_version(c, full_text)?;
        if let Some(weights) = self.lock_current(&version).weights.get(query) {
            return Ok(weights.iter().map(|(row, _)| *row).collect());
        }
        self.find_or_read(&version, query, |listed| &mut listed.matching, || super::find_matching(c, full_text, query))
    }

    /// Returns the texts that match, and the weight of the query's words in each.
    pub(super) fn find_weights(
        &self,
        c: &Connection,
        full_text: &FullText,
        query: &str,
    ) -> rusqlite::Result<Arc<[(i64, f64)]>> {
        let version = read_version(c, full_text)?;
        let weights = self.find_or_read(
            &version,
            query,
            |listed| &mut listed.weights,
            || super::read_weights(c, full_text, query),
        )?;
        // The weights contain the list of matching texts too, so the other list is removed.
        let mut listed = self.listed.lock();
        if let Some(rows) = listed.matching.remove(query) {
            listed.bytes -= size_of_val(&*rows);
        }
        Ok(weights)
    }

    /// Returns the cached lists of this version. Empties them if they are of another version or too large.
    fn lock_current(&self, version: &[u8]) -> MutexGuard<'_, CachedLists> {
        let mut listed = self.listed.lock();
        if listed.version != version || listed.bytes > MAX_LISTED_BYTES {
            *listed = CachedLists { version: version.to_owned(), ..CachedLists::default() };
        }
        listed
    }

    /// Returns a cached list of this version, or reads it.
    fn find_or_read<T>(
        &self,
        version: &[u8],
        query: &str,
        place: fn(&mut CachedLists) -> &mut ByQuery<T>,
        read: impl FnOnce() -> rusqlite::Result<Vec<T>>,
    ) -> rusqlite::Result<Arc<[T]>> {
        if let Some(list) = place(&mut self.lock_current(version)).get(query) {
            return Ok(Arc::clone(list));
        }
        let list: Arc<[T]> = read()?.into();
        let mut listed = self.listed.lock();
        // Another thread may have cached lists of a later version.
        if listed.version == version {
            listed.bytes += size_of_val(&*list);
            place(&mut listed).insert(query.to_owned(), Arc::clone(&list));
        }
        Ok(list)
    }

    /// Returns the terms that begin with a letter; none without a vocabulary.
    pub(super) fn find_terms(
        &self,
        c: &Connection,
        full_text: &FullText,
        first: char,
    ) -> rusqlite::Result<Arc<[SpeltTerm]>> {
        self.remember_terms(
            c,
            full_text,
            |spelt| spelt.terms.get(&first).map(Arc::clone),
            |vocabulary| near::read_terms(c, vocabulary, first),
            |spelt, terms| drop(spelt.terms.insert(first, terms)),
        )
    }

    /// Returns the terms of scripts without spaces; none without a vocabulary.
    pub(super) fn find_clauses(&self, c: &Connection, full_text: &FullText) -> rusqlite::Result<Arc<[Box<str>]>> {
        self.remember_terms(
            c,
            full_text,
            |spelt| spelt.clauses.clone(),
            |vocabulary| near::read_clauses(c, vocabulary),
            |spelt, clauses| spelt.clauses = Some(clauses),
        )
    }

    /// Returns cached terms of the current version, or reads them.
    fn remember_terms<T>(
        &self,
        c: &Connection,
        full_text: &FullText,
        find: impl Fn(&IndexVocabulary) -> Option<Arc<[T]>>,
        read: impl FnOnce(&str) -> rusqlite::Result<Vec<T>>,
        keep: impl FnOnce(&mut IndexVocabulary, Arc<[T]>),
    ) -> rusqlite::Result<Arc<[T]>> {
        let Some(vocabulary) = full_text.vocabulary else { return Ok(Arc::new([])) };
        let version = read_version(c, full_text)?;
        {
            let mut spelt = self.spelt.lock();
            if spelt.version != version || spelt.len() > MAX_TERMS {
                *spelt = IndexVocabulary { version: version.clone(), ..IndexVocabulary::default() };
            }
            if let Some(terms) = find(&spelt) {
                return Ok(terms);
            }
        }
        let terms: Arc<[T]> = read(vocabulary)?.into();
        let mut spelt = self.spelt.lock();
        // Another thread may have cached terms of a later version.
        if spelt.version == version {
            keep(&mut spelt, Arc::clone(&terms));
        }
        Ok(terms)
    }
}

/// Returns the version of an index.
fn read_version(c: &Connection, full_text: &FullText) -> rusqlite::Result<Vec<u8>> {
    let sql = format!("SELECT block FROM {}_data WHERE id = ?1", full_text.table);
    let version: Option<Vec<u8>> = c.prepare_cached(&sql)?.query_row([STRUCTURE], |row| row.get(0)).optional()?;
    // The version contains the table's name, because two indexes of one database may have the same number.
    Ok([full_text.table.as_bytes(), &version.unwrap_or_default()].concat())
}

impl IndexVocabulary {
    /// Returns the number of cached terms.
    fn len(&self) -> usize {
        let clauses = self.clauses.as_ref().map_or(0, |clauses| clauses.len());
        self.terms.values().map(|terms| terms.len()).sum::<usize>() + clauses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_not_read_again_before_a_change() {
        static NOTES: FullText = FullText { table: "note", weights: &[1.0], vocabulary: Some("note_words") };
        let c = Connection::open_in_memory().unwrap();
        c.execute_batch(
            "CREATE VIRTUAL TABLE note USING fts5(body);
             CREATE VIRTUAL TABLE note_words USING fts5vocab(note, 'row');
             INSERT INTO note VALUES('one word'), ('another word');",
        )
        .unwrap();
        let known = TextIndexCache::default();
        let weights = || known.find_weights(&c, &NOTES, "word").unwrap();
        let matching = || known.find_matching(&c, &NOTES, "word").unwrap();
        let terms = || known.find_terms(&c, &NOTES, 'w').unwrap();
        let found = matching();
        assert!(Arc::ptr_eq(&found, &matching()) && found[..] == [1, 2]);
        let (first, of_w) = (weights(), terms());
        assert!(Arc::ptr_eq(&first, &weights()) && Arc::ptr_eq(&of_w, &terms()));
        assert_eq!((first.len(), of_w.len()), (2, 1));
        let listed = known.listed.lock();
        assert!(listed.matching.is_empty() && listed.bytes == size_of_val(&*first), "the weights tell the texts, too");
        drop(listed);
        assert_eq!(matching()[..], [1, 2]);
        c.execute("INSERT INTO note VALUES('a wordy word')", []).unwrap();
        assert!(!Arc::ptr_eq(&first, &weights()) && !Arc::ptr_eq(&of_w, &terms()));
        assert_eq!((weights().len(), &matching()[..], terms().len()), (3, &[1, 2, 3][..], 2));
        let (second, of_w) = (weights(), terms());
        known.forget();
        assert!(!Arc::ptr_eq(&second, &weights()) && !Arc::ptr_eq(&of_w, &terms()));
    }
}
