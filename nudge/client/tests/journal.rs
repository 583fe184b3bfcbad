//! Tests that the journal returns the appended records, even when its bytes are damaged.

use std::fs;
use std::io::Write;
use std::thread;

use proptest::prelude::*;

use kit::{Home, payload};

mod kit;

/// Payload sizes near the size of a record's head, and near 256.
const SIZES: [usize; 13] = [0, 1, 2, 3, 7, 8, 9, 16, 31, 64, 127, 255, 256];
const MAGIC_BYTES: usize = 16;
const HEAD_BYTES: usize = 8;

#[test]
fn what_is_appended_reads_back() {
    let home = Home::new();
    let (journal, restored) = home.open(true);
    assert_eq!((restored.records.len(), restored.notice), (0, None), "there is none yet");
    let records: Vec<_> = (0..50).map(|number| payload(number, SIZES[number % SIZES.len()])).collect();
    for record in &records {
        journal.append(record).unwrap();
    }
    assert_eq!(journal.file_bytes(), fs::metadata(home.file()).unwrap().len());
    assert_eq!(home.reread(), records);
    journal.append(b"one more").unwrap();
    assert_eq!(home.reread().last().unwrap(), b"one more");
    drop(journal);
    let (journal, restored) = home.open(false);
    assert_eq!((restored.records.len(), journal.file_bytes()), (0, 0), "a new session");
    assert_eq!(home.reread(), Vec::<Vec<u8>>::new());
}

#[test]
fn a_part_of_the_records_is_written_anew_and_the_rest_stays() {
    let home = Home::new();
    let (journal, _) = home.open(false);
    for record in [&b"a1"[..], b"b1", b"a2", b"b2"] {
        journal.append(record).unwrap();
    }
    journal.compact(|record| record.starts_with(b"b"), [b"a!".to_vec()].into_iter()).unwrap();
    assert_eq!(home.reread(), [&b"b1"[..], b"b2", b"a!"]);
    journal.append(b"a3").unwrap();
    assert_eq!(home.reread(), [&b"b1"[..], b"b2", b"a!", b"a3"]);
    // A compaction that cannot rename its file leaves the old journal in use.
    let blocked = home.file().with_extension("new");
    fs::create_dir(&blocked).unwrap();
    journal.compact(|_| true, std::iter::empty()).unwrap_err();
    journal.append(b"a4").unwrap();
    assert_eq!(home.reread().last().unwrap(), b"a4");
    assert_eq!(home.reread().len(), 5);
}

#[test]
fn a_record_has_its_limits() {
    let home = Home::new();
    let (journal, _) = home.open(false);
    journal.append(b"before").unwrap();
    let refused = journal.append(&vec![0; (128 << 20) + 1]).unwrap_err();
    assert_eq!(refused.reason(), "E_UNAVAILABLE");
    let large = vec![7; 5 << 20];
    journal.append(&large).unwrap();
    assert_eq!(home.reread(), [b"before".to_vec(), large]);
}

/// Promise (session): From a journal that is cut at any byte, the next PRIMARY restores each record before the cut.
#[test]
fn cut_at_every_byte() {
    let home = Home::new();
    let (journal, _) = home.open(false);
    let records: Vec<_> = (0..40).map(|number| payload(number, SIZES[number % SIZES.len()])).collect();
    let mut ends = vec![MAGIC_BYTES];
    for record in &records {
        journal.append(record).unwrap();
        ends.push(ends.last().unwrap() + HEAD_BYTES + record.len());
    }
    drop(journal);
    let whole = fs::read(home.file()).unwrap();
    assert_eq!(whole.len(), *ends.last().unwrap());
    for length in 0..=whole.len() {
        fs::write(home.file(), &whole[..length]).unwrap();
        let kept = ends.iter().filter(|end| **end <= length).count().saturating_sub(1);
        let (journal, restored) = home.open(true);
        assert_eq!(restored.records, records[..kept], "{length}");
        let clean = length < MAGIC_BYTES || ends.contains(&length);
        assert_eq!(restored.notice.is_none(), clean, "{length}: {restored:?}");
        assert_eq!(fs::metadata(home.file()).unwrap().len(), journal.file_bytes(), "{length}: the rest is cut off");
        journal.append(b"after").unwrap();
        let again = home.reread();
        assert_eq!((&again[..kept], &again[kept..]), (&records[..kept], &[b"after".to_vec()][..]), "{length}");
    }
}

