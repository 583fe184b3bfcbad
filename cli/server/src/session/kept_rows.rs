//! Remembers the rows of the database of kept hints, so that a session writes only the rows that changed. It has the
//! rows' names and digests, and not their texts.

use std::collections::{BTreeSet, HashMap, HashSet};

use nudge_app::kept::VariantName;
use nudge_app::kept::database::{HintChanges, KeptContents};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a hint's text.
type BodyDigest = [u8; 32];

/// A hint of the session that must be in the database.
pub struct LastingHint<'a> {
    /// The names.
    pub name: VariantName,
    /// The hint as an export has it.
    pub body: &'a str,
    digest: BodyDigest,
}

impl<'a> LastingHint<'a> {
    /// Names an exported hint.
    pub fn from_export(component: &str, key: &str, hint: &'a RawValue) -> Self {
        let body = hint.get();
        Self { name: VariantName::from_export(component, key, hint), body, digest: compute_digest(body) }
    }
}

fn compute_digest(body: &str) -> BodyDigest {
    Sha256::digest(body.as_bytes()).into()
}

/// The rows of the database after the last read or write.
#[derive(Default)]
pub struct KnownRows {
    /// The name of the last write; `None` before the first read, and for a database without any write.
    pub write: Option<String>,
    /// The session that wrote last.
    pub session: Option<String>,
    /// The content hashes of forgotten hints.
    pub forgotten: BTreeSet<String>,
    /// The names of hints that must stay in the database although the session does not have them.
    pub waiting: HashSet<VariantName>,
    rows: HashMap<VariantName, KnownRow>,
}

struct KnownRow {
    digest: BodyDigest,
    waits: bool,
}

impl KnownRows {
    /// Remembers the contents of the database. The rows that wait there go on waiting.
    pub fn from_contents(contents: &KeptContents) -> Self {
        let rows = contents.hints.iter().map(|hint| {
            let row = KnownRow { digest: compute_digest(&hint.body), waits: hint.waits };
            (hint.name.clone(), row)
        });
        let waiting = contents.hints.iter().filter(|hint| hint.waits).map(|hint| hint.name.clone());
        Self {
            write: contents.write.clone(),
            session: contents.session.clone(),
            forgotten: contents.forgotten.clone(),
            waiting: waiting.collect(),
            rows: rows.collect(),
        }
    }

