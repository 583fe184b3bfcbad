//! Reads and writes `hooks.log` in the runtime directory. Each `nudge hook` appends one byte: the time that it took,
//! and whether it was late. The next hook chooses its time limit by the log, and the server reports the late hooks.
//!
//! A hook writes a byte because it takes only microseconds. A late hook has no time for a call to the server, which may
//! even be the reason why it is late.
//!
//! The low seven bits of a byte are the time on a logarithmic scale: 8 times the binary logarithm of the milliseconds.
//! The high bit marks a late hook; its time is the limit that it exceeded.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use nudge_os::beneath::DiskSync;
use serde::{Deserialize, Serialize};

use crate::runtime::RuntimeDir;

/// The name of the log file.
pub(crate) const NAME: &str = "hooks.log";
/// Number of hooks, counted from the newest, that reports include.
const COUNTED: usize = 100;
/// Number of hooks, counted from the newest, by which the next hook chooses its time limit. The number is small, so
/// that the limit shrinks soon after the machine is idle again.
const CHOSEN_BY: usize = 20;
/// Number of hooks, counted from the newest. Nudge advises another setting only when one of them was late.
const LATELY: usize = 10;
/// Size in bytes above which the server cuts the log to the hooks that reports include.
const MAX_BYTES: u64 = 4096;
const LATE: u8 = 0x80;
/// The largest time that a byte can hold, in steps of an eighth of an octave: 2^(127/8) ms, which is a minute.
const MAX_STEPS: f64 = 127.0;
const STEPS_OF_AN_OCTAVE: f64 = 8.0;
/// The smallest time limit of a hook, in ms. A hook on an idle machine takes a third of it.
pub const MIN_LIMIT_MS: u64 = 45;
/// The largest time limit of a hook, in ms. It stays below the 2 seconds for which clients wait after `nudge init`.
pub const MAX_LIMIT_MS: u64 = 1_500;
/// Step in ms to which an advised time is rounded up.
const ADVISED_STEP_MS: u64 = 50;

/// The log, opened by a hook that will append to it.
#[derive(Debug)]
pub struct HookLog(File);

impl HookLog {
    /// Opens the log of a session.
    ///
    /// # Errors
    /// The system's errors, and an error when the log's name belongs to something other than a file of this user.
    pub fn open(dir: &RuntimeDir) -> io::Result<Self> {
        dir.dir().open_append(NAME).map(Self)
    }

    /// Appends the byte of a hook. `took` is the time of the hook, or the exceeded limit if `is_late` is true.
    ///
    /// # Errors
    /// The system's errors.
    pub fn note_hook(&self, took: Duration, is_late: bool) -> io::Result<()> {
        (&self.0).write_all(&[to_byte(took, is_late)])
    }
}

/// The newest hooks of a session, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecentHooks(Vec<u8>);

impl RecentHooks {
    /// Reads the log. The result is empty when the log cannot be read.
    pub fn read(dir: &RuntimeDir) -> Self {
        Self(read_end(dir).map(|(end, _)| end).unwrap_or_default())
    }

    /// Returns the time limit of the next hook in milliseconds: twice the time of the slowest of the newest 20 hooks. A
    /// late hook counts as one that took four times its limit. A high limit delays no hook that answers, and a
    /// percentile would let a second hook be late before the limit grows.
    pub fn choose_limit_ms(&self) -> u64 {
        let times = self.0.iter().rev().take(CHOSEN_BY).map(|byte| read_ms(*byte));
        let most = 2.0 * times.fold(0.0, f64::max);
        // The casts lose nothing, because both limits are far below 2^53.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let limit = most.clamp(MIN_LIMIT_MS as f64, MAX_LIMIT_MS as f64).ceil() as u64;
        limit
    }

    /// Counts the late hooks. Returns `None` when the log has no hook.
    pub fn count_late(&self) -> Option<HookReport> {
        let count_late = |most: usize| self.0.iter().rev().take(most).filter(|byte| **byte & LATE != 0).count();
        (!self.0.is_empty()).then(|| HookReport {
            count: self.0.len(),
            late: count_late(COUNTED),
            late_lately: count_late(LATELY),
            advised_ms: self.choose_limit_ms().next_multiple_of(ADVISED_STEP_MS).min(MAX_LIMIT_MS),
        })
    }
}

/// Counts new late hooks for the server, and keeps the log short.
#[derive(Debug)]
pub struct LateHookCounter {
    /// The offset in the log up to which the hooks are counted.
    position: u64,
}

