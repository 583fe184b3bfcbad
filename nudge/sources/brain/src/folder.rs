//! The folder of a brain: which of its files are units, reading them, and the two ways of writing one.

use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nudge_core::dir::advice;
use nudge_core::error::{Error, Result};
use nudge_core::foreign::{self, Links};
use nudge_core::text::is_hidden;
use nudge_core::walk::{self, Found, Plan, RuleSources};
use sha2::{Digest as _, Sha256};

use crate::config::{self, Config};
use crate::unit::without_ending;

/// Most files of a brain.
pub const MAX_FILES: usize = 100_000;
/// Longest file.
pub const MAX_BYTES: u64 = 1 << 20;
/// Folders that hold no knowledge.
const NO_FOLDERS: &[&str] = &["node_modules", "templates", "_templates"];
/// Parts of the names of copies that programs leave behind when two of them write.
const COPIES: &[&str] = &["sync-conflict-", "conflicted copy", "conflict copy", "(conflict"];
/// Files that say which files are passed over.
const RULES: &[&str] = &[".gitignore", ".ignore"];
/// A file that was changed so short a time ago may be changed again without its time telling.
const UNSURE: Duration = Duration::from_millis(50);

/// The folder of a brain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    root: PathBuf,
}

/// By what a file that may have changed is told from one that has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Stamp {
    pub size: i64,
    pub mtime_ns: i64,
    /// -1 where the stamp is unsure, which equals nothing that is looked up.
    pub inode: i64,
}

/// The SHA-256 of a file.
pub type Hash = [u8; 32];

/// A file that was read.
#[derive(Debug, Clone)]
pub struct Read {
    pub text: String,
    pub hash: Hash,
}

/// What a walk found.
#[derive(Debug, Default)]
pub struct Walked {
    /// The files, by their paths below the root, with `/`.
    pub files: Vec<(String, Stamp)>,
    /// The folders that they lie in, and those without any.
    pub folders: Vec<PathBuf>,
    /// There are more than are indexed.
    pub is_cut: bool,
}

impl Folder {
    /// The folder, without links.
    ///
    /// # Errors
    /// `E_NOT_FOUND` where there is none.
    pub fn open(path: &Path) -> Result<Self> {
        let root = path.canonicalize().ok().filter(|root| root.is_dir());
        let refused =
            || Error::not_found(format!("There is no folder {}; `nudge brain init` makes one.", path.display()));
        root.map(|root| Self { root }).ok_or_else(refused)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Lists the files that are units, with a look at each. `None` when the deadline passes before that is done.
    pub fn walk(&self, config: &Config, deadline: Option<Instant>) -> Option<Walked> {
        let counts = |path: &Path, is_folder: bool| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            !name.starts_with('.') && is_of_brain(&name) && (is_folder || is_unit(&name))
        };
        let is_over = || deadline.is_some_and(|deadline| Instant::now() > deadline);
        let plan = Plan { counts: &counts, is_over: &is_over, ..Plan::default() };
        // What lies above the brain is somebody else's, and so are the rules there.
        let sources = RuleSources { first: &config.ignore, ..RuleSources::default() };
        let mut walked = Walked::default();
        let ended = walk::walk(&self.root, &sources, &plan, &mut |found| {
            match found {
                Found::Folder(folder) => walked.folders.push(folder.to_owned()),
                Found::File(file) if file.kind.is_file() => {
                    let Some(path) = self.name(file.path) else { return ControlFlow::Continue(()) };
                    let Ok(meta) = file.entry.metadata() else { return ControlFlow::Continue(()) };
                    if walked.files.len() == MAX_FILES {
                        walked.is_cut = true;
                        return ControlFlow::Break(());
                    }
                    walked.files.push((path, Stamp::of(&meta)));
                }
                Found::File(_) | Found::PassedOver(..) => {}
            }
            ControlFlow::Continue(())
        });
        walked.is_cut |= ended == walk::Walked::Cut;
        (ended != walk::Walked::Ended || walked.is_cut).then_some(walked)
    }

