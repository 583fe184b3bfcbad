//! Notices an event loop that stands still: nobody is answered then, and nobody else can take over, because this
//! process keeps the lock.
//!
//! A loop that hangs, in a disk that does not answer for instance, cannot hand anything over. Where a PROXY is
//! connected the process ends at once, which is the path that `kill -9` takes, and the PROXY goes on with all that was
//! acknowledged. Alone it only says so in the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::session::proxies::Proxies;

/// Interval at which the loop is asked for a sign of life.
const INTERVAL: Duration = Duration::from_secs(1);
/// Number of intervals without one after which the loop stands still.
const MISSED: u32 = 2;
/// How much longer than [`INTERVAL`] a pause of this thread may take; the whole process was suspended if it takes
/// longer, and then the loop is not to blame.
const SLACK: Duration = Duration::from_millis(500);
/// The status with which a process ends that hands its session over.
const HANDED_OVER: i32 = 75;

/// Watches the loop it was made on until it is dropped.
pub struct Watchdog {
    watching: Arc<Watching>,
    thread: Option<Thread>,
    answering: JoinHandle<()>,
}

#[derive(Default)]
struct Watching {
    asked: Notify,
    answered: AtomicBool,
    over: AtomicBool,
}

impl Watchdog {
    /// Starts to watch the event loop that calls this, of a PRIMARY with these PROXYs.
    pub fn start(proxies: Arc<Proxies>) -> Self {
        let watching = Arc::<Watching>::default();
        let answers = Arc::clone(&watching);
        let answering = tokio::spawn(async move {
            loop {
                answers.asked.notified().await;
                answers.answered.store(true, Ordering::Relaxed);
            }
        });
        let watches = Arc::clone(&watching);
        let watch = move || watches.watch(|| !proxies.pids().is_empty());
        // Without a thread to spare there is no watchdog, and everything else works.
        let thread = std::thread::Builder::new().name("nudge-watchdog".into()).spawn(watch).ok();
        Self { watching, thread: thread.map(|thread| thread.thread().clone()), answering }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.answering.abort();
        self.watching.over.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

impl Watching {
    fn watch(&self, has_successor: impl Fn() -> bool) {
        let mut missed = 0;
        while !self.over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            self.answered.store(false, Ordering::Relaxed);
            self.asked.notify_one();
            std::thread::park_timeout(INTERVAL);
            let was_suspended = begun.elapsed() > INTERVAL + SLACK;
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            if was_suspended || self.answered.load(Ordering::Relaxed) {
                if missed >= MISSED {
                    tracing::info!("the event loop goes on");
                }
                missed = 0;
                continue;
            }
            missed += 1;
            if missed < MISSED {
                continue;
            }
            let seconds = INTERVAL.as_secs() * u64::from(missed);
            if has_successor() {
                tracing::error!(seconds, "the event loop stands still; a PROXY takes over");
                nudge_os::process::end_all();
                std::process::exit(HANDED_OVER);
            }
            if missed == MISSED {
                tracing::error!(seconds, "the event loop stands still, and nobody can take over");
            }
        }
    }
}
