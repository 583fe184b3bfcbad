//! Measures the processor time of work, which does not depend on the machine's load.

use std::time::Duration;

/// Returns the time that this thread has run on a processor. On systems that do not measure this, returns the time
/// since the first call.
///
/// # Panics
/// Panics for a time below zero, which no system reports.
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
