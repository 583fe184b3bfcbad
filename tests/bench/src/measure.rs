//! Measures times so that other work on the machine changes them little. The contenders take turns in short slices of
//! one run, and the table compares the medians of the turns.

use std::ffi::OsStr;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Measures the processor time of this thread, so that other processes of a busy machine do not count. Without such a
/// clock, measures the wall time.
pub struct Stopwatch(f64);

impl Stopwatch {
    pub fn start() -> Self {
        Self(clock_ns())
    }

    pub fn ns(&self) -> f64 {
        clock_ns() - self.0
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn clock_ns() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    // An `f64` is exact for hours of processor time in nanoseconds.
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn clock_ns() -> f64 {
    wall_ns()
}

/// Returns the wall time in nanoseconds since the first call.
pub fn wall_ns() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as f64
}

/// The clock that measures a contender.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The processor time of this thread.
    Thread,
    /// The wall time.
    Wall,
    /// The processor time of this thread and of the process that it calls and waits for. On one idle processor this
    /// would be the time of an answer. If the system does not report the other process, this is the wall time.
    Asking(u32),
}

impl Clock {
    fn ns(self) -> f64 {
        match self {
            Self::Thread => clock_ns(),
            Self::Wall => wall_ns(),
            Self::Asking(pid) => process_ns(pid).map_or_else(wall_ns, |ns| ns + clock_ns()),
        }
    }
}

/// Returns the processor time of all threads of a process, in nanoseconds. The time of a thread that has ended is not
/// in the sum; a server's idle threads end only after seconds.
fn process_ns(pid: u32) -> Option<f64> {
    threads_ns(&pid.to_string(), |_| true)
}

/// Returns the processor time of all threads of this process except the calling thread, in nanoseconds.
pub fn other_threads_ns() -> Option<f64> {
    let own = std::fs::read_link("/proc/thread-self").ok()?;
    threads_ns("self", |thread| Some(thread) != own.file_name())
}

fn threads_ns(process: &str, is_counted: impl Fn(&OsStr) -> bool) -> Option<f64> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let ns = threads.filter_map(|thread| {
        let thread = thread.ok().filter(|thread| is_counted(&thread.file_name()))?;
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    Some(ns.sum())
}

/// A side of a comparison. A call does the work as many times as its argument says.
pub type Work<'a> = Box<dyn FnMut(usize) + 'a>;

/// Makes a side from a closure that does the work once. `step` is the number of the work, counted over all calls.
pub fn work<'a, T>(mut once: impl FnMut(usize) -> T + 'a) -> Work<'a> {
    let mut step = 0;
    Box::new(move |n| {
        for _ in 0..n {
            black_box(once(step));
            step += 1;
        }
    })
}

/// The number and the length of turns.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// The number of turns of each contender.
    pub rounds: usize,
    /// The intended length of a turn.
    pub slice: Duration,
}

/// The nanoseconds per operation of each contender in each turn.
pub struct Times(Vec<Vec<f64>>);

impl Times {
    /// Returns the median of one contender, in nanoseconds.
    pub fn median(&self, contender: usize) -> f64 {
        median(self.0[contender].clone())
    }

    /// Returns the ratio of one contender's time to another's: the median over the turns.
    pub fn ratio(&self, contender: usize, to: usize) -> f64 {
        median(self.0[contender].iter().zip(&self.0[to]).map(|(a, b)| a / b).collect())
    }
}

/// Lets contenders take turns and measures them with [`Clock::Thread`]. Each contender first runs for a whole slice,
/// which also fills its caches.
pub fn interleave(turns: Turns, contenders: &mut [Work<'_>]) -> Times {
    take_turns(turns, &vec![Clock::Thread; contenders.len()], contenders)
}

/// Lets contenders take turns and measures them with [`Clock::Wall`], because they wait for other processes.
pub fn interleave_processes(turns: Turns, contenders: &mut [Work<'_>]) -> Times {
    take_turns(turns, &vec![Clock::Wall; contenders.len()], contenders)
}

/// Lets contenders take turns and measures each with its own clock.
pub fn take_turns(turns: Turns, clocks: &[Clock], contenders: &mut [Work<'_>]) -> Times {
    let both = contenders.iter_mut().zip(clocks);
    let counts: Vec<_> = both.map(|(contender, &clock)| calibrate(contender, clock, turns.slice)).collect();
    let mut times = vec![Vec::with_capacity(turns.rounds); contenders.len()];
    for _ in 0..turns.rounds {
        for (index, contender) in contenders.iter_mut().enumerate() {
            let start = clocks[index].ns();
            contender(counts[index]);
            times[index].push((clocks[index].ns() - start) / counts[index] as f64);
        }
    }
    Times(times)
}

/// Returns the number of operations that fill a slice; at least one.
fn calibrate(contender: &mut Work<'_>, clock: Clock, slice: Duration) -> usize {
    let mut count = 1;
    loop {
        let start = clock.ns();
        contender(count);
        if clock.ns() - start >= slice.as_nanos() as f64 || count >= 1 << 24 {
            return count;
        }
        count *= 2;
    }
}

/// Returns the median of `numbers`. Returns NaN if there are none.
pub fn median(numbers: Vec<f64>) -> f64 {
    percentile(numbers, 50.0)
}

/// Returns the smallest number that is at least as large as `percent` percent of all. Returns NaN if there are none.
pub fn percentile(mut numbers: Vec<f64>, percent: f64) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    // The rank is small and positive, so the conversion is exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rank = (percent / 100.0 * numbers.len() as f64).ceil() as usize;
    numbers.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}
