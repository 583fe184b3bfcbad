//! Manages the journal: the file of the changes that a session has acknowledged. The next PRIMARY replays it.
//!
//! The file is `journal` in the runtime directory. It holds [`MAGIC`] and then records; an empty file is an empty
//! journal. A record is the length of its payload, a CRC-32, and the payload. Length and CRC have four bytes each, in
//! little-endian order. The CRC covers the length and the payload, so zeros at the end of a file never count as a
//! record.
//!
//! Nudge writes a record with a single system call, so the record survives the death of the process at once. Nudge
//! never flushes the journal to the disk, because a session does not survive a restart of the machine.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use nudge::{Error, Result};
use nudge_os::dir::{FileId, FileKind};
use parking_lot::Mutex;

use crate::runtime::{LOCK, LockWatch, PrimaryLock, RuntimeDir, find_advice, unlocked_error};
use crate::session::PROTOCOL;

pub(crate) const NAME: &str = "journal";
/// The name of the file that a compaction writes. If the process is killed meanwhile, the file stays until the next
/// compaction removes it.
const TEMPORARY: &str = "journal.new";
/// The first bytes of the file. The number in them is the [`PROTOCOL`].
const MAGIC: &[u8; 16] = b"nudge-journal 1\n";
const _: () = assert!(MAGIC[14] as u32 == b'0' as u32 + PROTOCOL);
/// The beginning of the magic bytes, which all versions share.
const FAMILY: &[u8; 14] = b"nudge-journal ";
/// Size of a record's length and CRC together, in bytes.
const HEAD_BYTES: usize = 8;
/// Largest size of a payload, in bytes. Every change is smaller: a whole import has 24 MiB.
const MAX_RECORD_BYTES: usize = 128 << 20;
/// Largest capacity of the buffer that is kept between two appends, in bytes.
const MAX_KEPT_BYTES: usize = 1 << 20;

impl RuntimeDir {
    /// Opens the journal of the session. Only the PRIMARY may open it, and it must drop the journal before the lock.
    ///
    /// With `keep`, the session continues: the function returns all records before the first damaged one, in order, and
    /// cuts off the rest of the file. Without `keep`, a new session begins, and the function removes the old journal.
    ///
    /// Damage causes no error. If the journal's name belongs to a link, a pipe, another user's file or a file with a
    /// second name, this function does not read that file. It removes the name, leaves the file itself unchanged, and
    /// begins a new journal. If a directory has the name, it stays, and every append fails until the user removes it.
    /// [`RestoredJournal::notice`] reports both cases. Neither needs a restart.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`, only with `keep`, when this user's journal cannot be read now (too many open files, an error of
    /// the disk), or when it has another protocol. A PRIMARY without the journal would lose acknowledged changes. So
    /// the function leaves the file unchanged, and the caller must release the lock.
    pub fn open_journal(&self, lock: &PrimaryLock, keep: bool) -> Result<(Journal, RestoredJournal)> {
        Journal::open(self.clone(), self.path().join(NAME), lock.new_watch(self), keep)
    }

    /// Removes the journal of a session that is over. A directory with the journal's name stays.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file cannot be removed.
    pub fn remove_journal(&self, _lock: &PrimaryLock) -> Result<()> {
        match self.dir().remove(NAME) {
            Err(error) if error.kind() != io::ErrorKind::NotFound && !self.dir().is_dir(NAME) => {
                Err(self.io_error("remove", NAME, &error))
            }
            _ => Ok(()),
        }
    }
}

/// The contents that the journal had when it was opened.
#[derive(Default, Clone, PartialEq, Eq)]
pub struct RestoredJournal {
    /// The payloads, in the order in which they were appended.
    pub records: Vec<Vec<u8>>,
    /// A sentence for the log. `Some` only when the file was not as the last PRIMARY had left it.
    pub notice: Option<String>,
}

impl fmt::Debug for RestoredJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Leaves the payloads out of debug output, because they contain hints.
        f.debug_struct("RestoredJournal").field("records", &self.records.len()).field("notice", &self.notice).finish()
    }
}

/// The open journal of the PRIMARY. Any thread may call its methods, because a mutex serialises the calls.
///
/// When another program renames, removes or replaces the journal, the next append writes a copy under the journal's
/// name. When another program does the same with `primary.lock`, another server may be PRIMARY. From then on the
/// journal writes nothing and refuses every call. (On Windows, Nudge notices only a missing file.)
pub struct Journal {
    dir: RuntimeDir,
    path: PathBuf,
    lock: LockWatch,
    inner: Mutex<JournalState>,
}

