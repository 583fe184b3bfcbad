//! Searches by trigrams, which are sequences of three letters. They find parts of words and misspelt words.

use rusqlite::Connection;

use super::{QuestionWords, TextIndexCache, count_texts, quote_word};

/// Number of characters after the title that go into the table of trigrams. The number is small, because a character
/// costs eight times as much space as in the index of stems.
const HEAD_CHARS: usize = 500;
/// Largest number of trigrams that are searched.
const MAX_GRAMS: usize = 60;
/// Largest number of words of a question whose trigrams are searched. A longer question shares some with every text.
const MAX_PIECES: usize = 24;

/// Returns the text that a source stores in its table of trigrams: the title and the first 500 characters of the body.
///
/// ```
/// use nudge_storage::search::head;
///
/// assert_eq!(head("Uploads", "are refused"), "Uploads\nare refused");
/// assert_eq!(head("", &"ä".repeat(600)).chars().count(), 501);
/// ```
pub fn head(title: &str, body: &str) -> String {
    let end = body.char_indices().nth(HEAD_CHARS).map_or(body.len(), |(offset, _)| offset);
    format!("{title}\n{}", &body[..end])
}

/// Returns the row numbers of the texts that share trigrams with the words, each with its FTS5 weight. The table must
/// have `tokenize='trigram'`. With 64 texts or more, the search leaves out common trigrams. It takes several times as
/// long as [`search`](super::search), because most texts share a trigram with most others. The result is empty for a
/// question of more than 24 words.
///
/// # Errors
/// SQLite's errors.
///
/// ```
/// use nudge_storage::rusqlite::Connection;
/// use nudge_storage::search::{TextIndexCache, QuestionWords, trigrams};
///
/// let c = Connection::open_in_memory()?;
/// c.execute_batch(
///     "CREATE VIRTUAL TABLE note USING fts5(head, tokenize='trigram');
///      INSERT INTO note(rowid, head) VALUES(1, 'HttpProxy'), (2, 'migrations'), (3, '数据库迁移');",
/// )?;
/// let known = TextIndexCache::default();
/// let find = |words: &str| trigrams(&c, "note", &QuestionWords::from_text(words), &known);
/// let rows = |words: &str| find(words).map(|found| found.into_iter().map(|(row, _)| row));
/// assert_eq!(rows("httpproxi")?.collect::<Vec<_>>(), [1]);
/// assert_eq!(rows("数据库")?.collect::<Vec<_>>(), [3]);
/// # Ok::<(), nudge_storage::rusqlite::Error>(())
/// ```
pub fn trigrams(
    c: &Connection,
    table: &'static str,
    words: &QuestionWords,
    known: &TextIndexCache,
) -> rusqlite::Result<Vec<(i64, f64)>> {
    if words.pieces().count() > MAX_PIECES {
        return Ok(Vec::new());
    }
    let mut grams: Vec<String> = Vec::new();
    for word in words.pieces() {
        let letters: Vec<char> = word.to_lowercase().chars().collect();
        for gram in letters.windows(3).map(|gram| quote_word(&gram.iter().collect::<String>())) {
            if grams.len() < MAX_GRAMS && !grams.contains(&gram) {
                grams.push(gram);
            }
        }
    }
    let total = count_texts(c, table)?;
    let mut rare = Vec::new();
    for gram in grams {
        if !known.is_common(c, table, &gram, total)? {
            rare.push(gram);
        }
    }
    if rare.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!("SELECT rowid, -bm25({table}) FROM {table} WHERE {table} MATCH ?1 ORDER BY rowid");
    let mut statement = c.prepare_cached(&sql)?;
    statement.query_map([rare.join(" OR ")], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
