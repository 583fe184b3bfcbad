//! Reads and writes files in a folder of the state directory. A write replaces the whole file: it writes a new file and
//! renames it over the old one.
//!
//! In the specification from which Nudge took the signals, a sender first writes a temporary file with a fixed name.
//! Then two senders at the same time publish halves of each other's signals. So here each temporary file has a new
//! name. A killed process can leave a temporary file, which is removed after an hour.

use std::io;

use nudge_os::beneath::{DiskSync, FileRights, HeldFolder};

/// Says whether an existing file is replaced or kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldFile {
    Replaced,
    /// An existing file is kept and nothing is written; this is not an error.
    Kept,
}

/// Writes a file into a folder and flushes it to the disk. A reader sees the old file or the new file, never a part.
/// The file is not private: it gets the permissions that the umask leaves, because the agents that share the folder may
/// run as different users.
pub fn write(folder: &HeldFolder, name: &str, text: &str, old: OldFile) -> io::Result<()> {
    let fresh = folder.write_fresh(text.as_bytes(), FileRights::Usual, DiskSync::Flushed)?;
    match old {
        OldFile::Replaced => fresh.replace_file(name),
        OldFile::Kept => match fresh.take_free_name(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            kept => kept,
        },
    }
}

/// Reads a file of a folder as UTF-8 text. The read never follows a link, and never waits for a pipe.
pub fn read_text(folder: &HeldFolder, name: &str, max_bytes: u64) -> io::Result<String> {
    let (bytes, _) = folder.read(name, max_bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}
