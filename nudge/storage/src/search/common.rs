//! What is too common to be looked for, remembered, for to count it takes as long as to look for what is not.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use rusqlite::Connection;

use super::{COMMON_SHARE, MIN_TEXTS, count};

/// Most words and trigrams that are remembered.
const MAX_KNOWN: usize = 8_192;

/// Which words and trigrams of a database more than a quarter of its texts hold. What was counted once is taken for
/// true until there are a tenth more texts, or fewer: nearly as much is found by a word that has become common since,
/// and by the others without one that is so no more.
#[derive(Debug, Default)]
pub struct Common(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The number of texts when the first of these was counted.
    texts: usize,
    /// By the table, too: three letters may be a word.
    is_common: HashMap<(&'static str, String), bool, RandomState>,
}

impl Common {
    /// Whether more than a quarter of all texts match, and there are so many that it matters.
    pub(super) fn is(&self, c: &Connection, table: &'static str, query: &str, texts: usize) -> rusqlite::Result<bool> {
        if texts < MIN_TEXTS {
            return Ok(false);
        }
        let key = (table, query.to_owned());
        {
            let mut known = self.0.lock();
            if known.texts.abs_diff(texts) * 10 > texts || known.is_common.len() >= MAX_KNOWN {
                *known = Known { texts, is_common: HashMap::default() };
            }
            if let Some(is_common) = known.is_common.get(&key) {
                return Ok(*is_common);
            }
        }
        let most = texts / COMMON_SHARE;
        let is_common = count(c, table, query, most + 1)? > most;
        self.0.lock().is_common.insert(key, is_common);
        Ok(is_common)
    }
}
