//! Tests exports and imports of any size.

mod kit;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kit::{Desk, SHOP};
use nudge_core::clock::Clock as _;
use nudge_core::error::ErrorKind;
use nudge_core::patience::CallLimit;
use nudge_core::service::Caller;
use nudge_storage::rusqlite::Connection;
use serde_json::{Value, json};

/// Makes the JSON of a record in an export.
fn record(number: usize, body: &str) -> Value {
    json!({"project": format!("acme/p{}", number % 7), "kind": "issue", "title": format!("Number {number}"),
        "body": body, "status": "open", "created_at": "2026-01-02T03:04:05.000Z", "updated_at": "2026-01-02T03:04:05.000Z"})
}

/// Writes an export with this number of records.
fn export_file(desk: &Desk, count: usize, body: &str) -> PathBuf {
    let records: Vec<_> = (0..count).map(|number| record(number, body)).collect();
    let file = desk.folder.path().join("export.json");
    fs::write(&file, json!({"format": "nudge-records/1", "records": records}).to_string()).unwrap();
    file
}

fn total(desk: &Desk) -> Value {
    desk.call("list", &json!({"project": "*", "limit": 1}))["total"].clone()
}

/// Reads an export page by page. Returns the number of pages and all records.
fn pages(desk: &Desk) -> (usize, Vec<Value>) {
    let (mut count, mut records, mut after) = (0, Vec::new(), json!(0));
    loop {
        let page = desk.call("export", &json!({"after": after}));
        assert!(page.to_string().len() < 9 << 20, "a page is bounded");
        count += 1;
        records.extend(page["records"].as_array().unwrap().iter().cloned());
        match page.get("next") {
            Some(next) => after = next.clone(),
            None => return (count, records),
        }
    }
}

/// Promise (sources): An export of records is read in pages of about 8 MiB. An export as one answer is refused above
/// 64 MiB, and the error names the command that writes an export of any size.
#[test]
fn an_export_of_any_size_is_read_in_pages() {
    let desk = Desk::in_memory(std::sync::Arc::new(nudge_core::embed::NoModels));
    let id = desk.save(SHOP, "issue", "The first", "");
    assert_eq!(pages(&desk).0, 1);
    let fill = |count: usize| {
        let script = format!(
            "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {count})
             INSERT INTO record(project_id, kind, title, body, same, origin, created_at, updated_at, seq)
               SELECT project_id, 'spec', 'Number ' || n, printf('%.*c', 32000, 'x'), n, 'cli', created_at, updated_at,
                 (SELECT max(seq) FROM record) + n FROM record, number WHERE id = {id};"
        );
        Connection::open(desk.folder.path().join("data/records.db")).unwrap().execute_batch(&script).unwrap();
    };
    fill(600);
    let (count, records) = pages(&desk);
    assert_eq!((count, records.len()), (3, 601));
    assert_eq!(desk.call("export", &json!({}))["records"], Value::from(records));
    fill(1_600);
    let refused = desk.refused("export", &json!({}));
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.message().contains("64 MiB") && refused.message().contains("`nudge records export`"), "{refused}");
    assert_eq!(pages(&desk).1.len(), 2_201);
    assert_eq!(desk.call("export", &json!({"after": i64::MAX})), json!({"format": "nudge-records/1", "records": []}));
}

#[test]
fn the_change_log_has_the_time_of_an_import_and_not_that_of_its_records() {
    let desk = Desk::new();
    // The records were changed a day after the time of the clock.
    let file = export_file(&desk, 3, "body");
    desk.by(Caller::with_name("test"), "import", &json!({"file": file})).unwrap();
    let logged = desk.records.read_changes(0, 10).unwrap();
    let of_log: Vec<_> = logged.iter().map(|change| (change.time(), change.author.as_str(), change.is_gone)).collect();
    assert_eq!(of_log, [(desk.clock.now(), "test", false); 3]);
}

/// Promise (sources): An import of records may be of any size, and other writers can work between its batches.
#[test]
fn others_write_while_an_import_is_under_way() {
    let desk = Desk::new();
    let first = desk.save(SHOP, "issue", "The first", "");
    let count = 1_500;
    let file = export_file(&desk, count, "body");
    let is_over = AtomicBool::new(false);
    let saved = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut saved = Vec::new();
            while !is_over.load(Ordering::Relaxed) && saved.len() < 1_000 {
                saved.push(desk.save(SHOP, "issue", &format!("Meanwhile {}", saved.len()), ""));
            }
            saved
        });
        let done = desk.by(Caller::with_name("test"), "import", &json!({"file": file}));
        is_over.store(true, Ordering::Relaxed);
        let done = done.unwrap();
        assert_eq!((&done["imported"], &done["refused"]), (&json!(count), &json!(0)), "{done}");
        writer.join().unwrap()
    });
    let imported: Vec<_> = {
        let c = Connection::open(desk.folder.path().join("data/records.db")).unwrap();
        let mut ids = c.prepare("SELECT id FROM record WHERE origin = 'import' ORDER BY id").unwrap();
        ids.query_map([], |row| row.get::<_, i64>(0)).unwrap().map(Result::unwrap).collect()
    };
    let is_between = |id: &&i64| **id > imported[0] && **id < imported[imported.len() - 1];
    assert!(imported[0] > first && saved.iter().filter(is_between).count() > 1, "{saved:?}");
}

