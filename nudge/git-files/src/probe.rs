//! Reads the file system for the detector, within limits, and records each observation.
//!
//! Each observation (a stamp, an absence, a resolved path) becomes a [`PathWitness`]. An answer is true as long as a
//! second observation of each witness has the same result. The cache therefore needs no other rules.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nudge_os::foreign::{self, LinkPolicy};

/// The reason why the reader gives no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DetectStop {
    /// Git would not run in this folder.
    Outside,
    /// Only git can tell the answer.
    Unsure(&'static str),
}

pub(super) type Res<T> = Result<T, DetectStop>;

/// The largest configuration file, `HEAD`, `.git` file or ref that is read.
pub(super) const FILE_MAX_BYTES: u64 = 1 << 20;
/// The largest `packed-refs` that is read.
pub(super) const PACKED_MAX_BYTES: u64 = 8 << 20;
/// The most files that are read for one answer. This limits nested includes.
const READS_MAX: u32 = 128;
/// The most files that a detector keeps in memory.
const KEPT_FILES_MAX: usize = 64;
/// The time after a change in which a file may change again without a new time stamp.
const RACY: Duration = Duration::from_millis(20);
/// The same time on a file system that stores whole seconds.
const RACY_COARSE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    File,
    Dir,
    Link,
    Other,
}

/// The observed state of a path. It ignores the time of a folder, because the detector never lists folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PathStamp {
    pub(super) kind: PathKind,
    pub(super) uid: u32,
    /// Is true when the permission bits let every user search the folder.
    pub(super) open_to_all: bool,
    /// Is true when the permission bits let the owner search the folder.
    pub(super) open_to_owner: bool,
    pub(super) device: u64,
    inode: u64,
    len: u64,
    modified: Option<SystemTime>,
    changed: (i64, i64),
}

impl PathStamp {
    fn new(meta: &Metadata) -> Self {
        let kind = if meta.is_dir() {
            PathKind::Dir
        } else if meta.is_file() {
            PathKind::File
        } else if meta.is_symlink() {
            PathKind::Link
        } else {
            PathKind::Other
        };
        let mut stamp = Self {
            kind,
            uid: 0,
            open_to_all: true,
            open_to_owner: true,
            device: 0,
            inode: 0,
            len: 0,
            modified: None,
            changed: (0, 0),
        };
        if kind != PathKind::Dir {
            stamp.len = meta.len();
            stamp.modified = meta.modified().ok();
        }
        stamp.set_identity(meta);
        stamp
    }

    #[cfg(unix)]
    fn set_identity(&mut self, meta: &Metadata) {
        use std::os::unix::fs::MetadataExt;
        self.uid = meta.uid();
        self.open_to_all = meta.mode() & 0o111 == 0o111;
        self.open_to_owner = meta.mode() & 0o100 != 0;
        self.device = meta.dev();
        self.inode = meta.ino();
        if self.kind != PathKind::Dir {
            self.changed = (meta.ctime(), meta.ctime_nsec());
        }
    }

    #[cfg(not(unix))]
    fn set_identity(&mut self, _meta: &Metadata) {}

    /// Returns true when both stamps belong to the same file, even if its content differs.
    fn is_same_file(&self, other: &Self) -> bool {
        (self.kind, self.device, self.inode) == (other.kind, other.device, other.inode)
    }
}

/// The result of an observation of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathSight {
    There(PathStamp),
    /// There is no such entry.
    Absent,
    /// A parent of the path is no folder.
    NotDir,
    /// The process has no permission to observe the path.
    Denied,
    /// Another error occurred, such as a loop of links.
    Broken,
}

impl PathSight {
    fn from_metadata(result: std::io::Result<Metadata>) -> Self {
        match result {
            Ok(meta) => Self::There(PathStamp::new(&meta)),
            Err(error) => match error.kind() {
                ErrorKind::NotFound => Self::Absent,
                ErrorKind::NotADirectory => Self::NotDir,
                ErrorKind::PermissionDenied => Self::Denied,
                _ => Self::Broken,
            },
        }
    }

