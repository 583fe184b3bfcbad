//! A folder of the state directory in which files are replaced whole: by renaming a new one over the old.
//!
//! The specification's sender writes a file of one fixed name first; two at a time publish each other's halves. So the
//! name is new each time, and a process that dies leaves one that goes after an hour.

use std::io;

use nudge_os::beneath::{DiskSync, FileRights, HeldFolder};

/// Tells if an existing file is replaced or kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldFile {
    Replaced,
    /// Then nothing is written, which is no error.
    Kept,
}

/// Writes a file of a folder, flushed to the disk. A reader never sees half of it. The file is as readable as the
/// others there: agents may be of several users.
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

/// Reads a file of a folder as text, without following a link or waiting.
pub fn read_text(folder: &HeldFolder, name: &str, max_bytes: u64) -> io::Result<String> {
    let (bytes, _) = folder.read(name, max_bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}
