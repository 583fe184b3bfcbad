//! [`PlausibleClock`]: a clock that deletes no data too early when the system's clock jumps.
//!
//! A machine may start with a wrong date after its battery was empty, or a virtual machine may run for seconds before
//! its time server answers. Data that expired by such a time would be lost forever. Therefore the clock is compared
//! with a *line*: the newest plausible time, plus the time that has passed since then by a clock that no user can set.
//!
//! | the clock | [`now`](Clock::now) | [`plausible`](Clock::plausible_time) |
//! |---|---|---|
//! | agrees with the line | the clock | the clock |
//! | is ahead of the line | the clock | the line |
//! | is behind the line | the line | the clock |
//!
//! Reads use `now`. Code that deletes data uses `plausible_time`, which is never ahead of `now`. A clock that has
//! differed from the line for [`PROVEN_MS`] counts as right: the line then moves to the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{Clock, Millis};

/// The largest step that does not count as a jump. A time server corrects a clock within a session by less than this.
const MAX_STEP_MS: Millis = 60_000;
/// The time for which sessions must run before a clock that has jumped counts as right.
const PROVEN_MS: Millis = 3_600_000;
/// The difference from which the line follows the clock. Smaller differences cause no write.
const MAX_DRIFT_MS: Millis = 1000;

/// The newest plausible time, which a session stores for the next session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeStamp {
    /// The time, in milliseconds since 1970.
    pub time_ms: Millis,
    /// The time for which sessions have run with a clock ahead of `time_ms`, in milliseconds.
    #[serde(default)]
    pub doubted_ms: Millis,
}

/// A clock that is checked against a second clock, which no user can set.
pub struct PlausibleClock {
    clock: Arc<dyn Clock>,
    /// The line, as the difference between it and [`Clock::uptime`].
    offset: AtomicI64,
    is_doubted: AtomicBool,
    doubt: Mutex<Option<ClockDoubt>>,
}

/// The state while the clock differs from the line.
#[derive(Clone, Copy)]
struct ClockDoubt {
    /// The milliseconds by which the clock is ahead of the line; negative when it is behind.
    lead: Millis,
    /// The uptime at which the difference began.
    since: Millis,
    /// The time that callers read when the difference began. Data with a later date was stored after the clock jumped.
    read_from: Millis,
}

impl PlausibleClock {
    /// Starts with `clock`. The clock counts as right unless it differs from `left`, the time that an earlier session
    /// stored.
    pub fn new(clock: Arc<dyn Clock>, left: Option<TimeStamp>) -> Self {
        let (now, uptime) = (clock.now(), clock.uptime());
        let left = left.unwrap_or(TimeStamp { time_ms: now, doubted_ms: 0 });
        let lead = now.saturating_sub(left.time_ms);
        let lived = if lead > 0 { left.doubted_ms.clamp(0, PROVEN_MS) } else { 0 };
        Self {
            clock,
            offset: AtomicI64::new(left.time_ms.saturating_sub(uptime)),
            is_doubted: AtomicBool::new(true),
            doubt: Mutex::new(Some(ClockDoubt { lead, since: uptime - lived, read_from: now.max(left.time_ms) })),
        }
    }

    /// Returns the newest plausible time, for the next session.
    pub fn to_time_stamp(&self) -> TimeStamp {
        let (_, time_ms) = self.read_times();
        let uptime = self.clock.uptime();
        let ahead = self.doubt.lock().filter(|doubt| doubt.lead > 0);
        match ahead {
            Some(doubt) => TimeStamp { time_ms: self.line_at(uptime), doubted_ms: uptime - doubt.since },
            None => TimeStamp { time_ms: time_ms.max(self.line_at(uptime)), doubted_ms: 0 },
        }
    }

    fn line_at(&self, uptime: Millis) -> Millis {
        uptime.saturating_add(self.offset.load(Ordering::Relaxed))
    }

