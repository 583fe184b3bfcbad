//! The marks of a file: they tell whether the file has changed since it was read.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::number::unix_ns;

/// The time after a change in which a second change may leave all marks equal, because some file systems count in
/// seconds.
const RACY_NS: i64 = 2_000_000_000;

/// The marks of a file that change with its content. They include the time of change, because any program can set the
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
    /// Returns the marks of a regular file; `None` for any other kind.
    pub fn from_metadata(meta: &Metadata) -> Option<Self> {
        meta.is_file().then(|| Self::read_marks(meta))
    }

    /// Returns the marks of a file or folder. The marks of a folder change when a name in it comes or goes. `None` for
    /// any other kind, and if nothing exists at the path.
    pub fn read_path(path: &Path) -> Option<Self> {
        let meta = path.symlink_metadata().ok()?;
        (meta.is_file() || meta.is_dir()).then(|| Self::read_marks(&meta))
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

    /// Returns true if a change after the read at `read_ns` could have left the marks unchanged.
    pub fn is_racy(&self, read_ns: i64) -> bool {
        self.changed_ns.saturating_add(RACY_NS) > read_ns
    }
}

/// Returns the system time in nanoseconds since 1970. File systems use the same time for their marks.
pub fn now_ns() -> i64 {
    unix_ns(SystemTime::now())
}
