//! Follows the changes of a brain's files while a session runs. The index reads the changes before the next question,
//! so a question need not check every file. The files on disk decide: if the system may not have reported every change,
//! the index checks all files.

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

/// The pause after a look at changed files is this many times as long as the look took, but at most `PAUSE_AT_MOST`.
/// The first look checks every file.
const LOOK_COST: u32 = 10;
const PAUSE_AT_MOST: Duration = Duration::from_secs(1);
/// If more files than this have changed, the next look checks all files.
const MANY: usize = 64;
/// The longest time that a question waits for the system to report earlier changes.
const ECHO_WAIT: Duration = Duration::from_millis(20);
/// After this time without a look, there may be changes that the system does not report, such as a write through
/// another name of the file (a hard link).
const LONG: Duration = Duration::from_mins(1);

/// Follows the folders of one brain, if the system can report changes.
#[derive(Default)]
pub struct FolderFollower {
    heard: Arc<SharedNews>,
    state: Mutex<FollowState>,
}

/// The changes that the system has reported. The system's thread and the questions share them.
#[derive(Default)]
struct SharedNews {
    news: Mutex<FolderNews>,
    echo: Condvar,
}

#[derive(Default)]
struct FolderNews {
    settling: SettleTimer,
    /// The removed or replaced paths that may be folders. The system may still watch the old folder.
    lost: Vec<PathBuf>,
    changes: FileChanges,
    /// The number of the last probe that the system has reported.
    echo: u64,
}

/// The changes that the system has reported since the index last checked all files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileChanges {
    /// The number of all changes reported so far.
    count: u64,
    /// The changed files.
    pub files: BTreeSet<PathBuf>,
    /// Is true when any file may have changed.
    pub all: bool,
}

impl FileChanges {
    /// Adds a change of a file. `None` means that any file may have changed.
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
    /// The files are not followed yet, or no session runs.
    #[default]
    Not,
    /// The system reports changes in `folders` folders.
    Told { watch: FolderWatch, echo: Option<EchoProbe>, folders: usize, next: Instant, stop: StopFlag },
    /// The system cannot report changes. The text is the reason.
    Untold(String),
}

/// Finds out whether the system has reported all earlier changes. The probe makes a file in its own folder. Linux
/// reports the changes of all folders in their order, so when the probe's file is reported, all earlier changes have
/// been reported.
struct EchoProbe {
    folder: PathBuf,
    name: String,
    count: u64,
}

impl EchoProbe {
    /// Makes a probe and its folder. Returns `None` when the folder cannot be made, or when the system is not Linux.
    fn new(folder: &DataDir) -> Option<Self> {
        let folder = folder.create_folder().ok().filter(|_| cfg!(target_os = "linux"))?;
        Some(Self { folder, name: format!("{}-", Uuid::now_v7().simple()), count: 0 })
    }

    /// Makes a file and removes it, so that the system reports it. Returns the number of this file.
    fn call(&mut self) -> io::Result<u64> {
        self.count += 1;
        let file = self.folder.join(format!("{}{}", self.name, self.count));
        File::create_new(&file)?;
        fs::remove_file(&file)?;
        Ok(self.count)
    }

    /// Returns the number of the probe's file that this path names; `None` for any other path.
    fn parse_number(folder: &Path, name: &str, path: &Path) -> Option<u64> {
        let file = path.strip_prefix(folder).ok()?.to_str()?;
        file.strip_prefix(name)?.parse().ok()
    }
}

impl FolderFollower {
    /// Begins to follow a folder, if that has not begun yet. A change wakes the thread that waits on `stop`. The folder
    /// `own` holds the files of the probe.
    pub fn begin(&self, root: &Path, own: &DataDir, stop: &StopFlag) {
        let mut state = self.state.lock();
        if !matches!(*state, FollowState::Not) {
            return;
        }
        let mut echo = EchoProbe::new(own);
        let called = echo.as_ref().map(|echo| (echo.folder.clone(), echo.name.clone()));
        let (heard, wake, below) = (Arc::clone(&self.heard), stop.clone(), root.to_owned());
        let begun = FolderWatch::begin(root, move |told| {
            // This thread must not lock the state: another thread may hold that lock and wait for this thread.
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
                // A look that is running now does not see later changes. So another look at all files is needed.
                self.heard.news.lock().changes.add_change(None);
                FollowState::Told { watch, echo, folders: 0, next: Instant::now(), stop: stop.clone() }
            }
            Err(why) => FollowState::Untold(why),
        };
    }

    /// Follows exactly these folders. If a folder is new, the next look checks all files, because files may have
    /// appeared in the folder before it was followed.
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

    /// Returns the time until the next look; `None` when no file has changed.
    pub fn time_until_look(&self) -> Option<Duration> {
        let rest = self.heard.news.lock().settling.time_left()?;
        match &*self.state.lock() {
            FollowState::Told { next, .. } => Some(rest.max(next.saturating_duration_since(Instant::now()))),
            _ => None,
        }
    }

    /// Runs a look. Changes that were reported before the look need no other look. Changes during the look cause
    /// another one.
    pub fn run_look<T>(&self, look: impl FnOnce() -> T) -> T {
        self.heard.news.lock().settling = SettleTimer::default();
        let begun = Instant::now();
        let seen = look();
        if let FollowState::Told { next, .. } = &mut *self.state.lock() {
            *next = Instant::now() + pause_after(begun.elapsed());
        }
        seen
    }

    /// Returns the changes that the system has reported so far.
    pub fn changes(&self) -> FileChanges {
        self.heard.news.lock().changes.clone()
    }

    /// Marks these changes as read by the index. If other changes were reported in the meantime, all changes stay
    /// unread.
    pub fn mark_seen(&self, changes: &FileChanges) {
        let mut news = self.heard.news.lock();
        if news.changes.count == changes.count {
            news.changes = FileChanges { count: changes.count, ..FileChanges::default() };
        }
    }

    /// Waits until the system has reported all earlier changes, and returns the changes since the index last checked
    /// all files. Returns `None` when the system cannot confirm this, or takes too long.
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

    /// Returns true when the last look was so long ago that unreported changes are possible.
    pub fn is_long_ago(&self) -> bool {
        matches!(&*self.state.lock(), FollowState::Told { next, .. } if next.elapsed() > LONG)
    }

    /// Describes in words when changed files are read, for people.
    pub fn describe(&self) -> String {
        match &*self.state.lock() {
            FollowState::Not => "before each question".to_owned(),
            FollowState::Told { folders, .. } => format!("as they change, in {folders} folders"),
            FollowState::Untold(why) => format!("before each question: {why}"),
        }
    }
}

/// Returns the pause after a look that took the time `cost`.
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
