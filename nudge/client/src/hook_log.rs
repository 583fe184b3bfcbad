//! `hooks.log` in the runtime directory: a byte for each `nudge hook`, with the time that it took and whether it came
//! too late. The next hook chooses its time limit by it, and the server tells how many hooks came too late.
//!
//! A hook that is late has no time to call the server, which may be the reason why it is late; a byte is appended in
//! microseconds. The low seven bits are the time in eighths of an octave of milliseconds, the high bit marks a late hook,
//! whose time is the limit that was over.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use nudge_os::beneath::DiskSync;
use serde::{Deserialize, Serialize};

use crate::runtime::RuntimeDir;

/// The file.
pub(crate) const NAME: &str = "hooks.log";
/// The last hooks that are counted.
const COUNTED: usize = 100;
/// The last hooks by which the next one chooses its time limit: few, so that a machine that becomes busy is noticed by
/// the second late hook, and one that is idle again soon, too.
const CHOSEN_BY: usize = 20;
/// The last hooks among which a late one is a reason for advice.
const LATELY: usize = 10;
/// Size from which the server cuts the log to the hooks that are counted.
const MAX_BYTES: u64 = 4096;
const LATE: u8 = 0x80;
/// The largest time that a byte holds: 2^(127/8) ms, which is a minute.
const MAX_STEPS: f64 = 127.0;
const STEPS_OF_AN_OCTAVE: f64 = 8.0;
/// The time limits that are chosen: the least has room for a hook on an idle machine three times over, and the clients
/// wait 2 seconds for a hook as `nudge init` enters it.
pub const MIN_LIMIT_MS: u64 = 45;
/// See [`MIN_LIMIT_MS`].
pub const MAX_LIMIT_MS: u64 = 1_500;
/// Times that are advised are whole multiples of this.
const ADVISED_STEP_MS: u64 = 50;

/// The log, opened by a hook.
#[derive(Debug)]
pub struct HookLog(File);

impl HookLog {
    /// Opens the log of a session.
    ///
    /// # Errors
    /// The system's errors; also when the name belongs to something other than a file of this user.
    pub fn open(dir: &RuntimeDir) -> io::Result<Self> {
        dir.dir().open_append(NAME).map(Self)
    }

    /// Notes a hook that took so long, or was over its limit of so long.
    ///
    /// # Errors
    /// The system's errors.
    pub fn note_hook(&self, took: Duration, is_late: bool) -> io::Result<()> {
        (&self.0).write_all(&[to_byte(took, is_late)])
    }
}

/// The last hooks of a session, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecentHooks(Vec<u8>);

impl RecentHooks {
    /// Reads the log; there are no hooks where it cannot be read.
    pub fn read(dir: &RuntimeDir) -> Self {
        Self(read_end(dir).map(|(end, _)| end).unwrap_or_default())
    }

    /// Chooses the time limit of the next hook in milliseconds: twice the 95th percentile of the last ones. A late hook
    /// counts as one that took twice its limit.
    pub fn choose_limit_ms(&self) -> u64 {
        let mut times: Vec<_> = self.0.iter().rev().take(CHOSEN_BY).map(|byte| read_ms(*byte)).collect();
        times.sort_by(f64::total_cmp);
        let index = (times.len() * 95).div_ceil(100).saturating_sub(1);
        let most = times.get(index).map_or(0.0, |ms| 2.0 * ms);
        // Fits: the clamp is far below 2^53.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let limit = most.clamp(MIN_LIMIT_MS as f64, MAX_LIMIT_MS as f64).ceil() as u64;
        limit
    }

    /// Counts the late ones. `None` when there was no hook.
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

/// Counts the late hooks of a session as they come, and keeps the log short; for the server.
#[derive(Debug)]
pub struct LateHookCounter {
    /// The size of the log up to which its hooks are counted.
    position: u64,
}

impl LateHookCounter {
    /// Begins with the next hook, or with the first one that is in the log.
    pub fn begin(dir: &RuntimeDir, with_earlier: bool) -> Self {
        let size = || dir.dir().open_read(NAME).and_then(|file| file.metadata()).map_or(0, |meta| meta.len());
        Self { position: if with_earlier { 0 } else { size() } }
    }

    /// Returns the number of late hooks since the last call. Cuts a long log; a hook that writes at the same moment is
    /// not counted.
    pub fn count_new(&mut self, dir: &RuntimeDir) -> u64 {
        // Without a log there were no hooks, or they cannot be counted.
        self.read_new(dir).unwrap_or_default()
    }

