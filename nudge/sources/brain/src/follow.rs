//! Follows the files of a brain while a session runs. The index reads changes before a question comes, so the
//! question need not check every file. The files on disk decide: if the system reports no changes, or may not have
//! reported all, all files are checked.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_core::source::{DataDir, StopFlag};
use nudge_core::watch::{FolderWatch, SettleTimer, WatchNews};
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use crate::folder::{is_note, is_of_interest};

/// The pause after a look at changed files, as a multiple of the time that the look took, and its maximum. The first
/// look checks every file.
const LOOK_COST: u32 = 10;
const PAUSE_AT_MOST: Duration = Duration::from_secs(1);
/// With more changed files than this, the next look checks all files.
const MANY: usize = 64;
/// The longest wait for changes that the system has not reported yet.
const ECHO_WAIT: Duration = Duration::from_millis(20);
/// The time after which unreported changes are possible, such as a write to the file by another name (a hard link).
const LONG: Duration = Duration::from_mins(1);

/// Follows a brain's folders, if the system can.
#[derive(Default)]
pub struct FolderFollower {
    heard: Arc<SharedNews>,
    state: Mutex<FollowState>,
}

/// The changes that the system has reported.
#[derive(Default)]
struct SharedNews {
    news: Mutex<FolderNews>,
    echo: Condvar,
}

#[derive(Default)]
struct FolderNews {
    settling: SettleTimer,
    /// Paths that may be folders and were removed or replaced; the system may still watch the old folder.
    lost: Vec<PathBuf>,
    changes: FileChanges,
    /// The number of the last reported probe.
    echo: u64,
}

/// The changes since the last full look, as the system reports them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileChanges {
    /// The number of reported changes.
    count: u64,
    /// The changed files.
    pub files: BTreeSet<PathBuf>,
    /// Is true when any file may have changed.
    pub all: bool,
}

impl FileChanges {
    /// Notes a change of a file; `None` means that any file may have changed.
    fn add_change(&mut self, file: Option<&Path>) {
        self.count += 1;
        self.all |= file.is_none() || self.files.len() >= MANY;
        if self.all {
            self.files.clear();
        }
        self.files.extend(file.filter(|_| !self.all).map(Path::to_owned));
    }
}

impl FolderNews {
    fn add_change(&mut self, file: Option<&Path>) {
        self.settling.note_event();
        self.changes.add_change(file);
    }
}

#[derive(Default)]
enum FollowState {
    /// Following has not begun, or no session runs.
    #[default]
    Not,
    /// The system reports changes in `folders` folders.
    Told { watch: FolderWatch, echo: Option<EchoProbe>, folders: usize, next: Instant, stop: StopFlag },
    /// The system cannot report changes, for this reason.
    Untold(String),
}

/// Finds out whether the system has reported all events up to now. The probe makes a file in its own folder; when the
/// system reports this file, it has reported all earlier events, because Linux reports the events of all folders in
/// their order.
struct EchoProbe {
    folder: PathBuf,
    name: String,
    count: u64,
}

impl EchoProbe {
    /// Makes a probe and its folder; returns `None` when the folder cannot be made or the system is not Linux.
    fn new(folder: &DataDir) -> Option<Self> {
        let folder = folder.create_folder().ok().filter(|_| cfg!(target_os = "linux"))?;
        Some(Self { folder, name: format!("{}-", Uuid::now_v7().simple()), count: 0 })
    }

    /// Makes and removes a file, so that the system reports it. Returns the file's number.
    fn call(&mut self) -> io::Result<u64> {
        self.count += 1;
        let file = self.folder.join(format!("{}{}", self.name, self.count));
        File::create_new(&file)?;
        fs::remove_file(&file)?;
        Ok(self.count)
    }

    /// Returns the number of the probe's file at this path; `None` for any other path.
    fn parse_number(folder: &Path, name: &str, path: &Path) -> Option<u64> {
        let file = path.strip_prefix(folder).ok()?.to_str()?;
        file.strip_prefix(name)?.parse().ok()
    }
}

