//! Imports the records of a file in batches. So a file may be of any size, and other writers can work between two
//! batches.
//!
//! Only the last batch carries the call's key. After an interruption, the caller repeats the import; the import then
//! skips the records that are stored already.

use std::time::{Duration, Instant};

use nudge_core::error::{Error, ErrorKind, Result};
use nudge_core::patience;
use nudge_core::service::Caller;
use nudge_storage::rusqlite::Transaction;
use nudge_storage::{Db, KeyedAnswer};
use serde_json::json;
use serde_json::value::RawValue;

use crate::incoming::{IncomingRecords, ReadRecord};
use crate::rows::RecordAuthor;
use crate::seen::ComparisonCount;
use crate::source::{RecordSource, to_detail};
use crate::transfer::{self, ImportBatch, RecordImport, RecordImportParams};
use crate::write::to_author;

/// The most records of a batch. A batch also ends when it has `BATCH_BYTES` bytes. All other writers wait for a batch:
/// 100 records of 2.7 KB take 0.15 s, and 0.8 s on a busy machine.
const BATCH_RECORDS: usize = 100;
const BATCH_BYTES: usize = 1 << 20;
/// A batch that takes longer than `BATCH_TIME` makes the next batch half as large, down to this number of records.
const MIN_BATCH_RECORDS: usize = 10;
const BATCH_TIME: Duration = Duration::from_millis(200);
/// After a batch, the import pauses for the batch's time divided by this number. A waiting process tries to write at
/// most every 0.1 s, and one of its tries within 5 s must be in such a pause.
const PAUSE_DIVISOR: u32 = 4;

impl RecordSource {
    /// Imports the records of a file. If the import fails, the records of the finished batches stay.
    pub(crate) fn import_records(&self, caller: Caller<'_>, params: RecordImportParams) -> Result<Box<RawValue>> {
        let file = IncomingRecords::open(&transfer::resolve_path(&params.file, params.context)?)?;
        let author = to_author(caller, self.clock());
        let mut run = ImportRun {
            records: self,
            db: self.open_db()?,
            author: &author,
            batch: Vec::with_capacity(BATCH_RECORDS),
            batch_records: BATCH_RECORDS,
            bytes: 0,
            place: 0,
            done: RecordImport::default(),
            comparisons: ComparisonCount::default(),
        };
        let answer = file.read(&mut |record| run.take(record)).and_then(|()| run.finish(caller));
        let done = run.done;
        let is_new = answer.as_ref().is_ok_and(|answer| !answer.again);
        if is_new || done.imported > 0 {
            self.note_written();
            self.tell_change(caller, "import", to_detail(json!({"imported": done.imported})));
        }
        answer.map(|answer| answer.result).map_err(|error| say_what_is_in(error, &done))
    }
}

/// Adds the number of records that are stored already to the message of an error.
fn say_what_is_in(error: Error, done: &RecordImport) -> Error {
    let RecordImport { imported, skipped, .. } = *done;
    if imported + skipped == 0 {
        return error;
    }
    let count = if imported == 1 { "1 record".to_owned() } else { format!("{imported} records") };
    let why = error.message().trim_end_matches('.');
    let message = format!("{why}; {count} of the file came in before that, and the same import goes on with the rest.");
    error.with_message(message).with_data("imported", imported).with_data("skipped", skipped)
}

/// A running import.
struct ImportRun<'a> {
    records: &'a RecordSource,
    db: &'a Db,
    author: &'a RecordAuthor,
    /// The records of the next batch.
    batch: Vec<ReadRecord>,
    /// The number of records of a full batch now.
    batch_records: usize,
    /// The approximate size of the next batch, in bytes.
    bytes: usize,
    /// The position of the next batch's first record in the file.
    place: usize,
    /// The outcome of all finished batches.
    done: RecordImport,
    comparisons: ComparisonCount,
}

impl ImportRun<'_> {
    /// Adds a record to the batch, and writes the batch when it is full.
    fn take(&mut self, record: ReadRecord) -> Result<()> {
        self.bytes += record.as_ref().map_or(0, transfer::MovedRecord::bytes);
        self.batch.push(record);
        if self.batch.len() < self.batch_records && self.bytes < BATCH_BYTES {
            return Ok(());
        }
        let begun = Instant::now();
        self.write(None)?;
        self.place += self.batch.len();
        self.batch.clear();
        self.bytes = 0;
        if patience::is_over() {
            return Err(Error::unavailable("Nobody waits for this import any more."));
        }
        let time = begun.elapsed();
        if time > BATCH_TIME {
            self.batch_records = (self.batch_records / 2).max(MIN_BATCH_RECORDS);
        } else if time < BATCH_TIME / 4 {
            self.batch_records = (self.batch_records * 2).min(BATCH_RECORDS);
        }
        std::thread::sleep(time / PAUSE_DIVISOR);
        Ok(())
    }

    /// Writes the last batch, even if it is empty, with the key of the call.
    fn finish(&mut self, caller: Caller<'_>) -> Result<KeyedAnswer> {
        let answer = self.write(Some(caller))?;
        Ok(answer.expect("the last batch is written by a caller"))
    }

    /// Writes the batch. If the batch needs more room than there is, writes the records before the first record without
    /// room.
    ///
    /// # Errors
    /// `E_QUOTA`, even when some records were written.
    fn write(&mut self, last_by: Option<Caller<'_>>) -> Result<Option<KeyedAnswer>> {
        let seen = self.records.see_moved(&self.batch, &mut self.comparisons)?;
        let batch = ImportBatch { begin: self.place, records: &self.batch, seen: &seen };
        let (written, mut done) = self.write_rows(&batch, last_by);
        let fitting = done.count() - self.done.count();
        match &written {
            Ok(_) => self.done = done,
            Err(error) if error.kind() == ErrorKind::Quota && fitting > 0 => {
                let written;
                (written, done) = self.write_rows(&ImportBatch { records: &batch.records[..fitting], ..batch }, None);
                if written.is_ok() {
                    self.done = done;
                }
            }
            Err(_) => {}
        }
        written
    }

    /// Writes records in one transaction. Returns the result, and the counts of all records of the import up to the end
    /// of the batch or up to the error.
    fn write_rows(
        &self,
        batch: &ImportBatch<'_>,
        last_by: Option<Caller<'_>>,
    ) -> (Result<Option<KeyedAnswer>>, RecordImport) {
        let rules = self.records.new_rules(self.author);
        let mut done = RecordImport::default();
        let mut write = |tx: &Transaction<'_>| {
            done = self.done.clone();
            transfer::import_batch(tx, batch, &rules, &mut done)?;
            Ok(done.clone())
        };
        let written = match last_by {
            Some(caller) => self.db.write_once(caller, &mut write).map(Some),
            None => self.db.write(&mut write).map(|_| None),
        };
        (written, done)
    }
}
