//! Reads and writes files below a folder that is kept open by a file descriptor. A call cannot leave this folder, even
//! if another process renames a folder or puts a link in its place, because each call checks and uses a path in one
//! step.
//!
//! On Linux the kernel resolves the paths (`openat2`). On other Unix systems, or without that system call, this module
//! opens one folder after another and refuses every link between them. On Windows it checks a path before it uses the
//! path.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(unix)]
pub use unix::HeldFolder;
#[cfg(not(unix))]
pub use windows::HeldFolder;

use crate::lock::{FileLock, LockKind, LockPatience, LockRefusal};

/// The beginning and the end of the names of temporary files.
const TEMPORARY: (&str, &str) = (".nudge-", ".tmp");
/// The age from which a temporary file counts as left behind by a dead process.
const LEFT_OVER: Duration = Duration::from_hours(1);
/// The number of tries to find a free name for a temporary file.
const MAX_NAMES: u32 = 16;

/// The treatment of links between the folders of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InnerLinks {
    /// Follows a relative link that stays below the open folder. Without `openat2` such a link is refused.
    Within,
    /// Refuses every link.
    Refused,
}

/// The permissions of a written file, on systems that have permissions.
#[derive(Debug, Clone)]
pub enum FileRights {
    /// The default permissions, reduced by the process's mask, as for files of other programs.
    Usual,
    /// Only the user can read and write the file.
    Private,
    /// The permissions of another file, usually of the replaced file. The new file is private until it gets these
    /// permissions.
    Same(Permissions),
}

/// Tells whether the file must survive a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskSync {
    /// The file is flushed to the disk before it gets its name, and the folder is flushed after that.
    Flushed,
    /// The system writes the file to the disk later. This is enough if the file can be made again, or if the caller
    /// cannot wait for the disk.
    Unflushed,
}

/// A complete file that still has a temporary name. Dropping this value removes the file, unless it got its own name.
#[derive(Debug)]
pub struct FreshFile<'a> {
    folder: &'a HeldFolder,
    name: String,
    is_named: bool,
    sync: DiskSync,
}

/// Replaces the file at this path in one step: a reader sees the old file or the new one, but never a part. The folder
/// must belong to the user, and its path must not end in a link. For files in folders of other users, use
/// [`HeldFolder::write_fresh`].
///
/// # Errors
/// The system's error. The old file then stays.
pub fn write_atomic(path: &Path, bytes: &[u8], rights: FileRights, sync: DiskSync) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file's name"));
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    HeldFolder::open(folder)?.write_fresh(bytes, rights, sync)?.replace_file(name)
}

impl HeldFolder {
    /// Reads a regular file of this folder, of at most `max_bytes`. Refuses a link, a pipe and a device.
    ///
    /// # Errors
    /// The errors of opening the file; `InvalidInput` for anything other than a regular file; `FileTooLarge`.
    pub fn read(&self, name: &str, max_bytes: u64) -> io::Result<(Vec<u8>, Metadata)> {
        let refused = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        // A device is not even opened, except if it replaced the file during this call.
        if !self.look_up(name)?.is_file() {
            return Err(refused());
        }
        let file = self.open_file(name)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(refused());
        }
        let mut bytes = Vec::new();
        file.take(max_bytes + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {max_bytes} bytes")));
        }
        Ok((bytes, meta))
    }

    /// Writes a file under a temporary name.
    ///
    /// # Errors
    /// The system's error.
    pub fn write_fresh(&self, bytes: &[u8], rights: FileRights, sync: DiskSync) -> io::Result<FreshFile<'_>> {
        let (name, mut file) = self.create_temporary(!matches!(rights, FileRights::Usual))?;
        let fresh = FreshFile { folder: self, name, is_named: false, sync };
        file.write_all(bytes)?;
        if let FileRights::Same(permissions) = rights {
            file.set_permissions(permissions)?;
        }
        if sync == DiskSync::Flushed {
            file.sync_all()?;
        }
        Ok(fresh)
    }

    /// Takes the lock of the folder. On systems that cannot lock folders, it is the lock of a file beside the folder.
    ///
    /// # Errors
    /// [`LockRefusal`].
    pub fn take_lock(&self, patience: LockPatience<'_>) -> Result<FileLock, LockRefusal> {
        FileLock::take_opened(|| self.open_lock(), |_| Ok(true), LockKind::Exclusive, patience)
    }

    fn create_temporary(&self, is_private: bool) -> io::Result<(String, File)> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        for _ in 0..MAX_NAMES {
            let nanos = UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
            let (process, count) = (std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
            let name = format!("{}{process:x}-{nanos:x}-{count:x}{}", TEMPORARY.0, TEMPORARY.1);
            match self.create_new(&name, is_private) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|file| (name, file)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Removes temporary files that dead processes left behind.
    pub fn sweep_leftovers(&self) {
        let is_ours = |name: &&str| name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1);
        for name in self.list_names().unwrap_or_default() {
            let Some(name) = name.to_str().filter(is_ours) else { continue };
            let written = self.look_up(name).and_then(|meta| meta.modified()).ok();
            if written.is_some_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > LEFT_OVER)) {
                // This fails if another process has already removed the file.
                let _ = self.remove(name);
            }
        }
    }
}

