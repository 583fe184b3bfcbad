//! Which files of a root have changed: told by the system, one folder at a time, as long as that is not too much to ask.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use notify::event::ModifyKind;
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use nudge_core::foreign::{self, Links};
use parking_lot::Mutex;

use crate::live::state::Paths;
use crate::root::Root;
use crate::rules::FILES;
use crate::walk::is_of_use;

/// How long nothing must happen before what happened is looked at, and how long that waits at most.
const SETTLE: Duration = Duration::from_millis(50);
const SETTLE_AT_MOST: Duration = Duration::from_millis(500);
/// Most folders that are watched.
const MAX_FOLDERS: usize = 8_192;
/// The files in git's folder that move with HEAD.
const OF_GIT: [&str; 3] = ["HEAD", "index", "index.lock"];

type Folders = HashSet<PathBuf>;

/// How changes are noticed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Mode {
    /// Not at all yet.
    #[default]
    Starting,
    /// The system tells, for so many folders.
    Watch(usize),
    /// By looking at all files from time to time, for this reason.
    Poll(String),
    /// By looking once, for one call.
    Once,
}

/// What has changed since it was last looked at.
#[derive(Debug, Default)]
pub struct News {
    /// Files.
    pub paths: Paths,
    /// Folders, rules or too much: everything is looked at.
    pub all: bool,
    /// HEAD, or git is at work.
    pub git: bool,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl News {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// How many things there are, at least.
    pub fn count(&self) -> usize {
        self.paths.len() + usize::from(self.all) + usize::from(self.git)
    }

    /// Takes out the files; the rest, too, if it can be seen to.
    #[must_use]
    pub fn take(&mut self, all: bool) -> Self {
        if all {
            return std::mem::take(self);
        }
        let paths = std::mem::take(&mut self.paths);
        if self.count() == 0 {
            (self.first, self.last) = (None, None);
        }
        Self { paths, ..Self::default() }
    }

    fn note(&mut self) {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// How long until it has settled.
    pub fn settles_in(&self) -> Option<Duration> {
        let due = (self.last? + SETTLE).min(self.first? + SETTLE_AT_MOST);
        Some(due.saturating_duration_since(Instant::now()))
    }
}

/// Where news comes in, from any thread.
pub struct Inbox {
    root: Root,
    news: Mutex<News>,
    folders: Mutex<Folders>,
    /// Those that went away or came anew: the system may watch what was there before.
    lost: Mutex<Folders>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Inbox {
    /// An inbox of a root; `wake` is called when there is something where there was nothing.
    pub fn new(root: Root, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { root, news: Mutex::default(), folders: Mutex::default(), lost: Mutex::default(), wake }
    }

    /// Notes something.
    pub fn tell(&self, note: impl FnOnce(&mut News)) {
        let was_empty = {
            let mut news = self.news.lock();
            let was_empty = news.is_empty();
            note(&mut news);
            if news.count() > 0 {
                news.note();
            }
            was_empty && !news.is_empty()
        };
        if was_empty {
            (self.wake)();
        }
    }

    /// How many things there are.
    pub fn count(&self) -> usize {
        self.news.lock().count()
    }

    /// How long until what there is has settled; `None` when there is nothing.
    pub fn settles_in(&self) -> Option<Duration> {
        self.news.lock().settles_in()
    }

    /// Looks at what there is, and takes out what `take` says is done with.
    pub fn look<T>(&self, take: impl FnOnce(&mut News) -> T) -> T {
        take(&mut self.news.lock())
    }

    fn take_event(&self, event: &Event) {
        if event.need_rescan() {
            return self.tell(|news| news.all = true);
        }
        if matches!(event.kind, EventKind::Access(_)) {
            return;
        }
        // What comes and goes under a name may be a folder.
        let may_be_folder = !matches!(event.kind, EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)));
        for path in &event.paths {
            self.take_path(path, may_be_folder);
        }
    }

    fn take_path(&self, path: &Path, may_be_folder: bool) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        if Some(parent) == self.root.git_dir() {
            if OF_GIT.iter().any(|own| name == *own) {
                self.tell(|news| news.git = true);
            }
            return;
        }
        let is_folder = {
            let folders = self.folders.lock();
            if !folders.contains(parent) && path != self.root.path() {
                return;
            }
            folders.contains(path)
        };
        if FILES.iter().any(|own| name == *own) || name == ".git" {
            self.tell(|news| news.all = true);
        } else if is_of_use(name) && !is_folder {
            if let Some(name) = self.root.name(path) {
                self.tell(|news| {
                    news.paths.insert(name.into());
                });
            }
        } else if may_be_folder && (is_folder || path.symlink_metadata().is_ok_and(|meta| meta.is_dir())) {
            if is_folder {
                self.lost.lock().insert(path.to_owned());
            }
            self.tell(|news| news.all = true);
        }
    }
}

