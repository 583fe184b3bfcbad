//! Ends a session whose processes were all killed, as a few clients kill their servers when they close. Before the next
//! session begins, this module writes the kept hints of the dead session from its rows.

use std::sync::Arc;

use nudge::{Error, JoinedServices, Result};
use nudge_app::{followed, sources};
use nudge_client::{PrimaryLock, ROWS, SessionFile, SessionState};
use nudge_core::embed::NoModels;
use nudge_core::source::SessionIdentity;
use nudge_storage::SessionDb;

use super::counts::SessionCounts;
use super::keeper::{HintKeeper, KeeperSetup};
use super::open::{OpenSources, SourceSupplies};
use super::role::{ServeSettings, derive_values, make_clock};
use super::rows::PrimaryRows;
use super::time::SessionTime;

/// Writes the kept hints of the directory's session if its own processes could not do so. The session's files stay as
/// they are. The caller has checked that the session is over.
pub fn keep_for(settings: &ServeSettings, lock: &PrimaryLock) {
    // A stopped session has already written its hints and emptied its session file.
    let SessionState::Lives(session) = settings.dir.read_session() else { return };
    if session.keep
        && let Err(error) = write(settings, lock, &session)
    {
        tracing::warn!(error = error.message(), "the last hints of a session that was killed are lost");
    }
}

fn write(settings: &ServeSettings, lock: &PrimaryLock, session: &SessionFile) -> Result<()> {
    let dir = &settings.dir;
    let (database, mut restored) = SessionDb::open(dir.path(), ROWS, true)?;
    drop(database);
    if restored.rows.is_empty() {
        return Ok(());
    }
    let is_whole = restored.notice.is_none();
    if !is_whole {
        followed::forget_session(&session.id)?;
    }
    let clock = SessionTime::from_last_session(Arc::new(make_clock()), settings).clock;
    let (data, kept_clock) = (settings.data.clone(), Arc::clone(&clock) as _);
    let setup = KeeperSetup { runtime: dir.path(), session: &session.id, data, clock: kept_clock };
    let keeper = Arc::new(HintKeeper::open(true, setup));
    if let Some(why) = keeper.start_notice() {
        return Err(Error::unavailable(why));
    }
    keeper.exchange_deletions(&mut restored, false);
    let lent = SourceSupplies {
        clock: Arc::clone(&clock) as _,
        session: SessionIdentity { id: session.id.clone(), created_at: session.created_at },
        rows: Arc::new(PrimaryRows::new(lock.new_watch(dir), None)),
        keeper: Arc::clone(&keeper),
        changes: Arc::clone(&keeper) as _,
        data: settings.data.clone(),
        cache: settings.cache.clone(),
        models: Arc::new(NoModels),
        settings: derive_values(settings, &keeper),
        // The killed server has already counted the lines that it told.
        counts: Arc::new(SessionCounts::new(Arc::clone(&clock) as _, settings.data.clone(), dir.clone(), false, true)),
        given_up: &|| false,
    };
    let hints = OpenSources::open(&lent, &sources::list_sources()[..1], restored)?;
    keeper.read_back(Arc::new(JoinedServices::new(hints.list_services())), is_whole);
    hints.close();
    keeper.close();
    Ok(())
}