#[derive(Default)]
struct JournalState {
    /// The open file; `None` while a directory has the journal's name and nothing was appended yet.
    open: Option<OpenJournal>,
    /// Length of the complete records at the start of the file. The cursor is at their end.
    good: u64,
    /// Length of the file with a record that was written but not acknowledged, because the lock was lost meanwhile. It
    /// is 0 if there is no such record.
    unsure: u64,
    /// True after another process has shortened the file.
    damaged: bool,
    /// True after `primary.lock` was found removed or replaced.
    unlocked: bool,
    buffer: Vec<u8>,
}

struct OpenJournal {
    file: File,
    id: FileId,
}

impl Journal {
    fn open(dir: RuntimeDir, path: PathBuf, lock: LockWatch, keep: bool) -> Result<(Self, RestoredJournal)> {
        let journal = Self { dir, path, lock, inner: Mutex::default() };
        let mut inner = JournalState::default();
        let _ = journal.dir.dir().remove(TEMPORARY);
        let unreadable = |reason: RestoreFailure| {
            let path = journal.path.display();
            let message = match reason {
                RestoreFailure::Now(error) => {
                    format!("The journal {path} cannot be read now ({error}); nothing of it is lost, try again.")
                }
                RestoreFailure::OtherVersion => format!(
                    "The session's journal {path} is of another version of Nudge; end the session with `nudge stop` or update this Nudge."
                ),
            };
            Error::unavailable(message)
        };
        let mut restored =
            if keep { journal.restore_records(&mut inner).map_err(unreadable)? } else { RestoredJournal::default() };
        if inner.open.is_none()
            && let Err(error) = journal.start_file(&mut inner)
        {
            restored.notice = Some(journal.to_refusal(&error).message().to_owned());
        }
        *journal.inner.lock() = inner;
        Ok((journal, restored))
    }

    /// Appends a record. After this call returns, a death of the process cannot lose the record.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the payload is over 128 MiB or the record cannot be written. No part of the record then
    /// stays in the file, or the next append removes the part before it writes.
    ///
    /// Every call tries again, so appends succeed when the cause is gone. [`Self::needs_compaction`] reports the only
    /// cause that needs a repair. After `primary.lock` was removed or replaced, every call fails, and the record that
    /// was just written may stay.
    pub fn append(&self, payload: &[u8]) -> Result<()> {
        let mut inner = self.inner.lock();
        self.add_record(&mut inner, payload).map_err(|error| self.to_refusal(&error))
    }