    /// Reads the clock. Returns `now` and the plausible time.
    fn read_times(&self) -> (Millis, Millis) {
        let (now, uptime) = (self.clock.now(), self.clock.uptime());
        let line = self.line_at(uptime);
        let lead = now.saturating_sub(line);
        if (-MAX_STEP_MS..=MAX_STEP_MS).contains(&lead) {
            if !(-MAX_DRIFT_MS..=MAX_DRIFT_MS).contains(&lead) {
                self.offset.store(now.saturating_sub(uptime), Ordering::Relaxed);
            }
            if self.is_doubted.load(Ordering::Relaxed) {
                let mut doubt = self.doubt.lock();
                self.is_doubted.store(false, Ordering::Relaxed);
                *doubt = None;
            }
            return (now, now);
        }
        let mut doubt = self.doubt.lock();
        let is_same = |doubt: &ClockDoubt| lead.saturating_sub(doubt.lead).saturating_abs() <= MAX_STEP_MS;
        let begun = ClockDoubt { lead, since: uptime, read_from: now.max(line) };
        let ClockDoubt { since, read_from, .. } = doubt.filter(is_same).unwrap_or(begun);
        if uptime - since >= PROVEN_MS {
            self.offset.store(now.saturating_sub(uptime), Ordering::Relaxed);
            self.is_doubted.store(false, Ordering::Relaxed);
            *doubt = None;
            return (now, now);
        }
        *doubt = Some(ClockDoubt { lead, since, read_from });
        self.is_doubted.store(true, Ordering::Relaxed);
        (now.max(line), now.min(line))
    }
}

impl Clock for PlausibleClock {
    fn now(&self) -> Millis {
        self.read_times().0
    }

    fn uptime(&self) -> Millis {
        self.clock.uptime()
    }

    fn plausible_time(&self) -> Millis {
        self.read_times().1
    }

