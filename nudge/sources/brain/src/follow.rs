//! Following the files of a brain while a session runs: what changes is read before anybody asks. A look at every file
//! before each question stays the truth.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_core::source::StopFlag;
use nudge_core::watch::{FolderWatch, Settling, Told};
use parking_lot::Mutex;

use crate::folder::is_of_interest;

/// Between two looks because something has changed: as a multiple of what one costs, and at most. The first one reads
/// everything.
const LOOK_COST: u32 = 10;
const PAUSE_AT_MOST: Duration = Duration::from_secs(1);

/// Who follows a brain, if anybody.
#[derive(Default)]
pub struct Follow {
    news: Arc<Mutex<News>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct News {
    settling: Settling,
    /// What may be a folder and went away or came anew: the system may watch what was there before.
    lost: Vec<PathBuf>,
}

#[derive(Default)]
enum State {
    /// No session runs, or it has not begun.
    #[default]
    Not,
    /// The system tells of so many folders.
    Told { watch: FolderWatch, folders: usize, next: Instant, stop: StopFlag },
    /// It cannot, for this reason.
    Untold(String),
}

impl Follow {
    /// Begins to follow a folder, unless that was done. `stop` is told of news.
    pub fn begin(&self, root: &Path, stop: &StopFlag) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Not) {
            return;
        }
        let (news, wake, below) = (Arc::clone(&self.news), stop.clone(), root.to_owned());
        let begun = FolderWatch::begin(root, move |told| {
            let lost = match told {
                Told::Path { path, may_be_folder } if is_of_interest(&below, path, may_be_folder) => {
                    (may_be_folder && !path.is_file()).then(|| path.to_owned())
                }
                Told::Path { .. } => return,
                Told::Anything => None,
            };
            // Never the state: whoever holds that waits for this thread.
            let mut news = news.lock();
            news.settling.note();
            news.lost.extend(lost);
            wake.tell_news();
        });
        *state = match begun {
            Ok(watch) => State::Told { watch, folders: 0, next: Instant::now(), stop: stop.clone() },
            Err(why) => State::Untold(why),
        };
    }

    /// Follows what happens in just these folders. What comes into a new one before that is seen by the next look.
    pub fn set(&self, folders: Vec<PathBuf>) {
        let mut state = self.state.lock();
        let State::Told { watch, folders: count, stop, .. } = &mut *state else { return };
        *count = folders.len();
        let lost = std::mem::take(&mut self.news.lock().lost);
        for folder in &lost {
            watch.forget(folder);
        }
        match watch.set(folders.into_iter().collect()) {
            Ok(true) => {
                self.news.lock().settling.note();
                stop.tell_news();
            }
            Ok(false) => {}
            Err(why) => *state = State::Untold(why),
        }
    }

    /// How long until it is time to look at what has changed; `None` when nothing has.
    pub fn rest(&self) -> Option<Duration> {
        let rest = self.news.lock().settling.rest()?;
        match &*self.state.lock() {
            State::Told { next, .. } => Some(rest.max(next.saturating_duration_since(Instant::now()))),
            _ => None,
        }
    }

    /// Looks, which is over with all news that came before.
    pub fn look<T>(&self, look: impl FnOnce() -> T) -> T {
        self.news.lock().settling = Settling::default();
        let begun = Instant::now();
        let seen = look();
        if let State::Told { next, .. } = &mut *self.state.lock() {
            *next = Instant::now() + pause(begun.elapsed());
        }
        seen
    }

    /// How it is followed, for people.
    pub fn told(&self) -> String {
        match &*self.state.lock() {
            State::Not => "before each question".to_owned(),
            State::Told { folders, .. } => format!("as they change, in {folders} folders"),
            State::Untold(why) => format!("before each question: {why}"),
        }
    }
}

/// How long to wait after a look that cost so much.
fn pause(cost: Duration) -> Duration {
    (cost * LOOK_COST).min(PAUSE_AT_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_read_everything_holds_up_no_later_one() {
        assert_eq!(pause(Duration::from_millis(20)), Duration::from_millis(200));
        assert_eq!(pause(Duration::from_secs(13)), PAUSE_AT_MOST);
    }
}
