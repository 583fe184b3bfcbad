//! Manages the folder of a brain: decides which files are units, reads files, creates files and replaces files.

use std::cell::RefCell;
use std::fs::Metadata;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use nudge_core::error::{Error, Result};
use nudge_core::number::unix_ns;
use nudge_core::text::{after_mark, is_tellable_name, make_visible};
use nudge_core::walk::{self, RuleSources, WalkEntry, WalkPlan};
use nudge_os::beneath::{DiskSync, FileRights, HeldFolder, InnerLinks, is_of_link};
use nudge_os::dir::advise_on_disk;
use sha2::{Digest as _, Sha256};

use crate::config::{self, BrainConfig};
use crate::unit::without_ending;

/// The most files of a brain that are indexed.
pub const MAX_FILES: usize = 100_000;
/// The most skipped files and folders that a listing names.
const MAX_LEFT_OUT: usize = 500;
/// The most bytes of a unit's file.
pub const MAX_BYTES: u64 = 1 << 20;
/// The names of folders that hold no knowledge.
const NO_FOLDERS: &[&str] = &["node_modules", "templates", "_templates"];
/// Parts of file names by which sync programs mark conflicting copies.
const COPIES: &[&str] = &["sync-conflict-", "conflicted copy", "conflict copy", "(conflict"];
/// The names of files with rules for the files to ignore.
const RULES: &[&str] = &[".gitignore", ".ignore"];
/// The age in nanoseconds below which a file is unsure: it may change again without a new modification time.
const UNSURE_NS: i64 = 50_000_000;

/// The folder of a brain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrainFolder {
    root: PathBuf,
}

/// The size, the modification time and the inode of a file. If one of them differs, the file has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct FileStamp {
    pub size: i64,
    pub mtime_ns: i64,
    /// The inode; -1 for an unsure stamp, so that it differs from every stamp of a walk.
    pub inode: i64,
}

/// The SHA-256 of a file.
pub type Hash = [u8; 32];

/// The content of a file.
#[derive(Debug, Clone)]
pub struct FileContent {
    pub text: String,
    pub hash: Hash,
}