/// Watches the folders of a root. On Linux each for itself: whatever is ignored would be registered first else. Elsewhere
/// one handle has everything, and what is ignored is passed over.
pub struct Watch {
    watcher: RecommendedWatcher,
    folders: Folders,
}

impl Watch {
    /// Begins to watch; `Err` says why that cannot be.
    pub fn begin(inbox: &Arc<Inbox>) -> Result<Self, String> {
        if let Some(kind) = remote(inbox.root.path()) {
            return Err(format!("the file system is {kind}, which does not tell of changes made elsewhere"));
        }
        let to = Arc::clone(inbox);
        let handler = move |event: notify::Result<Event>| match event {
            Ok(event) => to.take_event(&event),
            Err(_) => to.tell(|news| news.all = true),
        };
        let config = Config::default().with_follow_symlinks(false);
        let mut watcher = RecommendedWatcher::new(handler, config).map_err(|error| said(&error))?;
        if !cfg!(target_os = "linux") {
            watcher.watch(inbox.root.path(), RecursiveMode::Recursive).map_err(|error| said(&error))?;
        }
        if let Some(git_dir) = inbox.root.git_dir() {
            // Where it is inside, and all is watched, once is enough.
            let _ = watcher.watch(git_dir, RecursiveMode::NonRecursive);
        }
        Ok(Self { watcher, folders: Folders::new() })
    }

    /// Watches just these folders from now on; says whether any is new. `Err` says why that cannot be.
    pub fn set(&mut self, inbox: &Inbox, folders: &[PathBuf]) -> Result<bool, String> {
        if cfg!(target_os = "linux") && folders.len() > budget() {
            return Err(format!("{} folders are too many to watch", folders.len()));
        }
        for lost in inbox.lost.lock().drain().filter(|lost| self.folders.remove(lost)) {
            let _ = self.watcher.unwatch(&lost);
        }
        let now: Folders = folders.iter().cloned().collect();
        let new: Vec<_> = now.difference(&self.folders).cloned().collect();
        let gone: Vec<_> = self.folders.difference(&now).cloned().collect();
        inbox.folders.lock().clone_from(&now);
        self.folders = now;
        if cfg!(target_os = "linux") {
            for folder in &gone {
                // It may be gone for good, and its watch with it.
                let _ = self.watcher.unwatch(folder);
            }
            for folder in &new {
                match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                    // Whoever removed it will be heard of in the folder around it.
                    Ok(()) => {}
                    Err(error) if is_missing(&error) => {
                        self.folders.remove(folder);
                    }
                    Err(error) => return Err(said(&error)),
                }
            }
        }
        Ok(!new.is_empty())
    }
}

fn is_missing(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

fn said(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => "the system's limit of watches is reached".to_owned(),
        notify::ErrorKind::Io(error) => format!("the system cannot watch ({})", error.kind()),
        _ => "the system cannot watch".to_owned(),
    }
}

/// Most folders that are watched: others want some, too.
#[cfg(target_os = "linux")]
fn budget() -> usize {
    let limit = foreign::read_text(Path::new("/proc/sys/fs/inotify/max_user_watches"), Links::Refused, 64).ok();
    let limit = limit.and_then(|text| text.trim().parse::<usize>().ok());
    limit.map_or(MAX_FOLDERS, |limit| MAX_FOLDERS.min(limit / 4))
}

/// Elsewhere one watch is all that it takes.
#[cfg(not(target_os = "linux"))]
fn budget() -> usize {
    MAX_FOLDERS
}

/// The kind of a file system that other machines write to.
#[cfg(target_os = "linux")]
fn remote(path: &Path) -> Option<&'static str> {
    // `linux/magic.h`
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
fn remote(_: &Path) -> Option<&'static str> {
    None
}
