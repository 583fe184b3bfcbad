//! Locks a file, for one holder or for several that share the lock. The system releases the lock when its process dies.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::dir::{self, FileId};

/// The pause between two tries.
const POLL: Duration = Duration::from_millis(1);

/// The kind of a lock: which holders can have it at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// A single holder.
    Exclusive,
    /// Any number of shared holders, but no exclusive holder.
    Shared,
}

/// The time for which a caller waits while another holder has the lock.
#[derive(Clone, Copy)]
pub enum LockPatience<'a> {
    /// Tries once.
    AtOnce,
    /// Tries every millisecond until this time has passed.
    Within(Duration),
    /// Tries every millisecond until this function returns true, for example when a stop flag is set or when the caller
    /// has disconnected.
    Until(&'a dyn Fn() -> bool),
    /// Blocks the thread until the lock is free.
    Unlimited,
}

/// The reason why a lock was not taken.
#[derive(Debug)]
pub enum LockRefusal {
    /// Another holder has the lock.
    Held,
    /// The file system has no locks, for example a network file system without its lock server.
    NoLocks(io::Error),
    /// The file cannot be opened, made or locked.
    Failed(io::Error),
}

impl From<io::Error> for LockRefusal {
    fn from(error: io::Error) -> Self {
        if dir::is_without_locks(&error) { Self::NoLocks(error) } else { Self::Failed(error) }
    }
}

/// Returns the system's error; `WouldBlock` for a lock that another holder has.
impl From<LockRefusal> for io::Error {
    fn from(refusal: LockRefusal) -> Self {
        match refusal {
            LockRefusal::Held => io::ErrorKind::WouldBlock.into(),
            LockRefusal::NoLocks(error) | LockRefusal::Failed(error) => error,
        }
    }
}

/// A file that this process has locked. Dropping this value releases the lock.
///
/// ```
/// use nudge_os::lock::{FileLock, LockKind, LockPatience, LockRefusal};
///
/// # let place = tempfile::tempdir().unwrap();
/// let path = place.path().join("one.lock");
/// let lock = FileLock::take(&path, LockKind::Exclusive, LockPatience::AtOnce).unwrap();
/// let second = FileLock::take(&path, LockKind::Exclusive, LockPatience::AtOnce);
/// assert!(matches!(second, Err(LockRefusal::Held)));
/// drop(lock);
/// FileLock::take(&path, LockKind::Exclusive, LockPatience::AtOnce).unwrap();
/// ```
#[derive(Debug)]
pub struct FileLock {
    file: File,
    /// The path of the file that is removed when the lock is dropped.
    removed: Option<PathBuf>,
}

impl FileLock {
    /// Takes the lock of the file at this path. If the file is missing, it is made so that only the user can read it. A
    /// link is not followed. When the lock is taken, the path still leads to the locked file.
    ///
    /// # Errors
    /// [`LockRefusal`]; `InvalidInput` for anything other than a regular file.
    pub fn take(path: &Path, kind: LockKind, patience: LockPatience<'_>) -> Result<Self, LockRefusal> {
        let is_named = |file: &File| Ok(FileId::at_path(path)? == Some(FileId::from_file(file)?));
        Self::take_opened(|| open_private(path), is_named, kind, patience)
    }

