//! Finds the texts that hold words of a question by full-text search, and computes which share of the question each
//! text holds.
//!
//! A source has an FTS5 table with porter stems, and may have two more tables. A vocabulary of the first table finds
//! misspelt words. A table of trigrams over the beginning of each text ([`head`]) finds parts of words. The search
//! quotes each word, so FTS5 never reads a question as query syntax.
//!
//! ```
//! use nudge_storage::rusqlite::Connection;
//! use nudge_storage::search::{TextIndexCache, FullText, QuestionWords, search};
//!
//! static NOTES: FullText = FullText { table: "note", weights: &[2.0, 1.0], vocabulary: Some("note_words") };
//!
//! let c = Connection::open_in_memory()?;
//! c.execute_batch(
//!     "CREATE VIRTUAL TABLE note USING fts5(title, body, tokenize='porter unicode61 remove_diacritics 2');
//!      CREATE VIRTUAL TABLE note_words USING fts5vocab(note, 'row');
//!      INSERT INTO note(rowid, title, body) VALUES
//!        (1, 'Uploads above 1 MB are refused', 'nginx: client_max_body_size is 1m'),
//!        (2, 'Migrations', 'Each migration runs in a transaction.');",
//! )?;
//! let known = TextIndexCache::default();
//! let question = QuestionWords::from_text("why does \"client_max_body_size\" refuse my upload?");
//! let mut found = search(&c, &NOTES, &question, &known)?;
//! found.weigh_all(&c, &NOTES, &known)?;
//! let best = &found.rows[&1];
//! assert_eq!(found.words_of(best).collect::<Vec<_>>(), ["client_max_body_size", "refuse", "upload"]);
//! assert!(best.coverage > 0.99 && best.bm25 > 0.0);
//! // A misspelt word counts less.
//! let found = search(&c, &NOTES, &QuestionWords::from_text("migratoin"), &known)?;
//! assert_eq!(found.words[0].near, ["migrat"]);
//! assert!((found.rows[&2].coverage - 0.75).abs() < 1e-9);
//! # Ok::<(), nudge_storage::rusqlite::Error>(())
//! ```

mod grams;
mod known;
mod near;
mod words;

use nudge_core::number::from_count;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use rusqlite::Connection;

pub use grams::{head, trigrams};
pub use known::TextIndexCache;
use words::MAX_WORDS;
pub use words::QuestionWords;

/// Largest number of words of a prompt that are searched. If there are more, the rarest words that some text holds are
/// searched: a long prompt has many words that no text holds, and they would leave no room for the others. Of a query,
/// all of its words are searched.
const MAX_PROMPT_WORDS: usize = 16;
/// A word is common when more than one of this many texts holds it. The search leaves common words out, because they
/// say little and take the most time.
pub const COMMON_SHARE: usize = 3;
/// Number of texts from which common words are left out. With fewer texts, every word is searched.
const MIN_TEXTS: usize = 64;
/// Number of words that are searched even if all are common.
const MIN_WORDS: usize = 2;
/// Factor for the weight of a word for which only similar terms were found.
const NEAR: f64 = 0.75;

/// The FTS5 tables of a source that a search uses.
#[derive(Debug)]
pub struct FullText {
    /// The name of the table with porter stems. It must store the sizes of its columns, as FTS5 does by default.
    pub table: &'static str,
    /// The weight of a word in each column, in the order of the columns.
    pub weights: &'static [f64],
    /// The name of the table of the terms, `fts5vocab(table, 'row')`. With `None`, the search finds no misspelt words.
    pub vocabulary: Option<&'static str>,
}

/// The texts that hold words of a question.
#[derive(Debug, Default)]
pub struct FoundTexts {
    /// The words that were searched, in the order of the question. Common words are left out.
    pub words: Vec<QueryWord>,
    /// The texts, by row number.
    pub rows: HashMap<i64, HeldWords, RandomState>,
    /// The share of the question that some text holds, 0 to 1. Rare words weigh more, and a word that no text holds
    /// weighs most.
    pub known_share: f64,
}

impl FoundTexts {
    /// Returns the words of the question that the text `id` holds. The result is empty, with weight 0, for a text that
    /// the search did not find.
    pub fn held_words(&self, id: i64) -> HeldWords {
        self.rows.get(&id).copied().unwrap_or_default()
    }

