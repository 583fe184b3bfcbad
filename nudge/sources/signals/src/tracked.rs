//! Decides whether git tracks a file. It reads git's index and does not run git. A tracked file came with the checkout,
//! so its signal is for no agent.

use std::fs;
use std::path::{Path, PathBuf};

use nudge_os::foreign::{self, LinkPolicy};

/// The most bytes of an index that is read. An index of half a million files has this size. A longer index counts as
/// unreadable.
const MAX_INDEX_BYTES: u64 = 64 << 20;
/// The most bytes of a `.git` file.
const MAX_POINTER_BYTES: u64 = 4 << 10;
/// The most folders that the search goes up. `MAX_PARTS` limits the parts of a split index.
const MAX_ANCESTORS: usize = 256;
const MAX_PARTS: usize = 8;
/// The bytes of the fixed fields of an index entry before its flags: times, inode, mode, owner, size. The hash of the
/// object follows, with 20 or 32 bytes.
const FIXED_BYTES: usize = 40;
const SHA1_BYTES: usize = 20;
const SHA256_BYTES: usize = 32;
/// Bits of an entry's flags. `EXTENDED` says that a second pair of flags follows. `NAME_MASK` holds the length of the
/// name, if the length is below the maximum.
const EXTENDED: u16 = 0x4000;
const NAME_MASK: u16 = 0x0fff;

/// Returns true if a repository around the file tracks it, or if the index of such a repository cannot be read.
pub fn is_tracked(file: &Path) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
    let Ok(folder) = folder.canonicalize() else { return false };
    let file = folder.join(name);
    folder.ancestors().take(MAX_ANCESTORS).any(|top| {
        let Some(git_dir) = git_dir(top) else { return false };
        let path = file.strip_prefix(top).ok().and_then(Path::to_str).map(|path| path.replace('\\', "/"));
        path.is_none_or(|path| read_indexes(&git_dir).iter().any(|index| is_listed(index, &path).unwrap_or(true)))
    })
}

/// Returns the folder that holds the index if `top` is the top of a work tree.
fn git_dir(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    let meta = git.symlink_metadata().ok()?;
    if meta.is_dir() {
        return Some(git);
    }
    let text = foreign::read_text(&git, LinkPolicy::Followed, MAX_POINTER_BYTES).ok();
    let target = text.as_deref().and_then(|text| text.strip_prefix("gitdir: "));
    Some(target.map_or_else(|| git.clone(), |target| top.join(target.trim_end())))
}

/// Reads the index, and the shared parts of a split index. An index that exists but cannot be read gives empty bytes.
fn read_indexes(git_dir: &Path) -> Vec<Vec<u8>> {
    let shared = fs::read_dir(git_dir).into_iter().flatten().flatten();
    let shared = shared.filter(|entry| entry.file_name().to_string_lossy().starts_with("sharedindex."));
    let paths = std::iter::once(git_dir.join("index")).chain(shared.map(|entry| entry.path()).take(MAX_PARTS));
    let read = |path: PathBuf| match foreign::read(&path, LinkPolicy::Refused, MAX_INDEX_BYTES) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        read => Some(read.unwrap_or_default()),
    };
    paths.filter_map(read).collect()
}

/// Returns true if an index lists a path or a folder around it; upper and lower case count as equal. Returns `None` for
/// an invalid index.
fn is_listed(index: &[u8], path: &str) -> Option<bool> {
    let number = |offset: usize| Some(u32::from_be_bytes(index.get(offset..offset + 4)?.try_into().ok()?));
    let (version, count) = (number(4)?, number(8)?);
    if index.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    // The index does not say how long its hashes are. With the wrong length, the entries do not end where the
    // extensions begin; then the other length is tried.
    let read = |object_bytes| {
        IndexEntries { index, offset: 12, object_bytes, version, name: Vec::new() }.find_entry(count, path)
    };
    read(SHA1_BYTES).or_else(|| read(SHA256_BYTES))
}

/// Reads the entries of an index in order.
struct IndexEntries<'a> {
    index: &'a [u8],
    offset: usize,
    object_bytes: usize,
    version: u32,
    /// The name of the last entry. In version 4 the next entry has only the part that differs.
    name: Vec<u8>,
}

impl IndexEntries<'_> {
    fn find_entry(mut self, count: u32, path: &str) -> Option<bool> {
        let mut is_listed = false;
        for _ in 0..count {
            self.next()?;
            let name = &self.name;
            let is_around = || {
                let start = path.as_bytes().get(..name.len());
                name.ends_with(b"/") && start.is_some_and(|start| start.eq_ignore_ascii_case(name))
            };
            is_listed |= name.eq_ignore_ascii_case(path.as_bytes()) || is_around();
        }
        // After the entries follow extensions, whose names are letters, or only the checksum. With any other bytes, the
        // length of the hashes was wrong.
        let rest = self.index.get(self.offset..)?;
        let is_end = rest.len() == self.object_bytes || rest.get(..4)?.iter().all(u8::is_ascii_alphabetic);
        is_end.then_some(is_listed)
    }

    /// Reads the name of the next entry.
    fn next(&mut self) -> Option<()> {
        let start = self.offset;
        let mut offset = start + FIXED_BYTES + self.object_bytes;
        let flags = u16::from_be_bytes(self.index.get(offset..offset + 2)?.try_into().ok()?);
        offset += if flags & EXTENDED == 0 { 2 } else { 4 };
        if self.version == 4 {
            let mut byte = *self.index.get(offset)?;
            offset += 1;
            let mut stripped = usize::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                byte = *self.index.get(offset)?;
                offset += 1;
                stripped = (stripped.checked_add(1)?.checked_mul(128)?).checked_add(usize::from(byte & 0x7f))?;
            }
            self.name.truncate(self.name.len().checked_sub(stripped)?);
        } else {
            self.name.clear();
        }
        let rest = self.index.get(offset..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        let said = usize::from(flags & NAME_MASK);
        self.name.extend(&rest[..length]);
        if said < usize::from(NAME_MASK) && said != self.name.len() {
            return None;
        }
        offset += length + 1;
        // Before version 4, the length of an entry is a multiple of eight bytes.
        self.offset = if self.version == 4 { offset } else { start + (offset - start).next_multiple_of(8) };
        Some(())
    }
}
