//! Delays a fork until no thread is inside a store of this process.
//!
//! After a fork, the child has only the forking thread, so a lock that another thread held would stay locked there.
//! Therefore `os.fork` (and its users, such as `multiprocessing`) waits until no thread is inside a store without the
//! interpreter's lock. Threads that want to enter a store wait until the fork is over. A thread that has the
//! interpreter's lock needs no such wait, because the forking thread needs this lock too.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use pyo3::prelude::*;

/// The number of threads that are inside a store without the interpreter's lock.
static INSIDE: AtomicU32 = AtomicU32::new(0);
/// The number of threads that are about to fork.
static FORKING: AtomicU32 = AtomicU32::new(0);
/// The number of forks between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// The pause between two checks, while a fork waits for stores or a call waits for a fork.
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

/// Runs `work`, which uses a store of this process, without the interpreter's lock. Waits while another thread forks.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let _inside = ForkBlocker::enter();
        work()
    })
}

/// Returns the number of forks before this process. A child can see by this number that it is not its parent.
pub fn generation() -> u32 {
    GENERATION.load(SeqCst)
}

/// Runs before a fork (`os.register_at_fork`). Waits until no thread is inside a store.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    FORKING.fetch_add(1, SeqCst);
    py.detach(|| {
        while INSIDE.load(SeqCst) > 0 {
            std::thread::sleep(POLL);
        }
    });
}

/// Runs in the parent after a fork (`os.register_at_fork`).
#[pyfunction]
pub fn after_fork_in_parent() {
    FORKING.fetch_sub(1, SeqCst);
}

/// Runs in the child after a fork (`os.register_at_fork`).
#[pyfunction]
pub fn after_fork_in_child() {
    // Threads of the parent that were about to fork or to enter a store do not exist in the child.
    FORKING.store(0, SeqCst);
    INSIDE.store(0, SeqCst);
    GENERATION.fetch_add(1, SeqCst);
}