    /// Returns the words that a text holds, as the question spells them.
    pub fn words_of<'a>(&'a self, held: &HeldWords) -> impl Iterator<Item = &'a str> {
        let bits = held.words;
        let held = self.words.iter().enumerate().filter(move |(index, _)| bits & 1 << index != 0);
        held.map(|(_, asked)| asked.word.as_str())
    }

    /// Adds the FTS5 weight of the words to all texts, which takes twice as long as finding the texts. `known` caches
    /// the texts and the weights until the index changes.
    ///
    /// # Errors
    /// SQLite's errors.
    pub fn weigh_all(&mut self, c: &Connection, full_text: &FullText, known: &TextIndexCache) -> rusqlite::Result<()> {
        for asked in self.words.iter().filter(|asked| asked.texts > 0) {
            for (row, weight) in known.find_weights(c, full_text, &asked.to_query())?.iter() {
                self.rows.entry(*row).or_default().bm25 += asked.compute_worth() * weight;
            }
        }
        Ok(())
    }
}

/// A word of a question, and the facts about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryWord {
    /// The word as the question spells it.
    pub word: String,
    /// The number of texts that hold the word, or one of the terms in `near`.
    pub texts: usize,
    /// The terms that replace the word when no text holds it. For a script without spaces, the clauses that contain the
    /// word.
    pub near: Vec<String>,
}

impl QueryWord {
    /// Returns the FTS5 query, which follows `MATCH` in a statement.
    fn to_query(&self) -> String {
        if self.near.is_empty() {
            return quote_word(&self.word);
        }
        self.near.iter().map(|near| quote_word(near)).collect::<Vec<_>>().join(" OR ")
    }

    /// Returns true when the word is a name and some text holds it letter by letter.
    fn is_held_name(&self) -> bool {
        self.texts > 0 && self.near.is_empty() && words::is_name(&self.word)
    }

    /// Returns the weight of the word; near terms lower it.
    fn compute_worth(&self) -> f64 {
        if self.near.is_empty() || near::is_part_of_clauses(&self.word) { 1.0 } else { NEAR }
    }
}

/// The share of a question that a text holds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HeldWords {
    /// The sum of the FTS5 weights of the held words, 0 or more. It is 0 before [`FoundTexts::weigh_all`].
    pub bm25: f64,
    /// The share of the question's words that the text holds, 0 to 1. Rare words weigh more.
    pub coverage: f64,
    /// The share of the question's names that the text holds letter by letter, 0 to 1. Rare names weigh more.
    pub names: f64,
    /// The held words: bit `n` stands for the word `n` of [`FoundTexts::words`].
    words: u32,
}

/// A word of the question, with the texts that hold it.
struct SearchTerm {
    asked: QueryWord,
    rows: Arc<[i64]>,
}

/// Finds all texts that hold any of the words. The number of results has no limit, because the caller ranks the texts
/// by more than words.
///
/// The first search after a change of the index reads the list of texts of each word. Words that no text holds take a
/// few milliseconds more with 20,000 terms.
///
/// # Errors
/// SQLite's errors.
#[allow(clippy::cast_precision_loss, reason = "there are far fewer texts than 2^53")]
pub fn search(
    c: &Connection,
    full_text: &FullText,
    words: &QuestionWords,
    known: &TextIndexCache,
) -> rusqlite::Result<FoundTexts> {
    let mut found = FoundTexts::default();
    if words.is_empty() {
        return Ok(found);
    }
    let total = count_texts(c, full_text.table)?;
    let terms = find_terms(c, full_text, words, known, total)?;
    let rarity = |texts: usize| ((total as f64 + 1.0) / (texts as f64 + 0.5)).ln().max(0.0);
    let weight_all: f64 = terms.iter().map(|term| rarity(term.asked.texts)).sum();
    let weight_known: f64 = terms.iter().filter(|term| term.asked.texts > 0).map(|term| rarity(term.asked.texts)).sum();
    found.known_share = if weight_all > 0.0 { weight_known / weight_all } else { 0.0 };
    // A prompt that speaks mostly of other things must match no text well. A caller who searches wants the best texts,
    // whatever else the question says.
    let all = if words.is_query() { weight_known } else { weight_all };
    let names: f64 = terms.iter().filter(|term| term.asked.is_held_name()).map(|term| rarity(term.asked.texts)).sum();
    for (index, term) in terms.iter().enumerate() {
        let share = term.asked.compute_worth() * if all > 0.0 { rarity(term.asked.texts) / all } else { 0.0 };
        for row in term.rows.iter() {
            let held = found.rows.entry(*row).or_default();
            held.coverage += share;
            if names > 0.0 && term.asked.is_held_name() {
                held.names += rarity(term.asked.texts) / names;
            }
            held.words |= 1 << index;
        }
    }
    found.words = terms.into_iter().map(|term| term.asked).collect();
    Ok(found)
}

