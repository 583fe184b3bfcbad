//! A directory that belongs to this user, with the few file operations that Nudge needs there. No operation follows a
//! link, waits for a pipe, or trusts a file that another user has put there.
//!
//! On Unix every operation is relative to the open directory, so renaming or replacing its path has no effect. On
//! Windows the directory is protected because it is in the user's own profile folder.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
pub use unix::FileId;
#[cfg(not(unix))]
pub use windows::FileId;

use crate::beneath::{DiskSync, FileRights, HeldFolder};
use crate::lock::{FileLock, LockKind, LockPatience, LockRefusal};

/// The reason why a directory cannot be used.
#[derive(Debug)]
#[cfg_attr(not(unix), allow(dead_code))]
pub enum UnfitDir {
    /// The directory belongs to another user.
    Foreign,
    /// The directory is missing, and the caller did not ask to create it.
    Missing,
    /// The directory is open to other users, and empty or with nothing but private files: it is Nudge's own.
    OpenToOthers,
    /// The directory is open to other users, and so is something in it: other programs may need the directory so.
    Shared,
    /// Any other reason. The text is the rest of a sentence that begins with the path.
    Because(String),
}

impl UnfitDir {
    /// Returns the rest of the sentence, with what the user can do. Changing the mode of a shared directory, such as
    /// `/tmp` or `/etc`, would break other programs, so only Nudge's own directory gets that advice.
    pub fn with_remedy(&self, other_remedy: &str) -> String {
        match self {
            Self::OpenToOthers => format!("{self}; run `chmod 700` on it, or {other_remedy}"),
            _ => format!("{self}; {other_remedy}"),
        }
    }
}

/// Writes the rest of a sentence that begins with the path.
impl fmt::Display for UnfitDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "belongs to another user",
            Self::Missing => "is not there",
            Self::OpenToOthers => "is open to other users",
            Self::Shared => "is open to other users, and so is what lies in it",
            Self::Because(because) => because,
        })
    }
}

impl From<io::Error> for UnfitDir {
    fn from(error: io::Error) -> Self {
        Self::Because(format!("cannot be opened ({error})"))
    }
}

/// Makes a folder and its missing parents, with mode 0700 on Unix. An existing folder is not changed.
///
/// # Errors
/// The reason why the folder cannot be made.
pub fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Returns advice for a disk that is full or has no locks, as the end of a sentence. `None` for any other error.
pub fn advise_on_disk(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some("free some space"),
        io::ErrorKind::ReadOnlyFilesystem => Some("make its disk writable"),
        _ if is_out_of_locks(error) => Some("its file system has no locks, so use a folder on a disk of this machine"),
        _ => None,
    }
}

/// Returns true if the error of a lock means that the file system has no locks, such as a network file system without
/// its lock server.
pub fn is_without_locks(error: &io::Error) -> bool {
    is_out_of_locks(error) || error.kind() == io::ErrorKind::Unsupported
}

#[cfg(unix)]
fn is_out_of_locks(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::NOLCK)
}

#[cfg(not(unix))]
fn is_out_of_locks(_error: &io::Error) -> bool {
    false
}

/// The kind of the file with a given name.
#[derive(Debug)]
pub enum FileKind {
    /// There is no such file.
    Missing,
    /// A regular file that belongs to this user and has no second hard link.
    Ours {
        /// The identity of the file.
        id: FileId,
        /// The length of the file.
        bytes: u64,
    },
    /// A directory.
    Directory,
    /// Anything else: a link, a pipe, another user's file, or a file with a second hard link.
    Other,
}

/// A file that stays open for a long time, with the path by which it was opened.
///
/// A person, a restored backup or a cleaning program may remove the path or give it to another file. Later writes then
/// go into a file without a name, and are lost when the file is closed. Therefore the owner of the file checks the path
/// before it begins a change, and again before it acknowledges the change:
///
/// ```
/// use nudge_os::dir::OpenedFile;
///
/// # let place = tempfile::tempdir().unwrap();
/// let path = place.path().join("notes");
/// std::fs::write(&path, "one").unwrap();
/// let opened = OpenedFile::look_up(&path)?.expect("it was just written");
/// assert!(opened.is_in_place());
/// std::fs::remove_file(&path).unwrap();
/// assert!(!opened.is_in_place());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The file must stay open as long as this value exists. After it is closed, another file may get its inode number.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedFile {
    path: PathBuf,
    id: FileId,
}

impl OpenedFile {
    /// Remembers the file at a path. `None` if there is no file. The file is not opened, and a link is not followed.
    ///
    /// # Errors
    /// The system's error.
    pub fn look_up(path: impl Into<PathBuf>) -> io::Result<Option<Self>> {
        let path = path.into();
        Ok(FileId::at_path(&path)?.map(|id| Self { path, id }))
    }

