//! Manages the runtime directory, with the lock that decides which process is PRIMARY and the file with the PRIMARY's
//! address.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use nudge::{Error, Result};
use nudge_os::beneath::DiskSync;
use nudge_os::dir::{self, FileId, FileKind, OpenedFile, PrivateDir, UnfitDir};
use nudge_os::lock::{FileLock, LockKind, LockPatience, LockRefusal};
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};

use crate::session::{SessionFile, SessionState};

/// The name of the file that the PRIMARY locks for its whole life. Nudge never removes the file, so that all processes
/// lock the same one. If another program removes it, the process that holds the removed file is no longer PRIMARY.
pub(crate) const LOCK: &str = "primary.lock";
/// The name of the file in which the PRIMARY describes itself ([`ServerFile`]).
const SERVER_FILE: &str = "server.pid";
/// The name, without `.db`, of the database with the session's rows. Only the PRIMARY opens it.
pub const ROWS: &str = "session";
/// The files of that database, in the order in which they are removed: without its database, a log has no meaning.
const ROW_FILES: [&str; 2] = ["session.db-wal", "session.db"];
const LOG: &str = "server.log";
const OLD_LOG: &str = "server.log.1";
/// Size of the log at which Nudge rotates it, in bytes. The log and its older part together take up to twice this size.
const MAX_LOG_BYTES: u64 = 1 << 20;
/// Time for which a PRIMARY tries to get the new lock file after its own was removed. Clients and starting servers hold
/// the new file only for moments.
const RETAKE_PATIENCE: Duration = Duration::from_millis(200);
/// Size limit for reading a small file, in bytes. Servers write smaller files.
pub(crate) const MAX_SMALL_FILE_BYTES: u64 = 4096;

/// The directory that the servers of a session share with their clients.
///
/// Opening checks that the directory is a real directory of this user with mode 0700.
#[derive(Debug, Clone)]
pub struct RuntimeDir {
    path: PathBuf,
    /// The opened directory, and its identity for [`is_in_place`](Self::is_in_place). All clones share this field, so
    /// they always use the same directory.
    opened: Arc<RwLock<(Arc<PrivateDir>, Option<OpenedFile>)>>,
}

impl RuntimeDir {
    /// Opens the directory `given`, or else the one that `NUDGE_RUNTIME_DIR` names, or else the default directory. The
    /// default is `/tmp/nudge`, or `/tmp/nudge-<uid>` when `/tmp/nudge` belongs to another user; on Windows it is
    /// `%LOCALAPPDATA%\nudge`. The function does not create a missing directory, because opening must leave no trace.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the directory is missing, so that no server can run; also when it is a link, belongs to
    /// another user, or is open to others.
    pub fn open(given: Option<&Path>) -> Result<Self> {
        Self::find(given)?.ok_or_else(no_server)
    }

    /// Opens the directory as [`open`](Self::open) does, but returns `None` when it is missing. Callers use it to
    /// distinguish a missing directory from one that no server could use.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the directory is a link, belongs to another user, or is open to others.
    pub fn find(given: Option<&Path>) -> Result<Option<Self>> {
        Self::given_or_usual(given, false)
    }

    /// Opens the directory as [`open`](Self::open) does, and creates a missing directory. Servers use it.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the directory cannot be created, is a link, belongs to another user, or is open to others.
    pub fn create(given: Option<&Path>) -> Result<Self> {
        Self::given_or_usual(given, true)?.ok_or_else(no_server)
    }

    fn given_or_usual(given: Option<&Path>, create: bool) -> Result<Option<Self>> {
        let named = || std::env::var_os("NUDGE_RUNTIME_DIR").filter(|name| !name.is_empty()).map(PathBuf::from);
        // Reads the environment only when necessary, because other languages may change it without Rust's knowledge.
        match given.map(Path::to_owned).or_else(named) {
            Some(path) => none_if_missing(&path, Self::at_or_asked(&path, create)),
            None => Self::open_usual(create),
        }
    }

    /// Opens the directory as [`open_at`](Self::open_at) does. If it is missing, asks a living PRIMARY of this path to
    /// restore it, and tries again.
    fn at_or_asked(path: &Path, create: bool) -> Result<Self, UnfitDir> {
        match Self::open_at(path, create) {
            Err(UnfitDir::Missing) if crate::life::ask_primary(path, crate::life::CLIENT_PATIENCE).is_ok() => {
                Self::open_at(path, create)
            }
            opened => opened,
        }
    }

