//! What is remembered of the indexes from one question to the next: to find it out takes as long as to look for the rest.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::near::{self, Spelt};
use super::{COMMON_SHARE, FullText, MIN_TEXTS};

/// Most words and trigrams that are remembered.
const MAX_COUNTED: usize = 8_192;
/// Most terms that are; they take a few megabytes.
const MAX_TERMS: usize = 100_000;
/// The row by which an index tells its versions apart: FTS5's list of what it is made of, with a count of its writes.
const STRUCTURE: i64 = 10;

/// Most texts that are, each once for each word that was weighed in it; they take 16 bytes.
const MAX_WEIGHTS: usize = 250_000;

/// What is known of the indexes of one database, one for each [`FullText`] and its trigrams: which words and trigrams are
/// common, which terms there are, and what words weigh that were asked for lately.
///
/// That more than a third of the texts hold a word, or not, is counted once, and taken for true until there are a
/// tenth more texts, or fewer: what is common today was nearly so yesterday. Terms and weights are those of the moment: one
/// change of the index, and they are read again.
#[derive(Debug, Default)]
pub struct Known {
    counted: Mutex<Counted>,
    spelt: Mutex<Vocabulary>,
    weighed: Mutex<Weighed>,
}

/// Texts, and what a word weighs in each.
type Weights = Arc<[(i64, f64)]>;

#[derive(Debug, Default)]
struct Weighed {
    /// The version of the index.
    version: Vec<u8>,
    /// By the query for a word.
    weights: HashMap<String, Weights, RandomState>,
    /// How many texts that are.
    texts: usize,
}

#[derive(Debug, Default)]
struct Counted {
    /// The number of texts when the first of these was counted.
    texts: usize,
    /// By the table, too: three letters may be a word.
    is_common: HashMap<(&'static str, String), bool, RandomState>,
}

#[derive(Debug, Default)]
struct Vocabulary {
    /// The version of the index.
    version: Vec<u8>,
    /// By their first letter.
    terms: HashMap<char, Arc<[Spelt]>, RandomState>,
    /// Those of scripts without spaces, all of them, once they were asked for.
    clauses: Option<Arc<[Box<str>]>>,
}

impl Known {
    /// Forgets all of it, when another file took the place of the one that it is of: the versions of two indexes may be the
    /// same.
    pub fn forget(&self) {
        *self.counted.lock() = Counted::default();
        *self.spelt.lock() = Vocabulary::default();
        *self.weighed.lock() = Weighed::default();
    }

