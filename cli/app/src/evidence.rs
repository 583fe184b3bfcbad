//! Keeps counts over sessions, in `evidence.db` in the folder for data: for each of the last 30 days how many lines were
//! told, and for each fact and client session how often it was told, followed and seen to fail. Any number of sessions
//! add to the counts at the same time. The database has neither names nor texts.

mod days;

use std::path::PathBuf;
use std::sync::Arc;

use nudge::{Millis, Result};
use nudge_core::clock::{Clock, SystemClock};
use nudge_core::source::DataDir;
use nudge_core::suggest::SuggestCounts;
use nudge_core::suggest::evidence::{FactCounts, FactEvidence, NameDigest, SessionEvidence};
use nudge_os::foreign::{self, LinkPolicy};
use nudge_storage::rusqlite::{self, Connection, OptionalExtension as _, Transaction, params};
use nudge_storage::{DataRetention, DatabaseKind, DatabaseOpening, Db};

use crate::{files, settings};

pub use days::{DayLog, DayStats};

/// The database. It has no backups: whoever loses it loses counts.
static EVIDENCE_DATABASE: DatabaseKind = DatabaseKind {
    name: "evidence",
    migrations: &["CREATE TABLE day(
  day TEXT PRIMARY KEY, suggestions INTEGER NOT NULL, bytes INTEGER NOT NULL, followed INTEGER NOT NULL,
  failed INTEGER NOT NULL, late INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE session(
  id INTEGER PRIMARY KEY, name INTEGER NOT NULL UNIQUE, place INTEGER NOT NULL, last INTEGER NOT NULL) STRICT;
CREATE INDEX session_last ON session(last);
CREATE TABLE evidence(
  session INTEGER NOT NULL REFERENCES session(id) ON DELETE CASCADE, fact INTEGER NOT NULL, told INTEGER NOT NULL,
  followed INTEGER NOT NULL, failed INTEGER NOT NULL, spoken_of INTEGER NOT NULL,
  PRIMARY KEY(session, fact)) STRICT, WITHOUT ROWID;"],
    full_text: &[],
    kept: DataRetention::Cache,
};

/// The time for which the counts of a client session are kept: 180 days.
const SESSION_MS: Millis = 180 * 24 * 60 * 60 * 1000;
/// The file in the state folder with the days of an earlier version.
const EARLIER: &str = "days.json";
/// The most bytes of that file. A day takes about a hundred bytes.
const MAX_EARLIER_BYTES: u64 = 64 << 10;

/// The counts that are kept over sessions.
pub struct EvidenceStore {
    data: DataDir,
    clock: Arc<dyn Clock>,
    /// The file with the days of an earlier version.
    earlier: Option<PathBuf>,
}

impl EvidenceStore {
    /// Names the folder for data, which need not exist.
    pub fn new(data: DataDir, clock: Arc<dyn Clock>) -> Self {
        Self { data, clock, earlier: settings::state_dir().map(|folder| folder.join(EARLIER)) }
    }

    /// Names the folder of this process's settings.
    ///
    /// # Errors
    /// The errors of the settings.
    pub fn from_settings() -> Result<Self> {
        Ok(Self::new(settings::data_dir(&settings::read()?), Arc::new(SystemClock)))
    }

    fn new_opening(&self) -> DatabaseOpening<'_> {
        DatabaseOpening { clock: Arc::clone(&self.clock), ..DatabaseOpening::new(&self.data, &EVIDENCE_DATABASE) }
    }

    /// Returns true when there are counts.
    pub fn is_used(&self) -> bool {
        self.new_opening().path().symlink_metadata().is_ok() || self.read_earlier().is_some()
    }

    /// Reads the last 30 days.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn read_days(&self) -> Result<DayLog> {
        let opening = self.new_opening();
        let mut days = DayLog::default();
        if opening.path().symlink_metadata().is_ok() {
            days = Db::open(&opening)?.read(|c| Ok(read_days(c)?))?;
        }
        if let Some(earlier) = self.read_earlier() {
            days.add_days(&earlier);
        }
        Ok(days)
    }

    /// Reads the counts of all client sessions.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn read_evidence(&self) -> Result<FactEvidence> {
        let opening = self.new_opening();
        if opening.path().symlink_metadata().is_err() {
            return Ok(FactEvidence::default());
        }
        Db::open(&opening)?.read(|c| Ok(read_evidence(c)?))
    }

    /// Adds counts, and drops those that are too old.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be written; it then stays as it is.
    pub fn add_counts(&self, days: &DayLog, evidence: &FactEvidence) -> Result<()> {
        let earlier = self.read_earlier();
        Db::open(&self.new_opening())?.write(|tx| {
            let mut all = read_days(tx)?;
            all.add_days(days);
            if let Some(earlier) = &earlier {
                all.add_days(earlier);
            }
            all.drop_old(&*self.clock);
            write_days(tx, &all)?;
            let now = self.clock.plausible_time();
            add_evidence(tx, evidence, now)?;
            tx.execute("DELETE FROM session WHERE last < ?1", [now - SESSION_MS])?;
            Ok(())
        })?;
        // If the process dies here, the days of the earlier version count twice.
        if earlier.is_some() { self.remove_earlier() } else { Ok(()) }
    }

    /// Removes all counts.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when a file cannot be removed.
    pub fn forget(&self) -> Result<()> {
        nudge_storage::remove_database(&self.new_opening())?;
        self.remove_earlier()
    }

    /// Reads the days of an earlier version. A file that this version cannot read counts as missing.
    fn read_earlier(&self) -> Option<DayLog> {
        let text = foreign::read(self.earlier.as_ref()?, LinkPolicy::Refused, MAX_EARLIER_BYTES).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn remove_earlier(&self) -> Result<()> {
        self.earlier.iter().filter(|path| path.exists()).try_for_each(|path| files::remove_file(path))
    }
}

