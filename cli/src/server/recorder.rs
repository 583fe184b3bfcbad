//! Where the store of a PRIMARY records its changes: in the session's journal before anybody can see
//! them, and in the history once everybody can.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nudge::{Applied, Entry, Error, ErrorKind, Log, Result};
use nudge_client::{Journal, RuntimeDir};

use super::history::History;

/// A journal below this is never written anew. What is longer would be felt when the next PRIMARY reads
/// it: callers wait meanwhile.
const SHORT_BYTES: u64 = 256 << 10;
/// How many times as long as after the last time it may become until it is written anew.
const GROWTH: u64 = 2;

/// The log of a PRIMARY.
pub struct Recorder {
    history: Arc<History>,
    keeping: Mutex<Keeping>,
    /// The journal's length when this process last wrote it anew.
    begun: AtomicU64,
}

enum Keeping {
    /// `NUDGE_JOURNAL=0`: what this process knows dies with it.
    Nothing,
    In(Box<Journal>),
    /// Another process may be PRIMARY soon: nothing is acknowledged any more.
    NoMore,
}

impl Recorder {
    /// Records in `journal`, if there is one.
    pub fn new(history: Arc<History>, journal: Option<Journal>) -> Self {
        // What another PRIMARY has left is written anew at the first change if it is long: counted from here,
        // it would grow with every PRIMARY that dies before it has doubled.
        let begun = AtomicU64::new(0);
        let keeping = Mutex::new(journal.map_or(Keeping::Nothing, |journal| Keeping::In(Box::new(journal))));
        Self { history, keeping, begun }
    }

    /// How long the journal is, if there is one.
    pub fn bytes(&self) -> Option<u64> {
        match &*self.keeping() {
            Keeping::In(journal) => Some(journal.bytes()),
            Keeping::Nothing | Keeping::NoMore => None,
        }
    }

    /// Ends the session on purpose: nothing is acknowledged from now on, every PROXY ends when the lock
    /// comes to it, and nobody can go on with the journal (semantics section 8: emptied first).
    ///
    /// `None` when nothing was acknowledged before already: the session may be another's by now.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the files cannot be emptied.
    pub fn end_session(&self, dir: &RuntimeDir) -> Option<Result<()>> {
        // Held to the end: who leaves waits here before the lock of the session is given back.
        let mut keeping = self.keeping();
        let journal = match std::mem::replace(&mut *keeping, Keeping::NoMore) {
            Keeping::In(journal) => Some(journal),
            Keeping::Nothing => None,
            Keeping::NoMore => return None,
        };
        let marked = dir.stop_session();
        let emptied = journal.map_or(Ok(()), |journal| journal.clear());
        Some(marked.and(emptied))
    }

    /// Refuses every change from now on, and gives the journal back.
    pub fn close(&self) -> Option<Journal> {
        match std::mem::replace(&mut *self.keeping(), Keeping::NoMore) {
            Keeping::In(journal) => Some(*journal),
            Keeping::Nothing | Keeping::NoMore => None,
        }
    }

    fn keeping(&self) -> MutexGuard<'_, Keeping> {
        // What is behind it is never left half done.
        self.keeping.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client that knows of sessions asks the next PRIMARY then.
pub(super) fn leaving() -> Error {
    let message = "The server is ending and changes nothing any more; try again.";
    Error::new(ErrorKind::Unavailable, message).with("ending", true)
}

impl Log for Recorder {
    fn append(&self, entry: &Entry<'_>) -> Result<()> {
        match &*self.keeping() {
            Keeping::Nothing => Ok(()),
            Keeping::In(journal) => journal.append(&entry.to_json()),
            Keeping::NoMore => Err(leaving()),
        }
    }

    fn applied(&self, applied: &Applied<'_>) {
        self.history.note(applied);
    }

    fn is_long(&self) -> bool {
        let long = SHORT_BYTES.max(GROWTH * self.begun.load(Ordering::Relaxed));
        match &*self.keeping() {
            Keeping::In(journal) => journal.needs_compaction() || journal.bytes() > long,
            Keeping::Nothing | Keeping::NoMore => false,
        }
    }

    fn begin_anew(&self, records: &[Vec<u8>]) {
        if let Keeping::In(journal) = &*self.keeping() {
            if let Err(error) = journal.compact(records.iter().cloned()) {
                tracing::warn!(error = error.message(), "the journal was not written anew");
            }
            // Also when it failed: the next try is not the next write.
            self.begun.store(journal.bytes(), Ordering::Relaxed);
        }
    }
}
