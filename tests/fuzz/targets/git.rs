//! Reads the context from a repository's own files: `HEAD`, `config`, and the path in the file `.git`.
#![no_main]

use std::collections::HashMap;
use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static PLACE: LazyLock<TempDir> = LazyLock::new(|| {
    let place = TempDir::new().expect("a folder for temporary files");
    for folder in ["a/.git/objects", "a/.git/refs/heads", "b", "real/objects", "real/refs"] {
        fs::create_dir_all(place.path().join(folder)).expect("there is room");
    }
    place
});

fuzz_target!(|bytes: &[u8]| {
    // The first byte selects the file; the rest is its content.
    let Some((first, text)) = bytes.split_first() else { return };
    let place = PLACE.path();
    fs::write(place.join("a/.git/HEAD"), "ref: refs/heads/main\n").expect("there is room");
    fs::write(place.join("a/.git/config"), "[remote \"origin\"]\n\turl = git@github.com:a/b.git\n")
        .expect("there is room");
    let (file, cwd) = match first % 5 {
        0 => ("a/.git/HEAD", "a"),
        1 => ("a/.git/config", "a"),
        2 => ("a/.git/packed-refs", "a"),
        3 => ("a/.git/commondir", "a"),
        _ => ("b/.git", "b"),
    };
    fs::write(place.join(file), text).expect("there is room");
    let vars: HashMap<_, _> = HashMap::from([("HOME".into(), place.into()), ("PATH".into(), "/nowhere".into())]);
    if let Ok(context) = nudge_client::detect_from(Some(&place.join(cwd)), &vars) {
        assert!(context.cwd().is_some());
    }
    fs::remove_file(place.join(file)).expect("it was there");
});