impl FreshFile<'_> {
    /// Gives the file its name. Replaces a file that already has this name.
    ///
    /// # Errors
    /// The system's error.
    pub fn replace_file(mut self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.folder.rename(&self.name, name.as_ref())?;
        self.is_named = true;
        self.flush_name();
        Ok(())
    }

    /// Gives the file its name. No other file may have this name.
    ///
    /// # Errors
    /// `AlreadyExists` when the name is taken; otherwise the system's error.
    pub fn take_free_name(mut self, name: &str) -> io::Result<()> {
        // A hard link, unlike a rename, does not replace another file.
        match self.folder.link(&self.name, name) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) if self.folder.look_up(name).is_ok() => return Err(io::ErrorKind::AlreadyExists.into()),
            // The file system has no hard links.
            Err(_) => {
                self.folder.rename(&self.name, name.as_ref())?;
                self.is_named = true;
            }
        }
        self.flush_name();
        Ok(())
    }

    fn flush_name(&self) {
        if self.sync == DiskSync::Flushed {
            self.folder.flush();
        }
    }
}

impl Drop for FreshFile<'_> {
    fn drop(&mut self) {
        if !self.is_named {
            let _ = self.folder.remove(&self.name);
        }
    }
}

/// Returns true if the error means that a path contains a refused link.
pub fn is_of_link(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        [Errno::XDEV, Errno::LOOP].iter().any(|refused| error.raw_os_error() == Some(refused.raw_os_error()))
    }
    #[cfg(not(unix))]
    {
        error.kind() == io::ErrorKind::CrossesDevices
    }
}

/// Returns the names of a path. Refuses a path with any part that is not a name, such as `..`.
fn names_of(below: &Path) -> io::Result<Vec<&std::ffi::OsStr>> {
    let name = |part| match part {
        Component::Normal(name) => Ok(name),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it does not lie below the folder")),
    };
    below.components().map(name).collect()
}

#[cfg(unix)]
mod unix {
    use std::os::fd::OwnedFd;

    use rustix::fs::{AtFlags, Mode, OFlags};
    use rustix::io::Errno;

