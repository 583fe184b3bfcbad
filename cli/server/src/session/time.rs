//! The time of a session, which is compared with the time that the sessions before have seen: a clock that is wrong for
//! seconds destroys nothing ([`PlausibleClock`]).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nudge_app::kept::KeptFolder;
use nudge_app::settings;
use nudge_core::clock::{Clock, Millis, PlausibleClock, TimeStamp};
use nudge_core::foreign::{self, LinkPolicy};
use nudge_os::beneath::{DiskSync, FileRights, write_atomic};

use super::role::{ServeSettings, ServerClock};

/// The file in the folder for state that holds the newest plausible time.
const FILE: &str = "clock.json";
/// Most that is read of it; it has less than a hundred bytes.
const MAX_BYTES: u64 = 1024;
/// Time after which the file is written again while a session lives.
const WRITE_EVERY_MS: Millis = 600_000;

/// The time of a session.
pub struct SessionTime {
    /// The clock for whatever is stored.
    pub clock: Arc<PlausibleClock>,
    /// The folder for state; `None` where the system has none.
    folder: Option<PathBuf>,
    /// The folder for data.
    data: PathBuf,
    /// The uptime at which the file was written last; `None` once the session has ended.
    written: parking_lot::Mutex<Option<Millis>>,
}

impl SessionTime {
    /// Begins with the time that an earlier session has left; without one, with the time at which the kept hints were
    /// written.
    pub fn from_last_session(clock: Arc<ServerClock>, settings: &ServeSettings) -> Self {
        let folder = settings::state_dir().filter(|_| is_compared());
        let left = folder.as_deref().and_then(|folder| read(folder).or_else(|| kept_at(clock.now())));
        let clock = Arc::new(PlausibleClock::new(clock, left));
        let written = parking_lot::Mutex::new(Some(clock.uptime()));
        Self { clock, folder, data: settings.data.path().to_owned(), written }
    }

    /// Writes the newest plausible time when it is due, or at once at the `end` of the session, after which nothing is
    /// written any more. Without kept data that could be destroyed, nothing is written either.
    pub fn leave_time(&self, end: bool) {
        let uptime = self.clock.uptime();
        {
            let mut written = self.written.lock();
            let Some(before) = *written else { return };
            if !end && uptime - before < WRITE_EVERY_MS {
                return;
            }
            *written = Some(uptime).filter(|_| !end);
        }
        let Some(folder) = &self.folder else { return };
        if !folder.is_dir() && !self.data.is_dir() {
            return;
        }
        if let Err(error) = self.write(folder) {
            tracing::warn!(%error, "the time is not left to the next session");
        }
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        KeptFolder::from_state_dir().map_err(io::Error::other)?.make_private()?;
        let text = serde_json::to_vec(&self.clock.to_time_stamp())?;
        write_atomic(&folder.join(FILE), &text, FileRights::Private, DiskSync::Unflushed)
    }
}

/// Returns false for a clock of tests that begins with 2026: it has nothing to do with the time of other sessions.
fn is_compared() -> bool {
    !cfg!(feature = "test-clock") || std::env::var_os("NUDGE_TEST_CLOCK_MS").is_some()
}

fn read(folder: &Path) -> Option<TimeStamp> {
    let text = foreign::read(&folder.join(FILE), LinkPolicy::Refused, MAX_BYTES).ok()?;
    serde_json::from_slice(&text).ok()
}

/// When the kept hints were written; `None` for a time that is still to come.
fn kept_at(now: Millis) -> Option<TimeStamp> {
    let modified = KeptFolder::from_state_dir().ok()?.file_path().symlink_metadata().ok()?.modified().ok()?;
    let since_1970 = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    let time_ms = Millis::try_from(since_1970.as_millis()).ok()?;
    (time_ms <= now).then_some(TimeStamp { time_ms, doubted_ms: 0 })
}
