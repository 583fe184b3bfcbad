//! Tests that the index equals a newly made index, after any changes of the files and any number of scans.

use std::fs;

use nudge_core::clock::SystemClock;
use nudge_core::source::NoSession;
use nudge_storage::rusqlite::types::Value;
use proptest::prelude::*;

use super::*;

fn index(root: &std::path::Path, cache: &std::path::Path) -> BrainIndex {
    let folder = BrainFolder::open(root).unwrap();
    let (clock, fence): (Arc<dyn Clock>, Arc<dyn Fence>) = (Arc::new(SystemClock), Arc::new(NoSession));
    BrainIndex::open(folder, &DataDir::new(cache), &clock, &fence).unwrap()
}

/// Returns the content of the index, without stamps of files and row numbers.
fn dump(index: &BrainIndex) -> Vec<Vec<Value>> {
    let of_units = "SELECT path, uid, own_id, title, aliases, summary, kind, domain, tags, confidence, source, created,
                    modified, problems, size, hash FROM unit ORDER BY path";
    let of_chunks = "SELECT u.path, ord, begin, line, last_line, level, breadcrumb, head, text, c.hash
                     FROM chunk c JOIN unit u ON u.id = c.unit ORDER BY u.path, ord";
    let of_relations =
        "SELECT u.path, ord, by, target, r.kind, weight, d.path FROM relation r JOIN unit u ON u.id = r.src
                        LEFT JOIN unit d ON d.id = r.dst ORDER BY u.path, ord";
    let of_words = "SELECT term, doc, cnt FROM chunk_words ORDER BY term";
    let of_skipped = "SELECT path, why FROM skipped ORDER BY path";
    let mut all = Vec::new();
    for sql in [of_units, of_chunks, of_relations, of_words, of_skipped] {
        let rows = index.db.read(|c| {
            let mut statement = c.prepare(sql)?;
            let columns = statement.column_count();
            let row = |row: &nudge_storage::rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
            Ok(statement.query_map([], row)?.collect::<Result<Vec<Vec<Value>>, _>>()?)
        });
        all.extend(rows.unwrap());
    }
    all
}

#[test]
fn what_is_held_and_what_is_read_are_of_one_moment() {
    let (root, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["a.md", "b.md"] {
        fs::write(root.path().join(name), "# A note\n\nwords\n").unwrap();
    }
    let index = index(root.path(), cache.path());
    index.scan(None).unwrap();
    let held = |c: &nudge_storage::rusqlite::Connection, memory: &crate::meaning::IndexMemory| {
        let ids = memory.chunks.keys().copied().collect::<std::collections::BTreeSet<i64>>();
        let mut statement = c.prepare("SELECT id FROM chunk")?;
        let rows = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok((ids, rows))
    };
    let meanwhile = index.meanings.with_memory(&index.db, None, |c, memory| {
        // At this moment, another writer removes a note.
        index.db.write(|tx| rows::remove_file(tx, "a.md"))?;
        held(c, memory)
    });
    let (ids, read) = meanwhile.unwrap();
    assert_eq!((ids.len(), &ids), (2, &read));
    let (ids, read) = index.meanings.with_memory(&index.db, None, held).unwrap();
    assert_eq!((ids.len(), &ids), (1, &read));
}

const PATHS: [&str; 5] = ["a.md", "b/a.md", "b/c.md", "domains/x/d.md", "e.md"];
const TEXTS: [&str; 9] = [
    "",
    "# One\n\n[[Two]] [x](b/c.md)\n",
    "---\nid: a\n---\n# Two\n\n[[a]] and [[d]]\n",
    "---\nid: e\ntitle: One\naliases: [Two]\nrelated: [{id: a, type: uses}, b/c]\n---\ntext\n",
    "---\nid: a\n---\n# Three\n\n## Part\n\n[up](../a.md) [[One]]\n",
    "---\nid: b/c\n---\nwords of another\n",
    "---\nbad: : yaml\n---\n[[b/c]]\n",
    "\u{0}binary",
    "# One\n\nsame title\n",
];

#[derive(Debug, Clone)]
enum Step {
    Write(usize, usize),
    Remove(usize),
    Rename(usize, usize),
    Scan,
}

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    prop_oneof![
        4 => (path(), 0..TEXTS.len()).prop_map(|(path, text)| Step::Write(path, text)),
        1 => path().prop_map(Step::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        3 => Just(Step::Scan),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn an_index_that_followed_is_as_one_made_anew(steps in proptest::collection::vec(step(), 1..24)) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("brain");
        for path in PATHS {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        }
        let followed = index(&root, &place.path().join("one"));
        for step in steps {
            match step {
                Step::Write(path, text) => fs::write(root.join(PATHS[path]), TEXTS[text]).unwrap(),
                Step::Remove(path) => drop(fs::remove_file(root.join(PATHS[path]))),
                Step::Rename(from, to) => drop(fs::rename(root.join(PATHS[from]), root.join(PATHS[to]))),
                Step::Scan => drop(followed.scan(None).unwrap()),
            }
        }
        prop_assert!(followed.scan(None).unwrap().is_whole);
        let anew = index(&root, &place.path().join("two"));
        anew.scan(None).unwrap();
        prop_assert_eq!(dump(&followed), dump(&anew));
        followed.db.read(|c| {
            c.execute_batch("INSERT INTO chunk_fts(chunk_fts) VALUES('integrity-check')").ok();
            let broken: i64 = c.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))?;
            assert_eq!(broken, 0);
            Ok(())
        }).unwrap();
    }
}

#[test]
fn a_file_with_another_path_is_the_same_unit() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("brain");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.md"), "# One\n").unwrap();
    fs::write(root.join("b.md"), "[[One]]\n").unwrap();
    let index = index(&root, place.path());
    assert_eq!(index.scan(None).unwrap(), ScanResult { is_whole: true, read: 2, renamed: 0 });
    let id = |path: &str| {
        let sql = "SELECT id FROM unit WHERE path = ?1";
        index.db.read(|c| Ok(c.query_row(sql, [path], |row| row.get::<_, i64>(0))?)).unwrap()
    };
    let before = id("a.md");
    fs::rename(root.join("a.md"), root.join("c.md")).unwrap();
    assert_eq!(index.scan(None).unwrap().renamed, 1);
    assert_eq!(id("c.md"), before);
}

#[test]
fn without_time_nothing_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("brain");
    fs::create_dir(&root).unwrap();
    let files = 5 * BATCH;
    for number in 0..files {
        fs::write(root.join(format!("{number}.md")), format!("# Note {number}\n")).unwrap();
    }
    let index = index(&root, place.path());
    let past = Instant::now().checked_sub(std::time::Duration::from_secs(1)).unwrap();
    assert_eq!(index.scan(Some(past)).unwrap(), ScanResult { is_whole: false, read: 0, renamed: 0 });
    assert!(!index.is_made().unwrap());
    assert!(index.scan(None).unwrap().is_whole && index.is_made().unwrap());
    let count = index.db.read(|c| Ok(c.query_row("SELECT count(*) FROM unit", [], |row| row.get::<_, i64>(0))?));
    assert_eq!(count.unwrap(), i64::try_from(files).unwrap());
}