    /// Whether more than a third of all texts match, and there are so many that it matters.
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
                *counted = Counted { texts, ..Counted::default() };
            }
            if let Some(is_common) = counted.is_common.get(&key) {
                return Ok(*is_common);
            }
        }
        let most = texts / COMMON_SHARE;
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ?1 LIMIT ?2)");
        let limit = i64::try_from(most + 1).unwrap_or(i64::MAX);
        let count: i64 = c.prepare_cached(&sql)?.query_row(params![query, limit], |row| row.get(0))?;
        let is_common = count == limit;
        self.counted.lock().is_common.insert(key, is_common);
        Ok(is_common)
    }

    /// The texts that match; as they were weighed, if they were.
    pub(super) fn matching(&self, c: &Connection, of: &FullText, query: &str) -> rusqlite::Result<Vec<i64>> {
        let version = version(c, of)?;
        let known = Some(self.weighed.lock()).filter(|weighed| weighed.version == version);
        match known.and_then(|weighed| weighed.weights.get(query).map(Arc::clone)) {
            Some(weights) => Ok(weights.iter().map(|(row, _)| *row).collect()),
            None => super::matching(c, of.table, query),
        }
    }

    /// The texts that match, and what the words of the query weigh in each.
    pub(super) fn weights(&self, c: &Connection, of: &FullText, query: &str) -> rusqlite::Result<Weights> {
        let version = version(c, of)?;
        {
            let mut weighed = self.weighed.lock();
            if weighed.version != version || weighed.texts > MAX_WEIGHTS {
                *weighed = Weighed { version: version.clone(), ..Weighed::default() };
            }
            if let Some(weights) = weighed.weights.get(query) {
                return Ok(Arc::clone(weights));
            }
        }
        let weights: Weights = super::weights(c, of, query, None)?.into();
        let mut weighed = self.weighed.lock();
        // Another thread may look at a later moment.
        if weighed.version == version {
            weighed.texts += weights.len();
            weighed.weights.insert(query.to_owned(), Arc::clone(&weights));
        }
        Ok(weights)
    }

    /// The terms that begin with a letter; none without a vocabulary.
    pub(super) fn terms(&self, c: &Connection, of: &FullText, first: char) -> rusqlite::Result<Arc<[Spelt]>> {
        self.remembered(
            c,
            of,
            |spelt| spelt.terms.get(&first).map(Arc::clone),
            |vocabulary| near::terms(c, vocabulary, first),
            |spelt, terms| drop(spelt.terms.insert(first, terms)),
        )
    }

    /// The terms of scripts without spaces; none without a vocabulary.
    pub(super) fn clauses(&self, c: &Connection, of: &FullText) -> rusqlite::Result<Arc<[Box<str>]>> {
        self.remembered(
            c,
            of,
            |spelt| spelt.clauses.clone(),
            |vocabulary| near::clauses(c, vocabulary),
            |spelt, clauses| spelt.clauses = Some(clauses),
        )
    }

    /// Terms as they were read since the last change of the index, or read now.
    fn remembered<T>(
        &self,
        c: &Connection,
        of: &FullText,
        find: impl Fn(&Vocabulary) -> Option<Arc<[T]>>,
        read: impl FnOnce(&str) -> rusqlite::Result<Vec<T>>,
        keep: impl FnOnce(&mut Vocabulary, Arc<[T]>),
    ) -> rusqlite::Result<Arc<[T]>> {
        let Some(vocabulary) = of.vocabulary else { return Ok(Arc::new([])) };
        let version = version(c, of)?;
        {
            let mut spelt = self.spelt.lock();
            if spelt.version != version || spelt.len() > MAX_TERMS {
                *spelt = Vocabulary { version: version.clone(), ..Vocabulary::default() };
            }
            if let Some(terms) = find(&spelt) {
                return Ok(terms);
            }
        }
        let terms: Arc<[T]> = read(vocabulary)?.into();
        let mut spelt = self.spelt.lock();
        // Another thread may look at a later moment.
        if spelt.version == version {
            keep(&mut spelt, Arc::clone(&terms));
        }
        Ok(terms)
    }
}

/// The version of an index.
fn version(c: &Connection, of: &FullText) -> rusqlite::Result<Vec<u8>> {
    let sql = format!("SELECT block FROM {}_data WHERE id = ?1", of.table);
    let version: Option<Vec<u8>> = c.prepare_cached(&sql)?.query_row([STRUCTURE], |row| row.get(0)).optional()?;
    // The name, as two indexes of one database may have the same.
    Ok([of.table.as_bytes(), &version.unwrap_or_default()].concat())
}

impl Vocabulary {
    /// The number of terms that are remembered.
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
        let known = Known::default();
        let weights = || known.weights(&c, &NOTES, "word").unwrap();
        let terms = || known.terms(&c, &NOTES, 'w').unwrap();
        let (first, of_w) = (weights(), terms());
        assert!(Arc::ptr_eq(&first, &weights()) && Arc::ptr_eq(&of_w, &terms()));
        assert_eq!((first.len(), of_w.len()), (2, 1));
        c.execute("INSERT INTO note VALUES('a wordy word')", []).unwrap();
        assert!(!Arc::ptr_eq(&first, &weights()) && !Arc::ptr_eq(&of_w, &terms()));
        assert_eq!((weights().len(), terms().len()), (3, 2));
        let (second, of_w) = (weights(), terms());
        known.forget();
        assert!(!Arc::ptr_eq(&second, &weights()) && !Arc::ptr_eq(&of_w, &terms()));
    }
}
