//! Reads the database of a dead session. The store gets every valid row, and the session continues afterwards.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use nudge::{Config, Nudge, RowChange, RowTaker, SessionRow};
use nudge_storage::SessionDb;
use tempfile::TempDir;

static PLACE: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder for temporary files"));

fuzz_target!(|bytes: &[u8]| {
    let folder = PLACE.path();
    let file = folder.join("session.db");
    let _ = fs::remove_file(folder.join("session.db-wal"));
    fs::write(&file, bytes).expect("there is room");
    #[cfg(unix)]
    for (path, mode) in [(folder, 0o700), (&*file, 0o600)] {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("it is ours");
    }
    let Ok((mut database, restored)) = SessionDb::open(folder, "session", true) else { return };
    let rows = restored.rows.len();
    Nudge::new(Config::default()).restore(restored.rows.iter().map(|(_, row)| row.clone()));
    let all = |take: &mut RowTaker<'_>| {
        let row = |(_, row): &(String, SessionRow)| RowChange::put("hint", row.name.clone(), row.body.clone());
        restored.rows.iter().map(row).try_for_each(|row| take(&row))
    };
    let more = |take: &mut RowTaker<'_>| take(&RowChange::put("more", "more", "1".to_owned()));
    if database.write("fuzz", &more, &all).is_err() {
        return;
    }
    drop(database);
    let (_, again) = SessionDb::open(folder, "session", true).expect("it was just written");
    assert!(again.rows.iter().any(|(source, _)| source == "fuzz") && rows <= 1 << 20);
});
