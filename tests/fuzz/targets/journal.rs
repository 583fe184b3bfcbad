//! Replays the journal of a dead session. The store gets every valid record, and the file is a valid journal
//! afterwards.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use nudge::{Config, Nudge};
use nudge_client::{PrimaryLock, RuntimeDir};
use tempfile::TempDir;

struct Place {
    dir: RuntimeDir,
    lock: PrimaryLock,
    _folder: TempDir,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder for temporary files");
    let dir = RuntimeDir::create(Some(&folder.path().join("run"))).expect("it can be made");
    let lock = dir.wait_for_lock(|| ()).expect("nobody has it");
    Place { dir, lock, _folder: folder }
});

fuzz_target!(|bytes: &[u8]| {
    let Place { dir, lock, .. } = &*PLACE;
    let file = dir.path().join("journal");
    fs::write(&file, bytes).expect("there is room");
    #[cfg(unix)]
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
    let Ok((journal, restored)) = dir.open_journal(lock, true) else { return };
    Nudge::new(Config::default()).restore(restored.records.iter());
    journal.append(b"more").expect("there is room");
    drop(journal);
    let (_, again) = dir.open_journal(lock, true).expect("it was just written");
    assert_eq!(again.records.len(), restored.records.len() + 1);
});