    /// The path of a file below the root; `None` for one that no line can hold.
    pub fn name(&self, path: &Path) -> Option<String> {
        let parts = path.strip_prefix(&self.root).ok()?.components();
        let parts: Option<Vec<_>> = parts.map(|part| part.as_os_str().to_str()).collect();
        Some(parts?.join("/")).filter(|name| !name.is_empty() && !name.chars().any(is_hidden))
    }

    /// Reads a file. Nothing is followed out of the brain.
    ///
    /// # Errors
    /// Those of reading; `InvalidData` for what is no text.
    pub fn read(&self, path: &str) -> io::Result<Read> {
        let place = self.place(path).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let bytes = foreign::read(&place, Links::Refused, MAX_BYTES)?;
        let hash = Sha256::digest(&bytes).into();
        let text =
            String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"))?;
        Ok(Read { text, hash })
    }

    /// Where a path below the root is, if no link on the way leads elsewhere.
    fn place(&self, path: &str) -> Option<PathBuf> {
        let is_below = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let place = self.root.join(path);
        let parent = place.parent()?;
        // A folder that is still to be made leads nowhere.
        let real = parent.ancestors().find_map(|folder| folder.canonicalize().ok())?;
        let expected = parent.ancestors().find(|folder| folder.exists())?;
        (is_below && !path.is_empty() && real == expected).then_some(place)
    }

    /// Makes a file, and the folders that it lies in.
    ///
    /// # Errors
    /// `E_CONFLICT` where there is one; `E_INVALID` for a path that leads out of the brain; `E_UNAVAILABLE` when it
    /// cannot be written.
    pub fn create(&self, path: &str, text: &str) -> Result<()> {
        let place = self.writable(path)?;
        let parent = place.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).map_err(|error| unwritable(path, &error))?;
        let temporary = write_beside(&place, text, None).map_err(|error| unwritable(path, &error))?;
        // Unlike a rename, a second name takes nobody's place.
        let made = fs::hard_link(&temporary, &place).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Err(error),
            _ if place.symlink_metadata().is_ok() => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            _ => fs::rename(&temporary, &place),
        });
        let _ = fs::remove_file(&temporary);
        made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Error::conflict(format!("There is a file {path} already; choose another title.")).with("path", path)
            }
            _ => unwritable(path, &error),
        })?;
        flush(parent);
        Ok(())
    }

    /// Replaces a file whose bytes are still those of `hash`. Its mode stays.
    ///
    /// # Errors
    /// `E_CONFLICT` when it was changed meanwhile; else as [`create`](Self::create).
    pub fn replace(&self, path: &str, hash: &Hash, text: &str) -> Result<()> {
        let place = self.writable(path)?;
        let changed = || Error::conflict(format!("{path} was changed meanwhile; read it again.")).with("path", path);
        let meta = place.symlink_metadata().map_err(|_| changed())?;
        if !meta.is_file() {
            return Err(Error::invalid(format!("{path} is no regular file, and is left alone.")));
        }
        let temporary = write_beside(&place, text, Some(&meta)).map_err(|error| unwritable(path, &error))?;
        let replaced = match self.read(path) {
            Ok(read) if read.hash == *hash => fs::rename(&temporary, &place).map_err(|error| unwritable(path, &error)),
            _ => Err(changed()),
        };
        if replaced.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        replaced?;
        flush(place.parent().unwrap_or(&self.root));
        Ok(())
    }

    fn writable(&self, path: &str) -> Result<PathBuf> {
        let refused = || Error::invalid(format!("{path} is no place for a unit of this brain."));
        self.place(path).filter(|_| is_unit(path)).ok_or_else(refused)
    }

    /// The stamp of a file, as a walk would have it.
    pub fn look(&self, path: &str) -> Option<Stamp> {
        self.place(path)?.symlink_metadata().ok().filter(Metadata::is_file).map(|meta| Stamp::of(&meta))
    }
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(meta).cast_signed();
        #[cfg(not(unix))]
        let inode = 0;
        Self {
            size: i64::try_from(meta.len()).unwrap_or(i64::MAX),
            mtime_ns: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            inode,
        }
    }

    /// The stamp to remember: of a file that was changed a moment ago none, so that it is read again.
    #[must_use]
    pub fn sure(self, now: SystemTime) -> Self {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let modified = Duration::from_nanos(u64::try_from(self.mtime_ns).unwrap_or_default());
        if modified + UNSURE < now { self } else { Self { inode: -1, ..self } }
    }
}

