//! Limits the time of a call, and tells the call's work whether the caller still waits.
//!
//! A server runs a call that may take long under a [`CallLimit`]. Long work checks the limit with [`is_over`] or
//! [`check_limit`], anywhere on the thread of the call, and ends when the caller has stopped waiting. A call that
//! continues on another thread passes its limit to that thread: [`CallLimit::current`], then [`CallLimit::run`].
//! [`ThreadSlots`] does so for work that may hang, such as a read from a network disk.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// The most threads that one kind of work may have at the same time.
pub const MAX_THREADS: usize = 4;

thread_local! {
    static CURRENT: RefCell<Option<CallLimit>> = const { RefCell::new(None) };
}

/// The time until which a caller waits for its call. All clones share one flag: `give_up` on one of them ends the work
/// of all.
#[derive(Debug, Clone)]
pub struct CallLimit {
    until: Instant,
    is_given_up: Arc<AtomicBool>,
}

impl CallLimit {
    /// Makes a limit that ends after `time`.
    pub fn from_now(time: Duration) -> Self {
        Self::until(Instant::now() + time)
    }

    /// Makes a limit that ends at `end`.
    pub fn until(end: Instant) -> Self {
        Self { until: end, is_given_up: Arc::default() }
    }

    /// Returns the limit of the call for which this thread works, if there is one.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Returns the limit of the same call with an earlier end.
    #[must_use]
    pub fn with_end(&self, end: Instant) -> Self {
        Self { until: self.until.min(end), is_given_up: Arc::clone(&self.is_given_up) }
    }

    /// Returns the end.
    pub fn end(&self) -> Instant {
        self.until
    }

    /// Notes that the caller has stopped waiting.
    pub fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }

    /// Returns true once the caller has stopped waiting, or the time is over.
    pub fn is_over(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed) || Instant::now() >= self.until
    }

    /// Runs work of the call on this thread, under this limit.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Restores the previous limit, even after a panic.
        struct LimitRestore(Option<CallLimit>);
        impl Drop for LimitRestore {
            fn drop(&mut self) {
                CURRENT.set(self.0.take());
            }
        }
        let _before = LimitRestore(CURRENT.replace(Some(self.clone())));
        work()
    }
}

/// Returns true when this thread works for a call whose caller has stopped waiting.
pub fn is_over() -> bool {
    CURRENT.with_borrow(|limit| limit.as_ref().is_some_and(CallLimit::is_over))
}

/// Returns the moment after `time`, or the end of this thread's call if that is earlier.
pub fn end_within(time: Duration) -> Instant {
    let end = Instant::now() + time;
    CURRENT.with_borrow(|limit| limit.as_ref().map_or(end, |limit| limit.end().min(end)))
}

/// Refuses to continue a call whose caller has stopped waiting. Code calls this before any change.
///
/// # Errors
/// `E_UNAVAILABLE` when [`is_over`].
pub fn check_limit() -> Result<()> {
    if is_over() { Err(given_up()) } else { Ok(()) }
}

/// Makes the error of a call that ended because its caller stopped waiting.
pub fn given_up() -> Error {
    Error::unavailable("The call took too long and was given up, and nothing was changed; ask for less, or try again.")
}

/// The threads for one kind of work that may hang. There are at most [`MAX_THREADS`] at a time, so that hanging work
/// does not occupy a thread for every call. Clones share the threads.
#[derive(Debug, Clone, Default)]
pub struct ThreadSlots(Arc<AtomicUsize>);

impl ThreadSlots {
    /// Starts work of this thread's call on another thread. The work must end at `end`, or at the end of the call if
    /// that is earlier. A result without a receiver is dropped. `None` when all threads are busy.
    pub fn start<T: Send + 'static>(
        &self,
        name: &str,
        end: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<Receiver<T>> {
        let slot = ThreadSlot(Arc::clone(&self.0));
        if self.0.fetch_add(1, Ordering::SeqCst) >= MAX_THREADS {
            return None;
        }
        let (sender, receiver) = channel();
        let limit = CallLimit::current().map_or_else(|| CallLimit::until(end), |limit| limit.with_end(end));
        let work = move || {
            let _slot = slot;
            let _ = sender.send(limit.run(work));
        };
        std::thread::Builder::new().name(name.into()).spawn(work).ok().map(|_| receiver)
    }

    /// Returns the number of busy threads.
    pub fn count_running(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// The slot of a thread. Dropping this value frees the slot, even after a panic.
struct ThreadSlot(Arc<AtomicUsize>);

impl Drop for ThreadSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_sees_the_limit_of_its_call_and_of_no_other() {
        let limit = CallLimit::from_now(Duration::from_mins(1));
        assert!(!is_over() && CallLimit::current().is_none());
        limit.run(|| {
            assert!(!is_over() && check_limit().is_ok());
            assert_eq!(end_within(Duration::from_hours(1)), limit.end());
            assert!(end_within(Duration::ZERO) < limit.end());
            let inner = limit.with_end(Instant::now());
            inner.run(|| assert!(is_over(), "its end is earlier"));
            assert!(!is_over(), "the outer one goes on");
            limit.give_up();
            assert_eq!(check_limit().unwrap_err().reason(), "E_UNAVAILABLE");
            assert!(
                CallLimit::current()
                    .is_some_and(|taken| std::thread::spawn(move || taken.run(is_over)).join().unwrap())
            );
        });
        assert!(!is_over());
        let fell = std::panic::catch_unwind(|| limit.run(|| panic!("it breaks off")));
        assert!(fell.is_err() && CallLimit::current().is_none());
    }

    #[test]
    fn work_that_hangs_takes_so_many_threads() {
        let (slots, end) = (ThreadSlots::default(), Instant::now() + Duration::from_mins(1));
        let barrier = Arc::new(std::sync::Barrier::new(MAX_THREADS + 1));
        let hang = || {
            let barrier = Arc::clone(&barrier);
            slots.start("hangs", end, move || barrier.wait().is_leader())
        };
        let begun: Vec<_> = (0..MAX_THREADS).map(|_| hang().expect("a thread is free")).collect();
        assert!(hang().is_none() && slots.count_running() == MAX_THREADS);
        barrier.wait();
        assert!(begun.into_iter().all(|work| work.recv().is_ok()));
        while slots.count_running() > 0 {
            std::thread::yield_now();
        }
        let limit = CallLimit::from_now(Duration::from_mins(1));
        let inner = limit.run(|| slots.start("sees its call", end, || CallLimit::current().unwrap().end())).unwrap();
        assert_eq!(inner.recv().unwrap(), limit.end().min(end));
        let broken = slots.start("breaks off", end, || assert!(is_over(), "work that panics")).unwrap();
        assert!(broken.recv().is_err(), "its caller goes on");
    }
}