    fn read_new(&mut self, dir: &RuntimeDir) -> io::Result<u64> {
        let mut file = dir.dir().open_read(NAME)?;
        let size = file.metadata()?.len();
        // A log that has become shorter is another one. Another program may have filled the log.
        let new = size.checked_sub(self.position).unwrap_or(size).min(MAX_BYTES);
        file.seek(SeekFrom::Start(size - new))?;
        let mut bytes = Vec::new();
        file.take(new).read_to_end(&mut bytes)?;
        self.position = size;
        if size > MAX_BYTES {
            let (end, _) = read_end(dir)?;
            // A log that stays long is read all the same.
            if dir.dir().write_atomic(NAME, &end, DiskSync::Unflushed).is_ok() {
                self.position = end.len() as u64;
            }
        }
        Ok(bytes.iter().filter(|byte| **byte & LATE != 0).count() as u64)
    }
}

/// The last hooks of a session, as `nudge.status` and `nudge.stats` tell of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookReport {
    /// The number of hooks, at most 100.
    pub count: usize,
    /// The number of these that came too late, and told nothing.
    pub late: usize,
    /// The number of late ones among the last ten.
    pub late_lately: usize,
    /// The milliseconds that give a hook time now.
    pub advised_ms: u64,
}

impl HookReport {
    /// Says how many came too late, and which setting mends it. `None` when none did.
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

/// Returns the last bytes that are counted, and the size of the log.
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
    // A float becomes the nearest number that the byte holds.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let steps = (ms.log2() * STEPS_OF_AN_OCTAVE).round().min(MAX_STEPS) as u8;
    steps | if is_late { LATE } else { 0 }
}

/// Returns the milliseconds of a byte; twice the limit for a late hook.
fn read_ms(byte: u8) -> f64 {
    let ms = (f64::from(byte & !LATE) / STEPS_OF_AN_OCTAVE).exp2();
    if byte & LATE == 0 { ms } else { 2.0 * ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hooks of so many milliseconds; a negative number is the limit of a late one.
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
        // A single slow hook among many changes nothing, and after twenty quick ones all is forgotten.
        assert_eq!(hooks(&[&[5; 19][..], &[1_000]].concat()).choose_limit_ms(), MIN_LIMIT_MS);
        assert_eq!(hooks(&[&[1_000; 50][..], &[5; 20]].concat()).choose_limit_ms(), MIN_LIMIT_MS);
        assert_eq!(hooks(&[60_000]).choose_limit_ms(), MAX_LIMIT_MS);
    }

    /// A machine that takes a second for each hook: no more than ten are late, whatever was before.
    #[test]
    fn after_ten_late_hooks_none_is_late() {
        for before in [&[][..], &[5; 100]] {
            let (mut times, mut late) = (before.to_vec(), 0);
            for _ in 0..60 {
                let limit = i64::try_from(hooks(&times).choose_limit_ms()).unwrap();
                late += usize::from(limit < 1_000);
                times.push(if limit < 1_000 { -limit } else { 1_000 });
            }
            assert!((1..=10).contains(&late), "{late}");
            assert!(times[times.len() - 50..].iter().all(|time| *time > 0), "{times:?}");
        }
    }

    #[test]
    fn late_hooks_are_told_with_the_setting_that_mends_it() {
        let told = |times: &[i64]| hooks(times).count_late().and_then(HookReport::to_sentence);
        assert_eq!((hooks(&[]).count_late(), told(&[5; 40])), (None, None));
        assert_eq!(hooks(&[5; 40]).count_late().unwrap().count, 40);
        assert_eq!(
            told(&[&[5; 28][..], &[-45; 12]].concat()).unwrap(),
            "12 of the last 40 hooks came too late and told nothing; the setting hook.ms = 200 gives them time"
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
        // The end of a log that other programs have filled is read, and the server makes it short again.
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
        // The log is cut, and later hooks are counted from there.
        run(1, MAX_BYTES - 1);
        assert_eq!((counter.count_new(&dir), counter.count_new(&dir)), (1, 0));
        run(4, 1);
        assert_eq!(counter.count_new(&dir), 4);
        // A new log.
        dir.dir().remove(NAME).unwrap();
        assert_eq!(counter.count_new(&dir), 0);
        run(1, 0);
        assert_eq!(counter.count_new(&dir), 1);
    }
}
