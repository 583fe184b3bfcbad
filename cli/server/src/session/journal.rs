//! The session's journal and the fence. All sources whose state belongs to the session share the journal. The fence
//! refuses every change after this process has lost the lock or has begun to leave.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_client::{Journal, LockWatch, PrimarySeat, RuntimeDir};
use nudge_core::source;
use nudge_core::sync::{Mutex, MutexGuard, RwLock};
use tokio::sync::Notify;

use crate::memory;

/// The size below which a source's part of the journal is never rewritten. The next PRIMARY reads the journal while
/// callers wait, and only a longer part makes this wait noticeable.
const SHORT_BYTES: u64 = 256 << 10;
/// A longer part is rewritten when it has grown to this many times its size after the last rewrite.
const GROWTH: u64 = 2;
/// The bytes of a record's length and checksum.
const HEAD_BYTES: u64 = 8;
/// Separates the name of a source from its record.
const TAG_END: u8 = b'\n';

/// The journal of a PRIMARY.
pub struct SessionJournal {
    lock: LockWatch,
    /// The files that this process restores when another program removes them. Set when this process is about to serve.
    seat: OnceLock<PrimarySeat>,
    /// Notified each time the files were restored.
    retaken: Notify,
    /// The time when the files were last restored.
    retaken_at: Mutex<Option<Instant>>,
    state: Mutex<SessionJournalState>,
    /// Held for reading while a source commits a change to its own file.
    commits: RwLock<()>,
}

struct SessionJournalState {
    keeping: RecordKeeping,
    shares: HashMap<&'static str, SourceShare>,
}

enum RecordKeeping {
    /// The journal is off (`NUDGE_JOURNAL=0`): the session's state is lost when this process ends.
    Nothing,
    In(Box<Journal>),
    /// Another process may soon be PRIMARY, so every change is refused.
    NoMore,
}

/// The part of the journal that belongs to one source.
#[derive(Default)]
struct SourceShare {
    bytes: u64,
    /// The part's size after this process last rewrote it; 0 for a part from another PRIMARY. The 0 makes this
    /// process rewrite such a part early; otherwise the part could grow from PRIMARY to PRIMARY without a rewrite.
    begun: u64,
    /// True when another process has shortened the file, so that records of this source may be lost.
    damaged: bool,
}

impl SourceShare {
    fn is_long(&self) -> bool {
        self.damaged || self.bytes > SHORT_BYTES.max(GROWTH * self.begun)
    }
}

impl SessionJournal {
    /// Writes records to `journal`, if there is one, as long as this process holds the lock.
    pub fn new(lock: LockWatch, journal: Option<Journal>) -> Self {
        let keeping = journal.map_or(RecordKeeping::Nothing, |journal| RecordKeeping::In(Box::new(journal)));
        Self {
            lock,
            seat: OnceLock::new(),
            retaken: Notify::new(),
            retaken_at: Mutex::new(None),
            state: Mutex::new(SessionJournalState { keeping, shares: HashMap::new() }),
            commits: RwLock::new(()),
        }
    }

    /// Returns the length of the journal in bytes, if there is one.
    pub fn bytes(&self) -> Option<u64> {
        match &self.lock_state().keeping {
            RecordKeeping::In(journal) => Some(journal.file_bytes()),
            RecordKeeping::Nothing | RecordKeeping::NoMore => None,
        }
    }

    /// Ends the session on purpose. From now on every change is refused, and every PROXY ends when it gets the lock.
    /// Empties the journal and the session file first, so no process can continue from them (semantics section 8).
    ///
    /// Returns `None` if changes were refused already: another session may own the files.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the files cannot be emptied.
    pub fn end_session(&self, dir: &RuntimeDir) -> Option<Result<()>> {
        // Holds the mutex until the end: a PRIMARY that leaves then waits before it releases the session's lock.
        let mut state = self.lock_state();
        let journal = match std::mem::replace(&mut state.keeping, RecordKeeping::NoMore) {
            RecordKeeping::In(journal) => Some(journal),
            RecordKeeping::Nothing => None,
            RecordKeeping::NoMore => return None,
        };
        let marked = dir.stop_session();
        let emptied = journal.map_or(Ok(()), |journal| journal.clear());
        Some(marked.and(emptied))
    }

