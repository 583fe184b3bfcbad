//! Reads files with their marks, which show later whether a file has changed.

use std::fs::Metadata;
use std::io::{self, Read as _};
use std::time::SystemTime;

use nudge_core::foreign::{self, LinkPolicy};
use nudge_core::number::unix_ns;
use serde::{Deserialize, Serialize};

use crate::root::ProjectRoot;

/// The time after a change in which a second change may leave the times equal: some file systems count in seconds.
const RACY_NS: i64 = 2_000_000_000;
/// The most tries to read a file that changes during the read.
const TRIES: usize = 3;

/// The marks of a file that change with its content. The time of change is one of them because any program may set the
/// time of modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileMarks {
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change of content, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// The time of the last change of content or metadata; equal to `modified_ns` if the system does not say.
    pub changed_ns: i64,
    /// The inode number; 0 if the system has none.
    pub inode: u64,
}

impl FileMarks {
    /// Returns the marks of a regular file; `None` for anything else.
    pub fn from_metadata(meta: &Metadata) -> Option<Self> {
        meta.is_file().then(|| Self::read_marks(meta))
    }

    #[cfg(unix)]
    fn read_marks(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let ns = |seconds: i64, ns: i64| seconds.saturating_mul(1_000_000_000).saturating_add(ns);
        Self {
            size: meta.len(),
            modified_ns: ns(meta.mtime(), meta.mtime_nsec()),
            changed_ns: ns(meta.ctime(), meta.ctime_nsec()),
            inode: meta.ino(),
        }
    }

    #[cfg(not(unix))]
    fn read_marks(meta: &Metadata) -> Self {
        let modified_ns = meta.modified().map_or(0, unix_ns);
        Self { size: meta.len(), modified_ns, changed_ns: modified_ns, inode: 0 }
    }

    /// Returns true if a change after the read at `read_ns` may leave the marks unchanged.
    pub fn is_racy(&self, read_ns: i64) -> bool {
        self.changed_ns.saturating_add(RACY_NS) > read_ns
    }
}

/// Returns the system time, which file systems use for their marks.
pub fn now_ns() -> i64 {
    unix_ns(SystemTime::now())
}

/// Returns the current marks of one of the root's files; `None` when there is no such regular file.
pub fn read_stamp(root: &ProjectRoot, path: &str) -> Option<FileMarks> {
    FileMarks::from_metadata(&root.join(path).symlink_metadata().ok()?)
}

/// The content of a file with its marks at the same moment.
#[derive(Debug)]
pub struct MarkedContent {
    /// The bytes; `None` when there are more than `max_bytes`.
    pub bytes: Option<Vec<u8>>,
    /// The marks.
    pub stamp: FileMarks,
    /// The time of the read.
    pub read_ns: i64,
}

/// Reads one of the root's files, if it has at most `max_bytes`.
///
/// # Errors
/// Errors of opening and reading; `InvalidInput` for anything but a regular file inside the root; `Interrupted` for a
/// file that changes during every try.
pub fn read(root: &ProjectRoot, path: &str, max_bytes: u64) -> io::Result<MarkedContent> {
    let place = root.join(path);
    // A folder in the path may have become a link to elsewhere.
    if place.canonicalize()? != place {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for _ in 0..TRIES {
        // A device must not even be opened.
        if !place.symlink_metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let read_ns = now_ns();
        let (mut file, meta) = foreign::open_file(&place, LinkPolicy::Refused)?;
        let Some(stamp) = FileMarks::from_metadata(&meta) else { return Err(io::ErrorKind::InvalidInput.into()) };
        if stamp.size > max_bytes {
            return Ok(MarkedContent { bytes: None, stamp, read_ns });
        }
        let mut bytes = Vec::with_capacity(
            usize::try_from(stamp.size).expect("a size of at most `max_bytes` fits into memory") + 1,
        );
        (&mut file).take(max_bytes + 1).read_to_end(&mut bytes)?;
        if FileMarks::from_metadata(&file.metadata()?) == Some(stamp) && bytes.len() as u64 == stamp.size {
            return Ok(MarkedContent { bytes: Some(bytes), stamp, read_ns });
        }
    }
    Err(io::ErrorKind::Interrupted.into())
}
