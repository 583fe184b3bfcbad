//! Tests that dropping a model frees its memory. The test has its own process, because it measures the memory of the
//! whole process.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod kit;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use kit::Tiny;
use nudge_core::clock::ManualClock;
use nudge_core::embed::ModelState;
use nudge_embed::{ModelChoice, ModelLender};

/// The number of made-up words. The table of their embeddings takes most of the model's memory.
const WORDS: usize = 1_000_000;

/// Promise: see `an_idle_model_is_dropped_and_comes_back`.
#[test]
fn a_model_that_is_dropped_gives_its_memory_back() {
    if std::env::var_os("MALLOC_MMAP_THRESHOLD_").is_none() {
        // Runs the test again with the server's settings for the C library, with which the library keeps little freed
        // memory.
        let test = std::env::current_exe().unwrap();
        let told =
            [("MALLOC_MMAP_THRESHOLD_", "1048576"), ("MALLOC_TRIM_THRESHOLD_", "1048576"), ("MALLOC_ARENA_MAX", "4")];
        let status = Command::new(test).arg("--nocapture").envs(told).status();
        assert!(status.unwrap().success());
        return;
    }
    let place = tempfile::tempdir().unwrap();
    {
        let mut tiny = Tiny::new(1);
        let (shape, values) = tiny.tensors.get_mut("embeddings.word_embeddings.weight").unwrap();
        let row = kit::HIDDEN;
        values.resize(WORDS * row, 0.5);
        shape[0] = WORDS;
        tiny.config["vocab_size"] = WORDS.into();
        tiny.write(place.path());
    }
    let clock = Arc::new(ManualClock::new(0));
    let models = ModelLender::new(ModelChoice::Folder(place.path().to_owned()), clock.clone());
    let table = WORDS * kit::HIDDEN;
    let before = resident_bytes();
    let mut left = Vec::new();
    for _ in 0..5 {
        assert!(matches!(models.get(Duration::from_mins(2)), ModelState::Ready(_)));
        let loaded = resident_bytes();
        assert!(loaded > before + table, "{before} {loaded}: a byte for each number is there");
        assert!(loaded < before + 3 * table, "{before} {loaded}: four are not");
        clock.advance_by(i64::from(u32::MAX));
        assert!(models.tick());
        let after = resident_bytes();
        assert!(after + table < loaded, "{loaded} {after}: they are gone");
        left.push(after);
    }
    // The C library keeps some memory for each thread. The limit allows this, because it stops growing after a while.
    assert!(left[4] < left[0] + table / 4, "{left:?}");
}

fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
