//! Reports changes in folders as the system notices them. The system misses changes that other machines make, and
//! changes from before the folder was watched. A caller that must not miss a change has to read the files too.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use notify::event::ModifyKind;
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// The time without a further change after which changes are handled.
const SETTLE: Duration = Duration::from_millis(50);
/// The longest time after the first change until changes are handled, even if further changes come.
const SETTLE_AT_MOST: Duration = Duration::from_millis(500);
/// The most folders that are watched.
const MAX_FOLDERS: usize = 8_192;

/// A report of the system about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchNews<'a> {
    /// Something happened to this path. It is a file. If `may_be_folder` is true, it may also be a folder.
    Path {
        /// The absolute path.
        path: &'a Path,
        /// Is false when only content or metadata changed: such a report is about a file.
        may_be_folder: bool,
    },
    /// Any change may have happened, because the system lost reports.
    Anything,
}

/// Watches folders below a root. On Linux each folder has its own watch, because a recursive watch would also include
/// folders that the caller does not need. On other systems one watch covers the whole root, and `tell` must ignore the
/// other paths.
#[derive(Debug)]
pub struct FolderWatch {
    watcher: RecommendedWatcher,
    folders: HashSet<PathBuf>,
}

impl FolderWatch {
    /// Makes a watch. On Linux it watches no folder until [`set_folders`](Self::set_folders) is called; on other
    /// systems it watches the root. `tell` receives the reports, on another thread.
    ///
    /// # Errors
    /// The reason why the system cannot watch, as a text for people.
    pub fn begin(root: &Path, tell: impl Fn(WatchNews<'_>) + Send + 'static) -> Result<Self, String> {
        if let Some(kind) = remote_kind(root) {
            return Err(format!("the file system is {kind}, which does not tell of changes made elsewhere"));
        }
        let handler = move |event: notify::Result<Event>| match event {
            Ok(event) if !event.need_rescan() => tell_each(&event, &tell),
            _ => tell(WatchNews::Anything),
        };
        let config = Config::default().with_follow_symlinks(false);
        let mut watcher = RecommendedWatcher::new(handler, config).map_err(|error| describe_error(&error))?;
        // The library notify does not report that it could not start its thread. The next `watch` then panics, and so
        // does dropping the watcher. Only `configure` returns an error instead.
        if watcher.configure(config).is_err() {
            std::mem::forget(watcher);
            return Err("the system allows no further thread".to_owned());
        }
        if !cfg!(target_os = "linux") {
            watcher.watch(root, RecursiveMode::Recursive).map_err(|error| describe_error(&error))?;
        }
        Ok(Self { watcher, folders: HashSet::new() })
    }

    /// Watches a further folder until this value is dropped. Returns false if that fails. If the folder is already
    /// watched, the system still watches it only once.
    pub fn add_folder(&mut self, folder: &Path) -> bool {
        self.watcher.watch(folder, RecursiveMode::NonRecursive).is_ok()
    }

    /// Stops watching a folder that has gone or was replaced by a new one, because the system may still watch the old
    /// folder.
    pub fn forget(&mut self, folder: &Path) {
        if self.folders.remove(folder) {
            let _ = self.watcher.unwatch(folder);
        }
    }

    /// Watches exactly these folders from now on. Returns true if any of them is new.
    ///
    /// # Errors
    /// The reason why the system cannot watch them, as a text for people.
    pub fn set_folders(&mut self, now: HashSet<PathBuf>) -> Result<bool, String> {
        if !cfg!(target_os = "linux") {
            let has_new = !now.is_subset(&self.folders);
            self.folders = now;
            return Ok(has_new);
        }
        if now.len() > max_folders() {
            return Err(format!("{} folders are too many to watch", now.len()));
        }
        for gone in self.folders.difference(&now) {
            // The system removes the watch of a folder that is gone, so this may fail.
            let _ = self.watcher.unwatch(gone);
        }
        let new: Vec<_> = now.difference(&self.folders).cloned().collect();
        self.folders = now;
        for folder in &new {
            match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                // The folder is gone. The watch on its parent reports that.
                Ok(()) => {}
                Err(error) if is_missing(&error) => {
                    self.folders.remove(folder);
                }
                Err(error) => return Err(describe_error(&error)),
            }
        }
        Ok(!new.is_empty())
    }
}

fn tell_each(event: &Event, tell: &impl Fn(WatchNews<'_>)) {
    if matches!(event.kind, EventKind::Access(_)) {
        return;
    }
    let may_be_folder = !matches!(event.kind, EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)));
    event.paths.iter().for_each(|path| tell(WatchNews::Path { path, may_be_folder }));
}