    /// Returns the length of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.inner.lock().good
    }

    /// Returns true when another program has shortened the file. Appends then fail until [`Self::compact`] has written
    /// all data again. A [`nudge::ChangeLog`] repairs the journal within the call if its `is_long` returns this value.
    pub fn needs_compaction(&self) -> bool {
        self.inner.lock().damaged
    }

    /// Replaces the journal by a new one with the old records for which `keep` returns true, followed by `payloads`.
    ///
    /// The kept records and `payloads` together must contain all acknowledged changes. So the caller must not change
    /// the data from the first payload until this function returns. The iterator must not use this journal.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the new file cannot be written. The old journal stays in use.
    pub fn compact(&self, keep: impl Fn(&[u8]) -> bool, payloads: impl Iterator<Item = Vec<u8>>) -> Result<()> {
        let mut inner = self.inner.lock();
        let mut kept = Self::read_records(&inner).map_err(|error| self.to_refusal(&error))?;
        kept.retain(|record| keep(record));
        self.rewrite_file(&mut inner, kept, payloads)
    }

    /// Returns true after `primary.lock` was found removed or replaced, until [`LockWatch::retake_lock`] wins the lock
    /// again.
    pub fn is_unlocked(&self) -> bool {
        self.inner.lock().unlocked
    }

    /// Returns true when no other PRIMARY has written a journal in `dir`: either the file is missing, or it is this
    /// journal's file.
    pub(crate) fn is_as_left(&self, dir: &RuntimeDir) -> bool {
        let inner = self.inner.lock();
        match (dir.dir().look_up(NAME), &inner.open) {
            (Ok(FileKind::Missing | FileKind::Directory), _) => true,
            (Ok(FileKind::Ours { id, bytes }), Some(open)) => {
                id == open.id && (bytes <= inner.good || bytes == inner.unsure)
            }
            _ => false,
        }
    }

    /// Accepts appends again after this process has won the lock again, and restores a removed file.
    pub(crate) fn go_on(&self) -> Result<()> {
        let mut inner = self.inner.lock();
        inner.unlocked = false;
        match self.prepare_append(&mut inner) {
            // A directory with the journal's name, or a shortened file, does not end the session. Appends fail until
            // the problem is repaired.
            Err(error) if inner.unlocked => Err(self.to_refusal(&error)),
            _ => Ok(()),
        }
    }

    /// Reads all records of the file, and then moves the cursor back to its old position.
    fn read_records(inner: &JournalState) -> io::Result<Vec<Vec<u8>>> {
        let Some(OpenJournal { file, .. }) = &inner.open else { return Ok(Vec::new()) };
        let mut cursor = file;
        cursor.seek(SeekFrom::Start(0))?;
        let whole = read(file);
        cursor.seek(SeekFrom::Start(inner.good))?;
        Ok(whole?.map(|whole| whole.records).unwrap_or_default())
    }

    fn rewrite_file(
        &self,
        inner: &mut JournalState,
        kept: Vec<Vec<u8>>,
        payloads: impl Iterator<Item = Vec<u8>>,
    ) -> Result<()> {
        let fill = |file: &mut BufWriter<&File>| {
            let mut frame = Vec::new();
            file.write_all(MAGIC)?;
            for payload in kept.into_iter().chain(payloads) {
                frame.clear();
                push_record(&mut frame, &payload)?;
                file.write_all(&frame)?;
            }
            Ok(())
        };
        self.replace_file(inner, fill).map_err(|error| self.to_refusal(&error))
    }

    /// Empties the journal of a session that is over. The caller must make no more changes afterwards, because the next
    /// PRIMARY would replay them.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file can be neither emptied nor removed, or when it may belong to another PRIMARY.
    pub fn clear(&self) -> Result<()> {
        let mut inner = self.inner.lock();
        self.check_lock(&mut inner).map_err(|error| self.to_refusal(&error))?;
        inner.good = 0;
        inner.damaged = false;
        let emptied = inner.open.as_mut().map_or(Ok(()), |open| cut_file(&open.file, 0));
        emptied.or_else(|_| self.dir.dir().remove(NAME)).map_err(|error| self.to_refusal(&error))
    }

    /// Reads the existing journal. Leaves `inner` without a file when the journal's name belongs to something other
    /// than a regular file of this user.
    fn restore_records(&self, inner: &mut JournalState) -> Result<RestoredJournal, RestoreFailure> {
        let found = match self.dir.dir().look_up(NAME)? {
            FileKind::Missing => return Ok(RestoredJournal::default()),
            FileKind::Directory | FileKind::Other => {
                let message = format!("{} is not a regular file of ours; nothing was restored.", self.path.display());
                return Ok(RestoredJournal { records: Vec::new(), notice: Some(message) });
            }
            FileKind::Ours { .. } => self.dir.dir().open_write(NAME)?,
        };
        let whole = read(&found)?.ok_or(RestoreFailure::OtherVersion)?;
        // If the cut fails, the next append notices the long file and cuts it.
        let _ = cut_file(&found, whole.bytes);
        let notice = whole.flaw.map(|flaw| format!("{} {flaw}.", self.path.display()));
        inner.good = whole.bytes;
        inner.open = Some(OpenJournal { id: FileId::from_file(&found)?, file: found });
        Ok(RestoredJournal { records: whole.records, notice })
    }

    /// Removes the file with the journal's name and creates an empty one. Removing it first frees space on a full disk.
    fn start_file(&self, inner: &mut JournalState) -> io::Result<()> {
        match self.dir.dir().remove(NAME) {
            Err(_) if self.dir.dir().is_dir(NAME) => return Err(io::ErrorKind::IsADirectory.into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.dir.dir().create_new(NAME)?;
        inner.open = Some(OpenJournal { id: FileId::from_file(&file)?, file });
        inner.good = 0;
        Ok(())
    }

    fn add_record(&self, inner: &mut JournalState, payload: &[u8]) -> io::Result<()> {
        self.prepare_append(inner)?;
        let before = inner.good;
        Self::write(inner, payload)?;
        // Checks the lock again, because a new PRIMARY may have read the journal before this record was written. If the
        // check fails, the record stays, because the file may belong to the new PRIMARY. A later append cuts the record
        // off if this process has the lock again.
        self.check_lock(inner).inspect_err(|_| {
            inner.unsure = inner.good;
            inner.good = before;
        })
    }

    fn write(inner: &mut JournalState, payload: &[u8]) -> io::Result<()> {
        let JournalState { open: Some(open), good, buffer, .. } = inner else {
            return Err(io::Error::other("it is closed"));
        };
        buffer.clear();
        if *good == 0 {
            buffer.extend_from_slice(MAGIC);
        }
        push_record(buffer, payload)?;
        let written = write_once(&open.file, buffer);
        let (len, wanted) = (buffer.len() as u64, buffer.len());
        // Empties the buffer first, because a buffer cannot shrink below its content.
        buffer.clear();
        buffer.shrink_to(MAX_KEPT_BYTES);
        let error = match written {
            Ok(bytes) if bytes == wanted => {
                *good += len;
                return Ok(());
            }
            Ok(bytes) => io::Error::other(format!("only {bytes} of {wanted} bytes were taken; the disk may be full")),
            Err(error) => error,
        };
        // If the cut fails, the next append notices the long file and cuts it.
        let _ = cut_file(&open.file, *good);
        Err(error)
    }

    /// Fails when another server may be PRIMARY. All later calls then fail too, because the other server may have
    /// written to the file.
    fn check_lock(&self, inner: &mut JournalState) -> io::Result<()> {
        inner.unlocked = inner.unlocked || !self.lock.is_named()?;
        if inner.unlocked { Err(io::Error::other(LockLostError)) } else { Ok(()) }
    }

    /// Ensures that this process is PRIMARY, that the file has the journal's name, and that the file has `good` bytes.
    fn prepare_append(&self, inner: &mut JournalState) -> io::Result<()> {
        self.check_lock(inner)?;
        let Some(open) = &inner.open else { return self.start_file(inner) };
        match self.dir.dir().look_up(NAME)? {
            FileKind::Ours { id, bytes } if id == open.id => match bytes.cmp(&inner.good) {
                _ if inner.damaged => Err(damage_error()),
                std::cmp::Ordering::Equal => Ok(()),
                std::cmp::Ordering::Greater => cut_file(&open.file, inner.good),
                std::cmp::Ordering::Less => {
                    inner.damaged = true;
                    Err(damage_error())
                }
            },
            FileKind::Directory => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            _ => self.put_back(inner),
        }
    }

    /// Writes a copy of the file under the journal's name after another process has removed or replaced the file.
    fn put_back(&self, inner: &mut JournalState) -> io::Result<()> {
        let Some(OpenJournal { file: old, .. }) = &inner.open else { return Ok(()) };
        let old = old.try_clone()?;
        if inner.damaged || old.metadata()?.len() < inner.good {
            inner.damaged = true;
            return Err(damage_error());
        }
        let good = inner.good;
        self.replace_file(inner, |file| {
            (&old).seek(SeekFrom::Start(0))?;
            let copied = io::copy(&mut (&old).take(good), file)?;
            if copied == good { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        })
    }

    /// Writes a new file beside the journal and renames it to the journal's name. On an error the old file stays.
    fn replace_file(
        &self,
        inner: &mut JournalState,
        fill: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.check_lock(inner)?;
        let _ = self.dir.dir().remove(TEMPORARY);
        let new = self.dir.dir().create_new(TEMPORARY)?;
        let put = |inner: &mut JournalState| -> io::Result<(u64, FileId)> {
            let mut buffered = BufWriter::with_capacity(64 << 10, &new);
            fill(&mut buffered)?;
            let bytes = buffered.stream_position()?;
            buffered.flush()?;
            let id = FileId::from_file(&new)?;
            self.check_lock(inner)?;
            self.dir.dir().rename(TEMPORARY, NAME)?;
            Ok((bytes, id))
        };
        match put(inner) {
            Ok((bytes, id)) => {
                inner.open = Some(OpenJournal { file: new, id });
                inner.good = bytes;
                inner.damaged = false;
                Ok(())
            }
            Err(error) => {
                let _ = self.dir.dir().remove(TEMPORARY);
                Err(error)
            }
        }
    }

    fn to_refusal(&self, error: &io::Error) -> Error {
        if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<LockLostError>) {
            return unlocked_error(&self.path.with_file_name(LOCK));
        }
        let path = self.path.display();
        let message = if error.kind() == io::ErrorKind::IsADirectory {
            format!("{path} is a directory, so no change can be kept; remove it.")
        } else {
            let advice = find_advice(error).unwrap_or("look at its disk");
            format!("The journal {path} cannot be written ({error}), so no change can be kept; {advice}.")
        };
        Error::unavailable(message)
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The error of a journal after `primary.lock` was removed or replaced.
#[derive(Debug)]
struct LockLostError;

impl fmt::Display for LockLostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("primary.lock is gone")
    }
}

impl std::error::Error for LockLostError {}

fn damage_error() -> io::Error {
    io::Error::other("somebody has shortened it")
}

/// Cuts the file to `bytes`. It moves the cursor first, so that the cursor is at the end even if cutting fails.
fn cut_file(mut file: &File, bytes: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(bytes))?;
    file.set_len(bytes)
}