impl FolderFollower {
    /// Begins to follow a folder, unless it is followed already. `stop` is notified of changes; `own` is a folder for
    /// the probes.
    pub fn begin(&self, root: &Path, own: &DataDir, stop: &StopFlag) {
        let mut state = self.state.lock();
        if !matches!(*state, FollowState::Not) {
            return;
        }
        let mut echo = EchoProbe::new(own);
        let called = echo.as_ref().map(|echo| (echo.folder.clone(), echo.name.clone()));
        let (heard, wake, below) = (Arc::clone(&self.heard), stop.clone(), root.to_owned());
        let begun = FolderWatch::begin(root, move |told| {
            // This thread must not lock the state: the holder of that lock waits for this thread.
            let (file, lost) = match told {
                WatchNews::Path { path, may_be_folder } if is_of_interest(&below, path, may_be_folder) => {
                    let lost = may_be_folder && !path.is_file();
                    (Some(path).filter(|path| !lost && is_note(path)), Some(path).filter(|_| lost))
                }
                WatchNews::Path { path, .. } => {
                    if let Some(echo) =
                        called.as_ref().and_then(|(folder, name)| EchoProbe::parse_number(folder, name, path))
                    {
                        heard.news.lock().echo = echo;
                        heard.echo.notify_all();
                    }
                    return;
                }
                WatchNews::Anything => (None, None),
            };
            let mut news = heard.news.lock();
            news.add_change(file);
            news.lost.extend(lost.map(Path::to_owned));
            wake.tell_news();
        });
        *state = match begun {
            Ok(mut watch) => {
                echo = echo.filter(|echo| watch.add_folder(&echo.folder));
                // A running look does not see changes from now on, so another look at all files is needed.
                self.heard.news.lock().changes.add_change(None);
                FollowState::Told { watch, echo, folders: 0, next: Instant::now(), stop: stop.clone() }
            }
            Err(why) => FollowState::Untold(why),
        };
    }

    /// Follows exactly these folders. If one is new, the next look checks all files, because files may have appeared
    /// in it before.
    pub fn set_folders(&self, folders: Vec<PathBuf>) {
        let mut state = self.state.lock();
        let FollowState::Told { watch, folders: count, stop, .. } = &mut *state else { return };
        *count = folders.len();
        let lost = std::mem::take(&mut self.heard.news.lock().lost);
        for folder in &lost {
            watch.forget(folder);
        }
        match watch.set_folders(folders.into_iter().collect()) {
            Ok(true) => {
                self.heard.news.lock().add_change(None);
                stop.tell_news();
            }
            Ok(false) => {}
            Err(why) => *state = FollowState::Untold(why),
        }
    }

    /// Returns the time until the next look at changes; `None` without changes.
    pub fn time_until_look(&self) -> Option<Duration> {
        let rest = self.heard.news.lock().settling.time_left()?;
        match &*self.state.lock() {
            FollowState::Told { next, .. } => Some(rest.max(next.saturating_duration_since(Instant::now()))),
            _ => None,
        }
    }

    /// Runs a look. Changes that were reported before need no further look; changes during the look cause another
    /// one.
    pub fn run_look<T>(&self, look: impl FnOnce() -> T) -> T {
        self.heard.news.lock().settling = SettleTimer::default();
        let begun = Instant::now();
        let seen = look();
        if let FollowState::Told { next, .. } = &mut *self.state.lock() {
            *next = Instant::now() + pause_after(begun.elapsed());
        }
        seen
    }

    /// Returns the changes that were reported so far.
    pub fn changes(&self) -> FileChanges {
        self.heard.news.lock().changes.clone()
    }

    /// Marks these changes as seen. If more were reported since, all stay unseen.
    pub fn mark_seen(&self, changes: &FileChanges) {
        let mut news = self.heard.news.lock();
        if news.changes.count == changes.count {
            news.changes = FileChanges { count: changes.count, ..FileChanges::default() };
        }
    }

    /// Waits until the system has reported everything up to now, and returns all changes since the last full look.
    /// Returns `None` when the system cannot confirm that, or takes too long.
    pub fn wait_for_changes(&self) -> Option<FileChanges> {
        let called = match &mut *self.state.lock() {
            FollowState::Told { echo: Some(echo), .. } => echo.call().ok()?,
            _ => return None,
        };
        let until = Instant::now() + ECHO_WAIT;
        let mut news = self.heard.news.lock();
        while news.echo < called {
            if self.heard.echo.wait_until(&mut news, until).timed_out() {
                return None;
            }
        }
        Some(news.changes.clone())
    }

    /// Returns true when the last look after a change was long ago.
    pub fn is_long_ago(&self) -> bool {
        matches!(&*self.state.lock(), FollowState::Told { next, .. } if next.elapsed() > LONG)
    }

    /// Describes for people how the files are followed.
    pub fn describe(&self) -> String {
        match &*self.state.lock() {
            FollowState::Not => "before each question".to_owned(),
            FollowState::Told { folders, .. } => format!("as they change, in {folders} folders"),
            FollowState::Untold(why) => format!("before each question: {why}"),
        }
    }
}

/// Returns the pause after a look that took `cost`.
fn pause_after(cost: Duration) -> Duration {
    (cost * LOOK_COST).min(PAUSE_AT_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_read_everything_holds_up_no_later_one() {
        assert_eq!(pause_after(Duration::from_millis(20)), Duration::from_millis(200));
        assert_eq!(pause_after(Duration::from_secs(13)), PAUSE_AT_MOST);
    }
}