    /// Refuses every change from now on, waits for running commits, and returns the journal.
    pub fn close(&self) -> Option<Journal> {
        let keeping = std::mem::replace(&mut self.lock_state().keeping, RecordKeeping::NoMore);
        drop(self.commits.write());
        match keeping {
            RecordKeeping::In(journal) => Some(*journal),
            RecordKeeping::Nothing | RecordKeeping::NoMore => None,
        }
    }

    /// Sets the files of this PRIMARY. From now on, this process restores them when another program removes them.
    pub fn set_seat(&self, seat: PrimarySeat) {
        // An error is impossible, because the caller sets the seat only once.
        let _ = self.seat.set(seat);
    }

    /// Checks that this process is PRIMARY of the directory at this path. Restores its files if another program has
    /// removed them.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when another server is, or was, PRIMARY there.
    pub fn keep_seat(&self, dir: &RuntimeDir) -> Result<()> {
        let state = self.lock_state();
        match &state.keeping {
            RecordKeeping::NoMore => Ok(()),
            _ if self.lock.check_lock().is_ok() && dir.is_in_place() => Ok(()),
            keeping => self.retake_seat(keeping),
        }
    }

    /// Returns the time since the files were last restored. Returns `None` when they never were.
    pub fn put_back_since(&self) -> Option<Duration> {
        self.retaken_at.lock().map(|moment| moment.elapsed())
    }

    /// Waits until the files are restored the next time.
    pub async fn wait_for_retake(&self) {
        self.retaken.notified().await;
    }

    fn check_lock(&self, keeping: &RecordKeeping) -> Result<()> {
        match keeping {
            RecordKeeping::NoMore => Err(leaving_error()),
            keeping => self.lock.check_lock().or_else(|_| self.retake_seat(keeping)),
        }
    }

    fn retake_seat(&self, keeping: &RecordKeeping) -> Result<()> {
        let Some(seat) = self.seat.get() else { return self.lock.check_lock() };
        let journal = match keeping {
            RecordKeeping::In(journal) => Some(&**journal),
            RecordKeeping::Nothing | RecordKeeping::NoMore => None,
        };
        self.lock.retake_lock(seat, journal)?;
        tracing::warn!("files of the runtime directory were removed; they are there again");
        *self.retaken_at.lock() = Some(Instant::now());
        self.retaken.notify_one();
        Ok(())
    }

    fn lock_state(&self) -> MutexGuard<'_, SessionJournalState> {
        self.state.lock()
    }
}

/// Returns the error of a process that is about to leave. A client that knows sessions then calls the next PRIMARY.
pub fn leaving_error() -> Error {
    Error::unavailable("The server is ending and changes nothing any more; try again.").with_data("ending", true)
}

impl source::Fence for SessionJournal {
    fn commit(&self, keep: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        // Takes the lock before the check. A process that leaves first refuses changes, then waits for this lock.
        let _commit = self.commits.read();
        self.check_lock(&self.lock_state().keeping)?;
        keep()
    }
}

/// The records of a session by source, in order.
pub struct SessionRecords(HashMap<String, Vec<Vec<u8>>>);

impl SessionRecords {
    /// Sorts the records of a journal by source.
    pub fn new(records: Vec<Vec<u8>>) -> Self {
        let mut by_source = HashMap::<_, Vec<_>>::new();
        for mut record in records {
            let Some(name) = name_of(&record).map(str::to_owned) else {
                tracing::warn!("a record of the journal names no source and was passed over");
                continue;
            };
            record.drain(..=name.len());
            by_source.entry(name).or_default().push(record);
        }
        Self(by_source)
    }

