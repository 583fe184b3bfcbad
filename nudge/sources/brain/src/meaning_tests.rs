//! Tests that the memory follows the index after any changes of files and vectors.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use nudge_core::clock::{Clock, SystemClock};
use nudge_core::source::{DataDir, Fence, NoSession};
use nudge_storage::vectors::unit;
use proptest::prelude::*;

use super::*;
use crate::folder::BrainFolder;
use crate::index::BrainIndex;

/// A model whose vector for a text depends only on the length of the text.
struct Lengths;

impl TextEmbedder for Lengths {
    fn id(&self) -> &'static str {
        "lengths"
    }
    fn dims(&self) -> usize {
        2
    }
    fn max_tokens(&self) -> usize {
        20
    }
    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let lengths = texts.iter().map(|text| u16::try_from(text.len()).map_or(0.0, f32::from));
        Ok(lengths.map(|length| unit(&[length, 50.0]).unwrap_or_default()).collect())
    }
}

/// Opens the index of the brain in a folder.
fn index(place: &Path) -> BrainIndex {
    let (clock, fence): (Arc<dyn Clock>, Arc<dyn Fence>) = (Arc::new(SystemClock), Arc::new(NoSession));
    let folder = BrainFolder::open(&place.join("brain")).unwrap();
    BrainIndex::open(folder, &DataDir::new(place.join("cache")), &clock, &fence).unwrap()
}

/// The content of the memory in a fixed order.
#[derive(Debug, PartialEq)]
struct Held {
    chunks: BTreeMap<i64, i64>,
    firsts: BTreeMap<i64, i64>,
    paths: BTreeMap<i64, Arc<str>>,
    hashes: BTreeMap<i64, Hash>,
    nearness: BTreeMap<i64, f32>,
}

fn held(meanings: &IndexMeanings, index: &BrainIndex) -> Held {
    let take_snapshot = |memory: &IndexMemory| {
        let vectors = memory.vectors.as_ref().unwrap();
        let cosines = vectors.compute_cosines(&[1.0, 0.0]);
        Held {
            chunks: memory.chunks.clone().into_iter().collect(),
            firsts: memory.firsts.clone().into_iter().collect(),
            paths: memory.paths.clone().into_iter().collect(),
            hashes: memory.hashes.clone().into_iter().collect(),
            nearness: memory.chunks.keys().filter_map(|id| Some((*id, cosines.get_best(*id)?))).collect(),
        }
    };
    meanings.with_memory(&index.db, Some(&Lengths), |_, memory| Ok(take_snapshot(memory))).unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Write(u8, u8),
    Remove(u8),
    Rename(u8, u8),
    Rebuild,
    Vectors,
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..24_u8, 0..9_u8).prop_map(|(note, text)| Step::Write(note, text)),
        2 => (0..24_u8).prop_map(Step::Remove),
        2 => (0..24_u8, 0..24_u8).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => Just(Step::Rebuild),
        4 => Just(Step::Vectors),
        6 => Just(Step::Look),
    ]
}

fn text(note: u8, text: u8) -> String {
    let sections = (0..text % 4)
        .map(|number| format!("## Part {number}\n\n{}\n\n", "word ".repeat(usize::from(text * 7 + number))));
    format!("# Note {note}\n\n{}", sections.collect::<String>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Promise (sources): A brain in memory equals a fresh read of its index, and only touched files are read again.
    #[test]
    fn held_state_equals_a_fresh_look(steps in proptest::collection::vec(step(), 1..40)) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("brain");
        fs::create_dir(&root).unwrap();
        let path = |note: u8| root.join(format!("{note}.md"));
        for note in 0..24 {
            fs::write(path(note), text(note, note)).unwrap();
        }
        let index = index(place.path());
        let kept = IndexMeanings::default();
        for step in steps.into_iter().chain([Step::Vectors, Step::Look]) {
            match step {
                Step::Write(note, of) => fs::write(path(note), text(note, of)).unwrap(),
                Step::Remove(note) => drop(fs::remove_file(path(note))),
                Step::Rename(from, to) => drop(fs::rename(path(from), path(to))),
                Step::Rebuild => drop(index.rebuild().unwrap()),
                Step::Vectors => drop(make_some(&index.db, &Lengths).unwrap()),
                Step::Look => {
                    index.scan(None).unwrap();
                    prop_assert_eq!(held(&kept, &index), held(&IndexMeanings::default(), &index));
                }
            }
        }
    }
}

/// After a change of one note, only this note is read again.
///
/// Promise: see `held_state_equals_a_fresh_look`.
#[test]
fn an_untouched_file_is_not_read_again() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("brain");
    fs::create_dir(&root).unwrap();
    for note in 0..9 {
        fs::write(root.join(format!("{note}.md")), text(note, 1)).unwrap();
    }
    let index = index(place.path());
    index.scan(None).unwrap();
    let paths = || {
        let clone_paths = |memory: &IndexMemory| memory.paths.clone();
        index.meanings.with_memory(&index.db, None, |_, memory| Ok(clone_paths(memory))).unwrap()
    };
    let before = paths();
    fs::write(root.join("3.md"), text(3, 2)).unwrap();
    index.scan(None).unwrap();
    let after = paths();
    let again: Vec<_> = after.iter().filter(|(id, path)| !Arc::ptr_eq(path, &before[id])).collect();
    assert_eq!(again.iter().map(|(_, path)| &***path).collect::<Vec<_>>(), ["3.md"]);
    // When the list of changes no longer contains this change, all units are read again.
    fs::write(root.join("4.md"), text(4, 2)).unwrap();
    index.scan(None).unwrap();
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
                INSERT INTO touched(unit) SELECT 0 FROM n";
    index.db.write(|tx| Ok(tx.execute_batch(many)?)).unwrap();
    assert_eq!(held(&index.meanings, &index), held(&IndexMeanings::default(), &index));
    let kept = index.db.read(|c| Ok(c.query_row("SELECT count(*) FROM touched", [], |row| row.get::<_, i64>(0))?));
    assert!((4096..6000).contains(&kept.unwrap()));
    assert!(paths().iter().all(|(id, path)| !Arc::ptr_eq(path, &after[id])));
}