/// The result of a walk over the folder.
#[derive(Debug, Default)]
pub struct FolderListing {
    /// The files with their stamps. A path is relative to the brain's folder and has `/` between the names.
    pub files: Vec<(String, FileStamp)>,
    /// All folders that the walk entered, even folders without files.
    pub folders: Vec<PathBuf>,
    /// Is true when the folder has more files than the index holds.
    pub is_cut: bool,
    /// The files that end with `.md` but are not units, each with the reason.
    pub left_out: Vec<(String, &'static str)>,
    /// The folders that the walk skipped because of their names.
    pub other_folders: Vec<String>,
}

impl BrainFolder {
    /// Opens a folder by its real path, without links.
    ///
    /// # Errors
    /// `E_NOT_FOUND` when the folder does not exist.
    pub fn open(path: &Path) -> Result<Self> {
        let root = path.canonicalize().ok().filter(|root| root.is_dir());
        let refused = || {
            let shown = path.display();
            Error::not_found(if path.exists() {
                format!("{shown} is no folder that can be opened; name the folder that has the notes.")
            } else {
                format!("There is no folder {shown}; `nudge brain init` makes one.")
            })
        };
        root.map(|root| Self { root }).ok_or_else(refused)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Lists the files that are units. Returns `None` when the deadline passes before the walk ends.
    pub fn list_files(&self, config: &BrainConfig, deadline: Option<Instant>) -> Option<FolderListing> {
        let (left_out, other_folders) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let leave_out = |path: &Path, why| {
            let mut left_out = left_out.borrow_mut();
            if left_out.len() < MAX_LEFT_OUT {
                left_out.push((self.describe(path), why));
            }
        };
        let counts = |path: &Path, is_folder: bool| {
            let Some(name) = path.file_name() else { return false };
            let name = name.to_string_lossy();
            // A name that begins with a dot belongs to a program, so users do not expect notes there.
            if name.starts_with('.') {
                return false;
            }
            if is_folder {
                let mut others = other_folders.borrow_mut();
                if !is_of_brain(&name) && others.len() < MAX_LEFT_OUT {
                    others.push(self.describe(path));
                }
                return is_of_brain(&name);
            }
            if is_copy(&name) {
                leave_out(path, "it is a copy that another program left behind, and is not read");
            }
            is_unit(&name)
        };
        let is_over = || deadline.is_some_and(|deadline| Instant::now() > deadline);
        let plan = WalkPlan { counts: &counts, is_over: &is_over, ..WalkPlan::default() };
        // Rules in folders above the brain do not apply, because those folders may belong to another person.
        let sources = RuleSources { first: &config.ignore, ..RuleSources::default() };
        let mut walked = FolderListing::default();
        let ended = walk::walk_folder(&self.root, &sources, &plan, &mut |found| {
            match found {
                WalkEntry::Folder(folder) => walked.folders.push(folder.to_owned()),
                WalkEntry::File(file) if file.kind.is_file() => {
                    let Some(path) = self.name(file.path) else {
                        leave_out(
                            file.path,
                            "its name holds characters that do not show, so it is not read; rename it",
                        );
                        return ControlFlow::Continue(());
                    };
                    let Ok(meta) = file.entry.metadata() else { return ControlFlow::Continue(()) };
                    if walked.files.len() == MAX_FILES {
                        walked.is_cut = true;
                        return ControlFlow::Break(());
                    }
                    walked.files.push((path, FileStamp::from_metadata(&meta)));
                }
                WalkEntry::File(_) | WalkEntry::PassedOver(..) => {}
            }
            ControlFlow::Continue(())
        });
        walked.left_out = left_out.take();
        walked.other_folders = other_folders.take();
        walked.is_cut |= ended == walk::WalkEnd::Cut;
        (ended != walk::WalkEnd::Ended || walked.is_cut).then_some(walked)
    }

    /// Returns the path of a file relative to the brain's folder; `None` for a path that does not fit into one line.
    pub fn name(&self, path: &Path) -> Option<String> {
        let parts = path.strip_prefix(&self.root).ok()?.components();
        let parts: Option<Vec<_>> = parts.map(|part| part.as_os_str().to_str()).collect();
        Some(parts?.join("/")).filter(|name| !name.is_empty() && is_tellable_name(name))
    }

    /// Returns the relative path of a skipped file or folder, with hidden characters made visible.
    fn describe(&self, path: &Path) -> String {
        make_visible(&path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().replace('\\', "/"))
    }

    /// Reads a file. The read follows no link, so it never leaves the brain.
    ///
    /// # Errors
    /// The errors of the system; `InvalidData` for a file that is not UTF-8 text.
    pub fn read(&self, path: &str) -> io::Result<FileContent> {
        let (folder, name) = self.open_parent(path)?;
        read_in(&folder, name)
    }

    /// Opens the folder of a file without following any link. Returns the folder and the name of the file.
    fn open_parent<'a>(&self, path: &'a str) -> io::Result<(HeldFolder, &'a str)> {
        let (below, name) = split_path(path);
        HeldFolder::open(&self.root)?.open_folder(Path::new(below), InnerLinks::Refused).map(|folder| (folder, name))
    }

