//! Reads files with their marks, which show later whether a file has changed.

use std::io::{self, Read as _};

pub use nudge_core::marks::{FileMarks, now_ns};
use nudge_os::foreign::{self, LinkPolicy};

use crate::root::ProjectRoot;

/// The most tries to read a file that changes during the read.
const TRIES: usize = 3;

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