/// An import without room for all records says how many records are stored, and the same import continues when there is
/// room.
///
/// Promise (sources): An import of records that ends early, without room or by a kill, keeps the finished batches.
/// The same import then skips these records and continues with the rest.
#[test]
fn an_import_without_room_says_what_is_in_and_goes_on() {
    let mut desk = Desk::new();
    let body = "word ".repeat(2_000);
    let count = 250;
    let file = export_file(&desk, count, &body);
    desk.set(&[("records.max_bytes", &(6 << 20).to_string())]);
    let caller = Caller::with_name("test").with_key(Some("import-1"));
    let refused = desk.by(caller, "import", &json!({"file": file})).unwrap_err();
    let imported = total(&desk);
    assert_eq!((refused.kind(), &refused.data()["imported"]), (ErrorKind::Quota, &imported), "{refused}");
    assert!(imported.as_u64().unwrap() > 100, "the batch without room for all is written up to there: {refused}");
    let said =
        format!("{imported} records of the file came in before that, and the same import goes on with the rest.");
    assert!(refused.message().ends_with(&said) && refused.message().contains("records.max_bytes"), "{refused}");
    desk.set(&[]);
    let rest = json!(count as u64 - imported.as_u64().unwrap());
    let done = desk.by(caller, "import", &json!({"file": file})).unwrap();
    assert_eq!((&done["imported"], &done["skipped"]), (&rest, &imported), "{done}");
    assert_eq!(total(&desk), count);
    assert_eq!(desk.by(caller, "import", &json!({"file": file})).unwrap(), done, "made once");
}

/// Promise (sources): An import of records ends soon after its caller has gone.
#[test]
fn an_import_ends_when_its_caller_has_gone() {
    let desk = Desk::new();
    let count = 3_000;
    let file = export_file(&desk, count, "body");
    let limit = CallLimit::from_now(Duration::from_hours(1));
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            while total(&desk) == 0 {
                std::thread::yield_now();
            }
            limit.give_up();
        });
        limit.run(|| desk.refused("import", &json!({"file": file})))
    });
    assert_eq!((refused.kind(), &refused.data()["imported"]), (ErrorKind::Unavailable, &total(&desk)), "{refused}");
    let rest = json!(count as u64 - total(&desk).as_u64().unwrap());
    assert_ne!(rest, 0);
    limit.run(|| desk.refused("import", &json!({"file": file})));
    assert_eq!(desk.call("import", &json!({"file": file}))["imported"], rest, "nothing came in for nobody");
}

/// Promise (sources): An incomplete export of records is refused before any of its records is written.
#[test]
fn a_broken_export_is_refused_before_anything_is_written() {
    let desk = Desk::new();
    let file = export_file(&desk, 300, "body");
    let whole = fs::read_to_string(&file).unwrap();
    let long = "x".repeat(17 << 20);
    let mut broken = vec![
        (whole[..whole.len() / 2].to_owned(), "ends in the middle"),
        (whole[..whole.len() - 1].to_owned(), "ends in the middle"),
        (format!("{whole}{{}}"), "no export"),
        (whole.replace("nudge-records/1", "nudge-records/2"), "later version"),
        (whole.replacen("\"records\":[", &format!("\"records\":[{{\"body\":\"{long}\"}},"), 1), "Record 1 "),
        (whole.replacen("\"records\"", "\"records\":[],\"records\"", 1), "no export"),
        (whole.replacen("\"records\"", "\"other\"", 1), "no export"),
        ("x".into(), "no export"),
        (String::new(), "no export"),
    ];
    let mut deep = "[".repeat(1_000);
    let _ = write!(deep, "{}", "]".repeat(1_000));
    for (text, said) in broken.drain(..) {
        fs::write(&file, text).unwrap();
        let refused = desk.refused("import", &json!({"file": file}));
        assert!(refused.kind() == ErrorKind::Invalid && refused.message().contains(said), "{said}: {refused}");
    }
    assert_eq!(total(&desk), 0);
    let mut bytes = whole.replacen("Number 7", "Number Z", 1).into_bytes();
    let place = bytes.windows(8).position(|window| window == b"Number Z").unwrap();
    bytes[place + 7] = 0xff;
    fs::write(&file, bytes).unwrap();
    assert_eq!(desk.refused("import", &json!({"file": file})).kind(), ErrorKind::Invalid, "no text");
    assert_eq!(total(&desk), 0);
    // An entry that is not a record does not stop the import of the others. The format may come after the records.
    let text = format!(r#"{{"records":[{deep},{},1],"next":3,"format":"nudge-records/1"}}"#, record(1, ""));
    fs::write(&file, text).unwrap();
    let done = desk.call("import", &json!({"file": file}));
    let places: Vec<_> = done["errors"].as_array().unwrap().iter().map(|error| &error["at"]).collect();
    assert_eq!((&done["imported"], places), (&json!(1), vec![&json!(1), &json!(3)]), "{done}");
}

/// The position of a refused record is counted from the beginning of the file, over all batches.
#[test]
fn a_record_of_a_later_batch_is_named_by_its_place_in_the_file() {
    let desk = Desk::new();
    let file = export_file(&desk, 350, "body");
    let text = fs::read_to_string(&file).unwrap().replacen("Number 321", "", 1);
    fs::write(&file, text).unwrap();
    let done = desk.call("import", &json!({"file": file}));
    assert_eq!((&done["imported"], &done["errors"][0]["at"]), (&json!(349), &json!(322)), "{done}");
}
