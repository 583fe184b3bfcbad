//! Collects the changes of a root's files that the operating system reports.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nudge_core::watch::{FolderWatch, SettleTimer, WatchNews};
use parking_lot::Mutex;

use crate::live::state::Paths;
use crate::root::ProjectRoot;
use crate::rules::FILES;
use crate::walk::is_of_use;

/// The files in the git folder that change when HEAD moves.
const OF_GIT: [&str; 3] = ["HEAD", "index", "index.lock"];

type Folders = HashSet<PathBuf>;

/// The way in which the server notices changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WatchMode {
    /// There is no watch yet.
    #[default]
    Starting,
    /// The system reports changes in this many folders.
    Watch(usize),
    /// The worker walks over all files from time to time, because the system cannot report changes. The text is the
    /// reason.
    Poll(String),
    /// The process walks once, to answer one call.
    Once,
}

/// The changes since the worker last took them.
#[derive(Debug, Default)]
pub struct RootNews {
    /// Changed files.
    pub paths: Paths,
    /// Is true when the worker must walk over all files: folders or rules changed, or there were too many changes.
    pub all: bool,
    /// Is true when HEAD may have moved, or git may be changing files.
    pub git: bool,
    /// Is true when a caller waits for a walk.
    pub now: bool,
    settling: SettleTimer,
}

impl RootNews {
    /// Returns true if there are no changes.
    pub fn is_empty(&self) -> bool {
        self.settling.is_empty()
    }

    /// Returns a lower bound of the number of changes.
    pub fn count(&self) -> usize {
        self.paths.len() + usize::from(self.all) + usize::from(self.git)
    }

    /// Removes and returns the changed files. With `all`, removes and returns the other news too.
    #[must_use]
    pub fn drain_news(&mut self, all: bool) -> Self {
        if all {
            return std::mem::take(self);
        }
        let paths = std::mem::take(&mut self.paths);
        if self.count() == 0 {
            self.settling = SettleTimer::default();
        }
        Self { paths, ..Self::default() }
    }
}

/// Receives news of changes from any thread.
pub struct NewsInbox {
    root: ProjectRoot,
    news: Mutex<RootNews>,
    folders: Mutex<Folders>,
    /// The folders that were removed or made again. The system may still watch the removed folder.
    lost: Mutex<Folders>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl NewsInbox {
    /// Makes the inbox of a root. The inbox calls `wake` when news arrives and the inbox was empty.
    pub fn new(root: ProjectRoot, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { root, news: Mutex::default(), folders: Mutex::default(), lost: Mutex::default(), wake }
    }

    /// Adds news with the function `note`.
    pub fn add_news(&self, note: impl FnOnce(&mut RootNews)) {
        let was_empty = {
            let mut news = self.news.lock();
            let was_empty = news.is_empty();
            note(&mut news);
            if news.count() > 0 {
                news.settling.note_event();
            }
            was_empty && !news.is_empty()
        };
        if was_empty {
            (self.wake)();
        }
    }

    /// Returns a lower bound of the number of changes.
    pub fn count(&self) -> usize {
        self.news.lock().count()
    }

    /// Returns the time that is left until the news counts as settled: no change came for a while. Returns `None`
    /// without news.
    pub fn settles_in(&self) -> Option<Duration> {
        self.news.lock().settling.time_left()
    }

    /// Calls `take` with the news. `take` may remove some of them.
    pub fn inspect_news<T>(&self, take: impl FnOnce(&mut RootNews) -> T) -> T {
        take(&mut self.news.lock())
    }

    fn take_path(&self, path: &Path, may_be_folder: bool) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        if Some(parent) == self.root.git_dir() {
            if OF_GIT.iter().any(|own| name == *own) {
                self.add_news(|news| news.git = true);
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
            self.add_news(|news| news.all = true);
        } else if is_of_use(name) && !is_folder {
            if let Some(name) = self.root.name(path) {
                self.add_news(|news| {
                    news.paths.insert(name.into());
                });
            }
        } else if may_be_folder && (is_folder || path.symlink_metadata().is_ok_and(|meta| meta.is_dir())) {
            if is_folder {
                self.lost.lock().insert(path.to_owned());
            }
            self.add_news(|news| news.all = true);
        }
    }
}

/// Watches the folders of a root.
pub struct RootWatch(FolderWatch);

impl RootWatch {
    /// Begins to watch the root's folder. The error says why the system cannot watch it.
    pub fn begin(inbox: &Arc<NewsInbox>) -> Result<Self, String> {
        let to = Arc::clone(inbox);
        let mut watch = FolderWatch::begin(inbox.root.path(), move |told| match told {
            WatchNews::Path { path, may_be_folder } => to.take_path(path, may_be_folder),
            WatchNews::Anything => to.add_news(|news| news.all = true),
        })?;
        if let Some(git_dir) = inbox.root.git_dir() {
            watch.add_folder(git_dir);
        }
        Ok(Self(watch))
    }

    /// Watches exactly these folders from now on. Returns true if one of them was not watched before. The error says
    /// why the system cannot watch them.
    pub fn set_folders(&mut self, inbox: &NewsInbox, folders: &[PathBuf]) -> Result<bool, String> {
        inbox.lost.lock().drain().for_each(|lost| self.0.forget(&lost));
        let now: Folders = folders.iter().cloned().collect();
        inbox.folders.lock().clone_from(&now);
        self.0.set_folders(now)
    }
}
