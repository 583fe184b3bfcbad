//! Manages caches of folders, such as the index of a checkout. Each cache has its own folder, and a file in it holds
//! the path of the root: the folder that the cache describes.
//!
//! Users add and remove worktrees and clones. If the root of a cache is missing and the cache has not been opened for a
//! month, Nudge removes the cache. So the cache of a root on a disk that is away for a while stays.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nudge_os::foreign::{self, LinkPolicy};

/// The name of the file that holds the path of the root. The modification time of this file is the time at which a
/// process last opened the cache.
const ROOT_FILE: &str = "root";
/// Length limit for the path of a root that is read, in bytes.
const MAX_ROOT_BYTES: u64 = 16 << 10;
/// Time for which a cache is kept when its root is missing and no process opens the cache.
const MAX_ORPHAN_AGE: Duration = Duration::from_hours(30 * 24);

/// Writes the path of the root into the cache in `folder`, which also sets the time of the last opening. Write errors
/// are ignored: a cache without this file is never removed.
pub fn note_root(folder: &Path, root: &Path) {
    // Skips a path that is not UTF-8.
    if let Some(root) = root.to_str() {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let _ = options.open(folder.join(ROOT_FILE)).and_then(|mut file| file.write_all(root.as_bytes()));
    }
}

/// Removes the caches in the folder `caches` whose roots are missing and that no process has opened in the month before
/// `now`. Each subfolder is a cache. Returns the removed folders. A cache stays if it has no path of a root or cannot
/// be removed.
pub fn remove_orphans(caches: &Path, now: SystemTime) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(caches).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
    folders.filter(|folder| is_orphan(folder, now) && std::fs::remove_dir_all(folder).is_ok()).collect()
}

fn is_orphan(folder: &Path, now: SystemTime) -> bool {
    let file = folder.join(ROOT_FILE);
    let Ok(root) = foreign::read_text(&file, LinkPolicy::Refused, MAX_ROOT_BYTES) else { return false };
    let root = Path::new(&root);
    let is_gone =
        root.is_absolute() && root.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let opened = file.metadata().and_then(|data| data.modified());
    is_gone && opened.is_ok_and(|opened| now.duration_since(opened).is_ok_and(|age| age > MAX_ORPHAN_AGE))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_cache_of_a_root_that_is_gone_for_a_month_is_removed_and_no_other() {
        let place = tempfile::tempdir().unwrap();
        let caches = place.path().join("code");
        let cache = |name: &str, root: Option<&Path>| {
            let folder = caches.join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("index.db"), "rows").unwrap();
            if let Some(root) = root {
                note_root(&folder, root);
            }
            folder
        };
        let gone = cache("gone", Some(&place.path().join("worktree")));
        let there = cache("there", Some(place.path()));
        let unnamed = cache("unnamed", None);
        let relative = cache("relative", Some(Path::new("worktree")));
        let now = SystemTime::now();
        let later = now + MAX_ORPHAN_AGE + Duration::from_mins(1);

        assert_eq!(remove_orphans(&caches, now), [] as [PathBuf; 0], "opened today");
        assert_eq!(remove_orphans(&caches, now - MAX_ORPHAN_AGE * 2), [] as [PathBuf; 0], "a clock that is behind");
        assert_eq!(remove_orphans(&caches, later), std::slice::from_ref(&gone));
        assert!(!gone.exists() && there.exists() && unnamed.exists() && relative.exists());
        assert_eq!(remove_orphans(&place.path().join("none"), later), [] as [PathBuf; 0]);
    }
}
