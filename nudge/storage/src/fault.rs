//! Turns SQLite's errors into plain sentences. They leave out SQLite's own messages, because those repeat parts of
//! statements and values.

use std::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use nudge_core::error::{Error, Result};
use nudge_core::patience;
use nudge_os::dir::{self, PrivateDir};
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_CORRUPT_VTAB;

use crate::app::DatabaseOpening;
use crate::backup;

/// The advice for a disk that fails for no known reason.
const LOOK_AT_DISK: &str = "look at its disk";

/// The reason why a transaction ended without a commit: the source refused, or SQLite failed. The operator `?` converts
/// both errors.
///
/// ```
/// use nudge_core::error::Error;
/// use nudge_storage::TransactionFailure;
///
/// let refused = TransactionFailure::from(Error::conflict("It has another version; read it again."));
/// let failed = TransactionFailure::from(rusqlite::Error::QueryReturnedNoRows);
/// assert!(matches!((refused, failed), (TransactionFailure::Refused(_), TransactionFailure::Sql(_))));
/// ```
pub enum TransactionFailure {
    /// The source's error. The caller gets it unchanged.
    Refused(Error),
    /// SQLite's error. The caller gets it as `E_UNAVAILABLE` with SQLite's extended code in the data field `sqlite`.
    /// For a damaged file the data also has `damaged`, and `backup` with the path of the newest copy.
    Sql(rusqlite::Error),
}

impl TransactionFailure {
    /// Returns SQLite's primary code and extended code.
    fn read_codes(&self) -> Option<(ErrorCode, i32)> {
        match self {
            Self::Sql(error) => error.sqlite_error().map(|error| (error.code, error.extended_code)),
            Self::Refused(_) => None,
        }
    }

    /// Returns true when another try may succeed.
    pub(crate) fn is_busy(&self) -> bool {
        use ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
        matches!(self.read_codes(), Some((DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed, _)))
    }

    /// Returns true when the contents of the file are damaged or are no database.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self.read_codes(), Some((ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _)))
    }

    /// Returns true when only a full-text index is damaged, which [`Db`](crate::Db) can rebuild.
    pub(crate) fn is_of_an_index(&self) -> bool {
        matches!(self.read_codes(), Some((_, SQLITE_CORRUPT_VTAB)))
    }
}

impl From<Error> for TransactionFailure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for TransactionFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// Prints no message of SQLite, because it may repeat a value.
impl fmt::Debug for TransactionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.read_codes()) {
            (Self::Refused(error), _) => error.fmt(f),
            (Self::Sql(_), Some((code, extended))) => write!(f, "{code:?} ({extended})"),
            (Self::Sql(_), None) => f.write_str("another error of SQLite's"),
        }
    }
}

/// The folder and the name of a database.
#[derive(Debug, Clone)]
pub(crate) struct DatabasePlace {
    /// The folder, as a path without symbolic links.
    pub folder: PathBuf,
    /// The name of the file without `.db`.
    pub name: &'static str,
}

impl DatabasePlace {
    /// Names the place of a database without creating its folder.
    pub(crate) fn from_opening(opening: &DatabaseOpening<'_>) -> Self {
        Self { folder: opening.folder.path().to_owned(), name: opening.app.name }
    }

    pub(crate) fn file_name(&self) -> String {
        format!("{}.db", self.name)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(self.file_name())
    }

    /// Makes a new name beside the database for a file that is removed at once.
    pub(crate) fn scratch_name(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("{}.{}-{number}.scratch", self.file_name(), std::process::id())
    }