fn write_once(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match file.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            written => return written,
        }
    }
}

fn push_record(buffer: &mut Vec<u8>, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= MAX_RECORD_BYTES);
    let length = length.ok_or_else(|| io::Error::other("one change is larger than 128 MiB"))?.to_le_bytes();
    buffer.reserve(HEAD_BYTES + payload.len());
    buffer.extend_from_slice(&length);
    buffer.extend_from_slice(&compute_checksum(length, payload).to_le_bytes());
    buffer.extend_from_slice(payload);
    Ok(())
}

fn compute_checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}

/// The reason why this user's journal cannot be restored.
enum RestoreFailure {
    /// A failure of the system. Another attempt may succeed.
    Now(io::Error),
    OtherVersion,
}

impl From<io::Error> for RestoreFailure {
    fn from(error: io::Error) -> Self {
        Self::Now(error)
    }
}

/// The longest beginning of a file that consists of complete records.
struct WholePrefix {
    records: Vec<Vec<u8>>,
    bytes: u64,
    /// The problem of the rest of the file, as the end of a sentence that begins with the path; `None` if there is
    /// none.
    flaw: Option<String>,
}

/// Reads the longest beginning that consists of complete records; `None` for a journal of another version.
fn read(file: &File) -> io::Result<Option<WholePrefix>> {
    let total = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut magic = Vec::new();
    reader.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic)?;
    if magic != MAGIC {
        // A file that ends within the magic bytes never held an acknowledged record.
        let cut = MAGIC.starts_with(&magic);
        let flaw = (!cut).then(|| "is not a journal; nothing was restored".into());
        let other = !cut && is_of_the_family(&magic);
        return Ok((!other).then_some(WholePrefix { records: Vec::new(), bytes: 0, flaw }));
    }
    let mut whole = WholePrefix { records: Vec::new(), bytes: MAGIC.len() as u64, flaw: None };
    while let Some(record) = next(&mut reader, total - whole.bytes)? {
        whole.bytes += (HEAD_BYTES + record.len()) as u64;
        whole.records.push(record);
    }
    if whole.bytes < total {
        let (rest, kept) = (total - whole.bytes, whole.records.len());
        whole.flaw = Some(format!("ends with {rest} bytes that are no whole record; the {kept} before were restored"));
    }
    Ok(Some(whole))
}

/// Returns true when `magic` is the magic of any version up to 99.
fn is_of_the_family(magic: &[u8]) -> bool {
    matches!(magic.strip_prefix(FAMILY), Some([b'1'..=b'9', b'0'..=b'9' | b'\n']))
}

/// Reads the next record; `None` when it is incomplete or damaged. `left` is the number of bytes left in the file.
fn next(reader: &mut impl Read, left: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(left) = left.checked_sub(HEAD_BYTES as u64) else { return Ok(None) };
    let (mut length, mut sum) = ([0; 4], [0; 4]);
    let mut fill = |bytes: &mut [u8]| match reader.read_exact(bytes) {
        // Another program may shorten the file while this process reads it.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        filled => filled.map(|()| true),
    };
    if !(fill(&mut length)? && fill(&mut sum)?) {
        return Ok(None);
    }
    let bytes = u32::from_le_bytes(length) as usize;
    if bytes > MAX_RECORD_BYTES || bytes as u64 > left {
        return Ok(None);
    }
    let mut payload = vec![0; bytes];
    Ok((fill(&mut payload)? && compute_checksum(length, &payload) == u32::from_le_bytes(sum)).then_some(payload))
}