    fn has_lived_until(&self, end: Millis, stored_at: Millis) -> bool {
        let (now, plausible) = self.read_times();
        let is_of_this_clock = || self.doubt.lock().is_none_or(|doubt| stored_at >= doubt.read_from);
        plausible >= end || (now >= end && is_of_this_clock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    const DAY_MS: Millis = 86_400_000;
    const START_MS: Millis = 1_767_225_600_000;

    fn clock(left: Option<TimeStamp>) -> (Arc<ManualClock>, PlausibleClock) {
        let manual = Arc::new(ManualClock::new(START_MS));
        let plausible = PlausibleClock::new(Arc::clone(&manual) as _, left);
        (manual, plausible)
    }

    fn both(clock: &PlausibleClock) -> (Millis, Millis) {
        (clock.now() - START_MS, clock.plausible_time() - START_MS)
    }

    #[test]
    fn a_clock_that_runs_is_believed() {
        let (manual, clock) = clock(None);
        for day in 1..=400 {
            manual.advance_by(DAY_MS);
            assert_eq!(both(&clock), (day * DAY_MS, day * DAY_MS));
        }
        // A clock with a small correction still counts as right.
        manual.jump_by(30_000);
        assert_eq!(both(&clock), (400 * DAY_MS + 30_000, 400 * DAY_MS + 30_000));
    }

    #[test]
    fn a_jump_within_a_session_is_no_time_that_has_passed() {
        for jump in [DAY_MS, 31 * DAY_MS, 3650 * DAY_MS] {
            let (manual, clock) = clock(None);
            manual.jump_by(jump);
            assert_eq!(both(&clock), (jump, 0), "reads follow the clock, and nothing is dropped");
            manual.advance_by(8000);
            assert_eq!(both(&clock), (jump + 8000, 8000));
            manual.jump_by(-jump);
            assert_eq!(both(&clock), (8000, 8000), "right again");
            manual.jump_by(-jump);
            assert_eq!(both(&clock), (8000, 8000 - jump), "what is stored now is not dated before the line");
            manual.advance_by(2000);
            manual.jump_by(jump);
            assert_eq!(both(&clock), (10_000, 10_000));
        }
    }

    #[test]
    fn what_is_stored_after_a_jump_ends_in_its_time() {
        for jump in [-DAY_MS, DAY_MS, 3650 * DAY_MS] {
            let (manual, clock) = clock(None);
            let before = clock.now();
            manual.jump_by(jump);
            manual.advance_by(1000);
            let stored = clock.now();
            assert!(!clock.has_lived_until(before + DAY_MS / 2, before), "{jump}: it has lived for a second");
            assert!(!clock.has_lived_until(stored + 1000, stored));
            manual.advance_by(1000);
            assert!(clock.has_lived_until(stored + 1000, stored));
        }
        // A session that begins a day later doubts its clock, but it still tells the age of data that it stored itself.
        let (manual, first) = clock(None);
        let (before, left) = (first.now(), first.to_time_stamp());
        manual.jump_by(DAY_MS);
        let second = PlausibleClock::new(Arc::clone(&manual) as _, Some(left));
        let stored = second.now();
        manual.advance_by(1000);
        assert_eq!(
            (second.has_lived_until(stored + 1000, stored), second.has_lived_until(stored, before)),
            (true, false)
        );
    }

    #[test]
    fn a_clock_that_stays_apart_was_right() {
        for jump in [365 * DAY_MS, -DAY_MS] {
            let (manual, clock) = clock(None);
            manual.jump_by(jump);
            assert_ne!(clock.now(), clock.plausible_time());
            manual.advance_by(PROVEN_MS - 1);
            assert_ne!(clock.now(), clock.plausible_time());
            manual.advance_by(1);
            assert_eq!(both(&clock), (jump + PROVEN_MS, jump + PROVEN_MS));
        }
        // A clock that jumps forward and back must prove itself again each time.
        let (manual, clock) = clock(None);
        for _ in 0..10 {
            manual.jump_by(DAY_MS);
            clock.now();
            manual.advance_by(PROVEN_MS / 2);
            assert_ne!(clock.now(), clock.plausible_time());
            manual.jump_by(-DAY_MS);
            clock.now();
        }
    }

    #[test]
    fn a_session_begins_on_the_line_of_the_one_before() {
        let (manual, first) = clock(None);
        manual.advance_by(1000);
        let left = first.to_time_stamp();
        assert_eq!(left, TimeStamp { time_ms: START_MS + 1000, doubted_ms: 0 });
        // A machine with an empty battery starts with a wrong date.
        let late = |left, lead: Millis| {
            let (manual, clock) = clock(Some(left));
            manual.jump_by(1000 + lead);
            (manual, PlausibleClock::new(clock.clock, Some(left)))
        };
        let (manual, second) = late(left, 3650 * DAY_MS);
        assert_eq!(both(&second), (3650 * DAY_MS + 1000, 1000));
        manual.advance_by(PROVEN_MS / 2);
        let left = second.to_time_stamp();
        assert_eq!(left, TimeStamp { time_ms: START_MS + 1000 + PROVEN_MS / 2, doubted_ms: PROVEN_MS / 2 });
        // Several short sessions together prove the clock too, because the user was away between them.
        let (manual, third) = late(left, 3651 * DAY_MS);
        assert_ne!(third.now(), third.plausible_time());
        manual.advance_by(PROVEN_MS / 2);
        assert_eq!(third.now(), third.plausible_time());
        assert_eq!(third.to_time_stamp().doubted_ms, 0);
        // A right clock in between cancels the proof. A clock that is behind proves nothing about a clock that is
        // ahead.
        let (_, fourth) = late(left, PROVEN_MS / 2);
        assert_eq!((fourth.now() == fourth.plausible_time(), fourth.to_time_stamp().doubted_ms), (true, 0));
        let (_, fifth) = late(left, -DAY_MS);
        assert_eq!((fifth.now(), fifth.to_time_stamp()), (left.time_ms, TimeStamp { doubted_ms: 0, ..left }));
    }
}