    /// Finds out why a write failed by writing another file. SQLite does not tell a disk that has become read-only from
    /// a broken one.
    fn advise_on_disk(&self) -> &'static str {
        let Ok(dir) = PrivateDir::open(&self.folder, false) else { return LOOK_AT_DISK };
        let name = self.scratch_name();
        let written = dir.create_new(&name).and_then(|mut file| file.write_all(&[0]));
        // A file that cannot be removed is empty or has one byte.
        let _ = dir.remove(&name);
        written.err().as_ref().and_then(dir::advise_on_disk).unwrap_or(LOOK_AT_DISK)
    }

    /// Makes the error `The database PATH ...`.
    pub(crate) fn refusal_error(&self, rest: &str) -> Error {
        Error::unavailable(format!("The database {} {rest}.", self.path().display()))
    }

    /// Makes the error for a file of another program.
    pub(crate) fn foreign_error(&self) -> Error {
        self.refusal_error("is another program's and is left alone; move it away")
    }

    /// Makes the error for a file that a later version wrote.
    pub(crate) fn newer_error(&self) -> Error {
        self.refusal_error("was written by a newer nudge; update this one").with_data("newer", true)
    }

    /// Makes the error for a call that waited too long.
    pub(crate) fn busy_error(&self) -> Error {
        self.refusal_error("is in use by another call or process; try again")
    }

    /// Makes the error for a call during which other files replaced the database several times.
    pub(crate) fn moving_error(&self) -> Error {
        self.refusal_error("is moved or replaced again and again, so nothing was changed; try again when that is over")
    }

    /// Makes the error for a damaged file, which stays unchanged.
    fn damaged_error(&self) -> Error {
        let name = self.name;
        let refused = if let Some(backup) = backup::find_newest(self) {
            let path = backup.display();
            let rest = format!("is damaged; `nudge {name} recover {path}` puts its newest backup in its place");
            self.refusal_error(&rest).with_data("backup", backup.to_string_lossy())
        } else {
            let rest = format!(
                "is damaged and has no backup of its own; if you have one, `nudge {name} recover FILE` puts it in its place, else move it away when no nudge runs, to begin anew"
            );
            self.refusal_error(&rest)
        };
        refused.with_data("damaged", true)
    }

    /// Converts a failure into the error for the caller.
    pub(crate) fn to_error(&self, failure: TransactionFailure) -> Error {
        let damaged = failure.is_damage();
        let (code, extended) = match (failure.read_codes(), failure) {
            (_, TransactionFailure::Refused(error)) => return error,
            (Some(codes), _) => codes,
            (None, _) => return self.refusal_error("does not have what this version stores; report this"),
        };
        let refused = match code {
            _ if damaged => self.damaged_error(),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
                self.busy_error()
            }
            ErrorCode::OperationInterrupted => return patience::given_up(),
            ErrorCode::DiskFull => self.refusal_error("cannot grow, so nothing was changed; free some space"),
            ErrorCode::SystemIoFailure => {
                let advice = self.advise_on_disk();
                self.refusal_error(&format!("cannot be read or written, so nothing was changed; {advice}"))
            }
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
                self.refusal_error("cannot be opened for writing; make it and its folder writable")
            }
            _ => self.refusal_error("refused a statement of this version; report this"),
        };
        refused.with_data("sqlite", extended)
    }

    /// Converts the failure of a result, as [`to_error`](Self::to_error) does.
    pub(crate) fn map_failure<T>(&self, result: Result<T, TransactionFailure>) -> Result<T> {
        result.map_err(|failure| self.to_error(failure))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, OpenFlags};

    use super::TransactionFailure;

    /// Returns the failure of a write through a connection that was opened with these flags.
    fn fail_to_write(path: &std::path::Path, flags: OpenFlags) -> TransactionFailure {
        let write = |c: Connection| {
            c.busy_timeout(std::time::Duration::ZERO)?;
            c.execute_batch("CREATE TABLE written (id)")
        };
        TransactionFailure::from(Connection::open_with_flags(path, flags).and_then(write).unwrap_err())
    }

    #[test]
    fn a_locked_file_is_tried_again_and_one_that_cannot_be_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("CREATE TABLE first (id); BEGIN EXCLUSIVE").unwrap();
        assert!(fail_to_write(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).is_busy());
        writer.execute_batch("ROLLBACK").unwrap();
        assert!(!fail_to_write(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).is_busy());
        let missing = folder.path().join("missing/x.db");
        assert!(!fail_to_write(&missing, OpenFlags::default()).is_busy());
    }
}
