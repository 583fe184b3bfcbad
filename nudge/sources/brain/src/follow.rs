//! Follows the files of a brain while a session runs: changes are read before a question comes, so the question need
//! not look at every file. The files on disk stay the truth: if the system reports no changes, or may have more to
//! report, all files are looked at.

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

/// The pause between two looks after a change: a multiple of a look's cost, and at most this long. The first look reads
/// everything.
const LOOK_COST: u32 = 10;
const PAUSE_AT_MOST: Duration = Duration::from_secs(1);
/// More changed files than these, and all are looked at.
const MANY: usize = 64;
/// The longest wait for changes that the system has still to report.
const ECHO_WAIT: Duration = Duration::from_millis(20);
/// After this time there may be changes that the system does not tell of, such as those by another name of a file.
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
    /// Paths that may be folders and went away or came anew: the system may still watch the old folder.
    lost: Vec<PathBuf>,
    changes: FileChanges,
    /// The last echo.
    echo: u64,
}

/// The changes since the last full look, as the system reports them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileChanges {
    /// How often it told of something.
    count: u64,
    /// Files.
    pub files: BTreeSet<PathBuf>,
    /// Anything may have changed.
    pub all: bool,
}

impl FileChanges {
    /// Notes a change of a file, or of anything.
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
    /// No session runs, or it has not begun.
    #[default]
    Not,
    /// The system tells of so many folders.
    Told { watch: FolderWatch, echo: Option<EchoProbe>, folders: usize, next: Instant, stop: StopFlag },
    /// It cannot, for this reason.
    Untold(String),
}

/// Finds out that the system has reported everything so far, by a file in a folder of ours. Linux reports the events of
/// all folders in the order in which they happen.
struct EchoProbe {
    folder: PathBuf,
    name: String,
    count: u64,
}

impl EchoProbe {
    /// Makes a probe and its folder; `None` when that is not possible.
    fn new(folder: &DataDir) -> Option<Self> {
        let folder = folder.create_folder().ok().filter(|_| cfg!(target_os = "linux"))?;
        Some(Self { folder, name: format!("{}-", Uuid::now_v7().simple()), count: 0 })
    }

    /// Has the system tell of something; the number of it.
    fn call(&mut self) -> io::Result<u64> {
        self.count += 1;
        let file = self.folder.join(format!("{}{}", self.name, self.count));
        File::create_new(&file)?;
        fs::remove_file(&file)?;
        Ok(self.count)
    }

    /// The number of the one that was told of, if it is one.
    fn parse_number(folder: &Path, name: &str, path: &Path) -> Option<u64> {
        let file = path.strip_prefix(folder).ok()?.to_str()?;
        file.strip_prefix(name)?.parse().ok()
    }
}

impl FolderFollower {
    /// Begins to follow a folder, unless that was done. `stop` is told of news; `own` is a folder for this alone.
    pub fn begin(&self, root: &Path, own: &DataDir, stop: &StopFlag) {
        let mut state = self.state.lock();
        if !matches!(*state, FollowState::Not) {
            return;
        }
        let mut echo = EchoProbe::new(own);
        let called = echo.as_ref().map(|echo| (echo.folder.clone(), echo.name.clone()));
        let (heard, wake, below) = (Arc::clone(&self.heard), stop.clone(), root.to_owned());
        let begun = FolderWatch::begin(root, move |told| {
            // Never locks the state: its holder waits for this thread.
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
                // A look that has begun already knows of nothing that is heard from now on.
                self.heard.news.lock().changes.add_change(None);
                FollowState::Told { watch, echo, folders: 0, next: Instant::now(), stop: stop.clone() }
            }
            Err(why) => FollowState::Untold(why),
        };
    }

    /// Follows just these folders. The next look finds files that came into a new folder before that.
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

    /// Returns the time until the next look at changes; `None` when there are none.
    pub fn time_until_look(&self) -> Option<Duration> {
        let rest = self.heard.news.lock().settling.time_left()?;
        match &*self.state.lock() {
            FollowState::Told { next, .. } => Some(rest.max(next.saturating_duration_since(Instant::now()))),
            _ => None,
        }
    }

    /// Looks, which is over with all news that came before.
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

    /// Notes that these changes were seen; later changes were not.
    pub fn mark_seen(&self, changes: &FileChanges) {
        let mut news = self.heard.news.lock();
        if news.changes.count == changes.count {
            news.changes = FileChanges { count: changes.count, ..FileChanges::default() };
        }
    }

    /// Returns all changes since the last full look, with all that the system has to report until now. `None` when it
    /// does not report everything, or takes too long.
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

    /// Returns true when the last look after a change is long ago.
    pub fn is_long_ago(&self) -> bool {
        matches!(&*self.state.lock(), FollowState::Told { next, .. } if next.elapsed() > LONG)
    }

    /// How it is followed, for people.
    pub fn describe(&self) -> String {
        match &*self.state.lock() {
            FollowState::Not => "before each question".to_owned(),
            FollowState::Told { folders, .. } => format!("as they change, in {folders} folders"),
            FollowState::Untold(why) => format!("before each question: {why}"),
        }
    }
}

/// How long to wait after a look that cost so much.
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
