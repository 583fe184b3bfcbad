//! The processor time of work, independent of the machine's load.

use std::time::Duration;

/// Returns how long this thread has run on a processor. On systems that do not measure this, it is the time since the
/// first call.
///
/// # Panics
/// Panics for a time below zero, which no clock of a thread shows.
pub fn thread_cpu_time() -> Duration {
    #[cfg(unix)]
    {
        let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(spent).expect("it counts up from zero")
    }
    #[cfg(not(unix))]
    {
        static BEGUN: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
        BEGUN.elapsed()
    }
}
