//! The time of a session. It is compared with the times of earlier sessions, so that a clock that is wrong for seconds
//! destroys no data ([`PlausibleClock`]).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nudge_app::kept::folder::KeptFolder;
use nudge_app::kept::state_folder::StateDirectory;
use nudge_app::settings;
use nudge_core::clock::{Clock, Millis, PlausibleClock, SystemClock, TimeStamp};
use nudge_os::beneath::{DiskSync, FileRights, write_atomic};
use nudge_os::foreign::{self, LinkPolicy};

use super::role::{ServeSettings, ServerClock};

/// The file in the state folder that stores the newest plausible time.
const FILE: &str = "clock.json";
/// The most bytes of the file that are read; the file has less than a hundred bytes.
const MAX_BYTES: u64 = 1024;
/// The interval at which a living session writes the file again, in milliseconds.
const WRITE_EVERY_MS: Millis = 600_000;

/// The time of a session.
pub struct SessionTime {
    /// The clock for all stored times.
    pub clock: Arc<PlausibleClock>,
    /// The state folder; `None` when the system has none.
    folder: Option<PathBuf>,
    /// The folder in which sources keep files.
    data: PathBuf,
    /// The uptime at the last write of the file; `None` after the session has ended.
    written: parking_lot::Mutex<Option<Millis>>,
}

impl SessionTime {
    /// Starts with the time that an earlier session wrote. If there is none, starts with the time of the last write of
    /// kept hints.
    pub fn from_last_session(clock: Arc<ServerClock>, settings: &ServeSettings) -> Self {
        let folder = settings::state_dir().filter(|_| is_compared());
        let left = folder.as_deref().and_then(|folder| read(folder).or_else(|| find_kept_time(settings, clock.now())));
        let clock = Arc::new(PlausibleClock::new(clock, left));
        let written = parking_lot::Mutex::new(Some(clock.uptime()));
        Self { clock, folder, data: settings.data.path().to_owned(), written }
    }

    /// Writes the newest plausible time if the interval is over. If `end` is true, writes at once, and never again.
    /// Writes nothing if there is no stored data that a wrong clock could destroy.
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
        StateDirectory::from_user().map_err(io::Error::other)?.make_private()?;
        let text = serde_json::to_vec(&self.clock.to_time_stamp())?;
        write_atomic(&folder.join(FILE), &text, FileRights::Private, DiskSync::Unflushed)
    }
}

/// Returns false for a test clock that starts in 2026, because times of other sessions do not apply to it.
fn is_compared() -> bool {
    !cfg!(feature = "test-clock") || std::env::var_os("NUDGE_TEST_CLOCK_MS").is_some()
}

fn read(folder: &Path) -> Option<TimeStamp> {
    let text = foreign::read(&folder.join(FILE), LinkPolicy::Refused, MAX_BYTES).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Returns the time of the last write of kept hints: to the database, to its log, or to the file of an earlier version.
/// Returns `None` if that time is in the future.
fn find_kept_time(settings: &ServeSettings, now: Millis) -> Option<TimeStamp> {
    let database = KeptFolder::new(settings.data.clone(), Arc::new(SystemClock)).database_path();
    let earlier = StateDirectory::from_user().ok().map(|folder| folder.kept_path());
    let paths = [database.with_file_name("hints.db-wal"), database].into_iter().chain(earlier);
    let modified = paths.filter_map(|path| path.symlink_metadata().ok()?.modified().ok()).max()?;
    let since_1970 = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    let time_ms = Millis::try_from(since_1970.as_millis()).ok()?;
    (time_ms <= now).then_some(TimeStamp { time_ms, doubted_ms: 0 })
}
