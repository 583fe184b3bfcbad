//! Reads files together with their marks. The marks show later whether a file has changed.

use std::io::{self, Read as _};

pub use nudge_core::marks::{FileMarks, now_ns};
use nudge_os::foreign::{self, LinkPolicy};

use crate::root::ProjectRoot;

/// The most tries to read a file that changes during each read.
const TRIES: usize = 3;

/// Returns the current marks of a file in the root; `None` when there is no such regular file.
pub fn read_stamp(root: &ProjectRoot, path: &str) -> Option<FileMarks> {
    FileMarks::from_metadata(&root.join(path).symlink_metadata().ok()?)
}

/// The content of a file, with the marks that the file had at the same moment.
#[derive(Debug)]
pub struct MarkedContent {
    /// The bytes; `None` when the file has more than `max_bytes`.
    pub bytes: Option<Vec<u8>>,
    /// The marks of the file.
    pub stamp: FileMarks,
    /// The time of the read, in nanoseconds since 1970.
    pub read_ns: i64,
}

/// Reads a file of the root, if it has at most `max_bytes`.
///
/// # Errors
/// The errors of opening and reading the file; `InvalidInput` for a path that is not a regular file inside the root;
/// `Interrupted` for a file that changed during every try.
pub fn read(root: &ProjectRoot, path: &str, max_bytes: u64) -> io::Result<MarkedContent> {
    let place = root.join(path);
    // A folder in the path may have become a link to a place outside of the root.
    if place.canonicalize()? != place {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for _ in 0..TRIES {
        // The check comes first, because even opening a device can have an effect.
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