#[test]
fn no_flipped_bit_makes_a_record() {
    let home = Home::new();
    let (journal, _) = home.open(false);
    let records: Vec<_> = (0..6).map(|number| payload(number, [0, 1, 5, 9, 30, 4][number])).collect();
    for record in &records {
        journal.append(record).unwrap();
    }
    drop(journal);
    let whole = fs::read(home.file()).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(home.file(), &bytes).unwrap();
        if bytes[14] != b'1' && bytes[14].is_ascii_digit() && bytes[14] != b'0' {
            assert!(home.dir.open_journal(&home.lock, true).is_err(), "bit {bit} makes another version");
            continue;
        }
        let (journal, restored) = home.open(true);
        assert!(restored.records.len() < records.len(), "bit {bit} is covered");
        assert_eq!(restored.records, records[..restored.records.len()], "bit {bit}");
        assert!(restored.notice.is_some(), "bit {bit} is told");
        journal.append(b"after").unwrap();
        assert_eq!(home.reread().len(), restored.records.len() + 1);
    }
}

#[test]
fn a_journal_of_another_version_is_neither_restored_nor_lost() {
    let home = Home::new();
    for bytes in [&b"nudge-journal 2\nwhatever"[..], b"nudge-journal 10\n", b"nudge-journal 1"] {
        fs::write(home.file(), bytes).unwrap();
        if bytes.len() < MAGIC_BYTES {
            assert!(home.reread().is_empty(), "cut: it may be of this version");
            continue;
        }
        let error = home.dir.open_journal(&home.lock, true).unwrap_err();
        assert_eq!(error.reason(), "E_UNAVAILABLE");
        assert!(error.message().contains("of another version of Nudge"), "{error}");
        assert_eq!(fs::read(home.file()).unwrap(), bytes);
        let (journal, restored) = home.open(false);
        assert_eq!((restored.records.len(), restored.notice), (0, None), "a new session");
        journal.append(b"new").unwrap();
        assert_eq!(home.reread(), [b"new"]);
    }
}

#[test]
fn garbage_is_nothing_to_restore() {
    let home = Home::new();
    let huge = [&b"nudge-journal 1\n"[..], &[255; 64]].concat();
    let zeros = [&b"nudge-journal 1\n"[..], &[0; 4096]].concat();
    for (bytes, told) in [
        (&b""[..], None),
        (b"{\"pid\":1}", Some("not a journal")),
        (b"nudge-journal X\nwhatever", Some("not a journal")),
        (&[0; 5000], Some("not a journal")),
        (&huge, Some("no whole record")),
        (&zeros, Some("no whole record")),
    ] {
        fs::write(home.file(), bytes).unwrap();
        let (journal, restored) = home.open(true);
        assert!(restored.records.is_empty());
        let notice = restored.notice.unwrap_or_default();
        assert!(told.map_or(notice.is_empty(), |told| notice.contains(told)), "{notice}");
        journal.append(b"new").unwrap();
        assert_eq!(home.reread(), [b"new"]);
    }
}

#[test]
fn compaction_replaces_everything() {
    let home = Home::new();
    let (journal, _) = home.open(false);
    for number in 0..100 {
        journal.append(&payload(number, 500)).unwrap();
    }
    let before = journal.file_bytes();
    // A killed compaction has left this file.
    fs::write(home.dir.path().join("journal.new"), b"half a jour").unwrap();
    journal.compact(|_| false, (90..100).map(|number| payload(number, 500))).unwrap();
    assert!(journal.file_bytes() < before / 9);
    journal.append(b"after").unwrap();
    let records = home.reread();
    assert_eq!((records.len(), &records[0][..], &records[10][..]), (11, &payload(90, 500)[..], &b"after"[..]));
    assert_eq!(home.names(), ["journal", "primary.lock"]);

    fs::write(home.dir.path().join("journal.new"), b"half a jour").unwrap();
    drop(journal);
    let (journal, restored) = home.open(true);
    assert_eq!((restored.records, restored.notice), (records, None), "the leftover is ignored");
    assert_eq!(home.names(), ["journal", "primary.lock"], "and removed");

    journal.compact(|_| false, std::iter::empty()).unwrap();
    journal.append(b"first").unwrap();
    assert_eq!(home.reread(), [b"first"]);
    journal.clear().unwrap();
    assert_eq!(fs::metadata(home.file()).unwrap().len(), 0, "nothing stays on the disk");
    journal.append(b"second").unwrap();
    assert_eq!(home.reread(), [b"second"]);
}

#[test]
fn a_compaction_that_fails_changes_nothing() {
    let home = Home::new();
    let (journal, _) = home.open(false);
    journal.append(b"old").unwrap();
    fs::create_dir(home.dir.path().join("journal.new")).unwrap();
    let refused = journal.compact(|_| false, std::iter::once(b"new".to_vec())).unwrap_err();
    assert_eq!(refused.reason(), "E_UNAVAILABLE");
    journal.append(b"goes on").unwrap();
    assert_eq!(home.reread(), [&b"old"[..], b"goes on"]);
    fs::remove_dir(home.dir.path().join("journal.new")).unwrap();
    let panicked = thread::scope(|scope| {
        let payloads = std::iter::from_fn(|| -> Option<Vec<u8>> { panic!("expected: the store fails") });
        scope.spawn(|| journal.compact(|_| false, payloads)).join()
    });
    assert!(panicked.is_err());
    journal.append(b"and on").unwrap();
    journal.compact(|_| false, std::iter::once(b"new".to_vec())).unwrap();
    assert_eq!(home.reread(), [b"new"]);
}

