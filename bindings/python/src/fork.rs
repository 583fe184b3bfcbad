//! Keeps forks away from stores in use.
//!
//! Only the thread that forks goes on in the child; a lock that another one held stays locked there. So a fork by
//! `os.fork` (and by its users, such as `multiprocessing`) waits until no thread is inside a store of this process
//! without the interpreter's lock; threads that want to enter wait until the fork is over. A thread that has the
//! interpreter's lock cannot be inside a store while another thread forks.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use pyo3::prelude::*;

/// Threads that are inside a store.
static INSIDE: AtomicU32 = AtomicU32::new(0);
/// Threads that are about to fork.
static FORKING: AtomicU32 = AtomicU32::new(0);
/// How many forks lie between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Between two looks, while one waits for the other; only around forks.
const POLL: Duration = Duration::from_micros(50);

struct ForkBlocker;

impl ForkBlocker {
    fn enter() -> Self {
        loop {
            INSIDE.fetch_add(1, SeqCst);
            if FORKING.load(SeqCst) == 0 {
                return Self;
            }
            INSIDE.fetch_sub(1, SeqCst);
            while FORKING.load(SeqCst) > 0 {
                std::thread::sleep(POLL);
            }
        }
    }
}

impl Drop for ForkBlocker {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, SeqCst);
    }
}

/// Works on a store of this process without the interpreter's lock.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let _inside = ForkBlocker::enter();
        work()
    })
}

/// Changes with each fork.
pub fn generation() -> u32 {
    GENERATION.load(SeqCst)
}

/// For `os.register_at_fork`.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    FORKING.fetch_add(1, SeqCst);
    py.detach(|| {
        while INSIDE.load(SeqCst) > 0 {
            std::thread::sleep(POLL);
        }
    });
}

/// For `os.register_at_fork`.
#[pyfunction]
pub fn after_fork_in_parent() {
    FORKING.fetch_sub(1, SeqCst);
}

/// For `os.register_at_fork`.
#[pyfunction]
pub fn after_fork_in_child() {
    // Other threads that were about to fork, or to enter, do not exist here.
    FORKING.store(0, SeqCst);
    INSIDE.store(0, SeqCst);
    GENERATION.fetch_add(1, SeqCst);
}