    /// Compares the rows with the session's lasting hints, of which there is one for each name.
    pub fn compare<'a>(&'a self, hints: &'a [LastingHint<'a>]) -> HintChanges<'a> {
        let is_same = |hint: &LastingHint<'_>| {
            self.rows.get(&hint.name).is_some_and(|row| row.digest == hint.digest && !row.waits)
        };
        let puts = hints.iter().filter(|hint| !is_same(hint)).map(|hint| (&hint.name, hint.body)).collect();
        let there: HashSet<&VariantName> = hints.iter().map(|hint| &hint.name).collect();
        let mut changes = HintChanges { puts, ..HintChanges::default() };
        for (name, row) in self.rows.iter().filter(|(name, _)| !there.contains(name)) {
            match (self.waiting.contains(name), row.waits) {
                (true, false) => changes.waits.push(name),
                (true, true) => {}
                (false, _) => changes.deletes.push(name),
            }
        }
        changes
    }

    /// Remembers that the session has written its lasting hints.
    pub fn note_write(&mut self, hints: &[LastingHint<'_>], write: String, session: &str, forgotten: BTreeSet<String>) {
        // A hint that the session has does not wait, even if one with its name did.
        for hint in hints {
            self.waiting.remove(&hint.name);
        }
        let waiting = &self.waiting;
        self.rows.retain(|name, _| waiting.contains(name));
        self.rows.values_mut().for_each(|row| row.waits = true);
        let written = hints.iter().map(|hint| (hint.name.clone(), KnownRow { digest: hint.digest, waits: false }));
        self.rows.extend(written);
        (self.write, self.session, self.forgotten) = (Some(write), Some(session.to_owned()), forgotten);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};

    use nudge::SystemClock;
    use nudge_app::kept::database::{DeletionChanges, KeptDatabase, SessionWrite};
    use nudge_app::kept::folder::KeptFolder;
    use nudge_app::kept::log::{HintAuthors, WriteAuthors};
    use nudge_core::source::DataDir;

    use super::*;

    fn by_nobody() -> WriteAuthors<'static> {
        static NOBODY: LazyLock<HintAuthors> = LazyLock::new(HintAuthors::new);
        WriteAuthors { authors: &NOBODY, now: 0 }
    }

    fn open_database(place: &std::path::Path) -> KeptDatabase {
        KeptFolder::new(DataDir::new(place.join("data")), Arc::new(SystemClock)).open_database().unwrap()
    }

    fn name(key: usize) -> VariantName {
        VariantName { component: "a".into(), key: format!("k{key}"), variant: String::new() }
    }

    fn hint(key: usize, body: &str) -> LastingHint<'_> {
        LastingHint { name: name(key), body, digest: compute_digest(body) }
    }

    /// Promise (kept hints): A changed hint writes one row, however many hints are kept.
    #[test]
    fn one_of_a_thousand_hints_that_changes_is_one_row() {
        let place = tempfile::tempdir().unwrap();
        let database = open_database(place.path());
        let mut known = KnownRows::from_contents(&database.read_all().unwrap());
        let bodies: Vec<_> = (0..1_000).map(|key| format!("{{\"value\":\"{key}\"}}")).collect();
        let mut write = |hints: &[LastingHint<'_>]| {
            let changes = known.compare(hints);
            let counts = (changes.puts.len(), changes.waits.len(), changes.deletes.len());
            let write = SessionWrite {
                last: known.write.as_deref(),
                session: "s",
                forgotten: None,
                changes: &changes,
                deletions: &DeletionChanges::new(),
                by: by_nobody(),
            };
            let written = database.write(&write).unwrap().expect("nobody else writes");
            known.note_write(hints, written, "s", BTreeSet::new());
            counts
        };
        let mut hints: Vec<_> = bodies.iter().enumerate().map(|(key, body)| hint(key, body)).collect();
        assert_eq!(write(&hints), (1_000, 0, 0));
        assert_eq!(write(&hints), (0, 0, 0));
        hints[500] = hint(500, "{\"value\":\"new\"}");
        assert_eq!(write(&hints), (1, 0, 0));
        hints.remove(7);
        assert_eq!(write(&hints), (0, 0, 1));
        let stored = database.read_all().unwrap();
        let body = |key| stored.hints.iter().find(|hint| hint.name == name(key)).map(|hint| hint.body.as_str());
        assert_eq!((stored.hints.len(), body(7), body(500)), (999, None, Some("{\"value\":\"new\"}")));
        assert_eq!(body(8), Some("{\"value\":\"8\"}"));
    }

    /// Promise (kept hints): The text of a deleted hint is in no part of the database a week after its session.
    #[test]
    fn nothing_is_left_of_a_deletion_after_a_week() {
        let place = tempfile::tempdir().unwrap();
        let database = open_database(place.path());
        let text = "zebra crossing ".repeat(100);
        let names = [name(1)];
        let put = HintChanges { puts: vec![(&names[0], &text)], ..HintChanges::default() };
        let delete = HintChanges { deletes: vec![&names[0]], ..HintChanges::default() };
        let write = |last: Option<&str>, changes: &HintChanges<'_>, deletions: &DeletionChanges| {
            let write = SessionWrite { last, session: "s", forgotten: None, changes, deletions, by: by_nobody() };
            database.write(&write).unwrap().unwrap()
        };
        let day = 24 * 60 * 60 * 1000;
        let listed = |begins: bool, now: i64| {
            let deletions = database.read_deletions(begins, now).unwrap();
            deletions.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
        };
        let first = write(None, &put, &DeletionChanges::new());
        let second = write(Some(&first), &delete, &[(1, Some(text.clone())), (2, Some(text.clone()))].into());
        assert_eq!(listed(false, 100 * day), [1, 2], "the week begins with the next session");
        assert_eq!(listed(true, day), [1, 2]);
        // A deletion that is partly undone does not get another week.
        let third = write(Some(&second), &HintChanges::default(), &[(1, Some("less".into())), (2, None)].into());
        write(Some(&third), &HintChanges::default(), &[(3, Some(text.clone()))].into());
        assert_eq!(listed(true, 8 * day), [1, 3]);
        assert_eq!(listed(true, 8 * day + 1), [3]);
        assert_eq!(listed(true, 16 * day), [0; 0]);
        drop(database);
        let bytes = std::fs::read(place.path().join("data/hints.db")).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("zebra"));
    }

    #[test]
    fn a_hint_that_waits_stays_until_the_session_has_it() {
        let mut known = KnownRows::default();
        known.note_write(&[hint(1, "1"), hint(2, "2")], "w1".into(), "s", BTreeSet::new());
        known.waiting.insert(name(2));
        let changes = known.compare(&[]);
        assert_eq!((changes.waits, changes.deletes), (vec![&name(2)], vec![&name(1)]));
        known.note_write(&[], "w2".into(), "s", BTreeSet::new());
        assert!(known.compare(&[]).is_empty());
        let hints = [hint(2, "2")];
        assert_eq!(known.compare(&hints).puts, [(&name(2), "2")], "it does not wait any more");
        known.note_write(&hints, "w3".into(), "s", BTreeSet::new());
        assert!(known.compare(&hints).is_empty());
        assert_eq!(known.compare(&[]).deletes, [&name(2)]);
    }

    #[test]
    fn contents_of_another_write_are_not_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let database = open_database(place.path());
        let none = HintChanges::default();
        let write = |last: Option<&str>| {
            database
                .write(&SessionWrite {
                    last,
                    session: "s",
                    forgotten: None,
                    changes: &none,
                    deletions: &DeletionChanges::new(),
                    by: by_nobody(),
                })
                .unwrap()
        };
        let first = write(None).unwrap();
        assert_eq!((write(None), write(Some("x"))), (None, None));
        assert_ne!(write(Some(&first)).unwrap(), first);
    }
}