impl LateHookCounter {
    /// Begins counting: with `with_earlier` at the first hook in the log, otherwise at the next hook.
    pub fn begin(dir: &RuntimeDir, with_earlier: bool) -> Self {
        let size = || dir.dir().open_read(NAME).and_then(|file| file.metadata()).map_or(0, |meta| meta.len());
        Self { position: if with_earlier { 0 } else { size() } }
    }

    /// Returns the number of late hooks since the last call. Cuts the log when it is long; a hook that writes at that
    /// moment may be lost.
    pub fn count_new(&mut self, dir: &RuntimeDir) -> u64 {
        // A missing or unreadable log counts as a log without late hooks.
        self.read_new(dir).unwrap_or(0)
    }

    fn read_new(&mut self, dir: &RuntimeDir) -> io::Result<u64> {
        let mut file = dir.dir().open_read(NAME)?;
        let size = file.metadata()?.len();
        // If the log is shorter than before, it is a new log and is read from its beginning. The limit guards against a
        // log that another program has filled.
        let new = size.checked_sub(self.position).unwrap_or(size).min(MAX_BYTES);
        file.seek(SeekFrom::Start(size - new))?;
        let mut bytes = Vec::new();
        file.take(new).read_to_end(&mut bytes)?;
        self.position = size;
        if size > MAX_BYTES {
            let (end, _) = read_end(dir)?;
            // If the cut fails, the log stays long, and the count is still right.
            if dir.dir().write_atomic(NAME, &end, DiskSync::Unflushed).is_ok() {
                self.position = end.len() as u64;
            }
        }
        Ok(bytes.iter().filter(|byte| **byte & LATE != 0).count() as u64)
    }
}

/// The report about the newest hooks of a session, for `nudge.status` and `nudge.stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookReport {
    /// The number of hooks in the report, at most 100.
    pub count: usize,
    /// The number of these hooks that were late and so printed nothing.
    pub late: usize,
    /// The number of late hooks among the newest ten.
    pub late_lately: usize,
    /// The value for the setting `hook.ms` that would give hooks enough time at present.
    pub advised_ms: u64,
}

impl HookReport {
    /// Returns a sentence with the number of late hooks and the setting that helps. Returns `None` when no hook was
    /// late.
    pub fn to_sentence(self) -> Option<String> {
        let Self { count, late, late_lately, advised_ms } = self;
        let told = match (late, count) {
            (0, _) => return None,
            (1, 1) => "the last hook came too late".to_owned(),
            _ => format!("{late} of the last {count} hooks came too late"),
        };
        Some(match late_lately {
            0 => format!("{told}, and none of the last {LATELY}"),
            _ => format!("{told} and told nothing; the setting hook.ms = {advised_ms} gives them time"),
        })
    }
}

/// Returns the bytes of the newest hooks that reports include, and the size of the log.
fn read_end(dir: &RuntimeDir) -> io::Result<(Vec<u8>, u64)> {
    let mut file = dir.dir().open_read(NAME)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(COUNTED as u64)))?;
    let mut end = Vec::with_capacity(COUNTED);
    file.take(COUNTED as u64).read_to_end(&mut end)?;
    Ok((end, size))
}

fn to_byte(took: Duration, is_late: bool) -> u8 {
    let ms = (took.as_secs_f64() * 1e3).max(1.0);
    // The cast loses nothing, because the number is whole and at most 127.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let steps = (ms.log2() * STEPS_OF_AN_OCTAVE).round().min(MAX_STEPS) as u8;
    steps | if is_late { LATE } else { 0 }
}