    pub(super) fn kind(&self) -> Option<PathKind> {
        match self {
            Self::There(stamp) => Some(stamp.kind),
            _ => None,
        }
    }
}

/// An observation and its result.
#[derive(Debug)]
pub(super) enum PathWitness {
    Stat(PathBuf, PathSight),
    Lstat(PathBuf, PathSight),
    Real(PathBuf, Option<PathBuf>),
}

impl PathWitness {
    /// Returns true when a second observation has the same result.
    pub(super) fn still_holds(&self) -> bool {
        match self {
            Self::Stat(path, saw) => PathSight::from_metadata(fs::metadata(path)) == *saw,
            Self::Lstat(path, saw) => PathSight::from_metadata(fs::symlink_metadata(path)) == *saw,
            Self::Real(path, saw) => fs::canonicalize(path).ok() == *saw,
        }
    }
}

/// The result of reading a file.
pub(super) enum FileText {
    Absent,
    Denied,
    Bytes(Arc<[u8]>),
}

/// Makes the observations for one answer, within limits.
pub(super) struct FileProbe {
    pub(super) witnesses: Vec<PathWitness>,
    /// Is true until the probe observes a file that was changed so recently that its stamp may miss a later change.
    pub(super) lasting: bool,
    reads_left: u32,
    begun: SystemTime,
    kept: HashMap<OsString, (PathStamp, Arc<[u8]>)>,
}

impl FileProbe {
    pub(super) fn new() -> Self {
        Self {
            witnesses: Vec::new(),
            lasting: true,
            reads_left: READS_MAX,
            begun: SystemTime::UNIX_EPOCH,
            kept: HashMap::new(),
        }
    }

    /// Begins a new answer. The bytes of files are kept.
    pub(super) fn begin_answer(&mut self) {
        self.witnesses = Vec::with_capacity(32);
        self.lasting = true;
        self.reads_left = READS_MAX;
        self.begun = SystemTime::now();
        if self.kept.len() > KEPT_FILES_MAX {
            self.kept.clear();
        }
    }

    /// Observes the target of `path`, following links.
    pub(super) fn stat(&mut self, path: &Path) -> PathSight {
        let sight = PathSight::from_metadata(fs::metadata(path));
        self.witnesses.push(PathWitness::Stat(path.to_owned(), sight));
        self.note_age(&sight);
        sight
    }

    /// Observes `path` itself, without following a link. A second call for the same answer returns the first result, so
    /// that parts of an answer cannot contradict each other.
    pub(super) fn lstat(&mut self, path: &Path) -> PathSight {
        for witness in &self.witnesses {
            if let PathWitness::Lstat(seen, sight) = witness
                && seen.as_os_str() == path.as_os_str()
            {
                return *sight;
            }
        }
        let sight = PathSight::from_metadata(fs::symlink_metadata(path));
        self.witnesses.push(PathWitness::Lstat(path.to_owned(), sight));
        self.note_age(&sight);
        sight
    }

    /// Returns the absolute path without links; `None` when `path` does not exist.
    pub(super) fn resolve_path(&mut self, path: &Path) -> Option<PathBuf> {
        let real = fs::canonicalize(path).ok();
        let witness = PathWitness::Real(path.to_owned(), real.clone());
        self.witnesses.push(witness);
        real.map(without_verbatim_prefix)
    }

    /// Reads the target of the link at `path`, as text.
    pub(super) fn read_link(path: &Path) -> Res<String> {
        let target = fs::read_link(path).map_err(|_| DetectStop::Unsure("a link changed while read"))?;
        let target = target.into_os_string().into_string();
        target.map_err(|_| DetectStop::Unsure("a link is not UTF-8"))
    }

    /// Reads a regular file of at most `max` bytes. Refuses any other kind, because a FIFO would block.
    pub(super) fn read(&mut self, path: &Path, max: u64) -> Res<FileText> {
        match self.stat(path) {
            PathSight::There(stamp) => self.read_seen(path, &stamp, max),
            PathSight::Absent | PathSight::NotDir => Ok(FileText::Absent),
            PathSight::Denied => Ok(FileText::Denied),
            PathSight::Broken => Err(DetectStop::Unsure("a file cannot be looked at")),
        }
    }

