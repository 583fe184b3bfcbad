//! Runs the background work of a source.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::Result;

/// The pause after a round of a [`SourceWorker`] that finished its work.
const WHEN_DONE: Duration = Duration::from_mins(10);
/// The pause after a round that could not finish its work.
const WHEN_NOT: Duration = Duration::from_mins(1);
/// The longest time for which a caller runs rounds itself when there is no worker.
const STANDING_IN: Duration = Duration::from_secs(1);

/// The nice value of a background thread; other threads run first.
#[cfg(any(target_os = "linux", target_os = "android"))]
const NICE: i32 = 10;

thread_local! {
    static IS_BEHIND: Cell<bool> = const { Cell::new(false) };
}

/// Lowers the priority of this thread and of threads that it starts from now on, for the processor and for the disk
/// (Linux derives both from the same number). On systems where this would change the whole process, the priority stays.
pub fn give_way() {
    IS_BEHIND.set(true);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        // This fails if the parent has set a higher nice value; the thread then already gives way.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
    }
}

/// Returns true when this thread [gives way](give_way). A thread to which it passes work must give way too.
pub fn gives_way() -> bool {
    IS_BEHIND.get()
}

/// A flag that is set once, when a source must end its work. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<(Mutex<StopState>, Condvar)>);

#[derive(Debug, Default)]
struct StopState {
    is_set: bool,
    has_news: bool,
}

impl StopFlag {
    /// Sets the flag, which ends the work of all its watchers.
    pub fn set(&self) {
        self.0.0.lock().is_set = true;
        self.0.1.notify_all();
    }

    /// Returns true when the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.0.lock().is_set
    }

    /// Waits at most `at_most` until the flag is set. Returns true when it is set.
    pub fn wait(&self, at_most: Duration) -> bool {
        self.wait_until(at_most, |stop| stop.is_set).is_set
    }

    /// Ends one [`wait_for_news`](Self::wait_for_news). If no thread waits, the next wait ends at once.
    pub fn tell_news(&self) {
        self.0.0.lock().has_news = true;
        self.0.1.notify_all();
    }

    /// Waits at most `at_most` until there is news or the flag is set. Returns true when the flag is set.
    pub fn wait_for_news(&self, at_most: Duration) -> bool {
        let mut stop = self.wait_until(at_most, |stop| stop.is_set || stop.has_news);
        stop.has_news = false;
        stop.is_set
    }

    fn wait_until(&self, at_most: Duration, is_over: impl Fn(&StopState) -> bool) -> MutexGuard<'_, StopState> {
        let mut stop = self.0.0.lock();
        self.0.1.wait_while_for(&mut stop, |stop| !is_over(stop), at_most);
        stop
    }
}

/// Does the work of a source in rounds. A round starts at once when there is news, and after a pause otherwise.
#[derive(Debug, Default)]
pub struct SourceWorker(OnceLock<StopFlag>);

impl SourceWorker {
    /// Starts the next round at once, if there is a worker.
    pub fn wake(&self) {
        if let Some(stop) = self.0.get() {
            stop.tell_news();
        }
    }

    /// Returns true if there is a worker. A session has one; a process without a session has none.
    pub fn is_running(&self) -> bool {
        self.0.get().is_some()
    }

    /// Runs rounds for at most a second if there is no worker: in a process without a session, the caller waits for the
    /// result. A round returns true when its work is finished.
    ///
    /// # Errors
    /// The error of a round, after which no further round runs.
    pub fn stand_in(&self, round: impl Fn() -> Result<bool>) -> Result<()> {
        let until = Instant::now() + STANDING_IN;
        while self.0.get().is_none() && Instant::now() < until && !round()? {}
        Ok(())
    }

    /// Runs rounds until the flag is set, and [gives way](give_way) to other threads. A round returns true when its
    /// work is finished. A failed round runs again after a pause.
    pub fn run(&self, stop: &StopFlag, round: impl Fn() -> Result<bool>) {
        let _ = self.0.set(stop.clone());
        give_way();
        loop {
            let wait = if round().unwrap_or(false) { WHEN_DONE } else { WHEN_NOT };
            if stop.wait_for_news(wait) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn who_waits_for_the_end_hears_of_it() {
        let stop = StopFlag::default();
        assert!(!stop.wait(Duration::ZERO) && !stop.is_set());
        let waiting = stop.clone();
        let waits = std::thread::spawn(move || waiting.wait(Duration::from_mins(1)));
        stop.set();
        assert!(waits.join().unwrap() && stop.is_set());
    }

    #[test]
    fn news_ends_one_wait() {
        let stop = StopFlag::default();
        stop.tell_news();
        assert!(!stop.wait_for_news(Duration::from_mins(1)), "news from before");
        assert!(!stop.wait_for_news(Duration::ZERO), "it was taken");
        let waiting = stop.clone();
        let waits = std::thread::spawn(move || waiting.wait_for_news(Duration::from_mins(1)));
        stop.tell_news();
        assert!(!waits.join().unwrap());
        stop.set();
        assert!(stop.wait_for_news(Duration::from_mins(1)));
    }

    #[test]
    fn a_worker_that_is_woken_goes_round_again() {
        let (worker, stop) = (SourceWorker::default(), StopFlag::default());
        let (done, rounds) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                worker.run(&stop, || {
                    done.send(()).unwrap();
                    Ok(true)
                });
            });
            for _ in 0..3 {
                rounds.recv_timeout(Duration::from_secs(30)).unwrap();
                worker.wake();
            }
            stop.set();
        });
        let rounds = Cell::new(0);
        let round = || Ok(rounds.replace(rounds.get() + 1) == 2);
        worker.stand_in(round).unwrap();
        assert_eq!(rounds.get(), 0, "there is a worker for it");
        SourceWorker::default().stand_in(round).unwrap();
        assert_eq!(rounds.get(), 3);
    }
}
