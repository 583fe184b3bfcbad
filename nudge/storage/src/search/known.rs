//! Caches facts about full-text indexes between questions, because reading them takes as long as the rest of a search.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use nudge_core::number::to_column;
use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::near::{self, SpeltTerm};
use super::{COMMON_SHARE, FullText, MIN_TEXTS};

/// Largest number of words and trigrams for which the cache stores whether they are common.
const MAX_COUNTED: usize = 8_192;
/// Largest number of cached terms; this many take a few megabytes.
const MAX_TERMS: usize = 100_000;
/// The number of the row in FTS5's data table that changes with each write. The row lists the parts of the index and
/// counts the writes.
const STRUCTURE: i64 = 10;

/// Size limit of the cached lists, in bytes. For each text a list has 8 bytes, or 16 bytes with a weight.
const MAX_LISTED_BYTES: usize = 4_000_000;

/// A cache of facts about the indexes of one database. A caller uses one cache for each [`FullText`] and its trigrams.
/// It holds the common words and trigrams, the terms, the texts that hold the words of recent questions, and the
/// weights of these words.
///
/// Terms, texts and weights are always current: the cache reads them again after each change of the index. The cache
/// stores whether more than a third of the texts hold a word, and counts again only when the number of texts has
/// changed by a tenth. A common word rarely becomes rare sooner.
#[derive(Debug, Default)]
pub struct TextIndexCache {
    counted: Mutex<CachedCounts>,
    spelt: Mutex<IndexVocabulary>,
    listed: Mutex<CachedLists>,
}

/// The results by query. A query is one word, or the near terms of a word.
type ByQuery<T> = HashMap<String, Arc<[T]>, RandomState>;

#[derive(Debug, Default)]
struct CachedLists {
    /// The version of the index to which the lists belong.
    version: Vec<u8>,
    /// The row numbers of the texts that match each query.
    matching: ByQuery<i64>,
    /// The row numbers of the texts that match each query, with the weight of the query's words.
    weights: ByQuery<(i64, f64)>,
    /// The size of all lists, in bytes.
    bytes: usize,
}

#[derive(Debug, Default)]
struct CachedCounts {
    /// The number of texts at the time of the first count.
    texts: usize,
    /// Says whether a word or trigram is common. The key also has the table, because a word of three letters may be a
    /// trigram too.
    is_common: HashMap<(&'static str, String), bool, RandomState>,
}

#[derive(Debug, Default)]
struct IndexVocabulary {
    /// The version of the index to which the terms belong.
    version: Vec<u8>,
    /// The terms that were read, by their first letter.
    terms: HashMap<char, Arc<[SpeltTerm]>, RandomState>,
    /// All terms of scripts without spaces; `None` until a question needs them.
    clauses: Option<Arc<[Box<str>]>>,
}

impl TextIndexCache {
    /// Empties the cache. The caller calls this when another file has replaced the database, because two indexes may
    /// have the same version.
    pub fn forget(&self) {
        *self.counted.lock() = CachedCounts::default();
        *self.spelt.lock() = IndexVocabulary::default();
        *self.listed.lock() = CachedLists::default();
    }

    /// Returns true when more than a third of `total` texts match and the number of texts is at least 64.
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

    /// Returns the row numbers of the texts that match, and takes them from cached weights if there are any.
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

    /// Returns the row numbers of the texts that match, with the weight of the query's words in each.
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
        // Removes the list of the same texts without weights, because this list contains them.
        let mut listed = self.listed.lock();
        if let Some(rows) = listed.matching.remove(query) {
            listed.bytes -= size_of_val(&*rows);
        }
        Ok(weights)
    }

    /// Locks the cached lists. Empties them first if they belong to another version or are too large.
    fn lock_current(&self, version: &[u8]) -> MutexGuard<'_, CachedLists> {
        let mut listed = self.listed.lock();
        if listed.version != version || listed.bytes > MAX_LISTED_BYTES {
            *listed = CachedLists { version: version.to_owned(), ..CachedLists::default() };
        }
        listed
    }

    /// Returns a cached list of this version; if there is none, reads and caches it.
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
        // Caches nothing if another thread has cached lists of a later version meanwhile.
        if listed.version == version {
            listed.bytes += size_of_val(&*list);
            place(&mut listed).insert(query.to_owned(), Arc::clone(&list));
        }
        Ok(list)
    }

    /// Returns the terms that begin with a letter. The result is empty if the source has no vocabulary.
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

    /// Returns the terms of scripts without spaces. The result is empty if the source has no vocabulary.
    pub(super) fn find_clauses(&self, c: &Connection, full_text: &FullText) -> rusqlite::Result<Arc<[Box<str>]>> {
        self.remember_terms(
            c,
            full_text,
            |spelt| spelt.clauses.clone(),
            |vocabulary| near::read_clauses(c, vocabulary),
            |spelt, clauses| spelt.clauses = Some(clauses),
        )
    }

    /// Returns the cached terms of the current version; if there are none, reads and caches them.
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
        // Caches nothing if another thread has cached terms of a later version meanwhile.
        if spelt.version == version {
            keep(&mut spelt, Arc::clone(&terms));
        }
        Ok(terms)
    }
}

/// Returns the version of the index, which changes with each write.
fn read_version(c: &Connection, full_text: &FullText) -> rusqlite::Result<Vec<u8>> {
    let sql = format!("SELECT block FROM {}_data WHERE id = ?1", full_text.table);
    let version: Option<Vec<u8>> = c.prepare_cached(&sql)?.query_row([STRUCTURE], |row| row.get(0)).optional()?;
    // Adds the table's name, because two indexes of a database may have the same number.
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
