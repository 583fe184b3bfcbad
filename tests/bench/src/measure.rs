//! Times, taken so that a busy machine changes them little: contenders take turns in short slices of
//! one run, and what is compared are medians of the turns.

use std::ffi::OsStr;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Measures the processor time of this thread: what other processes take of a busy machine does not
/// count. Wall time where there is no such clock.
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
    // Hours of processor time stay exact.
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn clock_ns() -> f64 {
    wall_ns()
}

/// Time as it passes.
pub fn wall_ns() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as f64
}

/// What a contender's time is read from.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// This thread's processor time.
    Thread,
    /// Time as it passes.
    Wall,
    /// This thread's processor time and that of the process which it asks and waits for: the time an
    /// answer takes on one processor that does nothing else. As it passes where the system does not
    /// tell.
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

/// Processor time of the threads of a process. One that ends meanwhile takes its own along, which idle threads of a
/// server do after seconds.
fn process_ns(pid: u32) -> Option<f64> {
    threads_ns(&pid.to_string(), |_| true)
}

/// Processor time of this process's threads but the one that asks, which is charged for asking.
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

/// One side of a comparison: does its work `n` times.
pub type Work<'a> = Box<dyn FnMut(usize) + 'a>;

/// Wraps a closure that does its work once; `step` counts up through all calls.
pub fn work<'a, T>(mut once: impl FnMut(usize) -> T + 'a) -> Work<'a> {
    let mut step = 0;
    Box::new(move |n| {
        for _ in 0..n {
            black_box(once(step));
            step += 1;
        }
    })
}

/// How long and how often contenders take turns.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// Turns of each contender.
    pub rounds: usize,
    /// Length aimed at for one turn.
    pub slice: Duration,
}

/// Nanoseconds per operation of each contender, turn by turn.
pub struct Times(Vec<Vec<f64>>);

impl Times {
    /// Median of one contender, in nanoseconds.
    pub fn median(&self, contender: usize) -> f64 {
        median(self.0[contender].clone())
    }

    /// Median, over the turns, of one contender's time in terms of another's.
    pub fn ratio(&self, contender: usize, to: usize) -> f64 {
        median(self.0[contender].iter().zip(&self.0[to]).map(|(a, b)| a / b).collect())
    }
}

/// Lets contenders take turns. Each is first called until a slice is full, which also warms it.
pub fn interleave(turns: Turns, contenders: &mut [Work<'_>]) -> Times {
    take_turns(turns, &vec![Clock::Thread; contenders.len()], contenders)
}

/// The same by [`wall_ns`], for contenders that wait for other processes.
pub fn interleave_processes(turns: Turns, contenders: &mut [Work<'_>]) -> Times {
    take_turns(turns, &vec![Clock::Wall; contenders.len()], contenders)
}

/// The same, each by the clock that goes with it.
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

/// How many operations fill a slice; at least one.
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

/// The middle one of `numbers`; NaN when there are none.
pub fn median(numbers: Vec<f64>) -> f64 {
    percentile(numbers, 50.0)
}

/// The smallest number that `percent` of all are not above; NaN when there are none.
pub fn percentile(mut numbers: Vec<f64>, percent: f64) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    // Small and positive.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rank = (percent / 100.0 * numbers.len() as f64).ceil() as usize;
    numbers.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}