    /// Removes and returns the records of one source.
    pub fn take_source(&mut self, source: &str) -> Vec<Vec<u8>> {
        self.0.remove(source).unwrap_or_default()
    }
}

/// Returns the source that a record names. Returns `None` when the record names none.
fn name_of(record: &[u8]) -> Option<&str> {
    const MAX_NAME_BYTES: usize = 64;
    let end = record.iter().take(MAX_NAME_BYTES).position(|byte| *byte == TAG_END)?;
    let name = str::from_utf8(&record[..end]).ok()?;
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase())).then_some(name)
}

/// A source's own part of the journal.
pub struct SourceJournal {
    shared: Arc<SessionJournal>,
    source: &'static str,
}

impl SourceJournal {
    /// Makes the part of `source`. `records` are the records that the source has in the journal so far.
    pub fn new(shared: &Arc<SessionJournal>, source: &'static str, records: &[Vec<u8>]) -> Self {
        let bytes = records.iter().map(|record| record.len() as u64 + HEAD_BYTES).sum();
        shared.lock_state().shares.insert(source, SourceShare { bytes, ..SourceShare::default() });
        Self { shared: Arc::clone(shared), source }
    }

    /// Returns a record with its source's name, as the file contains it.
    fn with_tag(&self, record: &[u8]) -> Vec<u8> {
        [self.source.as_bytes(), &[TAG_END], record].concat()
    }

    fn is_ours(&self, record: &[u8]) -> bool {
        name_of(record) == Some(self.source)
    }
}

impl source::RecordJournal for SourceJournal {
    fn passed_over(&self, unreadable: usize) {
        tracing::warn!(source = self.source, unreadable, "records of the journal were passed over");
    }

    fn append(&self, record: &[u8]) -> Result<()> {
        let SessionJournalState { keeping, shares } = &mut *self.shared.lock_state();
        match &*keeping {
            // There is no journal file, so only the lock is checked.
            RecordKeeping::Nothing => self.shared.check_lock(keeping),
            RecordKeeping::In(journal) => {
                let record = self.with_tag(record);
                if let Err(refusal) = journal.append(&record) {
                    if !journal.is_unlocked() {
                        return Err(refusal);
                    }
                    self.shared.retake_seat(keeping)?;
                    journal.append(&record)?;
                }
                shares.entry(self.source).or_default().bytes += record.len() as u64 + HEAD_BYTES;
                Ok(())
            }
            RecordKeeping::NoMore => Err(leaving_error()),
        }
    }

    fn is_long(&self) -> bool {
        let SessionJournalState { keeping, shares } = &*self.shared.lock_state();
        match keeping {
            RecordKeeping::In(journal) => {
                journal.needs_compaction() || shares.get(self.source).is_some_and(SourceShare::is_long)
            }
            RecordKeeping::Nothing | RecordKeeping::NoMore => false,
        }
    }

    fn begin_anew(&self, records: &[Vec<u8>]) {
        let SessionJournalState { keeping, shares } = &mut *self.shared.lock_state();
        let RecordKeeping::In(journal) = keeping else { return };
        let was_damaged = journal.needs_compaction();
        let tagged = records.iter().map(|record| self.with_tag(record));
        memory::note_use(records.iter().map(Vec::len).sum());
        // Copies the records of other sources, even of sources that this binary does not have.
        let written = journal.compact(|record| !self.is_ours(record), tagged);
        match &written {
            // The lost end of the file may have contained records of any source, so each source must rewrite its part.
            Ok(()) if was_damaged => shares.values_mut().for_each(|share| share.damaged = share.bytes > 0),
            Ok(()) => {}
            Err(error) => tracing::warn!(error = error.message(), "the journal was not written anew"),
        }
        let share = shares.entry(self.source).or_default();
        if written.is_ok() {
            share.damaged = false;
            share.bytes = records.iter().map(|record| record.len() as u64 + HEAD_BYTES).sum();
        }
        // Sets the size after a failure too, so that not every later write tries a rewrite again.
        share.begun = share.bytes;
    }
}

