//! An import: the records of a file, written in batches, so that it is as large as it likes and other writers get in
//! between.
//!
//! The last batch alone carries the key of the call. An import that ended before is made again and skips records that
//! are in already.

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

/// Most records of a batch, and the bytes after which it ends. All writers wait while a batch is written: 100 records of
/// 2.7 KB take 0.15 s, and 0.8 s on a machine with much else to do.
const BATCH_RECORDS: usize = 100;
const BATCH_BYTES: usize = 1 << 20;
/// Fewest records of a full batch, and the time beyond which the next batch has half as many.
const MIN_BATCH_RECORDS: usize = 10;
const BATCH_TIME: Duration = Duration::from_millis(200);
/// The pause after a batch, as a part of the time that the batch took. Another process that waits to write tries every
/// 0.1 s at most and must come upon such a pause within 5 s.
const PAUSE_DIVISOR: u32 = 4;

impl RecordSource {
    /// Takes in the records of a file. When it ends before the last of them, those of the batches before stay.
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

/// Adds the number of records that are in to the error that ended an import.
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

/// An import that is under way.
struct ImportRun<'a> {
    records: &'a RecordSource,
    db: &'a Db,
    author: &'a RecordAuthor,
    /// The records that are written next.
    batch: Vec<ReadRecord>,
    /// How many of them are written at once.
    batch_records: usize,
    /// About the bytes of these.
    bytes: usize,
    /// The place of the first of these in the file.
    place: usize,
    /// The outcome of the batches before.
    done: RecordImport,
    comparisons: ComparisonCount,
}

impl ImportRun<'_> {
    /// Takes the next record, and writes the batch when it is full.
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

    /// Writes the last batch, which may be empty, with the key of the call.
    fn finish(&mut self, caller: Caller<'_>) -> Result<KeyedAnswer> {
        let answer = self.write(Some(caller))?;
        Ok(answer.expect("the last batch is written by a caller"))
    }

    /// Writes the batch. When there is no room for all, those before the first without room are written.
    ///
    /// # Errors
    /// `E_QUOTA` also when some were written.
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

    /// Writes these records in one transaction, and returns the outcome of all until then, or until the error.
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
