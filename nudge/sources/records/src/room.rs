//! The room on disk for all records together.

use nudge_core::error::{Error, Result};
use nudge_storage::rusqlite::Connection;
use nudge_storage::{TransactionFailure, used_bytes};

use crate::rows;

/// The setting with the limit of the room.
pub const MAX_BYTES: &str = "records.max_bytes";
/// The share of the room in percent from which a warning is shown.
const TOLD_FROM_PERCENT: u64 = 80;
/// The advice on how to make room.
const ADVICE: &str = "delete some with `nudge records rm ID --forever` or raise `records.max_bytes`";

/// The most bytes of the database's used pages. Freed pages do not count, although the file keeps them.
#[derive(Debug, Clone, Copy)]
pub struct StoreRoom {
    max_bytes: usize,
}

impl StoreRoom {
    pub const fn new(max_bytes: usize) -> Self {
        Self { max_bytes }
    }

    /// Refuses a write of `more_bytes` if the room does not suffice. Reads only two numbers of the database's header.
    ///
    /// # Errors
    /// `E_QUOTA`.
    pub fn require_room(self, c: &Connection, more_bytes: usize) -> Result<(), TransactionFailure> {
        let most = self.max_bytes as u64;
        if used_bytes(c)?.saturating_add(more_bytes as u64) <= most {
            return Ok(());
        }
        let message = format!("Records have no room left ({} at most); {ADVICE}.", format_size(most));
        Err(Error::quota("records_bytes", self.max_bytes, message).into())
    }

    /// Limits the growth by changes that are allowed without room: while there is no room, it drops a record's oldest
    /// revision for each new one.
    pub fn bound_revisions(self, c: &Connection, id: i64) -> Result<(), TransactionFailure> {
        match self.require_room(c, 1) {
            Err(TransactionFailure::Refused(_)) => rows::drop_oldest_revision(c, id),
            checked => checked,
        }
    }

    /// Returns a warning for people when little room is left.
    pub fn warn_if_full(self, c: &Connection) -> Result<Option<String>, TransactionFailure> {
        let most = (self.max_bytes as u64).max(1);
        let percent = used_bytes(c)?.saturating_mul(100) / most;
        Ok((percent >= TOLD_FROM_PERCENT).then(|| format!("{percent} % of {} are in use; {ADVICE}", format_size(most))))
    }
}

/// Formats a size in MiB or bytes.
fn format_size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{bytes} bytes"),
        _ => format!("{} MiB", bytes >> 20),
    }
}