/// Returns the words that are searched, in the order of the question.
fn find_terms(
    c: &Connection,
    full_text: &FullText,
    words: &QuestionWords,
    known: &TextIndexCache,
    total: usize,
) -> rusqlite::Result<Vec<SearchTerm>> {
    let many = if total < MIN_TEXTS { total } else { total / COMMON_SHARE };
    let mut terms = Vec::new();
    for word in words.iter() {
        let is_common = known.is_common(c, full_text.table, &quote_word(word), total)?;
        let rows = if is_common { Arc::default() } else { known.find_matching(c, full_text, &quote_word(word))? };
        let texts = if is_common { many + 1 } else { rows.len() };
        terms.push(SearchTerm { asked: QueryWord { word: word.to_owned(), texts, near: Vec::new() }, rows });
    }
    look_near(c, full_text, known, &mut terms)?;
    let mut by_rarity: Vec<_> = (0..terms.len()).collect();
    if terms.iter().filter(|term| term.asked.texts <= many).count() < MIN_WORDS {
        // Too few words are rare, so the loop also finds the texts of the common ones.
        for SearchTerm { asked, rows } in terms.iter_mut().filter(|term| term.asked.texts > many) {
            *rows = known.find_matching(c, full_text, &asked.to_query())?;
            asked.texts = rows.len();
        }
    }
    // Common words come last, and before them the words that no text holds.
    let order = |texts: usize| if texts > many { 2 } else { u8::from(texts == 0) };
    by_rarity.sort_by_key(|index| (order(terms[*index].asked.texts), terms[*index].asked.texts, *index));
    let rare = by_rarity.iter().filter(|index| terms[**index].asked.texts <= many).count();
    let most = if words.is_query() { MAX_WORDS } else { MAX_PROMPT_WORDS };
    by_rarity.truncate(rare.clamp(MIN_WORDS, most));
    let mut indices = 0..;
    terms.retain(|_| indices.next().is_some_and(|index| by_rarity.contains(&index)));
    Ok(terms)
}

/// Replaces each word of a script without spaces by the clauses that contain it. Replaces each other word that no text
/// holds by near terms.
fn look_near(
    c: &Connection,
    full_text: &FullText,
    known: &TextIndexCache,
    terms: &mut [SearchTerm],
) -> rusqlite::Result<()> {
    for SearchTerm { asked, rows } in terms.iter_mut().filter(|term| near::is_part_of_clauses(&term.asked.word)) {
        asked.near = near::find_holding(c, full_text, known, &asked.word)?;
        if !asked.near.is_empty() {
            *rows = known.find_matching(c, full_text, &asked.to_query())?;
            asked.texts = rows.len();
        }
    }
    let mut unknown: Vec<_> = terms.iter_mut().filter(|term| term.asked.texts == 0).collect();
    let words: Vec<_> = unknown.iter().map(|term| term.asked.word.as_str()).collect();
    let near = near::find_near(c, full_text, known, &words)?;
    for (SearchTerm { asked, rows }, near) in unknown.iter_mut().zip(near).filter(|(_, near)| !near.is_empty()) {
        asked.near = near;
        *rows = known.find_matching(c, full_text, &asked.to_query())?;
        asked.texts = rows.len();
    }
    Ok(())
}

/// Returns the number of texts.
fn count_texts(c: &Connection, table: &str) -> rusqlite::Result<usize> {
    let count: i64 =
        c.prepare_cached(&format!("SELECT count(*) FROM {table}_docsize"))?.query_row([], |row| row.get(0))?;
    Ok(from_count(count))
}

/// Returns the row numbers of the texts that match the query, each with the weight of the query's words.
fn read_weights(c: &Connection, full_text: &FullText, query: &str) -> rusqlite::Result<Vec<(i64, f64)>> {
    let weights = full_text.weights.iter().map(|weight| format!("{weight:?}"));
    let bm25 = std::iter::once(full_text.table.to_owned()).chain(weights).collect::<Vec<_>>().join(", ");
    let sql = format!("SELECT rowid, -bm25({bm25}) FROM {0} WHERE {0} MATCH ?1", full_text.table);
    let mut statement = c.prepare_cached(&sql)?;
    statement.query_map([query], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Returns the row numbers of the texts that match the query.
fn find_matching(c: &Connection, full_text: &FullText, query: &str) -> rusqlite::Result<Vec<i64>> {
    let mut statement = c.prepare_cached(&format!("SELECT rowid FROM {0} WHERE {0} MATCH ?1", full_text.table))?;
    statement.query_map([query], |row| row.get(0))?.collect()
}

/// Quotes a word, so that FTS5 reads none of its characters as syntax.
fn quote_word(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}
