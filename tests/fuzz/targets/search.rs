//! Searches the full-text index for any text. Characters of the index's query language must do no harm.
#![no_main]

use std::cell::LazyCell;

use libfuzzer_sys::fuzz_target;
use nudge_storage::rusqlite::Connection;
use nudge_storage::search::{FullText, QuestionWords, TextIndexCache, search};

static NOTES: FullText = FullText { table: "note", weights: &[1.0], vocabulary: Some("vocabulary") };

thread_local! {
    static INDEX: LazyCell<(Connection, TextIndexCache)> = LazyCell::new(|| {
        let c = Connection::open_in_memory().expect("there is memory");
        c.execute_batch(
            "CREATE VIRTUAL TABLE note USING fts5(text, tokenize='porter');
             CREATE VIRTUAL TABLE vocabulary USING fts5vocab(note, 'row');
             INSERT INTO note VALUES ('client_max_body_size refuses the upload'), ('a migration that waits for a lock');",
        )
        .expect("FTS5 is there");
        (c, TextIndexCache::default())
    });
}

fuzz_target!(|text: &str| {
    INDEX.with(|index| {
        let (c, known) = &**index;
        let mut found = search(c, &NOTES, &QuestionWords::of_query(text), known).expect("no text is a wrong query");
        found.weigh_all(c, &NOTES, known).expect("nor then");
        assert!(found.rows.values().all(|held| (0.0..=1.0 + 1e-9).contains(&held.coverage) && held.bm25 >= 0.0));
    });
});