#[test]
fn threads_append_whole_records() {
    const THREADS: usize = 8;
    const EACH: usize = 200;
    let home = Home::new();
    let (journal, _) = home.open(false);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let journal = &journal;
            scope.spawn(move || {
                for number in 0..EACH {
                    journal.append(&payload(thread * EACH + number, 8 + number)).unwrap();
                }
            });
        }
    });
    let number = |record: &Vec<u8>| usize::from_le_bytes(record[..8].try_into().unwrap());
    let records = home.reread();
    for thread in 0..THREADS {
        let own: Vec<_> = records.iter().map(number).filter(|number| number / EACH == thread).collect();
        assert!(own.iter().copied().eq(thread * EACH..(thread + 1) * EACH), "in the order of the thread");
    }
    for record in &records {
        assert_eq!(*record, payload(number(record), record.len()));
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<u8>),
    /// Compacts the journal and keeps every n-th record.
    Compact(usize),
    Reopen,
    /// The process dies, and the file loses this number of bytes at its end.
    Cut(usize),
    /// The process dies, and these bytes follow the records in the file.
    Torn(Vec<u8>),
    NewSession,
    Clear,
    Remove,
    Shorten,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        12 => bytes().prop_map(Step::Append),
        2 => (1_usize..4).prop_map(Step::Compact),
        2 => Just(Step::Reopen),
        2 => (0_usize..400).prop_map(Step::Cut),
        // The bytes are fewer than a record's head, so they cannot be a record by chance.
        2 => prop::collection::vec(any::<u8>(), 0..8).prop_map(Step::Torn),
        1 => Just(Step::NewSession),
        1 => Just(Step::Clear),
        1 => Just(Step::Remove),
        1 => Just(Step::Shorten),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_list(steps in prop::collection::vec(step(), 1..50)) {
        let home = Home::new();
        let mut journal = home.open(false).0;
        let mut model: Vec<Vec<u8>> = Vec::new();
        for step in steps {
            let dies = matches!(step, Step::Cut(_) | Step::Torn(_) | Step::Reopen);
            match step {
                Step::Append(record) => {
                    journal.append(&record).unwrap();
                    model.push(record);
                }
                Step::Compact(every) => {
                    model = model.into_iter().step_by(every).collect();
                    journal.compact(|_| false, model.iter().cloned()).unwrap();
                }
                Step::Reopen => {}
                Step::Cut(bytes) => {
                    let length = fs::metadata(home.file()).map_or(0, |meta| meta.len());
                    let length = length.saturating_sub(bytes as u64);
                    fs::OpenOptions::new().write(true).open(home.file()).unwrap().set_len(length).unwrap();
                    let mut end = MAGIC_BYTES;
                    model.retain(|record| {
                        end += HEAD_BYTES + record.len();
                        end as u64 <= length
                    });
                }
                Step::Torn(bytes) => {
                    fs::OpenOptions::new().append(true).open(home.file()).unwrap().write_all(&bytes).unwrap();
                }
                Step::NewSession => {
                    model.clear();
                    journal = home.open(false).0;
                }
                Step::Clear => {
                    model.clear();
                    journal.clear().unwrap();
                }
                Step::Remove => {
                    fs::remove_file(home.file()).unwrap();
                    journal.append(b"back").unwrap();
                    model.push(b"back".to_vec());
                }
                Step::Shorten => {
                    if journal.file_bytes() == 0 {
                        continue;
                    }
                    fs::OpenOptions::new().write(true).open(home.file()).unwrap().set_len(journal.file_bytes() - 1).unwrap();
                    prop_assert!(!journal.needs_compaction());
                    let refused = journal.append(b"lost").unwrap_err();
                    prop_assert_eq!(refused.reason(), "E_UNAVAILABLE");
                    prop_assert!(journal.needs_compaction());
                    journal.compact(|_| false, model.iter().cloned()).unwrap();
                    prop_assert!(!journal.needs_compaction());
                }
            }
            if dies {
                drop(journal);
                let (opened, restored) = home.open(true);
                prop_assert_eq!(&restored.records, &model);
                journal = opened;
            }
            prop_assert_eq!(journal.file_bytes(), fs::metadata(home.file()).unwrap().len());
        }
        prop_assert_eq!(home.reread(), model);
    }
}