    /// Reads a file that was observed before. `stamp` is the result of that observation.
    pub(super) fn read_seen(&mut self, path: &Path, stamp: &PathStamp, max: u64) -> Res<FileText> {
        if stamp.kind != PathKind::File {
            return Err(DetectStop::Unsure("a file of git's is not a regular file"));
        }
        if stamp.len > max {
            return Err(DetectStop::Unsure("a file of git's is too large"));
        }
        if let Some((kept, bytes)) = self.kept.get(path.as_os_str())
            && kept == stamp
        {
            return Ok(FileText::Bytes(Arc::clone(bytes)));
        }
        let Some(bytes) = self.read_file(path, stamp, max)? else {
            return Ok(FileText::Denied);
        };
        let bytes: Arc<[u8]> = Arc::from(bytes);
        if !self.is_racy(stamp) && stamp.len <= FILE_MAX_BYTES {
            self.kept.insert(path.as_os_str().to_owned(), (*stamp, Arc::clone(&bytes)));
        }
        Ok(FileText::Bytes(bytes))
    }

    /// Opens and reads the file; `None` if the process has no permission.
    fn read_file(&mut self, path: &Path, seen: &PathStamp, max: u64) -> Res<Option<Vec<u8>>> {
        let Some(left) = self.reads_left.checked_sub(1) else {
            return Err(DetectStop::Unsure("too many files"));
        };
        self.reads_left = left;
        let changed = Err(DetectStop::Unsure("a file changed while read"));
        let mut file = match foreign::open_file(path, LinkPolicy::Followed) {
            Ok((file, meta)) if PathStamp::new(&meta).is_same_file(seen) => file,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(None),
            _ => return changed,
        };
        // The buffer has one byte more than the stamp says, so that one read finds the end of a file of unchanged
        // length.
        let expected = usize::try_from(seen.len).unwrap_or(0);
        let mut bytes = vec![0; expected + 1];
        let failed = Err(DetectStop::Unsure("a file of git's cannot be read"));
        let Ok(first) = file.read(&mut bytes) else {
            return failed;
        };
        bytes.truncate(first);
        if first != expected && file.take(max + 1).read_to_end(&mut bytes).is_err() {
            return failed;
        }
        if bytes.len() as u64 > max {
            return failed;
        }
        Ok(Some(bytes))
    }

    fn note_age(&mut self, sight: &PathSight) {
        if let PathSight::There(stamp) = sight
            && self.is_racy(stamp)
        {
            self.lasting = false;
        }
    }

    /// Returns true when the file may have changed again without a new time stamp.
    fn is_racy(&self, stamp: &PathStamp) -> bool {
        if stamp.kind == PathKind::Dir {
            return false;
        }
        let Some(modified) = stamp.modified else {
            return true;
        };
        let whole_second = modified.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|age| age.subsec_nanos() == 0);
        let grain = if whole_second { RACY_COARSE } else { RACY };
        modified.checked_add(grain).is_none_or(|until| until >= self.begun)
    }
}

/// Removes the prefix of a path such as `\\?\C:\x`. Windows returns this form; git writes `C:/x`.
pub(super) fn without_verbatim_prefix(path: PathBuf) -> PathBuf {
    if !cfg!(windows) {
        return path;
    }
    let Some(text) = path.to_str() else {
        return path;
    };
    if let Some(share) = text.strip_prefix(r"\\?\UNC\") {
        return PathBuf::from(format!(r"\\{share}"));
    }
    text.strip_prefix(r"\\?\").map(PathBuf::from).unwrap_or(path)
}

/// Returns the effective user of this process: the owner of a new pipe, because the standard library has no other way.
/// `None` when the pipe has no metadata.
#[cfg(unix)]
pub(super) fn effective_uid() -> Option<u32> {
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;
    let (reader, _writer) = std::io::pipe().ok()?;
    let meta = std::fs::File::from(OwnedFd::from(reader)).metadata().ok()?;
    Some(meta.uid())
}

#[cfg(not(unix))]
pub(super) fn effective_uid() -> Option<u32> {
    None
}