    /// Creates a file. Creates its folders if they do not exist.
    ///
    /// # Errors
    /// `E_CONFLICT` when the file exists; `E_INVALID` for a path that leads out of the brain; `E_UNAVAILABLE` when the
    /// file cannot be written.
    pub fn create_file(&self, path: &str, text: &str) -> Result<()> {
        let (below, name) = split_path(path);
        let failed = |error: &io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Error::conflict(format!("There is a file {path} already; choose another title."))
                    .with_data("path", path)
            }
            io::ErrorKind::InvalidInput => no_place(path),
            _ if is_of_link(error) => no_place(path),
            _ => write_error(path, error),
        };
        if !is_unit(path) {
            return Err(no_place(path));
        }
        let folder = HeldFolder::open(&self.root)
            .and_then(|root| root.make_folder(Path::new(below), InnerLinks::Refused))
            .map_err(|error| failed(&error))?;
        let made = folder
            .write_fresh(text.as_bytes(), FileRights::Usual, DiskSync::Flushed)
            .and_then(|fresh| fresh.take_free_name(name));
        made.map_err(|error| failed(&error))
    }

    /// Replaces a file if its bytes still have the hash `hash`. The new file keeps the permissions of the old one.
    ///
    /// # Errors
    /// `E_CONFLICT` when the file has changed since `hash` was computed; else the errors of
    /// [`create_file`](Self::create_file).
    pub fn replace_file(&self, path: &str, hash: &Hash, text: &str) -> Result<()> {
        let changed =
            || Error::conflict(format!("{path} was changed meanwhile; read it again.")).with_data("path", path);
        if !is_unit(path) {
            return Err(no_place(path));
        }
        let (folder, name) = self.open_parent(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => changed(),
            io::ErrorKind::InvalidInput => no_place(path),
            _ if is_of_link(&error) => no_place(path),
            _ => write_error(path, &error),
        })?;
        let meta = folder.look_up(name).map_err(|_| changed())?;
        if !meta.is_file() {
            return Err(Error::invalid(format!("{path} is no regular file, and is left alone.")));
        }
        let fresh = folder.write_fresh(text.as_bytes(), FileRights::Same(meta.permissions()), DiskSync::Flushed);
        let fresh = fresh.map_err(|error| write_error(path, &error))?;
        match read_in(&folder, name) {
            Ok(read) if read.hash == *hash => fresh.replace_file(name).map_err(|error| write_error(path, &error)),
            _ => Err(changed()),
        }
    }

    /// Returns the stamp of a file, in the form in which a walk returns it; `None` when there is no such file.
    pub fn read_stamp(&self, path: &str) -> Option<FileStamp> {
        let (folder, name) = self.open_parent(path).ok()?;
        folder.look_up(name).ok().filter(Metadata::is_file).map(|meta| FileStamp::from_metadata(&meta))
    }
}

/// Splits a path into the folder and the name of the file.
fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn read_in(folder: &HeldFolder, name: &str) -> io::Result<FileContent> {
    let (bytes, _) = folder.read(name, MAX_BYTES)?;
    let hash = Sha256::digest(&bytes).into();
    let text =
        String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"))?;
    Ok(FileContent { text, hash })
}

impl FileStamp {
    fn from_metadata(meta: &Metadata) -> Self {
        let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(meta).cast_signed();
        #[cfg(not(unix))]
        let inode = 0;
        Self { size: meta.len().cast_signed(), mtime_ns: unix_ns(modified), inode }
    }

    /// Returns the stamp that the index stores. A file that changed very recently gets an unsure stamp, so the next
    /// scan reads it again.
    #[must_use]
    pub fn to_remembered(self, now: SystemTime) -> Self {
        let age_ns = unix_ns(now).saturating_sub(self.mtime_ns);
        if age_ns > UNSURE_NS { self } else { Self { inode: -1, ..self } }
    }
}