/// Returns the time of a byte in milliseconds; for a late hook, four times the exceeded limit.
fn read_ms(byte: u8) -> f64 {
    let ms = (f64::from(byte & !LATE) / STEPS_OF_AN_OCTAVE).exp2();
    if byte & LATE == 0 { ms } else { 4.0 * ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes hooks with these times in ms. A negative number is the exceeded limit of a late hook.
    fn hooks(times: &[i64]) -> RecentHooks {
        let byte = |ms: &i64| to_byte(Duration::from_millis(ms.unsigned_abs()), *ms < 0);
        RecentHooks(times.iter().map(byte).collect())
    }

    #[test]
    fn the_limit_follows_the_last_hooks() {
        assert_eq!(hooks(&[]).choose_limit_ms(), MIN_LIMIT_MS);
        assert_eq!(hooks(&[5; 100]).choose_limit_ms(), MIN_LIMIT_MS);
        let busy = hooks(&[100; 20]).choose_limit_ms();
        assert!((190..=215).contains(&busy), "{busy}");
        // A single slow hook raises the limit; after twenty quick hooks it has no effect any more.
        let slow = hooks(&[&[5; 19][..], &[500]].concat()).choose_limit_ms();
        assert!((950..=1_075).contains(&slow), "{slow}");
        assert_eq!(hooks(&[&[1_000; 50][..], &[5; 20]].concat()).choose_limit_ms(), MIN_LIMIT_MS);
        assert_eq!(hooks(&[60_000]).choose_limit_ms(), MAX_LIMIT_MS);
    }

    /// On a machine that needs a second for each hook, at most two hooks are late, whatever the hooks before took.
    #[test]
    fn after_two_late_hooks_none_is_late() {
        for before in [&[][..], &[5; 100]] {
            let (mut times, mut late) = (before.to_vec(), 0);
            for _ in 0..60 {
                let limit = i64::try_from(hooks(&times).choose_limit_ms()).unwrap();
                late += usize::from(limit < 1_000);
                times.push(if limit < 1_000 { -limit } else { 1_000 });
            }
            assert!((1..=2).contains(&late), "{late}");
            assert!(times[times.len() - 58..].iter().all(|time| *time > 0), "{times:?}");
        }
    }

    #[test]
    fn late_hooks_are_told_with_the_setting_that_mends_it() {
        let told = |times: &[i64]| hooks(times).count_late().and_then(HookReport::to_sentence);
        assert_eq!((hooks(&[]).count_late(), told(&[5; 40])), (None, None));
        assert_eq!(hooks(&[5; 40]).count_late().unwrap().count, 40);
        assert_eq!(
            told(&[&[5; 28][..], &[-45; 12]].concat()).unwrap(),
            "12 of the last 40 hooks came too late and told nothing; the setting hook.ms = 400 gives them time"
        );
        assert_eq!(
            told(&[&[-45; 12][..], &[5; 28]].concat()).unwrap(),
            "12 of the last 40 hooks came too late, and none of the last 10"
        );
        assert!(
            told(&[-1_500])
                .unwrap()
                .starts_with("the last hook came too late and told nothing; the setting hook.ms = 1500")
        );
    }

    #[test]
    fn the_log_of_a_folder_is_read_whatever_stands_in_it() {
        let home = tempfile::tempdir().unwrap();
        let dir = RuntimeDir::create(Some(&home.path().join("run"))).unwrap();
        assert_eq!(RecentHooks::read(&dir), RecentHooks::default());
        let log = HookLog::open(&dir).unwrap();
        log.note_hook(Duration::from_millis(5), false).unwrap();
        log.note_hook(Duration::from_millis(45), true).unwrap();
        assert_eq!(RecentHooks::read(&dir), hooks(&[5, -45]));
        // After another program has filled the log, the end of the log is read, and the server makes the log short
        // again.
        let path = dir.path().join(NAME);
        std::fs::write(&path, [0xff; 10_000]).unwrap();
        assert_eq!(RecentHooks::read(&dir).count_late().unwrap().late, COUNTED);
        assert_eq!(LateHookCounter::begin(&dir, true).count_new(&dir), MAX_BYTES);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), COUNTED as u64);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!((RecentHooks::read(&dir), HookLog::open(&dir).is_err()), (RecentHooks::default(), true));
        assert_eq!(LateHookCounter::begin(&dir, false).count_new(&dir), 0);
    }

    #[test]
    fn each_late_hook_is_counted_once() {
        let home = tempfile::tempdir().unwrap();
        let dir = RuntimeDir::create(Some(&home.path().join("run"))).unwrap();
        let run = |late: u64, in_time: u64| {
            let log = HookLog::open(&dir).unwrap();
            (0..late + in_time).for_each(|index| log.note_hook(Duration::from_millis(45), index < late).unwrap());
        };
        let mut counter = LateHookCounter::begin(&dir, false);
        assert_eq!(counter.count_new(&dir), 0);
        run(2, 3);
        assert_eq!(LateHookCounter::begin(&dir, false).count_new(&dir), 0, "earlier ones are another's");
        assert_eq!(LateHookCounter::begin(&dir, true).count_new(&dir), 2);
        assert_eq!((counter.count_new(&dir), counter.count_new(&dir)), (2, 0));
        // The server cuts the log, and continues to count in the short log.
        run(1, MAX_BYTES - 1);
        assert_eq!((counter.count_new(&dir), counter.count_new(&dir)), (1, 0));
        run(4, 1);
        assert_eq!(counter.count_new(&dir), 4);
        // A new log replaces the removed one.
        dir.dir().remove(NAME).unwrap();
        assert_eq!(counter.count_new(&dir), 0);
        run(1, 0);
        assert_eq!(counter.count_new(&dir), 1);
    }
}
