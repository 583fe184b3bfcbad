//! Reads a project's coverage files during a call. The first byte selects the file.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use nudge_code::SOURCE;
use nudge_core::service::Service as _;
use nudge_core::source::{Source, SourceHost};
use serde_json::json;
use serde_json::value::to_raw_value;
use tempfile::TempDir;

const FILES: [&str; 3] = [".coverage", "coverage.json", "lcov.info"];

/// A project with one function; a fuzz input becomes its coverage file.
struct Project {
    source: Arc<dyn Source>,
    root: PathBuf,
    _folder: TempDir,
}

static PROJECT: LazyLock<Project> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder for temporary files");
    let root = folder.path().canonicalize().expect("it is there").join("project");
    fs::create_dir(&root).expect("there is room");
    fs::write(root.join("setup.py"), "").expect("there is room");
    fs::write(root.join("a.py"), "def f():\n    return 1\n").expect("there is room");
    let host = SourceHost::new_alone(folder.path(), &SOURCE, &[]).expect("the defaults are allowed");
    Project { source: (SOURCE.open)(host).expect("the folder is there"), root, _folder: folder }
});

fuzz_target!(|bytes: &[u8]| {
    let Some((first, text)) = bytes.split_first() else { return };
    let Project { source, root, .. } = &*PROJECT;
    let file = root.join(FILES[usize::from(*first) % FILES.len()]);
    fs::write(&file, text).expect("there is room");
    let params = to_raw_value(&json!({"id": "a.py:f", "root": root})).expect("it is JSON");
    // The answer must be about the requested node, whatever the coverage file contains.
    let told = source.call("nudge.code.node", &params).expect("the node is there");
    assert!(told.get().contains("node:a.py:f"));
    fs::remove_file(file).expect("it was there");
});