    #[cfg(unix)]
    fn open_usual(create: bool) -> Result<Option<Self>> {
        let path = PathBuf::from("/tmp/nudge");
        match Self::at_or_asked(&path, create) {
            Err(UnfitDir::Foreign) => {
                let own = PathBuf::from(format!("/tmp/nudge-{}", rustix::process::geteuid().as_raw()));
                none_if_missing(&own, Self::open_at(&own, create))
            }
            opened => none_if_missing(&path, opened),
        }
    }

    #[cfg(not(unix))]
    fn open_usual(create: bool) -> Result<Option<Self>> {
        let base = std::env::var_os("LOCALAPPDATA").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = base.join("nudge");
        none_if_missing(&path, Self::open_at(&path, create))
    }

    fn open_at(path: &Path, create: bool) -> Result<Self, UnfitDir> {
        // Drops a trailing `/`, because with it the system would follow a link in the last part of the path.
        let path: PathBuf = std::path::absolute(path)?.components().collect();
        let dir = Arc::new(PrivateDir::open(&path, create)?);
        let place = OpenedFile::look_up(&path)?;
        Ok(Self { opened: Arc::new(RwLock::new((dir, place))), path })
    }

    /// Returns the opened directory.
    pub(crate) fn dir(&self) -> Arc<PrivateDir> {
        Arc::clone(&self.opened.read().0)
    }

    /// Returns true while the path still leads to the opened directory.
    pub fn is_in_place(&self) -> bool {
        self.opened.read().1.as_ref().is_none_or(OpenedFile::is_in_place)
    }

    /// Opens the directory that now has the path. Creates a missing directory if its parent folder exists.
    fn open_anew(&self) -> Result<Self> {
        if !self.path.parent().is_some_and(Path::is_dir) {
            return Err(Error::unavailable(format!("The folder of {} is gone.", self.path.display())));
        }
        none_if_missing(&self.path, Self::open_at(&self.path, true))?.ok_or_else(no_server)
    }

    /// Switches this value and all its clones to another directory with the same path.
    fn go_on_in(&self, other: &Self) {
        let new = other.opened.read().clone();
        *self.opened.write() = new;
    }

    /// If the opened directory was removed, moved or replaced, switches to the directory that now has the path. Returns
    /// true after a switch.
    pub fn follow_path(&self) -> bool {
        if self.is_in_place() {
            return false;
        }
        let Ok(other) = Self::open_at(&self.path, false) else { return false };
        self.go_on_in(&other);
        true
    }

    /// Updates the times of the session's files, so that programs that delete old files keep them.
    pub fn touch_files(&self) {
        for name in [LOCK, crate::members::LOCK, crate::session::NAME, SERVER_FILE].iter().chain(&ROW_FILES) {
            // A failure is ignored: the file is missing, or this user may not change it.
            let _ = self.dir().touch(name);
        }
    }