#[cfg(test)]
mod tests {
    use nudge_core::source::{Fence as _, RecordJournal as _};

    use super::*;

    fn place() -> (tempfile::TempDir, RuntimeDir) {
        let folder = tempfile::tempdir().unwrap();
        let dir = RuntimeDir::create(Some(&folder.path().join("run"))).unwrap();
        (folder, dir)
    }

    fn open(dir: &RuntimeDir, keep: bool) -> (nudge_client::PrimaryLock, Arc<SessionJournal>, SessionRecords) {
        let lock = dir.try_lock().unwrap().unwrap();
        let (journal, restored) = dir.open_journal(&lock, keep).unwrap();
        let journal = Arc::new(SessionJournal::new(lock.new_watch(dir), Some(journal)));
        (lock, journal, SessionRecords::new(restored.records))
    }

    fn shares(journal: &Arc<SessionJournal>, records: &mut SessionRecords) -> [(SourceJournal, Vec<Vec<u8>>); 2] {
        ["hints", "demo"].map(|name| {
            let records = records.take_source(name);
            (SourceJournal::new(journal, name, &records), records)
        })
    }

    /// Promise (session): Each source gets its own journal records back after another source rewrote its part.
    #[test]
    fn each_source_gets_its_own_records_back_after_the_other_began_anew() {
        let (_folder, dir) = place();
        let (lock, journal, mut records) = open(&dir, false);
        let [(hints, _), (demo, _)] = shares(&journal, &mut records);
        for n in 0..3 {
            hints.append(format!("{{\"n\":{n}}}").as_bytes()).unwrap();
            demo.append(&[b'x', b'\n', n]).unwrap();
        }
        assert!(!hints.is_long() && !demo.is_long());
        // Only the source that writes a lot has a long part.
        demo.append(&vec![7; 300 << 10]).unwrap();
        assert!(!hints.is_long() && demo.is_long());
        demo.begin_anew(&[b"whole".to_vec()]);
        assert!(!demo.is_long());
        hints.begin_anew(&[b"{}".to_vec()]);
        demo.append(b"more").unwrap();
        journal.close();
        assert_eq!(demo.append(b"late").unwrap_err().data()["ending"], true);
        drop(lock);

        let (_lock, journal, mut records) = open(&dir, true);
        let [(_, hints), (_, demo)] = shares(&journal, &mut records);
        assert_eq!((hints, demo), (vec![b"{}".to_vec()], vec![b"whole".to_vec(), b"more".to_vec()]));
    }

    #[test]
    fn the_records_of_a_source_that_is_not_known_here_stay() {
        let (_folder, dir) = place();
        let (lock, journal, mut records) = open(&dir, false);
        let [(_, _), (demo, _)] = shares(&journal, &mut records);
        demo.append(b"kept").unwrap();
        journal.close();
        drop(lock);

        let (lock, journal, mut records) = open(&dir, true);
        let own = records.take_source("hints");
        let hints = SourceJournal::new(&journal, "hints", &own);
        hints.begin_anew(&[b"{}".to_vec()]);
        journal.close();
        drop(lock);

        let (_lock, journal, mut records) = open(&dir, true);
        let [(_, hints), (_, demo)] = shares(&journal, &mut records);
        assert_eq!((hints, demo), (vec![b"{}".to_vec()], vec![b"kept".to_vec()]));
    }

    #[test]
    fn who_leaves_waits_for_what_is_being_kept() {
        let (_folder, dir) = place();
        let (_lock, journal, _) = open(&dir, false);
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
        let kept = Arc::new(std::sync::atomic::AtomicBool::new(false));
        std::thread::scope(|threads| {
            let (shared, is_kept) = (&journal, &kept);
            threads.spawn(move || {
                let mut keep = || {
                    begun.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    is_kept.store(true, std::sync::atomic::Ordering::SeqCst);
                    Ok(())
                };
                shared.commit(&mut keep).unwrap();
            });
            has_begun.recv().unwrap();
            let leaves = threads.spawn(|| {
                journal.close();
                assert!(kept.load(std::sync::atomic::Ordering::SeqCst));
            });
            // The journal now refuses new changes, while the running change continues.
            while journal.bytes().is_some() {
                std::thread::yield_now();
            }
            assert!(!leaves.is_finished());
            go_on.send(()).unwrap();
        });
        assert_eq!(journal.commit(&mut || Ok(())).unwrap_err().data()["ending"], true);
    }

