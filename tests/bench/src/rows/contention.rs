//! Measures how much a search and a writer slow down the slowest lookups.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nudge::{Nudge, QueryHints, View};

use crate::data::{self, Random, Seed};
use crate::measure::{median, percentile};
use crate::table::{Line, Scale, time};

/// The number of turns: idle and busy ones alternate.
const TURNS: usize = 5;

/// Measures `get` p99.9 while queries run in a loop and a writer sets a hint every millisecond. The peer is `get` p99.9
/// without other work.
pub fn get(scale: &Scale) -> Vec<Line> {
    let seeds = data::seeds(scale.large);
    let nudge = data::store(&seeds);
    let order = Random(3).shuffled(seeds.len().min(5_000));
    let (mut idle, mut busy, mut busy_half) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        idle.push(percentile(latencies(&nudge, &seeds, &order, scale.latencies), 99.9));
        let times = while_busy(&nudge, &seeds, || latencies(&nudge, &seeds, &order, scale.latencies));
        busy_half.push(median(times.clone()));
        busy.push(percentile(times, 99.9));
    }
    let ratios = busy.iter().zip(&idle).map(|(busy, idle)| busy / idle).collect();
    vec![Line {
        what: format!("get p99.9, {} query + 1 set/ms", count(seeds.len())),
        limit: 5.0,
        unit: "x",
        measured: Some(median(ratios)),
        peer: "the same when idle (two processors)".into(),
        absolute: format!("{} / {}, p50 {}", time(median(busy)), time(median(idle)), time(median(busy_half))),
    }]
}

/// Writes 100000 as `100k`.
pub fn count(hints: usize) -> String {
    if hints.is_multiple_of(1000) { format!("{}k", hints / 1000) } else { hints.to_string() }
}

fn latencies(nudge: &Nudge, seeds: &[Seed], order: &[usize], count: usize) -> Vec<f64> {
    let view = View::new(nudge, data::place().build().expect("the place is valid"));
    let mut times = Vec::with_capacity(count);
    let mut before = Instant::now();
    for &index in order.iter().cycle().take(count) {
        let seed = &seeds[index];
        std::hint::black_box(view.get(&seed.set.component, &seed.set.key));
        let now = Instant::now();
        times.push((now - before).as_nanos() as f64);
        before = now;
    }
    times
}

fn while_busy<T>(nudge: &Nudge, seeds: &[Seed], measure: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let query = QueryHints { context: data::place(), ..QueryHints::default() };
                std::hint::black_box(nudge.query(query).expect("the query is valid"));
            }
        });
        scope.spawn(|| {
            for seed in seeds.iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                nudge.set(seed.set.clone()).expect("a seed is valid");
                thread::sleep(Duration::from_millis(1));
            }
        });
        // Waits until both threads have started.
        thread::sleep(Duration::from_millis(20));
        let out = measure();
        done.store(true, Ordering::Relaxed);
        out
    })
}
