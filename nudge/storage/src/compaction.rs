//! Rewrites a database file, so that no deleted text is left in it. A row in the table `compaction`, the mark, says
//! that the file must be rewritten. The deletion and its mark are one transaction, and the end of the rewriting removes
//! the mark. So the next process repeats the rewriting if this process dies.

use std::time::Instant;

use nudge_core::error::Result;
use rusqlite::{Connection, Transaction};

use crate::db::Db;
use crate::fault::TransactionFailure;

/// The migration that makes the table for the marks. Every [`DatabaseKind`](crate::DatabaseKind) whose source calls
/// [`Db::compact`] needs it.
pub const COMPACTION: &str = "CREATE TABLE compaction(seq INTEGER PRIMARY KEY AUTOINCREMENT) STRICT;";

/// Number of pages of a full-text index that one transaction merges. Other writers can write between two of these
/// transactions.
const MERGE_PAGES: i64 = 500;
/// Number of changed rows that shows that FTS5 merged something. With fewer changes, nothing is left to merge.
const MIN_MERGE_CHANGES: i64 = 2;

/// Marks that the file must be rewritten. The caller passes the transaction of the deletion.
///
/// # Errors
/// SQLite's error when the statement fails.
pub fn mark_compaction(tx: &Transaction<'_>) -> Result<(), TransactionFailure> {
    tx.prepare_cached("INSERT INTO compaction DEFAULT VALUES")?.execute([])?;
    Ok(())
}

/// Returns the size of the pages in use, in bytes. The call only reads two numbers of the header.
///
/// # Errors
/// SQLite's error when the statement fails.
pub fn used_bytes(c: &Connection) -> Result<u64, TransactionFailure> {
    let pragma = |sql: &str| c.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0));
    let pages = pragma("PRAGMA page_count")? - pragma("PRAGMA freelist_count")?;
    Ok((pages * pragma("PRAGMA page_size")?).unsigned_abs())
}

impl Db {
    /// Returns true if the file contains a [mark](mark_compaction) and so must be rewritten.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn is_compaction_due(&self) -> Result<bool> {
        Ok(self.last_mark()?.is_some())
    }

    /// Returns the size of the file without its log, in bytes.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn file_bytes(&self) -> Result<i64> {
        self.read(|c| {
            let pragma = |name: &str| c.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            Ok(pragma("page_count")? * pragma("page_size")?)
        })
    }

    /// Rewrites the whole file if it contains a [mark](mark_compaction). Then no part of the deleted rows is left in
    /// the file, in its full-text indexes or in its log. Backups stay unchanged.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when other processes use the file until the wait is over, or when the disk has no space for a
    /// copy of the file. Then the mark stays.
    pub fn compact(&self) -> Result<()> {
        let Some(mark) = self.last_mark()? else { return Ok(()) };
        for table in self.app.full_text {
            self.merge_index(table)?;
        }
        // Waits for a running copy of the day: its reading prevents SQLite from cutting the log, and all writers would
        // wait.
        if !self.copies.wait_for_copy(Instant::now() + self.wait) {
            return Err(self.place.busy_error());
        }
        self.place.map_failure(self.vacuum())?;
        // A deletion that was committed during the rewriting has its own mark, which stays.
        self.write(|tx| Ok(tx.execute("DELETE FROM compaction WHERE seq <= ?1", [mark])?)).map(|_| ())
    }

    fn last_mark(&self) -> Result<Option<i64>> {
        self.read(|c| Ok(c.prepare_cached("SELECT max(seq) FROM compaction")?.query_row([], |row| row.get(0))?))
    }

    /// Merges a full-text index into one segment. FTS5 keeps a deleted word in its segment until a merge, and VACUUM
    /// copies segments unchanged.
    fn merge_index(&self, table: &str) -> Result<()> {
        let merge = format!("INSERT INTO {table}({table}, rank) VALUES('merge', ?1)");
        let mut pages = -MERGE_PAGES;
        loop {
            let changes = self.write(|tx| {
                let before = count_changes(tx)?;
                tx.prepare_cached(&merge)?.execute([pages])?;
                Ok(count_changes(tx)? - before)
            })?;
            if changes < MIN_MERGE_CHANGES {
                return Ok(());
            }
            // A negative number begins a merge of all segments, a positive one continues it.
            pages = MERGE_PAGES;
        }
    }

    fn vacuum(&self) -> Result<(), TransactionFailure> {
        let deadline = Instant::now() + self.wait;
        let mut writer = self.lock_writer(deadline)?;
        self.stay_in_place(&mut writer, deadline)?;
        let c = writer.as_ref().ok_or_else(|| self.closed_error())?;
        c.busy_timeout(deadline.saturating_duration_since(Instant::now()))?;
        // The copy may be larger than the memory, so SQLite puts it into a file without a name and with mode 0600.
        c.pragma_update(None, "temp_store", "FILE")?;
        let vacuumed = c.execute_batch("VACUUM");
        c.pragma_update(None, "temp_store", "MEMORY")?;
        vacuumed?;
        c.busy_timeout(self.wait)?;
        let is_log_read: bool = c.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if is_log_read { Err(self.place.busy_error().into()) } else { Ok(()) }
    }
}

fn count_changes(c: &Connection) -> rusqlite::Result<i64> {
    c.query_row("SELECT total_changes()", [], |row| row.get(0))
}
