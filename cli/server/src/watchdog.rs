//! Detects two defects: an event loop that does not respond, and calls past their deadline that hold all places. In
//! both cases callers get no answers. No other process can become PRIMARY, because this process holds the lock.
//!
//! A busy process has no defect. While this process uses a processor or waits for one, the loop therefore counts as
//! hanging only after `MISSED_WHILE_BUSY` intervals.
//!
//! A hanging loop, for example at a disk that does not answer, cannot end its work in order. If a PROXY is connected,
//! the process therefore ends at once, as after `kill -9`, and the PROXY continues with all acknowledged changes.
//! Without a PROXY, the process only writes to the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::session::proxies::ConnectedProxies;
use super::work::WorkPool;

/// The interval at which the watchdog wakes the loop and waits for its answer.
const INTERVAL: Duration = Duration::from_secs(1);
/// The number of intervals without an answer after which the loop counts as hanging.
const MISSED: u32 = 2;
/// The same number for a busy process: its threads compute, or other processes leave it no processor.
const MISSED_WHILE_BUSY: u32 = 30;
/// The divisor of an interval: a process is busy if it used a processor for at least a quarter of the interval.
const BUSY_SHARE: u32 = 4;
/// The most time by which an interval may be too long. After a longer interval the whole process was suspended, so the
/// loop has no defect.
const SLACK: Duration = Duration::from_millis(500);
/// The exit status of a process that leaves its session to a PROXY.
const HANDED_OVER: i32 = 75;

/// Watches the event loop that created it, until the value is dropped.
pub struct Watchdog {
    watching: Arc<WatchdogState>,
    thread: Option<Thread>,
    answering: JoinHandle<()>,
}

#[derive(Default)]
struct WatchdogState {
    asked: Notify,
    answered: AtomicBool,
    over: AtomicBool,
}

impl Watchdog {
    /// Starts to watch the calling event loop. `proxies` are the connected PROXYs, `work` has the running calls.
    pub fn start(proxies: Arc<ConnectedProxies>, work: Arc<WorkPool>) -> Self {
        let watching = Arc::<WatchdogState>::default();
        let answers = Arc::clone(&watching);
        let answering = tokio::spawn(async move {
            loop {
                answers.asked.notified().await;
                answers.answered.store(true, Ordering::Relaxed);
            }
        });
        let watches = Arc::clone(&watching);
        let loop_thread = LoopThread::from_current();
        let watch = move || watches.watch_loop(&loop_thread, &work, || !proxies.pids().is_empty());
        // If the system cannot start a thread, there is no watchdog; everything else works.
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

impl WatchdogState {
    fn watch_loop(&self, watched: &LoopThread, work: &WorkPool, has_successor: impl Fn() -> bool) {
        let (mut missed, mut was_stuck) = (MissedIntervals::default(), false);
        while !self.over.load(Ordering::Relaxed) {
            let (begun, computed) = (Instant::now(), processor_time());
            self.answered.store(false, Ordering::Relaxed);
            self.asked.notify_one();
            std::thread::park_timeout(INTERVAL);
            let was_suspended = begun.elapsed() > INTERVAL + SLACK;
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let is_stuck = work.is_stuck();
            if is_stuck && has_successor() {
                hand_over("all places are held by calls whose time is over; a PROXY takes over", 0);
            }
            if is_stuck && !was_stuck {
                tracing::error!("all places are held by calls whose time is over, and nobody can take over");
            }
            was_stuck = is_stuck;
            if was_suspended || self.answered.load(Ordering::Relaxed) {
                if missed.is_stand_still() {
                    tracing::info!("the event loop goes on");
                }
                missed = MissedIntervals::default();
                continue;
            }
            let is_busy =
                processor_time().saturating_sub(computed) >= INTERVAL / BUSY_SHARE || watched.wants_processor();
            let before = missed.is_stand_still();
            missed.count_interval(is_busy);
            if !missed.is_stand_still() {
                continue;
            }
            let seconds = INTERVAL.as_secs() * u64::from(missed.all);
            if has_successor() {
                hand_over("the event loop stands still; a PROXY takes over", seconds);
            }
            if !before {
                tracing::error!(seconds, "the event loop stands still, and nobody can take over");
            }
        }
    }
}

/// Ends the process as `kill -9` does; a PROXY continues with all acknowledged changes.
fn hand_over(why: &str, seconds: u64) -> ! {
    tracing::error!(seconds, "{why}");
    nudge_os::process::end_all();
    std::process::exit(HANDED_OVER)
}

/// Counts consecutive intervals in which the loop did not answer.
#[derive(Debug, Default)]
struct MissedIntervals {
    all: u32,
    idle: u32,
}

impl MissedIntervals {
    fn count_interval(&mut self, is_busy: bool) {
        self.all += 1;
        self.idle += u32::from(!is_busy);
    }

    fn is_stand_still(&self) -> bool {
        self.idle >= MISSED || self.all >= MISSED_WHILE_BUSY
    }
}

/// Returns the processor time of all threads of this process.
#[cfg(unix)]
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("it counts up from zero")
}

/// Returns zero, so the process counts as idle: on this system, Nudge cannot read the processor time.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    Duration::ZERO
}

/// The thread of the event loop, with the id by which the system knows it.
struct LoopThread {
    #[cfg(target_os = "linux")]
    id: rustix::process::Pid,
}

impl LoopThread {
    /// Returns the calling thread.
    fn from_current() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            id: rustix::thread::gettid(),
        }
    }

    /// Returns true when the thread computes or waits for a processor, false when it waits for a disk or a lock.
    #[cfg(target_os = "linux")]
    fn wants_processor(&self) -> bool {
        use nudge_os::foreign::{LinkPolicy, read_text};

        const MAX_BYTES: u64 = 4 << 10;
        let file = format!("/proc/self/task/{}/stat", self.id.as_raw_nonzero());
        let stat = read_text(std::path::Path::new(&file), LinkPolicy::Followed, MAX_BYTES);
        // The name of the thread stands before the state and may contain any character, even a parenthesis.
        stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R')))
    }

    /// Returns false, because Nudge does not read the state of a thread on this system.
    #[cfg(not(target_os = "linux"))]
    #[allow(clippy::unused_self, reason = "it has something to ask on Linux")]
    fn wants_processor(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_merely_busy_is_given_time() {
        let mut busy = MissedIntervals::default();
        (1..MISSED_WHILE_BUSY).for_each(|_| busy.count_interval(true));
        assert!(!busy.is_stand_still());
        busy.count_interval(true);
        assert!(busy.is_stand_still());
        let mut idle = MissedIntervals::default();
        idle.count_interval(false);
        idle.count_interval(true);
        assert!(!idle.is_stand_still());
        idle.count_interval(false);
        assert!(idle.is_stand_still());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_computes_wants_a_processor_and_one_that_waits_does_not() {
        let (before, own) = (processor_time(), LoopThread::from_current());
        assert!(own.wants_processor());
        while processor_time() == before {}
        let (tell, told) = std::sync::mpsc::channel();
        let waits = std::thread::spawn(move || {
            tell.send(LoopThread::from_current()).unwrap();
            std::thread::park();
        });
        let thread = told.recv().unwrap();
        while thread.wants_processor() {
            std::thread::yield_now();
        }
        waits.thread().unpark();
        waits.join().unwrap();
    }
}