    /// Returns true when the path still leads to this file. Returns false if the path cannot be read.
    pub fn is_in_place(&self) -> bool {
        FileId::at_path(&self.path).is_ok_and(|id| id.as_ref() == Some(&self.id))
    }

    /// Returns the length of the file in bytes. Returns `None` if the path no longer leads to it or cannot be read.
    pub fn length_in_place(&self) -> Option<u64> {
        let (id, length) = FileId::with_length(&self.path).ok()??;
        (id == self.id).then_some(length)
    }

    /// Returns true when the path leads to any file.
    pub fn is_named(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A directory of this user in which other users cannot write: it has mode 0700, or is in the user's profile on
/// Windows.
#[derive(Debug)]
pub struct PrivateDir(HeldFolder);

impl PrivateDir {
    /// Takes the lock of a file. Makes the file if it is missing. When the lock is taken, the name still leads to the
    /// locked file.
    ///
    /// # Errors
    /// [`LockRefusal`].
    pub fn take_lock(&self, name: &str, kind: LockKind, patience: LockPatience<'_>) -> Result<FileLock, LockRefusal> {
        let is_named = |file: &File| self.is_named(name, &FileId::from_file(file)?);
        FileLock::take_opened(|| self.open_lock(name, true), is_named, kind, patience)
    }

    /// Writes a complete file in one step, so that a reader never sees a part. Only the user can read the file.
    pub fn write_atomic(&self, name: &str, bytes: &[u8], sync: DiskSync) -> io::Result<()> {
        self.0.write_fresh(bytes, FileRights::Private, sync)?.replace_file(name)
    }

    /// Renames a file. Replaces a file that already has the new name.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to.as_ref())
    }

    /// Removes a name. If the name is a link, the link's target stays.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    /// Returns true when a directory has this name.
    pub fn is_dir(&self, name: &str) -> bool {
        matches!(self.look_up(name), Ok(FileKind::Directory))
    }
}

/// Refuses a file that is not regular, or for which `ours` returns false.
fn require_plain(file: File, ours: impl Fn(&std::fs::Metadata) -> bool) -> io::Result<File> {
    let meta = file.metadata()?;
    if meta.is_file() && ours(&meta) {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file of ours alone"))
    }
}

#[cfg(unix)]
mod unix {
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps};

    use super::{File, FileKind, HeldFolder, Path, PathBuf, PrivateDir, UnfitDir, io, require_plain};

    /// The identity of a file, independent of its names: device and inode. The types of these numbers differ between
    /// systems.
    #[derive(Debug, Clone, PartialEq)]
    pub struct FileId(i128, i128);

    impl FileId {
        /// Returns the identity of an open file.
        pub fn from_file(file: &File) -> io::Result<Self> {
            Ok(Self::from(&rustix::fs::fstat(file)?))
        }

        /// Returns the identity of the file at this path; `None` if there is no file. The file is not opened, and a
        /// link is not followed.
        pub fn at_path(path: &Path) -> io::Result<Option<Self>> {
            Ok(Self::with_length(path)?.map(|(id, _)| id))
        }

        /// Returns the identity and the length of the file at this path, as [`at_path`](Self::at_path) does.
        pub(super) fn with_length(path: &Path) -> io::Result<Option<(Self, u64)>> {
            match rustix::fs::lstat(path) {
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
                stat => {
                    let stat = stat?;
                    Ok(Some((Self::from(&stat), stat.st_size.cast_unsigned())))
                }
            }
        }
    }

    impl From<&Stat> for FileId {
        fn from(stat: &Stat) -> Self {
            Self(stat.st_dev.into(), stat.st_ino.into())
        }
    }

    /// Returns true when each file and folder in the directory is this user's alone, as all of Nudge's files are.
    /// Sockets and links are ignored, because their modes do not protect them.
    fn has_private_entries_only(dir: impl AsFd + Copy) -> io::Result<bool> {
        for entry in rustix::fs::Dir::read_from(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let is_judged =
                matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Directory);
            let is_open = Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO);
            if is_judged && (is_open || stat.st_uid != rustix::process::geteuid().as_raw()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    impl PrivateDir {
        /// Opens a directory and checks that it can be used. If `create` is true, makes a missing directory.
        pub fn open(path: &Path, create: bool) -> Result<Self, UnfitDir> {
            let made = if create { super::create_private(path) } else { Ok(()) };
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::RDONLY;
            let dir = match (rustix::fs::open(path, flags, Mode::empty()), made) {
                (Ok(dir), _) => dir,
                (Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR), _) => {
                    // The path is a link or a file. If it belongs to another user, the caller may choose another
                    // directory.
                    return Err(if read_owner(path)? == rustix::process::geteuid().as_raw() {
                        UnfitDir::Because("is not a real directory".into())
                    } else {
                        UnfitDir::Foreign
                    });
                }
                (Err(rustix::io::Errno::ACCESS), _) if read_owner(path)? != rustix::process::geteuid().as_raw() => {
                    return Err(UnfitDir::Foreign);
                }
                (Err(rustix::io::Errno::NOENT), Ok(())) => return Err(UnfitDir::Missing),
                (Err(_), Err(error)) => return Err(UnfitDir::Because(format!("cannot be created ({error})"))),
                (Err(error), Ok(())) => return Err(io::Error::from(error).into()),
            };
            let stat = rustix::fs::fstat(&dir).map_err(io::Error::from)?;
            if stat.st_uid != rustix::process::geteuid().as_raw() {
                return Err(UnfitDir::Foreign);
            }
            if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
                return Err(if has_private_entries_only(&dir)? { UnfitDir::OpenToOthers } else { UnfitDir::Shared });
            }
            Ok(Self(HeldFolder(dir)))
        }

