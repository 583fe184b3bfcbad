//! The work of a source in the background.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::Result;

/// Between two rounds of a [`SourceWorker`] when there is nothing left to do, and when something was in the way.
const WHEN_DONE: Duration = Duration::from_mins(10);
const WHEN_NOT: Duration = Duration::from_mins(1);
/// How long a caller goes round where there is no worker.
const STANDING_IN: Duration = Duration::from_secs(1);

/// How far a thread that gives way stands back.
#[cfg(any(target_os = "linux", target_os = "android"))]
const NICE: i32 = 10;

thread_local! {
    static IS_BEHIND: Cell<bool> = const { Cell::new(false) };
}

/// Lets everybody else go before this thread, at the disk too, which goes by the same number, and before the threads that
/// it starts from now on. A system on which that would be about the whole process is left alone.
pub fn give_way() {
    IS_BEHIND.set(true);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        // The parent may have set a higher value.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
    }
}

/// Returns true when this thread [gives way](give_way). Threads that it hands work to must do likewise.
pub fn gives_way() -> bool {
    IS_BEHIND.get()
}

/// Set once, when a source is to end its work. Clones are the same flag.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<(Mutex<StopState>, Condvar)>);

#[derive(Debug, Default)]
struct StopState {
    is_set: bool,
    has_news: bool,
}

impl StopFlag {
    /// Ends the work of all who watch this flag.
    pub fn set(&self) {
        self.0.0.lock().is_set = true;
        self.0.1.notify_all();
    }

    /// Returns true when it is set.
    pub fn is_set(&self) -> bool {
        self.0.0.lock().is_set
    }

    /// Waits until it is set, at most so long; whether it is.
    pub fn wait(&self, at_most: Duration) -> bool {
        self.wait_until(at_most, |stop| stop.is_set).is_set
    }

    /// Ends one [`wait_for_news`](Self::wait_for_news), the next one if no thread waits.
    pub fn tell_news(&self) {
        self.0.0.lock().has_news = true;
        self.0.1.notify_all();
    }

    /// Waits until there is news or it is set, at most so long; whether it is set.
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

/// Does the work of a source round by round: when there is news, else now and then.
#[derive(Debug, Default)]
pub struct SourceWorker(OnceLock<StopFlag>);

impl SourceWorker {
    /// Begins the next round at once, where there is a worker.
    pub fn wake(&self) {
        if let Some(stop) = self.0.get() {
            stop.tell_news();
        }
    }

    /// Returns true if there is a worker, which there is in a session.
    pub fn is_running(&self) -> bool {
        self.0.get().is_some()
    }

    /// Runs rounds for a second when there is no worker, as in a process alone, where the caller waits for the result.
    /// A round returns true when all is done.
    ///
    /// # Errors
    /// The error of a round; then no further round runs.
    pub fn stand_in(&self, round: impl Fn() -> Result<bool>) -> Result<()> {
        let until = Instant::now() + STANDING_IN;
        while self.0.get().is_none() && Instant::now() < until && !round()? {}
        Ok(())
    }

    /// Works until the flag is set, and [gives way](give_way) to others. A round returns whether all is done; one that fails is tried again.
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
