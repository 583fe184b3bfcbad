//! The only reader of files that other people or programs may have written: git's files, settings of other programs,
//! and the user's own files.
//!
//! A user who can write in a folder can replace any file there by a pipe without a writer, an endless device or a link.
//! This can happen even between a check of the file and its opening. Therefore this module opens a file without
//! waiting, checks the open file, and reads at most a given number of bytes.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

/// The treatment of a symbolic link at the path of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPolicy {
    /// A link is followed.
    Followed,
    /// A link is refused.
    Refused,
}

/// Opens a regular file for reading, and returns it with its metadata. It never waits, not even for a pipe or a device.
///
/// # Errors
/// The errors of opening the file; `InvalidInput` for anything other than a regular file.
pub fn open_file(path: &Path, links: LinkPolicy) -> io::Result<(File, Metadata)> {
    let file = open_without_waiting(path, links)?;
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta)) } else { Err(not_regular()) }
}

/// Reads a regular file of at most `max_bytes`. A device is not even opened, except if it replaced the file during this
/// call.
///
/// # Errors
/// The errors of [`open_file`]; `FileTooLarge` for a longer file.
pub fn read(path: &Path, links: LinkPolicy, max_bytes: u64) -> io::Result<Vec<u8>> {
    let looked = match links {
        LinkPolicy::Followed => path.metadata()?,
        LinkPolicy::Refused => path.symlink_metadata()?,
    };
    if !looked.is_file() {
        return Err(not_regular());
    }
    let (file, _) = open_file(path, links)?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let message = format!("it has more than {max_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Reads a file like [`read`], as text.
///
/// # Errors
/// The errors of [`read`]; `InvalidData` for a file that is not UTF-8.
pub fn read_text(path: &Path, links: LinkPolicy, max_bytes: u64) -> io::Result<String> {
    let text = String::from_utf8(read(path, links, max_bytes)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Returns true if a file belongs to the user of this process. Always true on systems without owners.
#[must_use]
pub fn is_own(meta: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::uid(meta) == rustix::process::geteuid().as_raw();
    #[cfg(not(unix))]
    return meta.is_file();
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

#[cfg(unix)]
fn open_without_waiting(path: &Path, links: LinkPolicy) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let follow = if links == LinkPolicy::Refused { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | follow;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open_without_waiting(path: &Path, links: LinkPolicy) -> io::Result<File> {
    if links == LinkPolicy::Refused && path.symlink_metadata()?.is_symlink() {
        return Err(not_regular());
    }
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, LinkPolicy::Refused, 4).unwrap(), "four");
        assert_eq!(read(&path, LinkPolicy::Followed, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path, LinkPolicy::Followed, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(folder.path(), LinkPolicy::Followed, 4).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let missing = read(&folder.path().join("missing"), LinkPolicy::Refused, 4).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn nothing_else_is_waited_for_or_read() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link, file) = (folder.path().join("pipe"), folder.path().join("link"), folder.path().join("file"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for odd in [&pipe, Path::new("/dev/zero")] {
            assert_eq!(open_file(odd, LinkPolicy::Followed).unwrap_err().kind(), io::ErrorKind::InvalidInput);
            assert_eq!(read(odd, LinkPolicy::Followed, 9).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        assert_eq!(read(&link, LinkPolicy::Followed, 9).unwrap(), b"x");
        read(&link, LinkPolicy::Refused, 9).unwrap_err();
        open_file(&link, LinkPolicy::Refused).unwrap_err();
    }
}