    /// Takes the lock of a file. Each try opens the file again with `open`. After locking, `is_named` checks that other
    /// processes would still open the same file. If not, the lock is released, and the next try begins at once. A
    /// signal that interrupts an unlimited wait also leads to the next try.
    ///
    /// # Errors
    /// [`LockRefusal`], with the errors of `open` and `is_named`.
    pub fn take_opened(
        mut open: impl FnMut() -> io::Result<File>,
        mut is_named: impl FnMut(&File) -> io::Result<bool>,
        kind: LockKind,
        patience: LockPatience<'_>,
    ) -> Result<Self, LockRefusal> {
        let begun = Instant::now();
        let is_over = || match patience {
            LockPatience::AtOnce => true,
            LockPatience::Within(time) => begun.elapsed() >= time,
            LockPatience::Until(is_over) => is_over(),
            LockPatience::Unlimited => false,
        };
        loop {
            let file = open()?;
            let taken = match (patience, kind) {
                (LockPatience::Unlimited, LockKind::Exclusive) => file.lock().map_err(TryLockError::Error),
                (LockPatience::Unlimited, LockKind::Shared) => file.lock_shared().map_err(TryLockError::Error),
                _ => try_once(&file, kind),
            };
            match taken {
                Ok(()) => {
                    // From here on, leaving this function in any way releases the lock.
                    let lock = Self { file, removed: None };
                    if is_named(&lock.file)? {
                        return Ok(lock);
                    }
                }
                Err(TryLockError::WouldBlock) if is_over() => return Err(LockRefusal::Held),
                Err(TryLockError::WouldBlock) => sleep(POLL),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
    }

    /// Returns true when another holder's lock excludes a lock of this kind. The check does not keep the lock.
    ///
    /// # Errors
    /// [`LockRefusal`], except [`LockRefusal::Held`].
    pub fn is_held(file: &File, kind: LockKind) -> Result<bool, LockRefusal> {
        match try_once(file, kind) {
            Ok(()) => {
                // Closing the file does not always release the lock, because a program that is just being started may
                // have inherited the file.
                let _ = file.unlock();
                Ok(false)
            }
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Sets the path of the locked file, so that dropping the lock removes the file.
    #[must_use]
    pub fn with_removal(mut self, path: &Path) -> Self {
        self.removed = Some(path.to_owned());
        self
    }

    /// Returns the locked file.
    pub fn as_file(&self) -> &File {
        &self.file
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // The file is removed while it is locked. A process that locks it later notices that it has no name.
        let _ = self.removed.as_ref().map(fs::remove_file);
        // The file is unlocked explicitly, because a program that another thread is just starting has inherited the
        // file until it runs.
        let _ = self.file.unlock();
    }
}

fn try_once(file: &File, kind: LockKind) -> Result<(), TryLockError> {
    match kind {
        LockKind::Exclusive => file.try_lock(),
        LockKind::Shared => file.try_lock_shared(),
    }
}

/// Opens a file of this user to lock it. Makes a missing file. Never waits, not even for a pipe.
fn open_private(path: &Path) -> io::Result<File> {
    let refused = || {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is no regular file"))
    };
    if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
        return Err(refused());
    }
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;

        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    const MINUTE: LockPatience<'static> = LockPatience::Within(Duration::from_mins(1));
    /// The variable with the path of the lock, for the process that a test starts.
    const CHILD: &str = "NUDGE_TEST_LOCK";

    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.lock");
        (place, path)
    }

    fn take(path: &Path, kind: LockKind, patience: LockPatience<'_>) -> Result<FileLock, LockRefusal> {
        FileLock::take(path, kind, patience)
    }

    #[test]
    fn holders_share_a_lock_or_keep_others_out() {
        use LockKind::{Exclusive, Shared};
        for (first, second, is_held) in [
            (Exclusive, Exclusive, true),
            (Exclusive, Shared, true),
            (Shared, Exclusive, true),
            (Shared, Shared, false),
        ] {
            let (_place, path) = place();
            let lock = take(&path, first, LockPatience::AtOnce).unwrap();
            for patience in [LockPatience::AtOnce, LockPatience::Within(Duration::from_millis(5))] {
                let tried = take(&path, second, patience);
                assert_eq!(matches!(tried, Err(LockRefusal::Held)), is_held, "{first:?} {second:?}");
            }
            assert_eq!(FileLock::is_held(&File::open(&path).unwrap(), second).unwrap(), is_held);
            drop(lock);
            assert!(!FileLock::is_held(&File::open(&path).unwrap(), Exclusive).unwrap());
            take(&path, second, LockPatience::AtOnce).unwrap();
        }
    }

    #[test]
    fn a_waiter_gets_the_lock_when_it_is_released_removed_or_replaced() {
        type Change = fn(FileLock, &Path);
        let changes: [(&str, Change); 3] = [
            ("released", |lock, _| drop(lock)),
            ("removed with the lock", |lock, path| drop(lock.with_removal(path))),
            ("replaced by another file", |lock, path| {
                fs::remove_file(path).unwrap();
                fs::write(path, "another").unwrap();
                drop(lock);
            }),
        ];
        for (how, change) in changes {
            for blocks in [false, true] {
                let (_place, path) = place();
                let lock = take(&path, LockKind::Exclusive, LockPatience::AtOnce).unwrap();
                let (tell, waits) = channel();
                thread::scope(|scope| {
                    let waiter = scope.spawn(|| {
                        let open = || {
                            let _ = tell.send(());
                            open_private(&path)
                        };
                        let is_named = |file: &File| Ok(FileId::at_path(&path)? == Some(FileId::from_file(file)?));
                        let patience = if blocks { LockPatience::Unlimited } else { MINUTE };
                        FileLock::take_opened(open, is_named, LockKind::Exclusive, patience)
                    });
                    waits.recv().unwrap();
                    if !blocks {
                        waits.recv().expect("the first try was refused");
                    }
                    change(lock, &path);
                    let taken = waiter.join().unwrap().unwrap();
                    let named = FileId::at_path(&path).unwrap();
                    assert_eq!(named, Some(FileId::from_file(taken.as_file()).unwrap()), "{how}");
                    assert!(matches!(take(&path, LockKind::Shared, LockPatience::AtOnce), Err(LockRefusal::Held)));
                });
            }
        }
    }

    #[test]
    fn a_condition_ends_a_wait() {
        let (_place, path) = place();
        let _lock = take(&path, LockKind::Exclusive, LockPatience::AtOnce).unwrap();
        let (stop, (tell, waits)) = (AtomicBool::new(false), channel());
        let is_over = || {
            let _ = tell.send(());
            stop.load(Ordering::Relaxed)
        };
        thread::scope(|scope| {
            let waiter = scope.spawn(|| take(&path, LockKind::Shared, LockPatience::Until(&is_over)).map(drop));
            waits.recv().unwrap();
            waits.recv().expect("it goes on while the condition is false");
            stop.store(true, Ordering::Relaxed);
            assert!(matches!(waiter.join().unwrap(), Err(LockRefusal::Held)));
        });
    }

    #[test]
    fn a_process_that_is_killed_gives_its_lock_back() {
        if let Some(path) = std::env::var_os(CHILD) {
            let _lock = take(Path::new(&path), LockKind::Exclusive, LockPatience::AtOnce).unwrap();
            println!("locked");
            let _ = io::stdin().read_line(&mut String::new());
            return;
        }
        let (_place, path) = place();
        let name = "lock::tests::a_process_that_is_killed_gives_its_lock_back";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = io::BufRead::lines(io::BufReader::new(child.stdout.take().unwrap()));
        assert!(lines.any(|line| line.unwrap().ends_with("locked")), "it has the lock");
        assert!(matches!(take(&path, LockKind::Shared, LockPatience::AtOnce), Err(LockRefusal::Held)));
        child.kill().unwrap();
        child.wait().unwrap();
        take(&path, LockKind::Exclusive, MINUTE).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_private_and_nothing_else_is_opened() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let (place, path) = place();
        let lock = take(&path, LockKind::Exclusive, LockPatience::AtOnce).unwrap().with_removal(&path);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        drop(lock);
        assert!(!path.exists(), "it is removed with the lock");
        symlink(place.path().join("new"), place.path().join("link")).unwrap();
        assert!(Command::new("mkfifo").arg(place.path().join("pipe")).status().unwrap().success());
        for name in ["", "link", "pipe"] {
            let refused = take(&place.path().join(name), LockKind::Exclusive, MINUTE).unwrap_err();
            assert_eq!(io::Error::from(refused).kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert!(!place.path().join("new").exists(), "a link is not followed");
        let missing = take(&place.path().join("no/a.lock"), LockKind::Exclusive, MINUTE).unwrap_err();
        assert_eq!(io::Error::from(missing).kind(), io::ErrorKind::NotFound, "nothing is waited for");
    }

    #[test]
    fn refusals_are_told_apart() {
        for (kind, is_without) in [(io::ErrorKind::Unsupported, true), (io::ErrorKind::PermissionDenied, false)] {
            assert_eq!(matches!(io::Error::from(kind).into(), LockRefusal::NoLocks(_)), is_without, "{kind}");
        }
        assert_eq!(io::Error::from(LockRefusal::Held).kind(), io::ErrorKind::WouldBlock);
    }
}