        /// Keeps cleaning programs from removing old files in this directory while it is open, because they skip a
        /// locked directory (tmpfiles.d(5), "Age"). The lock is shared, so that all members of a session can hold it.
        pub fn keep_from_ageing(&self) -> io::Result<()> {
            Ok(rustix::fs::flock(&self.0.0, rustix::fs::FlockOperation::NonBlockingLockShared)?)
        }

        /// Sets the times of a file to now, without opening it.
        pub fn touch(&self, name: &str) -> io::Result<()> {
            let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
            let times = Timestamps { last_access: now, last_modification: now };
            Ok(rustix::fs::utimensat(&self.0.0, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
        }

        /// Opens a file to lock it. If `create` is true, makes a missing file.
        pub fn open_lock(&self, name: &str, create: bool) -> io::Result<File> {
            let create = if create { OFlags::CREATE } else { OFlags::empty() };
            self.open_at(name, OFlags::RDWR | create)
        }

        /// Opens a file for reading.
        pub fn open_read(&self, name: &str) -> io::Result<File> {
            self.open_at(name, OFlags::RDONLY)
        }

        /// Opens a file to append to it. Makes a missing file.
        pub fn open_append(&self, name: &str) -> io::Result<File> {
            self.open_at(name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
        }

        /// Opens a file for reading and writing, and makes the file private first.
        pub fn open_write(&self, name: &str) -> io::Result<File> {
            let file = match self.open_whatever_mode(name, OFlags::RDWR) {
                // The file belongs to this user, but its mode denies the owner. The mode is repaired.
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied
                        && matches!(self.look_up(name), Ok(FileKind::Ours { .. })) =>
                {
                    rustix::fs::chmodat(&self.0.0, name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
                    self.open_whatever_mode(name, OFlags::RDWR)?
                }
                opened => opened?,
            };
            rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
            Ok(file)
        }

        /// Makes a file for reading and writing. Fails if the file exists.
        pub fn create_new(&self, name: &str) -> io::Result<File> {
            self.open_at(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
        }

        /// Returns the kind of the file with this name. The file is not opened, and a link is not followed.
        pub fn look_up(&self, name: &str) -> io::Result<FileKind> {
            let stat = match rustix::fs::statat(&self.0.0, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(rustix::io::Errno::NOENT) => return Ok(FileKind::Missing),
                stat => stat?,
            };
            Ok(match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => FileKind::Directory,
                FileType::RegularFile if stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_nlink == 1 => {
                    FileKind::Ours { bytes: stat.st_size.cast_unsigned(), id: FileId::from(&stat) }
                }
                _ => FileKind::Other,
            })
        }

        /// Returns true when `name` leads to the file `id`.
        pub fn is_named(&self, name: &str, id: &FileId) -> io::Result<bool> {
            match rustix::fs::statat(&self.0.0, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(rustix::io::Errno::NOENT) => Ok(false),
                stat => Ok(FileId::from(&stat?) == *id),
            }
        }

        /// Returns the paths at which a socket can be bound and connected, the best first. A system call for sockets
        /// takes a path and no open directory, and the path may have at most 107 bytes (103 on macOS). `path` is the
        /// directory's path.
        pub fn socket_paths(&self, path: &Path, name: &str) -> impl Iterator<Item = PathBuf> {
            let opened = cfg!(target_os = "linux").then(|| PathBuf::from("/proc/self/fd"));
            let opened = opened.map(|fds| fds.join(self.0.0.as_raw_fd().to_string()));
            [opened, Some(path.to_owned())].into_iter().flatten().map(move |dir| dir.join(name))
        }

        /// Refuses a file with permissions for other users, who could write data that Nudge trusts, or read a token.
        fn open_at(&self, name: &str, flags: OFlags) -> io::Result<File> {
            require_plain(self.open_whatever_mode(name, flags)?, |meta| matches!(meta.mode() & 0o077, 0))
        }

        fn open_whatever_mode(&self, name: &str, flags: OFlags) -> io::Result<File> {
            let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.0.0, name, flags, Mode::RUSR | Mode::WUSR)?;
            let us = rustix::process::geteuid().as_raw();
            require_plain(file.into(), |meta| meta.uid() == us && meta.nlink() == 1)
        }
    }

    fn read_owner(path: &Path) -> io::Result<u32> {
        Ok(path.symlink_metadata()?.uid())
    }
}

#[cfg(not(unix))]
mod windows {
    use std::fs::OpenOptions;

    use super::{File, FileKind, HeldFolder, Path, PrivateDir, UnfitDir, io, require_plain};

    /// The identity of a file. It is equal for all files on Windows, because the standard library has no file identity
    /// there. The user's profile folder is the protection.
    #[derive(Debug, Clone, PartialEq)]
    pub struct FileId;

    impl FileId {
        /// Returns the identity of an open file.
        #[allow(clippy::unnecessary_wraps, reason = "it can fail on Unix")]
        pub fn from_file(_file: &File) -> io::Result<Self> {
            Ok(Self)
        }

        /// Returns the identity of the file at this path; `None` if there is no file.
        pub fn at_path(path: &Path) -> io::Result<Option<Self>> {
            Ok(Self::with_length(path)?.map(|(id, _)| id))
        }

        /// Returns the identity and the length of the file at this path, as [`at_path`](Self::at_path) does.
        pub(super) fn with_length(path: &Path) -> io::Result<Option<(Self, u64)>> {
            match path.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                found => found.map(|meta| Some((Self, meta.len()))),
            }
        }
    }

    impl PrivateDir {
        /// Opens a directory and checks that it can be used. If `create` is true, makes a missing directory.
        pub fn open(path: &Path, create: bool) -> Result<Self, UnfitDir> {
            if create {
                std::fs::create_dir_all(path)?;
            }
            match path.symlink_metadata() {
                Ok(meta) if meta.is_dir() => Ok(Self(HeldFolder(path.to_owned()))),
                Ok(_) => Err(UnfitDir::Because("is not a real directory".into())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Err(UnfitDir::Missing),
                Err(error) => Err(error.into()),
            }
        }

        /// Does nothing, because no program on Windows removes old files here.
        #[allow(clippy::unnecessary_wraps, clippy::unused_self, reason = "it does something on Unix")]
        pub fn keep_from_ageing(&self) -> io::Result<()> {
            Ok(())
        }

        /// Sets the times of a file to now.
        pub fn touch(&self, name: &str) -> io::Result<()> {
            let now = std::time::SystemTime::now();
            self.open_write(name)?.set_times(std::fs::FileTimes::new().set_accessed(now).set_modified(now))
        }

        /// Opens a file to lock it. If `create` is true, makes a missing file.
        pub fn open_lock(&self, name: &str, create: bool) -> io::Result<File> {
            self.open_at(name, OpenOptions::new().read(true).write(true).create(create).truncate(false))
        }

        /// Opens a file for reading.
        pub fn open_read(&self, name: &str) -> io::Result<File> {
            self.open_at(name, OpenOptions::new().read(true))
        }

        /// Opens a file to append to it. Makes a missing file.
        pub fn open_append(&self, name: &str) -> io::Result<File> {
            self.open_at(name, OpenOptions::new().append(true).create(true))
        }

        /// Opens a file for reading and writing.
        pub fn open_write(&self, name: &str) -> io::Result<File> {
            self.open_at(name, OpenOptions::new().read(true).write(true))
        }

        /// Makes a file for reading and writing. Fails if the file exists.
        pub fn create_new(&self, name: &str) -> io::Result<File> {
            self.open_at(name, OpenOptions::new().read(true).write(true).create_new(true))
        }

        /// Returns the kind of the file with this name. The file is not opened, and a link is not followed.
        pub fn look_up(&self, name: &str) -> io::Result<FileKind> {
            Ok(match self.0.0.join(name).symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => FileKind::Missing,
                Err(error) => return Err(error),
                Ok(meta) if meta.is_dir() => FileKind::Directory,
                Ok(meta) if meta.is_file() => FileKind::Ours { id: FileId, bytes: meta.len() },
                Ok(_) => FileKind::Other,
            })
        }

        /// Returns true when `name` leads to a regular file. On Windows this function cannot compare the file with
        /// `id`.
        pub fn is_named(&self, name: &str, _id: &FileId) -> io::Result<bool> {
            Ok(matches!(self.look_up(name)?, FileKind::Ours { .. }))
        }

        fn open_at(&self, name: &str, options: &OpenOptions) -> io::Result<File> {
            let path = self.0.0.join(name);
            if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
                return Err(io::Error::other("it is not a regular file of ours alone"));
            }
            require_plain(options.open(path)?, |_| true)
        }
    }
}