/// Whether a file or folder of this name may be of the brain.
fn is_of_brain(name: &str) -> bool {
    !NO_FOLDERS.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Whether what happens to a path below the root may change what a walk finds.
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

/// Whether a path has the name of a unit, and not of a file that says which files count.
pub fn is_note(path: &Path) -> bool {
    path.file_name().and_then(std::ffi::OsStr::to_str).is_some_and(is_unit)
}

/// Whether a path is that of a unit.
fn is_unit(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    let lower = file.to_ascii_lowercase();
    let is_copy =
        COPIES.iter().any(|copy| lower.contains(copy)) || lower.ends_with("~.md") || lower.ends_with(".tmp.md");
    without_ending(file).len() + 3 == file.len()
        && file.len() > 3
        && !file.starts_with('.')
        && !is_copy
        && path.split('/').all(is_of_brain)
}

/// Writes a text into a new file beside another, with the mode of that.
fn write_beside(place: &Path, text: &str, like: Option<&Metadata>) -> io::Result<PathBuf> {
    let name = format!(".nudge-{}.tmp", uuid::Uuid::now_v7().simple());
    let temporary = place.with_file_name(name);
    let write = || -> io::Result<()> {
        let mut file = File::options().write(true).create_new(true).open(&temporary)?;
        if let Some(like) = like {
            file.set_permissions(like.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))?;
    Ok(temporary)
}

/// Flushes a folder, where that is possible.
fn flush(folder: &Path) {
    if let Ok(folder) = File::options().read(true).open(folder) {
        let _ = folder.sync_all();
    }
}

fn unwritable(path: &str, error: &io::Error) -> Error {
    let advice = advice(error).unwrap_or("make the brain's folder writable");
    Error::unavailable(format!("{path} cannot be written ({error}); {advice}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        (place, folder)
    }

    fn files(folder: &Folder, config: &Config) -> Vec<String> {
        let mut files: Vec<_> = folder.walk(config, None).unwrap().files.into_iter().map(|(path, _)| path).collect();
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
        ] {
            fs::create_dir_all(place.path().join(path).parent().unwrap()).unwrap();
            fs::write(place.path().join(path), "x").unwrap();
        }
        fs::write(place.path().join(".gitignore"), "ignored.md\n").unwrap();
        let config = Config { ignore: vec!["drafts/".into(), "[".into()], ..Config::default() };
        assert_eq!(files(&folder, &config), ["a.md", "b/c.MD", "b/ü ö.md"]);
        assert!(folder.walk(&config, Some(Instant::now())).is_some(), "a few take no time");
        for at in 0..256 {
            fs::write(place.path().join(format!("{at}.md")), "x").unwrap();
        }
        assert!(folder.walk(&config, Some(Instant::now())).is_none(), "no time at all");
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
        assert_eq!(files(&folder, &Config::default()), Vec::<String>::new());
        for path in ["x.md", "out/x.md", "../x.md", "/etc/x.md", "a/../../x.md", ""] {
            assert!(folder.read(path).is_err(), "{path}");
            folder.replace(path, &[0; 32], "y").unwrap_err();
        }
        for path in ["out/y.md", "out/new/y.md", "../y.md", "y.txt", ".y.md"] {
            assert_eq!(folder.create(path, "y").unwrap_err().reason(), "E_INVALID", "{path}");
        }
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        use std::os::unix::fs::PermissionsExt as _;
        let (place, folder) = folder();
        folder.create("a/b.md", "one").unwrap();
        assert_eq!(folder.create("a/b.md", "two").unwrap_err().reason(), "E_CONFLICT");
        let path = place.path().join("a/b.md");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let read = folder.read("a/b.md").unwrap();
        folder.replace("a/b.md", &read.hash, "two").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(folder.replace("a/b.md", &read.hash, "three").unwrap_err().reason(), "E_CONFLICT");
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
        let stamp = folder.look("a.md").unwrap();
        let now = SystemTime::now();
        assert_ne!(stamp.sure(now), stamp.sure(now + Duration::from_secs(1)));
    }
}
