//! Reads the small files by which processes find a session: `server.pid` with the server's address, and the session
//! file.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use nudge_client::RuntimeDir;
use tempfile::TempDir;

static PLACE: LazyLock<(RuntimeDir, TempDir)> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder for temporary files");
    (RuntimeDir::create(Some(&folder.path().join("run"))).expect("it can be made"), folder)
});

fuzz_target!(|bytes: &[u8]| {
    let (dir, _) = &*PLACE;
    for file in [dir.server_file_path(), dir.path().join("session")] {
        fs::write(&file, bytes).expect("there is room");
        #[cfg(unix)]
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
    }
    // Debug output must not contain any part of a token.
    let told = format!("{:?} {:?}", dir.read_server_file(), dir.read_session());
    assert!(!told.contains("TOKEN-OF-A-SEED"));
    dir.is_over("x");
});