fn is_missing(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

fn describe_error(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => "the system's limit of watches is reached".to_owned(),
        notify::ErrorKind::Io(error) => format!("the system cannot watch ({})", error.kind()),
        _ => "the system cannot watch".to_owned(),
    }
}

/// Returns the most folders to watch. Other programs need some of the system's watches too.
#[cfg(target_os = "linux")]
fn max_folders() -> usize {
    use nudge_os::foreign::{self, LinkPolicy};
    let limit = foreign::read_text(Path::new("/proc/sys/fs/inotify/max_user_watches"), LinkPolicy::Refused, 64).ok();
    let limit = limit.and_then(|text| text.trim().parse::<usize>().ok());
    limit.map_or(MAX_FOLDERS, |limit| MAX_FOLDERS.min(limit / 4))
}

/// Returns the most folders to watch. On this system one watch covers all folders.
#[cfg(not(target_os = "linux"))]
fn max_folders() -> usize {
    MAX_FOLDERS
}

/// Returns the kind of a file system that other machines can change; `None` for a local file system.
#[cfg(target_os = "linux")]
fn remote_kind(path: &Path) -> Option<&'static str> {
    // The numbers are from `linux/magic.h`.
    const REMOTE: [(u64, &str); 7] = [
        (0x6969, "NFS"),
        (0x517B, "SMB"),
        (0xFF53_4D42, "CIFS"),
        (0xFE53_4D42, "SMB"),
        (0x0102_1997, "9P"),
        (0x6573_5546, "FUSE"),
        (0x00C3_6400, "Ceph"),
    ];
    let kind = u64::try_from(rustix::fs::statfs(path).ok()?.f_type).ok()?;
    REMOTE.iter().find(|(magic, _)| *magic == kind & 0xFFFF_FFFF).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn remote_kind(_: &Path) -> Option<&'static str> {
    None
}

/// The times of the first and the last change that are not handled yet. Changes that come close together are handled
/// together.
#[derive(Debug, Clone, Copy, Default)]
pub struct SettleTimer(Option<(Instant, Instant)>);

impl SettleTimer {
    /// Notes that a change happens now.
    pub fn note_event(&mut self) {
        let now = Instant::now();
        let first = self.0.map_or(now, |(first, _)| first);
        self.0 = Some((first, now));
    }

    /// Returns true when there is no change to handle.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the time after which the noted changes can be handled; `None` when there is no change.
    pub fn time_left(&self) -> Option<Duration> {
        let (first, last) = self.0?;
        let due = (last + SETTLE).min(first + SETTLE_AT_MOST);
        Some(due.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// Waits for a report about a path that ends with this name.
    fn heard_of(told: &Receiver<PathBuf>, name: &str) {
        while !told.recv_timeout(Duration::from_secs(30)).unwrap().ends_with(name) {}
    }

    #[test]
    fn folders_tell_what_happens_in_them_alone() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for name in ["a", "b"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let (tell, told) = channel();
        let mut watch = FolderWatch::begin(&root, move |news| {
            if let WatchNews::Path { path, .. } = news {
                tell.send(path.to_owned()).unwrap();
            }
        })
        .unwrap();
        let set = |names: &[&str]| names.iter().map(|name| root.join(name)).collect();
        assert_eq!(watch.set_folders(set(&["a", "gone"])), Ok(true), "one that is not there is passed over");
        assert_eq!(watch.set_folders(set(&["a"])), Ok(false));
        fs::read(root.join("a/x")).unwrap_err();
        fs::write(root.join("b/y"), "1").unwrap();
        fs::write(root.join("a/x"), "1").unwrap();
        let first = told.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(!cfg!(target_os = "linux") || first == root.join("a/x"), "{first:?}");
        assert_eq!(watch.set_folders(set(&["b"])), Ok(true));
        fs::write(root.join("b/z"), "1").unwrap();
        heard_of(&told, "z");
        // A new folder with the same name is watched again.
        fs::rename(root.join("b"), root.join("c")).unwrap();
        fs::create_dir(root.join("b")).unwrap();
        watch.forget(&root.join("b"));
        assert_eq!(watch.set_folders(set(&["b"])), Ok(true));
        fs::write(root.join("b/w"), "1").unwrap();
        heard_of(&told, "w");
    }

    #[test]
    fn what_happens_on_and_on_settles_too() {
        let mut settling = SettleTimer::default();
        assert!(settling.is_empty() && settling.time_left().is_none());
        settling.note_event();
        assert!(settling.time_left().is_some_and(|rest| rest <= SETTLE));
        let long_ago = Instant::now().checked_sub(SETTLE_AT_MOST).unwrap();
        settling.0 = Some((long_ago, long_ago));
        settling.note_event();
        assert_eq!(settling.time_left(), Some(Duration::ZERO));
    }
}
