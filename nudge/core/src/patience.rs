//! How long somebody waits for a call, and whether they still do.
//!
//! A server runs a call that may take long under a [`CallLimit`]. Long work checks it by [`is_over`] or [`check_limit`],
//! anywhere on the thread of the call, and ends when the caller has stopped waiting. A thread that works for a call on
//! another one takes the limit along: [`CallLimit::current`], then [`CallLimit::run`]. [`ThreadSlots`] does so for work
//! that may hang, such as a look at another's disk.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Most threads that one kind of work has at a time.
pub const MAX_THREADS: usize = 4;

thread_local! {
    static CURRENT: RefCell<Option<CallLimit>> = const { RefCell::new(None) };
}

/// The time until which a caller waits for its call. Clones share one flag: giving up one of them ends the work of all.
#[derive(Debug, Clone)]
pub struct CallLimit {
    until: Instant,
    is_given_up: Arc<AtomicBool>,
}

impl CallLimit {
    /// A limit that ends after `time`.
    pub fn from_now(time: Duration) -> Self {
        Self::until(Instant::now() + time)
    }

    /// A limit that ends at `end`.
    pub fn until(end: Instant) -> Self {
        Self { until: end, is_given_up: Arc::default() }
    }

    /// The limit of the call that this thread works for, if it works for one.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// The same call with an earlier end.
    #[must_use]
    pub fn with_end(&self, end: Instant) -> Self {
        Self { until: self.until.min(end), is_given_up: Arc::clone(&self.is_given_up) }
    }

    /// The end.
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

    /// Does work of the call on this thread.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Puts back the limit of before, also after a panic.
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

/// Returns true when this thread's call has a caller that has stopped waiting.
pub fn is_over() -> bool {
    CURRENT.with_borrow(|limit| limit.as_ref().is_some_and(CallLimit::is_over))
}

/// Returns the end of a wait of `time`, or the end of the call that this thread works for, if that is earlier.
pub fn end_within(time: Duration) -> Instant {
    let end = Instant::now() + time;
    CURRENT.with_borrow(|limit| limit.as_ref().map_or(end, |limit| limit.end().min(end)))
}

/// Ends a call after its caller has stopped waiting. It is called at points before any change.
///
/// # Errors
/// `E_UNAVAILABLE` when [`is_over`].
pub fn check_limit() -> Result<()> {
    if is_over() { Err(given_up()) } else { Ok(()) }
}

/// Makes the error of a call that ended because its caller had stopped waiting.
pub fn given_up() -> Error {
    Error::unavailable("The call took too long and was given up, and nothing was changed; ask for less, or try again.")
}

/// Threads for one kind of work that may hang: [`MAX_THREADS`] at a time, so that work that hangs does not take a thread
/// for every call. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ThreadSlots(Arc<AtomicUsize>);

impl ThreadSlots {
    /// Starts work of this thread's call on a thread of its own; its limit is the call's, or `end` if that is earlier. A
    /// result that comes when the receiver is gone is dropped. `None` when all threads are at work.
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

    /// The threads that are at work.
    pub fn count_running(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A thread's slot, which is free again when this is dropped, in a panic too.
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
