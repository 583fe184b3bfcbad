//! Tests the priority of the engine's threads. The test has its own process, because it looks at all threads of the
//! process.

#![cfg(target_os = "linux")]

mod kit;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use kit::Tiny;
use nudge_core::clock::SystemClock;
use nudge_core::embed::ModelState;
use nudge_core::source::give_way;
use nudge_embed::{ModelChoice, ModelLender};

/// Returns the nice value of each thread named `rten-0`, which is the first thread of an engine's pool.
fn nice() -> Vec<i32> {
    let read_nice = |thread: fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let (name, fields) = stat.rsplit_once(')').unwrap_or_default();
        name.ends_with("(rten-0").then(|| fields.split_whitespace().nth(16).unwrap().parse().unwrap())
    };
    fs::read_dir("/proc/self/task").unwrap().flatten().filter_map(read_nice).collect()
}

/// A caller that makes many vectors in the background uses a low-priority thread. A prompt at the same time uses
/// another thread and does not wait, even if the background caller has loaded the model.
///
/// Promise (models): Computing vectors in the background has a low priority, and no prompt waits for it.
#[test]
fn vectors_for_a_background_caller_are_computed_on_a_low_priority_thread() {
    let place = tempfile::tempdir().unwrap();
    let models = ModelLender::new(ModelChoice::Folder(Tiny::new(1).write(place.path())), Arc::new(SystemClock));
    let lent = models.clone();
    let embed = move || {
        let ModelState::Ready(model) = lent.get(Duration::from_mins(2)) else { panic!("no model") };
        model.embed(&["build fails"]).unwrap()
    };
    let asks = embed.clone();
    let made = std::thread::spawn(move || {
        give_way();
        embed()
    });
    let made = made.join().unwrap();
    assert!(!nice().is_empty() && nice().iter().all(|nice| *nice == 10), "{:?}", nice());
    assert_eq!(asks(), made);
    assert!(nice().contains(&0), "{:?}", nice());
}
