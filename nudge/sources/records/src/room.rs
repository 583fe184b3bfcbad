//! Limits the room on disk that all records together may take.

use nudge_core::error::{Error, Result};
use nudge_storage::rusqlite::Connection;
use nudge_storage::{TransactionFailure, used_bytes};

use crate::rows;

/// The name of the setting that holds the limit in bytes.
pub const MAX_BYTES: &str = "records.max_bytes";
/// The share of the limit, in percent, from which a warning is shown.
const TOLD_FROM_PERCENT: u64 = 80;
/// The advice of each message about missing room.
const ADVICE: &str = "delete some with `nudge records rm ID --forever` or raise `records.max_bytes`";

/// The limit of the database's used pages, in bytes. Freed pages do not count, although the file still contains them.
#[derive(Debug, Clone, Copy)]
pub struct StoreRoom {
    max_bytes: usize,
}

impl StoreRoom {
    pub const fn new(max_bytes: usize) -> Self {
        Self { max_bytes }
    }

    /// Refuses a write of `more_bytes` if it would exceed the limit. Reads only two numbers from the database's header.
    ///
    /// # Errors
    /// `E_QUOTA` when there is not enough room.
    pub fn require_room(self, c: &Connection, more_bytes: usize) -> Result<(), TransactionFailure> {
        let most = self.max_bytes as u64;
        if used_bytes(c)?.saturating_add(more_bytes as u64) <= most {
            return Ok(());
        }
        let message = format!("Records have no room left ({} at most); {ADVICE}.", format_size(most));
        Err(Error::quota("records_bytes", self.max_bytes, message).into())
    }

    /// Keeps the database from growing by changes that are allowed even without room. While there is no room, each new
    /// revision of a record drops the oldest revision of that record.
    pub fn bound_revisions(self, c: &Connection, id: i64) -> Result<(), TransactionFailure> {
        match self.require_room(c, 1) {
            Err(TransactionFailure::Refused(_)) => rows::drop_oldest_revision(c, id),
            checked => checked,
        }
    }

    /// Returns a warning for the user when 80 % or more of the room is in use.
    pub fn warn_if_full(self, c: &Connection) -> Result<Option<String>, TransactionFailure> {
        let most = (self.max_bytes as u64).max(1);
        let percent = used_bytes(c)?.saturating_mul(100) / most;
        Ok((percent >= TOLD_FROM_PERCENT).then(|| format!("{percent} % of {} are in use; {ADVICE}", format_size(most))))
    }
}

/// Formats a size in MiB, or in bytes if it is below 1 MiB.
fn format_size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{bytes} bytes"),
        _ => format!("{} MiB", bytes >> 20),
    }
}