    /// Promise: see `each_source_gets_its_own_records_back_after_the_other_began_anew`.
    #[test]
    fn after_damage_every_source_writes_its_own_anew() {
        let (_folder, dir) = place();
        let (_lock, journal, mut records) = open(&dir, false);
        let [(hints, _), (demo, _)] = shares(&journal, &mut records);
        hints.append(b"{}").unwrap();
        demo.append(b"gone").unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(dir.path().join("journal")).unwrap();
        file.set_len(30).unwrap();
        hints.append(b"{}").unwrap_err();
        assert!(hints.is_long());
        hints.begin_anew(&[b"{}".to_vec()]);
        assert!(!hints.is_long() && demo.is_long());
        demo.begin_anew(&[b"back".to_vec()]);
        assert!(!demo.is_long());
    }

    /// Promise: see `a_primary_without_its_lock_acknowledges_nothing`.
    #[test]
    fn the_fence_falls_with_the_lock_and_with_the_end() {
        let (_folder, dir) = place();
        let (lock, _, _) = open(&dir, false);
        let journal = SessionJournal::new(lock.new_watch(&dir), None);
        let kept = |journal: &SessionJournal| journal.commit(&mut || Ok(()));
        kept(&journal).unwrap();
        std::fs::remove_file(dir.path().join("primary.lock")).unwrap();
        assert_eq!(kept(&journal).unwrap_err().reason(), "E_UNAVAILABLE");
        journal.close();
        assert_eq!(kept(&journal).unwrap_err().data()["ending"], true);
    }

    /// `tests/orders` runs this test in every order of a commit and an end.
    #[cfg(feature = "shuttle")]
    #[test]
    fn in_any_order_what_was_acknowledged_was_kept_before_the_end() {
        let (_folder, dir) = place();
        nudge_core::sync::in_any_order(move || {
            let (lock, journal, mut records) = open(&dir, false);
            let [(hints, _), _] = shares(&journal, &mut records);
            let (hints, kept) = (Arc::new(hints), Arc::new(Mutex::new((0, false))));
            let keeps = [0, 1].map(|_| {
                let (journal, kept) = (Arc::clone(&journal), Arc::clone(&kept));
                shuttle::thread::spawn(move || {
                    let keep = &mut || {
                        let mut kept = kept.lock();
                        assert!(!kept.1, "nothing is kept after the end");
                        kept.0 += 1;
                        Ok(())
                    };
                    usize::from(journal.commit(keep).is_ok())
                })
            });
            let appends = {
                let hints = Arc::clone(&hints);
                shuttle::thread::spawn(move || usize::from(hints.append(b"{}").is_ok()))
            };
            let ends = {
                let (journal, kept) = (Arc::clone(&journal), Arc::clone(&kept));
                shuttle::thread::spawn(move || {
                    let file = journal.close().expect("nobody else ends it");
                    kept.lock().1 = true;
                    file.file_bytes()
                })
            };
            let acknowledged: usize = keeps.into_iter().map(|keeps| keeps.join().unwrap()).sum();
            let appended = appends.join().unwrap();
            ends.join().unwrap();
            assert_eq!(kept.lock().0, acknowledged);
            assert!(journal.commit(&mut || Ok(())).is_err() && hints.append(b"{}").is_err());
            drop((journal, hints, lock));
            let (_lock, _, mut records) = open(&dir, true);
            assert_eq!(records.take_source("hints").len(), appended);
        });
    }
}