fn read_days(c: &Connection) -> rusqlite::Result<DayLog> {
    let mut log = DayLog::default();
    let mut statement = c.prepare("SELECT day, suggestions, bytes, followed, failed, late FROM day")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let count = |index: usize| row.get::<_, i64>(index).map(i64::unsigned_abs);
        let counts = SuggestCounts { suggestions: count(1)?, bytes: count(2)?, followed: count(3)?, failed: count(4)? };
        log.add_day(DayStats { day: row.get(0)?, counts, late: count(5)? });
    }
    Ok(log)
}

fn write_days(tx: &Transaction<'_>, days: &DayLog) -> rusqlite::Result<()> {
    tx.execute("DELETE FROM day", [])?;
    let mut insert = tx.prepare("INSERT INTO day VALUES(?1, ?2, ?3, ?4, ?5, ?6)")?;
    for DayStats { day, counts, late } in days.list_days() {
        let SuggestCounts { suggestions, bytes, followed, failed } = *counts;
        let [suggestions, bytes, followed, failed, late] =
            [suggestions, bytes, followed, failed, *late].map(|count| count.min(i64::MAX.unsigned_abs()).cast_signed());
        insert.execute(params![day, suggestions, bytes, followed, failed, late])?;
    }
    Ok(())
}

/// Adds counts. A time after `now` becomes `now`: the clock was ahead.
fn add_evidence(tx: &Transaction<'_>, evidence: &FactEvidence, now: Millis) -> rusqlite::Result<()> {
    let mut find = tx.prepare("SELECT id FROM session WHERE name = ?1")?;
    let mut add_session = tx.prepare("INSERT INTO session(name, place, last) VALUES(?1, ?2, ?3)")?;
    let mut update = tx.prepare("UPDATE session SET place = ?2, last = max(last, ?3) WHERE id = ?1")?;
    let mut add = tx.prepare(
        "INSERT INTO evidence VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET
           told = told + excluded.told, followed = followed + excluded.followed, failed = failed + excluded.failed,
           spoken_of = spoken_of + excluded.spoken_of",
    )?;
    for (name, SessionEvidence { place, last, facts }) in &evidence.sessions {
        let last = last.min(&now);
        let known: Option<i64> = find.query_row([name], |row| row.get(0)).optional()?;
        let id = match known {
            Some(id) => {
                update.execute(params![id, place, last])?;
                id
            }
            None => add_session.insert(params![name, place, last])?,
        };
        for (fact, FactCounts { told, followed, failed, spoken_of }) in facts {
            add.execute(params![id, fact, told, followed, failed, spoken_of])?;
        }
    }
    Ok(())
}

fn read_evidence(c: &Connection) -> rusqlite::Result<FactEvidence> {
    let mut evidence = FactEvidence::default();
    let mut statement = c.prepare(
        "SELECT name, place, last, fact, told, followed, failed, spoken_of FROM evidence
         JOIN session ON session.id = evidence.session",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let session = evidence.sessions.entry(row.get::<_, NameDigest>(0)?).or_default();
        (session.place, session.last) = (row.get(1)?, row.get(2)?);
        let counts =
            FactCounts { told: row.get(4)?, followed: row.get(5)?, failed: row.get(6)?, spoken_of: row.get(7)? };
        session.count_fact(row.get(3)?, counts);
    }
    Ok(evidence)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nudge::ManualClock;

    use super::*;

    const DAY_MS: Millis = 24 * 60 * 60 * 1000;
    const START_MS: Millis = 1_767_225_600_000;

    fn told(session: NameDigest, fact: NameDigest, last: Millis) -> FactEvidence {
        let counts = FactCounts { told: 1, ..FactCounts::default() };
        let session_evidence = SessionEvidence { place: 7, last, facts: BTreeMap::from([(fact, counts)]) };
        FactEvidence { sessions: BTreeMap::from([(session, session_evidence)]) }
    }

    #[test]
    fn counts_of_a_session_are_kept_for_180_days() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(START_MS));
        let data = DataDir::new(folder.path().join("data"));
        let store = EvidenceStore { data, clock: Arc::clone(&clock) as _, earlier: None };
        assert!(!store.is_used() && store.read_evidence().unwrap().is_empty());
        let add = |evidence: &FactEvidence| store.add_counts(&DayLog::default(), evidence).unwrap();
        add(&told(1, 5, START_MS));
        add(&told(1, 5, START_MS));
        // The clock was ahead at this count.
        add(&told(2, -5, START_MS + 1_000 * DAY_MS));
        clock.advance_by(10 * DAY_MS);
        add(&told(1, 6, clock.now()));
        let stored = store.read_evidence().unwrap();
        let facts =
            |session: NameDigest| stored.sessions[&session].facts.iter().map(|(fact, counts)| (*fact, counts.told));
        assert_eq!(facts(1).collect::<Vec<_>>(), [(5, 2), (6, 1)]);
        assert_eq!(facts(2).collect::<Vec<_>>(), [(-5, 1)]);
        assert_eq!((stored.sessions[&1].last, stored.sessions[&1].place), (START_MS + 10 * DAY_MS, 7));
        clock.advance_by(171 * DAY_MS);
        add(&told(3, 5, clock.now()));
        assert_eq!(store.read_evidence().unwrap().sessions.into_keys().collect::<Vec<_>>(), [1, 3]);
        store.forget().unwrap();
        assert!(!store.is_used() && store.read_evidence().unwrap().is_empty());
    }
}