    /// Removes the rows of a session that is over. A directory with the name of such a file stays.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when a file cannot be removed.
    pub fn remove_rows(&self, _lock: &PrimaryLock) -> Result<()> {
        for name in ROW_FILES {
            match self.dir().remove(name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound && !self.dir().is_dir(name) => {
                    return Err(self.io_error("remove", name, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of `server.pid`, the file that holds the token.
    pub fn server_file_path(&self) -> PathBuf {
        self.path.join(SERVER_FILE)
    }

    /// Tries to become PRIMARY. Returns `None` when another process holds or probes the lock. So `None` does not prove
    /// that a PRIMARY lives.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the lock file cannot be used.
    pub fn try_lock(&self) -> Result<Option<PrimaryLock>> {
        self.try_lock_for(LockPatience::AtOnce)
    }

    /// Tries to become PRIMARY as [`try_lock`](Self::try_lock) does, for the time that `patience` allows.
    pub(crate) fn try_lock_for(&self, patience: LockPatience<'_>) -> Result<Option<PrimaryLock>> {
        let open = || {
            self.follow_path();
            self.dir().open_lock(LOCK, true)
        };
        match self.take_lock(open, patience) {
            Ok(lock) => Ok(Some(lock)),
            Err(LockRefusal::Held) => Ok(None),
            Err(refusal) => Err(self.lock_error(LOCK, refusal)),
        }
    }

    /// Blocks the thread until this process is PRIMARY. If the PRIMARY restores removed files, including the lock file,
    /// the function calls `on_wake`, and then waits for the new lock file. Members join again in `on_wake`.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the lock file cannot be used.
    pub fn wait_for_lock(&self, on_wake: impl Fn()) -> Result<PrimaryLock> {
        let (mut is_woken, mut unopened) = (false, None);
        let open = || {
            if !self.is_in_place() {
                match self.open_anew() {
                    Ok(other) => self.go_on_in(&other),
                    Err(error) => {
                        unopened = Some(error);
                        return Err(io::ErrorKind::NotFound.into());
                    }
                }
            }
            if std::mem::replace(&mut is_woken, true) {
                on_wake();
            }
            self.dir().open_lock(LOCK, true)
        };
        let taken = self.take_lock(open, LockPatience::Unlimited);
        taken.map_err(|refusal| unopened.unwrap_or_else(|| self.lock_error(LOCK, refusal)))
    }

    /// Locks `primary.lock`, which `open` opens. If the locked file has lost its name, another program has removed it
    /// and other servers lock another file. Then the function releases it.
    fn take_lock(
        &self,
        open: impl FnMut() -> io::Result<File>,
        patience: LockPatience<'_>,
    ) -> Result<PrimaryLock, LockRefusal> {
        // Also checks the directory: after a move the old directory still has its lock file, but other servers use the
        // new directory.
        let is_followed = || self.is_in_place() || !self.path.exists();
        let is_named = |file: &File| Ok(self.dir().is_named(LOCK, &FileId::from_file(file)?)? && is_followed());
        let lock = FileLock::take_opened(open, is_named, LockKind::Exclusive, patience)?;
        let id = FileId::from_file(lock.as_file())?;
        Ok(PrimaryLock { lock: Arc::new(Mutex::new(lock)), id: Arc::new(RwLock::new(id)) })
    }

    /// Returns true when a PRIMARY lives, because a process holds the lock. The function checks no pid.
    pub fn is_held(&self) -> bool {
        self.look_at_lock().unwrap_or(false)
    }

    /// Checks the lock as [`is_held`](Self::is_held) does, but returns an error if the check fails.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file system has no locks. It is then unknown whether a PRIMARY lives.
    pub fn look_at_lock(&self) -> Result<bool> {
        let Ok(file) = self.dir().open_lock(LOCK, false) else { return Ok(false) };
        match FileLock::is_held(&file, LockKind::Shared) {
            Err(refusal @ LockRefusal::NoLocks(_)) => Err(self.lock_error(LOCK, refusal)),
            held => Ok(held.unwrap_or(false)),
        }
    }

    /// Returns the identity of the file that has the lock's name; `None` if there is none. Nudge never removes the lock
    /// file. If the identity changes or disappears, another program has removed the file.
    pub fn lock_id(&self) -> Option<FileId> {
        match self.dir().look_up(LOCK) {
            Ok(FileKind::Ours { id, .. }) => Some(id),
            _ => None,
        }
    }

    /// Reads `server.pid`. Returns `None` when the file is missing, or is not one that a server of this user can have
    /// written.
    pub fn read_server_file(&self) -> Option<ServerFile> {
        serde_json::from_slice(&self.read_small(SERVER_FILE)?).ok()
    }

    /// Replaces `server.pid` atomically.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`, for instance when a directory has that name, or when `primary.lock` was removed or replaced.
    pub fn write_server_file(&self, lock: &PrimaryLock, content: &ServerFile) -> Result<()> {
        if !lock.is_named(self) {
            return Err(unlocked_error(&self.path.join(LOCK)));
        }
        self.write_small(SERVER_FILE, content)
    }

    /// Reads a small file. Returns `None` when the file is missing, or is not one that a server of this user can have
    /// written.
    pub(crate) fn read_small(&self, name: &str) -> Option<Vec<u8>> {
        let file = self.dir().open_read(name).ok()?;
        let mut text = Vec::with_capacity(512);
        file.take(MAX_SMALL_FILE_BYTES + 1).read_to_end(&mut text).ok()?;
        (text.len() as u64 <= MAX_SMALL_FILE_BYTES).then_some(text)
    }

    /// Writes a file atomically, so that no process reads a part of it.
    pub(crate) fn write_small(&self, name: &str, content: &impl Serialize) -> Result<()> {
        let write = || self.dir().write_atomic(name, &serde_json::to_vec(content)?, DiskSync::Unflushed);
        write().map_err(|error| self.io_error("write", name, &error))
    }

    /// Removes `server.pid` and the local channel. The caller must be PRIMARY, so both files are its own. If
    /// `primary.lock` was removed or replaced, another process may be PRIMARY. Then this function removes nothing.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when `server.pid` is a directory.
    pub fn remove_server_file(&self, lock: &PrimaryLock) -> Result<()> {
        if !lock.is_named(self) {
            return Ok(());
        }
        if self.dir().is_dir(SERVER_FILE) {
            let path = self.server_file_path();
            let message = format!("{} is a directory; remove it and start again.", path.display());
            return Err(Error::unavailable(message));
        }
        self.remove_channel();
        match self.dir().remove(SERVER_FILE) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.io_error("remove", SERVER_FILE, &error)),
            _ => Ok(()),
        }
    }

    /// Opens the log to append to it. A log that has become too large is renamed to `server.log.1`.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the name of the log belongs to something other than a file of this user.
    pub fn open_log(&self) -> Result<LogFile> {
        let open = || LogFile::open(self.clone());
        open().map_err(|error| self.io_error("open", LOG, &error))
    }

    pub(crate) fn lock_error(&self, name: &str, refusal: LockRefusal) -> Error {
        self.io_error("lock", name, &refusal.into())
    }

    pub(crate) fn io_error(&self, verb: &str, name: &str, error: &io::Error) -> Error {
        let path = self.path.join(name);
        let advice = match find_advice(error) {
            _ if verb == "lock" && dir::is_without_locks(error) => {
                "its file system has no locks, so set NUDGE_RUNTIME_DIR to a folder on a disk of this machine"
            }
            known => known.unwrap_or("remove it or set NUDGE_RUNTIME_DIR"),
        };
        Error::unavailable(format!("Cannot {verb} {}: {error}; {advice}.", path.display()))
    }
}

/// Returns advice when the system has run out of a resource or the disk is read-only; `None` for other errors.
pub(crate) fn find_advice(error: &io::Error) -> Option<&'static str> {
    let descriptors = || is_out_of_descriptors(error).then_some("close some programs or raise the limit of open files");
    dir::advise_on_disk(error).or_else(descriptors)
}

#[cfg(unix)]
fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;

    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(not(unix))]
fn is_out_of_descriptors(_error: &io::Error) -> bool {
    false
}

/// Makes the error of a PRIMARY that must stop, because its `primary.lock` was removed or replaced.
pub(crate) fn unlocked_error(lock: &Path) -> Error {
    let (lock, pid) = (lock.display(), std::process::id());
    let message = format!("Somebody has removed {lock}, so another server may be PRIMARY; end this one (pid {pid}).");
    Error::unavailable(message)
}

/// Converts the outcome of opening `path`. Returns `None` when the directory is missing.
fn none_if_missing(path: &Path, opened: Result<RuntimeDir, UnfitDir>) -> Result<Option<RuntimeDir>> {
    let because = match opened {
        Ok(dir) => return Ok(Some(dir)),
        Err(UnfitDir::Missing) => return Ok(None),
        Err(unfit) => unfit,
    };
    let because =
        because.with_remedy("name another folder, such as a new one, by `--runtime-dir` or NUDGE_RUNTIME_DIR");
    Err(Error::unavailable(format!("The runtime directory {} {because}.", path.display())))
}

/// The log of a server whose standard output carries MCP. It is in `server.log`, and older lines are in `server.log.1`.
#[derive(Debug)]
pub struct LogFile {
    dir: RuntimeDir,
    file: File,
    bytes: u64,
}

impl LogFile {
    fn open(dir: RuntimeDir) -> io::Result<Self> {
        let file = dir.dir().open_append(LOG)?;
        Ok(Self { bytes: file.metadata()?.len(), file, dir })
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.bytes > MAX_LOG_BYTES {
            self.dir.dir().rename(LOG, OLD_LOG)?;
            *self = Self::open(self.dir.clone())?;
        }
        let written = self.file.write(line)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The lock that makes this process PRIMARY. Dropping this value, or the death of the process, releases the lock.
#[derive(Debug)]
pub struct PrimaryLock {
    lock: Arc<Mutex<FileLock>>,
    /// The identity of the locked file. No other file can have it while this file is open.
    id: Arc<RwLock<FileId>>,
}

impl PrimaryLock {
    /// Returns true while the name `primary.lock` still belongs to the locked file. After false, another program has
    /// removed or replaced the file and another server may be PRIMARY, so the holder of this lock must end. Returns
    /// true when the check itself fails. (On Windows, Nudge notices only a missing file.)
    pub fn is_named(&self, dir: &RuntimeDir) -> bool {
        self.new_watch(dir).is_named().unwrap_or(true)
    }

    /// Makes a handle that can check [`Self::is_named`] and does not hold the lock.
    pub fn new_watch(&self, dir: &RuntimeDir) -> LockWatch {
        LockWatch { dir: dir.clone(), lock: Arc::downgrade(&self.lock), id: Arc::clone(&self.id) }
    }
}

/// Checks that the locked file of a [`PrimaryLock`] still has its name. The value does not hold the lock itself.
#[derive(Debug)]
pub struct LockWatch {
    dir: RuntimeDir,
    lock: Weak<Mutex<FileLock>>,
    id: Arc<RwLock<FileId>>,
}

/// The contents of the files in which a PRIMARY describes itself and its session.
#[derive(Debug, Clone)]
pub struct PrimarySeat {
    /// The content of `server.pid`.
    pub server: ServerFile,
    /// The content of the session file.
    pub session: SessionFile,
}

impl LockWatch {
    /// Returns an error after `primary.lock` was removed or replaced, because another server may then be PRIMARY.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the lock was removed or replaced.
    pub fn check_lock(&self) -> Result<()> {
        // A check that fails counts as success, as in [`PrimaryLock::is_named`].
        if self.is_named().unwrap_or(true) { Ok(()) } else { Err(self.refusal_error()) }
    }

    /// Returns true while the directory's path still leads to the directory of the lock.
    pub fn is_in_place(&self) -> bool {
        self.dir.is_in_place()
    }

    pub(crate) fn is_named(&self) -> io::Result<bool> {
        let id = self.id.read();
        self.dir.dir().is_named(LOCK, &id)
    }

    fn refusal_error(&self) -> Error {
        unlocked_error(&self.dir.path().join(LOCK))
    }

    /// Becomes PRIMARY again after `primary.lock` or the whole directory was removed. The function wins the new lock
    /// file, and restores the session file and `server.pid`. `is_ours` returns false when another PRIMARY has stored
    /// rows in the directory. The caller must prevent changes of the rows meanwhile, and must itself renew the rows, the
    /// local channel and the membership.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when another process holds the new lock, or when a file in the directory shows that another
    /// server was PRIMARY meanwhile. The other server may have acknowledged changes that this one does not have.
    pub fn retake_lock(&self, seat: &PrimarySeat, is_ours: impl FnOnce() -> bool) -> Result<()> {
        let held = self.lock.upgrade().ok_or_else(|| self.refusal_error())?;
        let dir = self.dir.open_anew()?;
        let is_named = self.dir.is_in_place() && self.is_named().unwrap_or(true);
        let new = if is_named {
            None
        } else {
            {
                // Clients and starting servers may hold the new lock for a moment.
                let won = dir.try_lock_for(LockPatience::Within(RETAKE_PATIENCE))?;
                Some(won.ok_or_else(|| self.refusal_error())?)
            }
        };
        let is_own = dir.read_server_file().is_none_or(|server| server == seat.server)
            && match dir.read_session() {
                SessionState::Lives(session) => session.id == seat.session.id,
                SessionState::Unknown => true,
                SessionState::Stopped | SessionState::Unreadable => false,
            }
            && is_ours();
        if !is_own {
            return Err(self.refusal_error());
        }
        if let Some(PrimaryLock { lock, id }) = &new {
            self.dir.go_on_in(&dir);
            let mut id = id.write();
            let mut lock = lock.lock();
            std::mem::swap(&mut *self.id.write(), &mut *id);
            // Closing the removed lock file, at the end of this block, wakes the PROXYs that wait for it. They then
            // look for the new one.
            std::mem::swap(&mut *held.lock(), &mut *lock);
        }
        let _ = self.dir.dir().keep_from_ageing();
        self.dir.write_small(crate::session::NAME, &seat.session)?;
        self.dir.write_small(SERVER_FILE, &seat.server)
    }
}

/// The contents of `server.pid`. Unknown keys are ignored, so that different versions can read the file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFile {
    /// The server's process id, for people only. No decision depends on it.
    pub pid: u32,
    /// The server's port on 127.0.0.1.
    pub port: u16,
    /// The time at which the server created its store.
    #[serde(default)]
    pub started: String,
    /// The bearer token that callers must send; `None` when the server needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl fmt::Debug for ServerFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerFile")
            .field("pid", &self.pid)
            .field("port", &self.port)
            .field("started", &self.started)
            .field("token", &self.token.as_ref().map(|_| "[secret]"))
            .finish()
    }
}
/// Makes the error for a missing server or a missing runtime directory.
pub(crate) fn no_server() -> Error {
    Error::unavailable("No Nudge server is running; start one with `nudge serve --detach`.")
}