    use super::{File, InnerLinks, Metadata, OsStr, OsString, Path, io, names_of};

    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
    const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
    /// The flags that open a name without opening its target, on systems that have them.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    /// The permissions of new files, before the process's mask is applied.
    const NEW_FILE: Mode =
        Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::WGRP).union(Mode::ROTH).union(Mode::WOTH);
    /// The permissions of new folders, before the process's mask is applied.
    const NEW_FOLDER: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

    /// A folder that is kept open.
    #[derive(Debug)]
    pub struct HeldFolder(pub(crate) OwnedFd);

    impl HeldFolder {
        /// Opens a folder. The last part of the path must not be a link.
        ///
        /// # Errors
        /// The system's error.
        pub fn open(path: &Path) -> io::Result<Self> {
            Ok(Self(rustix::fs::open(path, FOLDER | OFlags::NOFOLLOW, Mode::empty())?))
        }

        /// Opens a folder below this one.
        ///
        /// # Errors
        /// The system's error. [`is_of_link`](super::is_of_link) tells whether a link is the cause.
        pub fn open_folder(&self, below: &Path, links: InnerLinks) -> io::Result<Self> {
            if names_of(below)?.is_empty() {
                return self.reopen();
            }
            #[cfg(any(target_os = "linux", target_os = "android"))]
            match open_below(&self.0, below, links) {
                Err(Errno::NOSYS | Errno::PERM) => {}
                opened => return Ok(Self(opened?)),
            }
            self.folder_by_steps(below, links)
        }

        /// Opens a folder below this one. Makes the folders of the path that are missing.
        ///
        /// # Errors
        /// The errors of [`open_folder`](Self::open_folder).
        pub fn make_folder(&self, below: &Path, links: InnerLinks) -> io::Result<Self> {
            let mut folder = self.reopen()?;
            let mut path = std::path::PathBuf::new();
            for name in names_of(below)? {
                path.push(name);
                match rustix::fs::mkdirat(&folder.0, name, NEW_FOLDER) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                folder = self.open_folder(&path, links)?;
            }
            Ok(folder)
        }

        /// Opens one folder after another. This function cannot check the target of a link, so it refuses every link.
        pub(super) fn folder_by_steps(&self, below: &Path, _: InnerLinks) -> io::Result<Self> {
            let mut folder = self.reopen()?;
            for name in names_of(below)? {
                let opened = rustix::fs::openat(&folder.0, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
                folder = Self(opened.map_err(|error| {
                    let is_link = || rustix::fs::readlinkat(&folder.0, name, Vec::new()).is_ok();
                    if error == Errno::NOTDIR && is_link() { Errno::LOOP } else { error }
                })?);
            }
            Ok(folder)
        }

        /// Opens the same folder a second time.
        fn reopen(&self) -> io::Result<Self> {
            Ok(Self(rustix::fs::openat(&self.0, ".", FOLDER, Mode::empty())?))
        }

        /// Opens the folder as a separate file that can be locked.
        pub(super) fn open_lock(&self) -> io::Result<File> {
            Ok(self.reopen()?.0.into())
        }

        /// Returns the metadata of the file with this name. A link is not followed.
        ///
        /// # Errors
        /// The system's error.
        pub fn look_up(&self, name: &str) -> io::Result<Metadata> {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            let looked = rustix::fs::openat(&self.0, require_plain_name(name)?, LOOK, Mode::empty())?;
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            let looked = {
                let stat = rustix::fs::statat(&self.0, require_plain_name(name)?, AtFlags::SYMLINK_NOFOLLOW)?;
                let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
                if !matches!(kind, rustix::fs::FileType::RegularFile | rustix::fs::FileType::Directory) {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a folder"));
                }
                rustix::fs::openat(&self.0, name, FILE | OFlags::RDONLY, Mode::empty())?
            };
            File::from(looked).metadata()
        }

        pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
            Ok(rustix::fs::openat(&self.0, require_plain_name(name)?, FILE | OFlags::RDONLY, Mode::empty())?.into())
        }

        pub(super) fn create_new(&self, name: &str, is_private: bool) -> io::Result<File> {
            let flags = FILE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            let mode = if is_private { Mode::RUSR | Mode::WUSR } else { NEW_FILE };
            Ok(rustix::fs::openat(&self.0, require_plain_name(name)?, flags, mode)?.into())
        }

        pub(crate) fn rename(&self, from: &str, to: &OsStr) -> io::Result<()> {
            Ok(rustix::fs::renameat(&self.0, from, &self.0, require_plain_name(to)?)?)
        }

        pub(super) fn link(&self, from: &str, to: &str) -> io::Result<()> {
            Ok(rustix::fs::linkat(&self.0, from, &self.0, require_plain_name(to)?, AtFlags::empty())?)
        }

        pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
            Ok(rustix::fs::unlinkat(&self.0, require_plain_name(name)?, AtFlags::empty())?)
        }

        /// Returns the names in the folder, in no order.
        ///
        /// # Errors
        /// The system's error.
        pub fn list_names(&self) -> io::Result<Vec<OsString>> {
            use std::os::unix::ffi::OsStringExt as _;

            let entries = rustix::fs::Dir::read_from(&self.0)?;
            let names = entries.flatten().map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()));
            Ok(names.filter(|name| name != "." && name != "..").collect())
        }

        /// Flushes the names in the folder to the disk, if the system can do that.
        pub(super) fn flush(&self) {
            let _ = rustix::fs::fsync(&self.0);
        }
    }

    /// Returns the name, and refuses a path, because a slash would lead out of the folder.
    fn require_plain_name<T: AsRef<OsStr> + ?Sized>(name: &T) -> io::Result<&OsStr> {
        let name = name.as_ref();
        let is_name = !name.is_empty() && name != "." && name != ".." && !name.as_encoded_bytes().contains(&b'/');
        if is_name { Ok(name) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file's name")) }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn open_below(folder: &OwnedFd, below: &Path, links: InnerLinks) -> Result<OwnedFd, Errno> {
        use rustix::fs::ResolveFlags;

        /// The most tries. A try fails when another process renames a folder of the path.
        const MAX_TRIES: u32 = 16;
        let refused = match links {
            InnerLinks::Within => ResolveFlags::empty(),
            InnerLinks::Refused => ResolveFlags::NO_SYMLINKS,
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | refused;
        let mut tries = 1;
        loop {
            match rustix::fs::openat2(folder, below, FOLDER, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if tries < MAX_TRIES => tries += 1,
                opened => return opened,
            }
        }
    }
}

#[cfg(not(unix))]
mod windows {
    use std::fs;
    use std::path::PathBuf;

    use super::{File, InnerLinks, Metadata, OsStr, OsString, Path, io, names_of};

    /// A folder by its path, because the standard library cannot open a file relative to an open folder on Windows.
    #[derive(Debug)]
    pub struct HeldFolder(pub(crate) PathBuf);

    impl HeldFolder {
        /// Opens a folder.
        ///
        /// # Errors
        /// The system's error.
        pub fn open(path: &Path) -> io::Result<Self> {
            if path.symlink_metadata()?.is_dir() {
                Ok(Self(path.to_owned()))
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }

        /// Opens a folder below this one. Links are refused.
        ///
        /// # Errors
        /// The system's error.
        pub fn open_folder(&self, below: &Path, links: InnerLinks) -> io::Result<Self> {
            self.go_down(below, links, false)
        }

        /// Opens a folder below this one. Makes the folders of the path that are missing.
        ///
        /// # Errors
        /// The errors of [`open_folder`](Self::open_folder).
        pub fn make_folder(&self, below: &Path, links: InnerLinks) -> io::Result<Self> {
            self.go_down(below, links, true)
        }

        fn go_down(&self, below: &Path, _: InnerLinks, is_made: bool) -> io::Result<Self> {
            let mut path = self.0.clone();
            for name in names_of(below)? {
                path.push(name);
                match fs::create_dir(&path) {
                    _ if !is_made => {}
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                    _ => {}
                }
                let meta = path.symlink_metadata()?;
                if meta.is_symlink() {
                    return Err(io::ErrorKind::CrossesDevices.into());
                }
                if !meta.is_dir() {
                    return Err(io::ErrorKind::NotADirectory.into());
                }
            }
            Ok(Self(path))
        }

        /// Opens a lock file beside the folder, because Windows cannot lock folders.
        pub(super) fn open_lock(&self) -> io::Result<File> {
            let beside = self.0.parent().unwrap_or(&self.0).join(".lock");
            fs::OpenOptions::new().create(true).truncate(false).write(true).open(beside)
        }

        /// Returns the metadata of the file with this name. A link is not followed.
        ///
        /// # Errors
        /// The system's error.
        pub fn look_up(&self, name: &str) -> io::Result<Metadata> {
            self.0.join(name).symlink_metadata()
        }

        pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
            fs::OpenOptions::new().read(true).open(self.0.join(name))
        }

        pub(super) fn create_new(&self, name: &str, _: bool) -> io::Result<File> {
            fs::OpenOptions::new().write(true).create_new(true).open(self.0.join(name))
        }

        pub(crate) fn rename(&self, from: &str, to: &OsStr) -> io::Result<()> {
            fs::rename(self.0.join(from), self.0.join(to))
        }

        pub(super) fn link(&self, from: &str, to: &str) -> io::Result<()> {
            fs::hard_link(self.0.join(from), self.0.join(to))
        }

        pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        /// Returns the names in the folder, in no order.
        ///
        /// # Errors
        /// The system's error.
        pub fn list_names(&self) -> io::Result<Vec<OsString>> {
            Ok(fs::read_dir(&self.0)?.flatten().map(|entry| entry.file_name()).collect())
        }

        pub(super) fn flush(&self) {}
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    const SYNC: DiskSync = DiskSync::Flushed;

    fn place() -> (tempfile::TempDir, HeldFolder) {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("top/real/deep")).unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        let top = HeldFolder::open(&place.path().join("top")).unwrap();
        (place, top)
    }

    #[test]
    fn files_are_made_replaced_and_read_whole() {
        let (place, top) = place();
        let folder = top.make_folder(Path::new("a/b"), InnerLinks::Refused).unwrap();
        folder.write_fresh(b"one", FileRights::Usual, SYNC).unwrap().take_free_name("f").unwrap();
        let refused = folder.write_fresh(b"two", FileRights::Usual, SYNC).unwrap().take_free_name("f").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        let rights = FileRights::Same(Permissions::from_mode(0o640));
        folder.write_fresh(b"three", rights, SYNC).unwrap().replace_file("f").unwrap();
        let (bytes, meta) = folder.read("f", 5).unwrap();
        assert_eq!((&*bytes, meta.permissions().mode() & 0o777), (&b"three"[..], 0o640));
        assert_eq!(folder.read("f", 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        drop(folder.write_fresh(b"never named", FileRights::Usual, SYNC).unwrap());
        assert_eq!(folder.list_names().unwrap(), ["f"]);
        assert_eq!(fs::read(place.path().join("top/a/b/f")).unwrap(), b"three");
        for name in ["", ".", "..", "../f", "b/f", "/etc/passwd"] {
            assert_eq!(folder.read(name, 9).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        let old = folder.create_new(".nudge-x.tmp", false).unwrap();
        old.set_modified(SystemTime::now() - 2 * LEFT_OVER).unwrap();
        folder.create_new(".nudge-y.tmp", false).unwrap();
        folder.sweep_leftovers();
        let mut names = folder.list_names().unwrap();
        names.sort();
        assert_eq!(names, [".nudge-y.tmp", "f"], "another process may be writing the new one");
    }

    #[test]
    fn a_file_is_written_whole_with_the_rights_that_it_is_given() {
        let place = tempfile::tempdir().unwrap();
        let (path, mask) = (place.path().join("f"), {
            fs::write(place.path().join("usual"), "").unwrap();
            fs::metadata(place.path().join("usual")).unwrap().permissions().mode() & 0o777
        });
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        for (rights, expected) in [
            (FileRights::Usual, mask),
            (FileRights::Private, 0o600),
            (FileRights::Same(Permissions::from_mode(0o644)), 0o644),
            (FileRights::Same(Permissions::from_mode(0o400)), 0o400),
        ] {
            for sync in [DiskSync::Flushed, DiskSync::Unflushed] {
                let (text, mut old) = (format!("{expected:o} {sync:?}"), fs::File::open(&path).ok());
                write_atomic(&path, text.as_bytes(), rights.clone(), sync).unwrap();
                assert_eq!((fs::read_to_string(&path).unwrap(), mode()), (text.clone(), expected));
                let seen = old.as_mut().map(|old| io::read_to_string(old).unwrap());
                assert!(seen.is_none_or(|seen| !seen.is_empty() && seen != text), "a reader keeps the old file");
            }
        }
        symlink("f", place.path().join("link")).unwrap();
        write_atomic(&place.path().join("link"), b"own", FileRights::Private, SYNC).unwrap();
        assert_eq!(fs::read(place.path().join("link")).unwrap(), b"own", "a link is replaced");
        assert_ne!(fs::read(&path).unwrap(), b"own");
        fs::create_dir(place.path().join("folder")).unwrap();
        for name in ["folder", "missing/f", ".."] {
            write_atomic(&place.path().join(name), b"x", FileRights::Usual, SYNC).unwrap_err();
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 4, "nothing is left over of a failure");
    }

    #[test]
    fn no_link_leads_out() {
        let (place, top) = place();
        let path_of = |name: &str| place.path().join("top").join(name);
        symlink(place.path().join("outside"), path_of("absolute")).unwrap();
        symlink("../outside", path_of("relative")).unwrap();
        symlink("real", path_of("within")).unwrap();
        for links in [InnerLinks::Within, InnerLinks::Refused] {
            for below in ["absolute", "relative", "absolute/new", "relative/new"] {
                for open in [HeldFolder::open_folder, HeldFolder::make_folder, HeldFolder::folder_by_steps] {
                    assert!(is_of_link(&open(&top, Path::new(below), links).unwrap_err()), "{below}");
                }
            }
            for below in ["..", "../outside", "/", "real/../../outside"] {
                top.open_folder(Path::new(below), links).unwrap_err();
                top.make_folder(Path::new(below), links).unwrap_err();
            }
            top.folder_by_steps(Path::new("real/deep"), links).unwrap();
        }
        top.open_folder(Path::new("within/deep"), InnerLinks::Refused).unwrap_err();
        if cfg!(target_os = "linux") {
            top.open_folder(Path::new("within/deep"), InnerLinks::Within).unwrap();
        }
        // A link in the place of a file does not lead out of the folder either.
        fs::write(place.path().join("outside/f"), "secret").unwrap();
        symlink("../../outside/f", path_of("real/f")).unwrap();
        let real = top.open_folder(Path::new("real"), InnerLinks::Refused).unwrap();
        real.read("f", 9).unwrap_err();
        real.write_fresh(b"new", FileRights::Usual, SYNC).unwrap().replace_file("f").unwrap();
        assert_eq!(fs::read(place.path().join("outside/f")).unwrap(), b"secret");
        assert_eq!(fs::read_dir(place.path().join("outside")).unwrap().count(), 1);
    }

    /// Another process exchanges a folder and a link while this process uses paths through them.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_is_exchanged_for_a_link_leads_nowhere_else() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use std::sync::atomic::AtomicBool;

        type Way = fn(&HeldFolder, &Path, InnerLinks) -> io::Result<HeldFolder>;
        let (place, top) = place();
        let path_of = |name: &str| place.path().join("top").join(name);
        symlink("../outside", path_of("link")).unwrap();
        fs::write(place.path().join("outside/f"), "secret").unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    renameat_with(CWD, path_of("real"), CWD, path_of("link"), RenameFlags::EXCHANGE).unwrap();
                }
            });
            let ways: [Way; 2] = [HeldFolder::make_folder, HeldFolder::folder_by_steps];
            let (mut made, mut refused) = (0, 0);
            for round in 0.. {
                let Ok(folder) = ways[round % 2](&top, Path::new("real"), InnerLinks::Refused) else {
                    refused += 1;
                    continue;
                };
                folder.write_fresh(b"mine", FileRights::Usual, SYNC).unwrap().replace_file("f").unwrap();
                assert_eq!(folder.read("f", 9).unwrap().0, b"mine");
                made += 1;
                if made > 500 && refused > 500 {
                    break;
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read(place.path().join("outside/f")).unwrap(), b"secret");
        assert_eq!(fs::read_dir(place.path().join("outside")).unwrap().count(), 1, "nothing was written there");
    }
}