/// Returns true when a file or folder with this name may belong to the brain.
fn is_of_brain(name: &str) -> bool {
    !NO_FOLDERS.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Returns true when a change of this path may change the result of a walk.
pub fn is_of_interest(root: &Path, path: &Path, may_be_folder: bool) -> bool {
    let parts = path.strip_prefix(root).ok().map(|below| below.iter().map(std::ffi::OsStr::to_str));
    let Some(parts) = parts.and_then(Iterator::collect::<Option<Vec<_>>>) else { return false };
    let Some((file, folders)) = parts.split_last() else { return may_be_folder };
    if !folders.iter().all(|name| !name.starts_with('.') && is_of_brain(name)) {
        return false;
    }
    let is_file = RULES.contains(file) || is_unit(file) || (folders.is_empty() && *file == config::FILE);
    is_file || (may_be_folder && !file.starts_with('.') && is_of_brain(file) && !path.is_file())
}

/// Returns true when a path has the name of a unit. A file with ignore rules has none.
pub fn is_note(path: &Path) -> bool {
    path.file_name().and_then(std::ffi::OsStr::to_str).is_some_and(is_unit)
}

/// Returns true when a relative path can be that of a unit.
fn is_unit(path: &str) -> bool {
    let file = after_mark(path, &['/']);
    has_ending(file) && !file.starts_with('.') && !is_copy(file) && path.split('/').all(is_of_brain)
}

/// Returns true when a file name ends with `.md` and has more characters before the ending.
fn has_ending(file: &str) -> bool {
    without_ending(file).len() + 3 == file.len() && file.len() > 3
}

/// Returns true when the name shows that the file is a conflicting copy or a temporary file.
fn is_copy(file: &str) -> bool {
    let lower = file.to_ascii_lowercase();
    let is_copy =
        COPIES.iter().any(|copy| lower.contains(copy)) || lower.ends_with("~.md") || lower.ends_with(".tmp.md");
    is_copy && has_ending(file)
}

fn no_place(path: &str) -> Error {
    Error::invalid(format!("{path} is no place for a unit of this brain."))
}

fn write_error(path: &str, error: &io::Error) -> Error {
    let advice = advise_on_disk(error).unwrap_or("make the brain's folder writable");
    Error::unavailable(format!("{path} cannot be written ({error}); {advice}."))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    fn folder() -> (tempfile::TempDir, BrainFolder) {
        let place = tempfile::tempdir().unwrap();
        let folder = BrainFolder::open(place.path()).unwrap();
        (place, folder)
    }

    fn files(folder: &BrainFolder, config: &BrainConfig) -> Vec<String> {
        let mut files: Vec<_> =
            folder.list_files(config, None).unwrap().files.into_iter().map(|(path, _)| path).collect();
        files.sort_unstable();
        files
    }

    #[test]
    fn what_is_a_unit() {
        let (place, folder) = folder();
        for path in [
            "a.md",
            "b/c.MD",
            "b/x.txt",
            ".obsidian/x.md",
            ".trash/x.md",
            "node_modules/x.md",
            "Templates/x.md",
            ".x.md",
            ".md",
            "a~.md",
            "a.sync-conflict-1.md",
            "a (conflicted copy).md",
            "drafts/d.md",
            "ignored.md",
            "x.tmp.md",
            "b/ü ö.md",
            "I ❤\u{fe0f} notes.md",
            "👩\u{200d}👩\u{200d}👧.md",
            "می\u{200c}خواهم.md",
            "a\u{200b}b.md",
        ] {
            fs::create_dir_all(place.path().join(path).parent().unwrap()).unwrap();
            fs::write(place.path().join(path), "x").unwrap();
        }
        fs::write(place.path().join(".gitignore"), "ignored.md\n").unwrap();
        let config = BrainConfig { ignore: vec!["drafts/".into(), "[".into()], ..BrainConfig::default() };
        let names =
            ["I ❤\u{fe0f} notes.md", "a.md", "b/c.MD", "b/ü ö.md", "می\u{200c}خواهم.md", "👩\u{200d}👩\u{200d}👧.md"];
        assert_eq!(files(&folder, &config), names);
        let mut listing = folder.list_files(&config, None).unwrap();
        listing.left_out.sort_unstable();
        listing.other_folders.sort_unstable();
        let left_out: Vec<_> = listing.left_out.iter().map(|(path, _)| path.as_str()).collect();
        let copies = ["a (conflicted copy).md", "a.sync-conflict-1.md", "a\\u{200b}b.md", "a~.md", "x.tmp.md"];
        assert_eq!(
            (left_out.as_slice(), listing.other_folders.as_slice()),
            (&copies[..], &["Templates".to_owned(), "node_modules".to_owned()][..])
        );
        assert!(folder.list_files(&config, Some(Instant::now())).is_some(), "a few take no time");
        for number in 0..256 {
            fs::write(place.path().join(format!("{number}.md")), "x").unwrap();
        }
        assert!(folder.list_files(&config, Some(Instant::now())).is_none(), "no time at all");
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out() {
        use std::os::unix::fs::symlink;
        let (place, folder) = folder();
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("x.md"), "secret").unwrap();
        symlink(other.path().join("x.md"), place.path().join("x.md")).unwrap();
        symlink(other.path(), place.path().join("out")).unwrap();
        assert_eq!(files(&folder, &BrainConfig::default()), Vec::<String>::new());
        for path in ["x.md", "out/x.md", "../x.md", "/etc/x.md", "a/../../x.md", ""] {
            assert!(folder.read(path).is_err(), "{path}");
            folder.replace_file(path, &[0; 32], "y").unwrap_err();
        }
        for path in ["out/y.md", "out/new/y.md", "../y.md", "y.txt", ".y.md"] {
            assert_eq!(folder.create_file(path, "y").unwrap_err().reason(), "E_INVALID", "{path}");
        }
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
    }

    /// While notes in a folder are written and read, another process replaces the folder by a link.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_is_exchanged_for_a_link_leads_no_note_out() {
        use std::sync::atomic::{AtomicBool, Ordering};

        use rustix::fs::{CWD, RenameFlags, renameat_with};

        let (place, folder) = folder();
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("x.md"), "secret").unwrap();
        let (sub, link) = (place.path().join("sub"), place.path().join("link"));
        fs::create_dir(&sub).unwrap();
        std::os::unix::fs::symlink(other.path(), &link).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &sub, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let (mut made, mut refused) = (0, 0);
            while made < 200 || refused < 200 {
                let path = format!("sub/{made}.md");
                match folder.create_file(&path, "mine") {
                    Ok(()) => made += 1,
                    Err(error) if error.reason() == "E_CONFLICT" => made += 1,
                    Err(_) => refused += 1,
                }
                assert!(folder.read("sub/x.md").is_err(), "a note outside was read");
                folder.replace_file("sub/x.md", &Sha256::digest("secret").into(), "mine").unwrap_err();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_to_string(other.path().join("x.md")).unwrap(), "secret");
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1, "nothing was written there");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        use std::os::unix::fs::PermissionsExt as _;
        let (place, folder) = folder();
        folder.create_file("a/b.md", "one").unwrap();
        assert_eq!(folder.create_file("a/b.md", "two").unwrap_err().reason(), "E_CONFLICT");
        let path = place.path().join("a/b.md");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let read = folder.read("a/b.md").unwrap();
        folder.replace_file("a/b.md", &read.hash, "two").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(folder.replace_file("a/b.md", &read.hash, "three").unwrap_err().reason(), "E_CONFLICT");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn what_is_no_text_is_not_read() {
        let (place, folder) = folder();
        fs::write(place.path().join("a.md"), [0xff]).unwrap();
        assert_eq!(folder.read("a.md").unwrap_err().kind(), io::ErrorKind::InvalidData);
        fs::write(place.path().join("a.md"), "x".repeat((1 << 20) + 1)).unwrap();
        assert_eq!(folder.read("a.md").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let stamp = folder.read_stamp("a.md").unwrap();
        let now = SystemTime::now();
        assert_ne!(stamp.to_remembered(now), stamp.to_remembered(now + Duration::from_secs(1)));
    }
}
