//! Waits for changes in folders. The operating system reports changes; without reports, the caller looks at the folders
//! at regular times.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use nudge_core::source::StopFlag;

/// The longest wait between two looks when the system reports changes. Looks are needed even then, because a network
/// folder reports no changes and the watcher does not follow a replaced folder.
const WHERE_TOLD: Duration = Duration::from_secs(2);
/// The longest wait between two looks when the system reports no changes.
const WHERE_NOT_TOLD: Duration = Duration::from_millis(250);

/// A set of folders whose changes end a wait.
pub struct FollowedFolders {
    stop: StopFlag,
    /// The system's watcher; `None` if the system has none.
    watcher: Option<RecommendedWatcher>,
    followed: BTreeSet<PathBuf>,
}

impl FollowedFolders {
    /// Makes an empty set. A program that reads a file does not end [`wait_for_news`](Self::wait_for_news).
    pub fn new(stop: &StopFlag) -> Self {
        let told = stop.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // The system also reports reads. A report of the caller's own read would end the next wait at once.
            if !event.is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
                told.tell_news();
            }
        });
        Self { stop: stop.clone(), watcher: watcher.ok(), followed: BTreeSet::new() }
    }

    /// Follows exactly these folders, without their subfolders, and no others. Missing folders are skipped.
    pub fn follow_folders<'a>(&mut self, folders: impl IntoIterator<Item = &'a Path>) {
        let Some(watcher) = &mut self.watcher else { return };
        let wanted: BTreeSet<_> = folders.into_iter().map(Path::to_owned).collect();
        for gone in self.followed.difference(&wanted) {
            let _ = watcher.unwatch(gone);
        }
        let is_followed =
            |path: &PathBuf| self.followed.contains(path) || watcher.watch(path, RecursiveMode::NonRecursive).is_ok();
        self.followed = wanted.into_iter().filter(is_followed).collect();
    }

    /// Waits until a folder changes, at most `at_most`, and often shorter: the caller looks at the folders after each
    /// wait. Returns true if the process must end.
    pub fn wait_for_news(&self, at_most: Duration) -> bool {
        let look = if self.watcher.is_some() { WHERE_TOLD } else { WHERE_NOT_TOLD };
        self.stop.wait_for_news(at_most.min(look))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (there, later) = (folder.path().join("there"), folder.path().join("later"));
        std::fs::create_dir(&there).unwrap();
        let mut news = FollowedFolders::new(&StopFlag::default());
        news.follow_folders([&*there, &*later]);
        assert!(news.watcher.is_none() || news.followed.contains(&there));
        assert!(!news.followed.contains(&later));
        std::fs::create_dir(&later).unwrap();
        news.follow_folders([&*later]);
        assert!(news.watcher.is_none() || news.followed.iter().eq([&later]));
        // Without a watcher, the wait ends after a fixed time.
        let blind = FollowedFolders { watcher: None, ..news };
        assert!(!blind.wait_for_news(Duration::from_mins(1)));
    }
}
