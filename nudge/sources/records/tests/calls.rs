//! Tests the methods of records on a database in a temporary folder.

mod kit;

use std::time::{Duration, Instant};

use kit::{Desk, SHOP};
use nudge_core::clock::Clock;
use nudge_core::context::Context;
use nudge_core::error::ErrorKind;
use nudge_core::service::{CallIdentity, Caller};
use nudge_core::source::StopFlag;
use nudge_storage::rusqlite;
use serde_json::{Value, json};

#[test]
fn a_mere_look_makes_no_database() {
    let desk = Desk::new();
    assert!(!desk.records.in_use());
    assert_eq!(desk.found(SHOP, "uploads"), Vec::<i64>::new());
    assert_eq!(desk.call("list", &json!({"project": "*"}))["total"], 0);
    assert_eq!(desk.call("projects", &json!({}))["projects"], json!([]));
    assert_eq!(desk.refused("get", &json!({"id": 1})).kind(), ErrorKind::NotFound);
    for (verb, params) in [
        ("delete", json!({"id": 1})),
        ("delete", json!({"id": 1, "forever": true})),
        ("restore", json!({"id": 1})),
        ("merge", json!({"into": 1, "ids": [2]})),
        ("upsert", json!({"id": 1, "title": "x"})),
        ("backup", json!({"file": desk.folder.path().join("copy.db")})),
    ] {
        assert_eq!(desk.refused(verb, &params).kind(), ErrorKind::NotFound, "{verb}");
    }
    assert!(!desk.folder.path().join("data").exists());
}

#[test]
fn a_backup_that_cannot_be_made_is_told_by_the_status() {
    let desk = Desk::new();
    desk.save(SHOP, "issue", "Uploads fail", "nginx");
    let told = || desk.records.report_status()["records"]["backup_failed"].clone();
    assert_eq!(told(), Value::Null);
    let backups = desk.folder.path().join("data/backups");
    std::fs::write(&backups, "a file").unwrap();
    desk.clock.advance_by(25 * 3_600_000);
    desk.save(SHOP, "issue", "Downloads fail", "nginx, too");
    assert!(told().as_str().is_some_and(|told| told.starts_with("A backup in ")), "{}", told());
    std::fs::remove_file(&backups).unwrap();
    desk.clock.advance_by(25 * 3_600_000);
    desk.save(SHOP, "issue", "Lists fail", "not nginx");
    assert_eq!(told(), Value::Null);
}

#[test]
fn what_is_gone_for_ever_is_not_said_to_come_back() {
    let desk = Desk::new();
    let id = desk.save(SHOP, "issue", "Uploads fail", "nginx");
    desk.call("delete", &json!({"id": id, "forever": true}));
    for verb in ["get", "restore"] {
        let refused = desk.refused(verb, &json!({"id": id}));
        assert!(refused.kind() == ErrorKind::NotFound && refused.message().contains("nothing is left"), "{refused}");
    }
}

/// A process can be killed after the commit of a deletion for ever and before the end of the compaction.
#[test]
fn a_deletion_for_ever_that_is_sent_again_writes_the_file_anew() {
    let desk = Desk::new();
    let id = desk.save(SHOP, "issue", "Uploads fail", "nginx");
    let params = json!({"id": id, "forever": true});
    let delete = || {
        let mut caller = Caller::with_name("test").with_key(Some("4f0c"));
        caller.call = Some(CallIdentity::new("nudge.records.delete", &params.to_string()));
        desk.by(caller, "delete", &params).unwrap()
    };
    let first = delete();
    let file = desk.folder.path().join("data/records.db");
    let other = rusqlite::Connection::open(&file).unwrap();
    let killed = "CREATE TABLE gap(text); INSERT INTO gap VALUES(zeroblob(1 << 20)); DROP TABLE gap;
                  INSERT INTO compaction DEFAULT VALUES";
    let read = |sql: &str| other.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    other.execute_batch(killed).unwrap();
    assert!(read("PRAGMA freelist_count") > 0, "as a kill before the compaction leaves it");
    assert_eq!(delete(), first);
    assert_eq!((read("PRAGMA freelist_count"), read("SELECT count(*) FROM compaction")), (0, 0));
    // A new call without the key is refused: its error says that nothing is left of the record. So this call must
    // compact the file too.
    other.execute_batch(killed).unwrap();
    desk.refused("delete", &params);
    assert_eq!((read("PRAGMA freelist_count"), read("SELECT count(*) FROM compaction")), (0, 0));
}

/// A killed process left the mark for a compaction. The worker of the next session compacts the file.
#[test]
fn the_worker_writes_the_file_anew_that_a_killed_process_left() {
    let mut desk = Desk::new();
    desk.save(SHOP, "issue", "Uploads fail", "nginx");
    let other = rusqlite::Connection::open(desk.folder.path().join("data/records.db")).unwrap();
    other.execute_batch("INSERT INTO compaction DEFAULT VALUES").unwrap();
    let is_due = || other.query_row("SELECT count(*) > 0 FROM compaction", [], |row| row.get::<_, bool>(0)).unwrap();
    desk.again();
    let stop = StopFlag::default();
    let until = Instant::now() + Duration::from_secs(30);
    std::thread::scope(|scope| {
        scope.spawn(|| desk.records.work(&stop));
        while is_due() && Instant::now() < until {
            std::thread::yield_now();
        }
        stop.set();
    });
    assert!(!is_due());
}

/// After the compaction, no table, index, stored answer or log contains the text.
#[test]
fn what_is_deleted_for_ever_is_in_none_of_the_files() {
    let desk = Desk::new();
    for number in 0..20 {
        desk.save(SHOP, "issue", &format!("Uploads fail {number}"), "The zyzzy of the proxy is too small.");
    }
    let mut caller = Caller::with_name("test").with_key(Some("4f0c"));
    let params =
        json!({"kind": "issue", "title": "Zyzzyvatron", "body": "zyzzyvatron is secret", "context": {"repo": SHOP}});
    caller.call = Some(CallIdentity::new("nudge.records.upsert", &params.to_string()));
    let id = desk.by(caller, "upsert", &params).unwrap()["record"]["id"].as_i64().unwrap();
    desk.call("upsert", &json!({"id": id, "body": "The zyzzyvatron was here before."}));
    // The search ignores case, as FTS5 does. FTS5 leaves out the beginning that a word shares with the word before it,
    // so the test searches only for the end of the word.
    let holds = || {
        let files = std::fs::read_dir(desk.folder.path().join("data")).unwrap().map(|entry| entry.unwrap().path());
        let texts = files.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap());
        texts.filter(|text| text.windows(6).any(|part| part.eq_ignore_ascii_case(b"vatron"))).count()
    };
    assert!(holds() > 0);
    desk.call("delete", &json!({"id": id, "forever": true}));
    assert_eq!(holds(), 0);
    let refused = desk.by(caller, "upsert", &params).unwrap_err();
    assert!(refused.message().ends_with("use a new key."), "{refused}");
}

/// A search returns the best records even if they hardly match, and says how weak they are. `only` leaves out the
/// records of other projects.
#[test]
fn a_search_on_purpose_returns_weak_records_too() {
    let desk = Desk::new();
    let upload = desk.save(SHOP, "issue", "Uploads above 1 MB fail with 413", &"nginx has a limit. ".repeat(40));
    let elsewhere = "github.com/acme/other";
    let deploy = desk.save(elsewhere, "issue", "Deploys wait for the canary queue", "One service at a time.");
    let search = |params: Value| {
        let found = desk.call("search", &params);
        assert_eq!(found["omitted"], 0, "{found}");
        found["results"].as_array().unwrap().clone()
    };
    let question =
        "after lunch please look into slow invoices, missing screenshots and unreadable receipts; deploys wait";
    let found = search(json!({"query": question, "project": "*"}));
    assert_eq!((&found[0]["id"], &found[0]["weak"]), (&json!(deploy), &json!("shares 2 of 9 words")), "{found:?}");
    let found = search(json!({"query": "proxies with limited invoices", "project": "*"}));
    assert_eq!((&found[0]["id"], &found[0]["weak"]), (&json!(upload), &json!("shares one word")), "{found:?}");
    let body = found[0]["body"].as_str().unwrap();
    assert!(body.len() <= 200 && found[0]["cut"] == true, "{body}");
    let found = search(json!({"query": "supercanaryfied", "project": "*"}));
    assert_eq!((&found[0]["id"], &found[0]["weak"]), (&json!(deploy), &json!("shares parts of words")), "{found:?}");
    let only = |project: &str| search(json!({"query": "uploads and deploys", "project": project, "only": true}));
    let both = search(json!({"query": "uploads and deploys", "project": "acme/shop"}));
    assert_eq!((both.len(), only("acme/other").len(), &only("acme/shop")[0]["id"]), (2, 1, &json!(upload)));
    let refused = desk.refused("search", &json!({"query": "uploads", "project": "*", "only": true}));
    assert_eq!(refused.message(), "`only` needs a project, and `*` names all; leave one of them out.");
}

#[test]
fn what_is_saved_is_found_also_by_another_process_and_from_another_project() {
    let mut desk = Desk::new();
    let upload =
        desk.save(SHOP, "issue", "Uploads above 1 MB fail with 413", "nginx had client_max_body_size 1m; now 20m.");
    let other = desk.save(SHOP, "arch", "Sessions live in Redis", "So that a deploy logs nobody out.");
    desk.again();
    assert_eq!(desk.found(SHOP, "why do uploads fail with 413?"), [upload]);
    assert_eq!(desk.found("github.com/acme/other", "client_max_body_size"), [upload]);
    let found = desk.call(
        "search",
        &json!({"query": "redis sessions", "explain": true, "context": {"repo": "github.com/acme/other"}}),
    );
    let hit = &found["results"][0];
    assert_eq!((&hit["id"], &hit["elsewhere"], &hit["project"]), (&json!(other), &json!(true), &json!("acme/shop")));
    assert_eq!((&hit["similarity"], &found["mode"]), (&Value::Null, &json!("lexical")));
    assert_eq!(hit["explain"]["words"], json!(["redis", "sessions"]));
    // A record of the caller's own project also gets the term `project`.
    let here = desk.call("search", &json!({"query": "redis sessions", "explain": true, "context": {"repo": SHOP}}));
    assert_eq!(here["results"][0]["explain"]["parts"]["project"], 0.1);
    assert!(here["results"][0]["relevance"].as_f64() > hit["relevance"].as_f64());
}

#[test]
fn a_change_keeps_what_is_not_given_and_what_was() {
    let desk = Desk::new();
    let id = desk.save(SHOP, "spec", "Export as CSV", "Streams rows.");
    desk.clock.advance_by(1000);
    let changed = desk.call("upsert", &json!({"id": id, "status": "resolved", "if_match_version": 1}));
    assert_eq!((&changed["created"], &changed["previous_version"]), (&json!(false), &json!(1)));
    let record = &changed["record"];
    assert_eq!(
        (&record["title"], &record["body"], &record["status"]),
        (&json!("Export as CSV"), &json!("Streams rows."), &json!("resolved"))
    );
    assert_eq!(
        (&record["version"], &record["created_at"], &record["updated_at"]),
        (&json!(2), &json!("2026-01-01T00:00:00.000Z"), &json!("2026-01-01T00:00:01.000Z"))
    );
    let stale = desk.refused("upsert", &json!({"id": id, "title": "x", "if_match_version": 1}));
    assert_eq!((stale.kind(), &stale.data()["current_version"]), (ErrorKind::Conflict, &json!(2)));
    // A save of the same values changes nothing.
    assert_eq!(desk.call("upsert", &json!({"id": id, "status": "resolved"}))["record"]["version"], 2);
    let got = desk.call("get", &json!({"id": id, "revisions": true}));
    let revisions: Vec<_> = got["revisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|revision| (&revision["version"], &revision["status"], &revision["why"]))
        .collect();
    assert_eq!(revisions, [(&json!(1), &json!("open"), &json!("update"))]);
    assert_eq!(desk.call("restore", &json!({"id": id, "version": 1}))["status"], "open");
    assert_eq!(desk.refused("restore", &json!({"id": id, "version": 9})).kind(), ErrorKind::NotFound);
}

#[test]
fn equal_texts_are_one_record_and_others_are_not() {
    let desk = Desk::new();
    let id = desk.save(SHOP, "issue", "Uploads fail with 413.", "nginx");
    let again = desk.call(
        "upsert",
        &json!({"kind": "issue", "title": "uploads FAIL with 413", "body": "NGINX", "context": {"repo": SHOP}}),
    );
    assert_eq!(
        (&again["record"]["id"], &again["deduplicated"], &again["created"]),
        (&json!(id), &json!(true), &json!(false))
    );
    assert_eq!(again["record"]["body"], "NGINX");
    for (kind, title, body, repo) in [
        ("issue", "Uploads fail with 431", "nginx", SHOP),
        ("arch", "Uploads fail with 413.", "nginx", SHOP),
        ("issue", "Uploads fail with 413.", "nginx", "github.com/acme/other"),
        ("issue", "Uploads fail with 413.", "apache", SHOP),
    ] {
        let made = desk.call("upsert", &json!({"kind": kind, "title": title, "body": body, "context": {"repo": repo}}));
        assert_eq!(made["created"], true, "{made}");
    }
    let distinct = json!({"kind": "issue", "title": "Uploads fail with 413.", "body": "nginx", "distinct": true, "context": {"repo": SHOP}});
    assert_eq!(desk.call("upsert", &distinct)["created"], true);
}

#[test]
fn what_is_deleted_comes_back_for_thirty_days_and_its_number_is_never_anothers() {
    let desk = Desk::new();
    let id = desk.save(SHOP, "issue", "Uploads fail", "nginx");
    assert_eq!(desk.call("delete", &json!({"id": id})), json!({"deleted": true, "id": id}));
    assert_eq!(desk.found(SHOP, "uploads fail nginx"), Vec::<i64>::new());
    let gone = desk.refused("get", &json!({"id": id}));
    assert!(gone.kind() == ErrorKind::NotFound && gone.message().contains("restore"), "{gone}");
    let next = desk.save(SHOP, "issue", "Something else", "");
    assert!(next > id);
    assert_eq!(desk.call("restore", &json!({"id": id}))["version"], 2);
    assert_eq!(desk.found(SHOP, "uploads fail nginx"), [id]);
    desk.call("delete", &json!({"id": id}));
    desk.clock.advance_by(29 * 86_400_000);
    desk.records.tick(desk.clock.now());
    desk.call("restore", &json!({"id": id}));
    desk.call("delete", &json!({"id": id}));
    desk.clock.advance_by(31 * 86_400_000);
    desk.records.tick(desk.clock.now());
    assert_eq!(desk.refused("restore", &json!({"id": id})).kind(), ErrorKind::NotFound);
}

/// Promise (storage): A clock that is ahead for seconds purges no deleted record: only days that have really passed
/// count.
#[test]
fn a_clock_that_is_ahead_for_seconds_purges_nothing() {
    const DAY_MS: i64 = 86_400_000;
    let mut desk = Desk::new();
    desk.again_with_doubts();
    let id = desk.save(SHOP, "issue", "Uploads fail", "nginx");
    desk.call("delete", &json!({"id": id}));
    let tick = |desk: &Desk| desk.records.tick(desk.clock.now());
    for lead in [35 * DAY_MS, 3650 * DAY_MS] {
        desk.clock.jump_by(lead);
        for _ in 0..3 {
            desk.clock.advance_by(5_000);
            tick(&desk);
        }
        // A write while the clock is ahead purges nothing either.
        desk.save(SHOP, "update", &format!("Stored {lead} ahead"), "");
        tick(&desk);
        desk.clock.jump_by(-lead);
        tick(&desk);
    }
    assert_eq!(desk.call("restore", &json!({"id": id}))["title"], "Uploads fail");
    // Days that have really passed do count.
    desk.call("delete", &json!({"id": id}));
    desk.clock.advance_by(31 * DAY_MS);
    tick(&desk);
    assert_eq!(desk.refused("restore", &json!({"id": id})).kind(), ErrorKind::NotFound);
    // A clock that stays ahead for an hour is believed.
    let other = desk.save(SHOP, "issue", "Downloads fail", "nginx, too");
    desk.call("delete", &json!({"id": other}));
    desk.clock.jump_by(35 * DAY_MS);
    tick(&desk);
    desk.clock.advance_by(3_600_000);
    tick(&desk);
    assert_eq!(desk.refused("restore", &json!({"id": other})).kind(), ErrorKind::NotFound);
}

#[test]
fn merged_records_are_one_and_say_where_they_went() {
    let desk = Desk::new();
    let [a, b, c] = ["One", "Two", "Three"].map(|title| desk.save(SHOP, "update", title, &format!("body of {title}")));
    let merged = desk.call("merge", &json!({"into": a, "ids": [b, c, b]}));
    assert_eq!(merged["body"], "body of One\n\nTwo\n\nbody of Two\n\nThree\n\nbody of Three");
    let gone = desk.refused("get", &json!({"id": b}));
    assert_eq!(gone.data()["merged_into"], a);
    for bad in [
        json!({"into": a, "ids": []}),
        json!({"into": a, "ids": [a]}),
        json!({"into": a, "ids": (1..30).collect::<Vec<_>>()}),
    ] {
        assert_eq!(desk.refused("merge", &bad).kind(), ErrorKind::Invalid);
    }
    assert_eq!(desk.call("restore", &json!({"id": b}))["title"], "Two");
}

#[test]
fn projects_have_one_name_and_are_not_begun_by_a_slip() {
    let desk = Desk::new();
    let project = |params: &Value| desk.call("upsert", params)["record"]["project"].clone();
    let new = |title: &str, rest: &Value| {
        let mut params = json!({"kind": "update", "title": title});
        params.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        params
    };
    assert_eq!(
        project(&new("a", &json!({"context": {"repo": "git@github.com:vercel/next.js.git"}}))),
        "vercel/next.js"
    );
    assert_eq!(project(&new("b", &json!({"context": {"repo": "https://git.example.com/team/shop"}}))), "shop");
    // Another repository with the same bare name is another project.
    assert_eq!(project(&new("c", &json!({"context": {"repo": "https://git.other.com/x/shop"}}))), "x/shop");
    assert_eq!(project(&new("d", &json!({"context": {"repo": "https://git.example.com/team/shop"}}))), "shop");
    let folder = desk.refused("upsert", &new("e", &json!({"context": {"cwd": "/tmp/notes"}})));
    assert_eq!(folder.kind(), ErrorKind::Invalid);
    let slip = desk.refused("upsert", &new("f", &json!({"project": "vercel/nextjs"})));
    assert_eq!((slip.kind(), &slip.data()["projects_like"]), (ErrorKind::Invalid, &json!(["vercel/next.js"])));
    assert_eq!(project(&new("f", &json!({"project": "new", "create_project": true}))), "new");
    assert_eq!(desk.refused("upsert", &new("g", &json!({}))).kind(), ErrorKind::Invalid);
    assert_eq!(
        desk.call("search", &json!({"query": "a", "project": "shpo"}))["projects_like"],
        json!(["shop", "x/shop"])
    );
    let names: Vec<_> = desk.call("projects", &json!({}))["projects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|project| project["name"].clone())
        .collect();
    assert_eq!(names.len(), 4);
}

#[test]
fn a_call_that_is_sent_twice_is_made_once_also_by_the_next_process() {
    let mut desk = Desk::new();
    let params = json!({"kind": "issue", "title": "Once", "distinct": true, "context": {"repo": SHOP}});
    let call = |desk: &Desk, params: &Value| {
        let mut caller = Caller::with_name("claude-code").by_agent().with_key(Some("4f0c"));
        caller.call = Some(CallIdentity::new("nudge.records.upsert", &params.to_string()));
        desk.by(caller, "upsert", params)
    };
    let first = call(&desk, &params).unwrap();
    assert_eq!(
        (&first["created"], &first["record"]["origin"], &first["record"]["by"]),
        (&json!(true), &json!("tool"), &json!("claude-code"))
    );
    assert_eq!(call(&desk, &params).unwrap(), first);
    desk.again();
    assert_eq!(call(&desk, &params).unwrap(), first);
    assert_eq!(desk.call("list", &json!({"project": "*"}))["total"], 1);
    assert!(call(&desk, &json!({"kind": "issue", "title": "Other", "context": {"repo": SHOP}})).is_err());
}

#[test]
fn what_is_refused_changes_nothing() {
    let desk = Desk::new();
    let token = ["ghp", "_", &"aB3dE6gH9j".repeat(4)[..36]].concat();
    for (params, kind) in [
        (json!({"title": "x"}), ErrorKind::Invalid),
        (json!({"kind": "issue"}), ErrorKind::Invalid),
        (json!({"kind": "idea", "title": "x"}), ErrorKind::Invalid),
        (json!({"kind": "issue", "title": "x", "status": "done"}), ErrorKind::Invalid),
        (json!({"kind": "issue", "title": "x", "tilte": "y"}), ErrorKind::Invalid),
        (json!({"kind": "issue", "title": "x", "if_match_version": 1}), ErrorKind::Invalid),
        (json!({"kind": "issue", "title": "x", "project": "*"}), ErrorKind::Invalid),
        (json!({"kind": "issue", "title": "x", "body": format!("token {token}")}), ErrorKind::SecretRejected),
        (json!({"id": 7, "title": "x"}), ErrorKind::NotFound),
    ] {
        let mut params = params;
        params["context"] = json!({"repo": SHOP});
        assert_eq!(desk.refused("upsert", &params).kind(), kind, "{params}");
    }
    assert_eq!(desk.call("list", &json!({"project": "*"}))["total"], 0);
    assert_eq!(desk.call("projects", &json!({}))["projects"], json!([]));
}

#[test]
fn a_list_is_narrowed_and_goes_on() {
    let desk = Desk::new();
    for n in 0..5 {
        desk.clock.advance_by(1000);
        desk.save(SHOP, if n % 2 == 0 { "issue" } else { "spec" }, &format!("Record {n}"), "");
    }
    let titles = |params: &Value| {
        let listed = desk.call("list", params);
        let titles: Vec<_> = listed["records"]
            .as_array()
            .unwrap()
            .iter()
            .map(|record| record["title"].as_str().unwrap().to_owned())
            .collect();
        (titles, listed["total"].as_i64().unwrap(), listed["next"].clone())
    };
    let (first, total, next) = titles(&json!({"limit": 2, "context": {"repo": SHOP}}));
    assert_eq!((first, total), (vec!["Record 4".to_owned(), "Record 3".into()], 5));
    let (second, _, next) = titles(&json!({"limit": 2, "before": next, "context": {"repo": SHOP}}));
    assert_eq!(second, ["Record 2", "Record 1"]);
    let (third, _, next) = titles(&json!({"limit": 2, "before": next, "context": {"repo": SHOP}}));
    assert_eq!((third, next), (vec!["Record 0".to_owned()], Value::Null));
    assert_eq!(titles(&json!({"kind": "spec", "project": "acme/shop"})).1, 2);
    assert_eq!(titles(&json!({"kind": "all", "status": "", "project": "*"})).1, 5);
    assert_eq!(titles(&json!({"context": {"repo": "github.com/acme/none"}})).1, 0);
    assert_eq!(desk.refused("list", &json!({"before": "yesterday"})).kind(), ErrorKind::Invalid);
    assert_eq!(desk.refused("list", &json!({"limit": 0})).kind(), ErrorKind::Invalid);
}

#[test]
fn a_kind_is_found_behind_two_hundred_nearer_ones_of_another() {
    let desk = Desk::new();
    let wanted = desk.save(SHOP, "arch", "Uploads go through nginx", "");
    for n in 0..200 {
        desk.save(SHOP, "issue", &format!("Uploads through nginx fail, case {n}"), "uploads nginx uploads nginx");
    }
    let found =
        desk.call("search", &json!({"query": "uploads through nginx", "kind": "arch", "context": {"repo": SHOP}}));
    assert_eq!(found["results"][0]["id"], wanted);
}

#[test]
fn records_go_out_and_come_in_once() {
    let desk = Desk::new();
    for title in ["One", "Two,  with two spaces"] {
        desk.clock.advance_by(1000);
        desk.save(SHOP, "issue", title, "body");
    }
    let exported = desk.call("export", &json!({}));
    let file = desk.folder.path().join("export.json");
    std::fs::write(&file, exported.to_string()).unwrap();
    assert_eq!(desk.call("import", &json!({"file": file}))["skipped"], 2, "they are there");
    let other = Desk::new();
    assert_eq!(other.refused("export", &json!({})).kind(), ErrorKind::NotFound);
    let done = other.call("import", &json!({"file": "export.json", "context": {"cwd": desk.folder.path()}}));
    assert_eq!(done, json!({"imported": 2, "skipped": 0, "similar": [], "omitted": 0, "refused": 0, "errors": []}));
    assert_eq!(
        other.call("export", &json!({"project": "acme/shop"})),
        exported,
        "letter by letter, and also their times"
    );
    assert_eq!(other.call("get", &json!({"id": 1}))["origin"], "import");
    for (text, said) in
        [("{}", "no export"), ("[]", "no export"), (r#"{"format":"nudge-records/9","records":[]}"#, "later version")]
    {
        std::fs::write(&file, text).unwrap();
        assert!(desk.refused("import", &json!({"file": file})).message().contains(said));
    }
    assert_eq!(desk.refused("import", &json!({"file": "relative.json"})).kind(), ErrorKind::Invalid);
    assert_eq!(desk.refused("import", &json!({"file": desk.folder.path()})).kind(), ErrorKind::Invalid);
    let copy = desk.folder.path().join("copy.db");
    assert!(desk.call("backup", &json!({"file": copy}))["bytes"].as_u64().unwrap() > 4096);
    assert_eq!(desk.refused("backup", &json!({"file": copy})).kind(), ErrorKind::Invalid, "nothing is overwritten");
    // A backup has the same tables as the upstream's database, so an import can read a backup too.
    assert_eq!(desk.call("import", &json!({"file": copy}))["skipped"], 2);
}

#[test]
fn a_backup_is_put_in_the_place_of_what_is_damaged() {
    let mut desk = Desk::new();
    for number in 0..200 {
        desk.save(SHOP, "issue", &format!("Number {number} failed"), &"It was mended, and that took long. ".repeat(9));
    }
    let copy = desk.folder.path().join("copy.db");
    desk.call("backup", &json!({"file": copy}));
    desk.clock.advance_by(24 * 3_600_000);
    desk.save(SHOP, "issue", "Uploads fail", "Came after the backup.");

    // A recovery can be undone.
    let done = desk.call("recover", &json!({"file": "copy.db", "context": {"cwd": desk.folder.path()}}));
    assert_eq!((&done["records"], desk.found(SHOP, "uploads fail")), (&json!(200), vec![]), "{done}");
    let done = desk.call("recover", &json!({"file": done["replaced"]}));
    assert_eq!((&done["records"], desk.found(SHOP, "uploads fail").len()), (&json!(201), 1), "{done}");

    // A damaged database is kept in another file, and does not prevent the recovery.
    desk.records.close();
    let file = desk.folder.path().join("data/records.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let pages = bytes.len() / 4096;
    bytes[2 * 4096..(pages - 1) * 4096].fill(0x5a);
    std::fs::write(&file, &bytes).unwrap();
    desk.again();
    let refused = desk.refused("list", &json!({"project": "*"}));
    let told = refused.message();
    assert!(refused.data()["damaged"] == true && told.contains("nudge records recover "), "{told}");
    for wrong in [json!("nothing.db"), json!(file), json!(desk.folder.path())] {
        desk.refused("recover", &json!({"file": wrong, "context": {"cwd": desk.folder.path()}}));
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "nothing was changed");
    }
    let done = desk.call("recover", &json!({"file": copy}));
    assert_eq!(done["records"], 200, "{done}");
    assert_eq!(std::fs::read(done["replaced"].as_str().unwrap()).unwrap(), bytes);
    desk.save(SHOP, "issue", "Uploads fail", "Once more.");
    assert_eq!(desk.found(SHOP, "uploads fail").len(), 1);
}

#[test]
fn the_upstreams_file_is_only_read() {
    let desk = Desk::new();
    let file = desk.folder.path().join("dude.db");
    let upstream = rusqlite::Connection::open(&file).unwrap();
    let token = ["ghp", "_", &"aB3dE6gH9j".repeat(4)[..36]].concat();
    upstream
        .execute_batch(&format!(
            "CREATE TABLE schema_version(version INTEGER PRIMARY KEY);
             INSERT INTO schema_version VALUES(2);
             CREATE TABLE project(id INTEGER PRIMARY KEY, name TEXT UNIQUE, created_at TEXT, updated_at TEXT);
             CREATE TABLE record(id INTEGER PRIMARY KEY, project_id INTEGER, kind TEXT, title TEXT, body TEXT, status TEXT,
               created_at TEXT, updated_at TEXT);
             INSERT INTO project VALUES(1, 'fingerskier/dude', '2026-01-02 03:04:05', '2026-01-02 03:04:05');
             INSERT INTO record VALUES
               (1, 1, 'issue', 'Uploads\nfail', NULL, 'resolved', '2026-01-02 03:04:05', '2026-01-03T04:05:06Z'),
               (2, 1, 'idea', 'x', '', 'open', '', ''),
               (3, 1, 'arch', 'a token', '{token}', 'open', '', '');"
        ))
        .unwrap();
    drop(upstream);
    let before = std::fs::read(&file).unwrap();
    let done = desk.call("import", &json!({"file": file}));
    assert_eq!((&done["imported"], &done["skipped"]), (&json!(1), &json!(0)));
    let errors: Vec<_> =
        done["errors"].as_array().unwrap().iter().map(|refusal| refusal["at"].as_u64().unwrap()).collect();
    assert_eq!(errors, [2, 3]);
    assert!(!done.to_string().contains(&token));
    let got = desk.call("get", &json!({"id": 1}));
    assert_eq!((&got["title"], &got["project"]), (&json!("Uploads fail"), &json!("fingerskier/dude")));
    assert_eq!(
        (&got["created_at"], &got["updated_at"]),
        (&json!("2026-01-02T03:04:05.000Z"), &json!("2026-01-03T04:05:06.000Z"))
    );
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

/// The indexes of two files may have the same version number. Facts that were cached for one file must not be used for
/// the other.
#[test]
fn after_a_recover_words_are_those_of_the_file_that_is_there_now() {
    let desk = Desk::new();
    desk.save(SHOP, "issue", "Logins loop", "");
    let here = json!({"cwd": desk.folder.path()});
    desk.call("backup", &json!({"file": "copy.db", "context": here}));
    desk.save(SHOP, "issue", "The gateway refuses uploads", "");
    let found =
        || desk.call("search", &json!({"query": "gateway uploads", "context": {"repo": SHOP}}))["results"].clone();
    assert_eq!(found().as_array().unwrap().len(), 1);
    desk.call("recover", &json!({"file": "copy.db", "context": here}));
    desk.save(SHOP, "issue", "Invoices lack a number", "");
    assert_eq!(found(), json!([]));
}

/// An archived record ranks below records that are equally relevant, but above records that are less relevant.
#[test]
fn an_archived_record_that_alone_has_what_was_asked_for_is_the_first() {
    let desk = Desk::new();
    let wanted = desk.save(SHOP, "issue", "E0502 in the upload worker", "The borrow checker refuses the buffer.");
    desk.call("upsert", &json!({"id": wanted, "status": "archived"}));
    desk.save(SHOP, "issue", "The upload worker is slow", "");
    desk.save(SHOP, "issue", "The upload worker is killed", "");
    let found = desk.call("search", &json!({"query": "E0502 upload worker", "context": {"repo": SHOP}}));
    assert_eq!(found["results"][0]["id"], wanted, "{found}");
}

/// A name that is in only one record counts more than common words, and more than the caller's project.
#[test]
fn who_asks_with_a_name_gets_the_record_that_holds_it() {
    let desk = Desk::new();
    let wanted = desk.save(
        "github.com/acme/api",
        "arch",
        "One query for all",
        "Relations are loaded by many_to_one, in 3.4.x and later.",
    );
    for title in ["Jobs fail when the queue is full", "Nightly jobs fail", "The export fails on Sundays"] {
        desk.save(SHOP, "issue", title, "It fails, and is started again by hand.");
    }
    for query in ["why do jobs fail with many_to_one", "3.4.x"] {
        let found = desk.call("search", &json!({"query": query, "explain": true, "context": {"repo": SHOP}}));
        assert_eq!(found["results"][0]["id"], wanted, "{query}: {found}");
        assert_eq!(found["results"][0]["explain"]["parts"]["names"], 0.2, "{query}: {found}");
    }
}

/// Among equally relevant records the archived ones come last. `omitted` counts the remaining results exactly, with and
/// without a filter.
#[test]
fn archived_ones_come_last_and_the_rest_is_counted() {
    let desk = Desk::new();
    let save = |kind| desk.save(SHOP, kind, "Uploads go through nginx", "");
    let [first, second, third] = ["issue", "spec", "arch"].map(save);
    desk.call("upsert", &json!({"id": third, "status": "archived"}));
    let found = |params: Value| {
        let mut all = json!({"query": "uploads through nginx", "context": {"repo": SHOP}});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        let found = desk.call("search", &all);
        let ids = found["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_i64().unwrap());
        (ids.collect::<Vec<_>>(), found["omitted"].as_i64().unwrap_or_default())
    };
    assert_eq!(found(json!({})), (vec![second, first, third], 0));
    assert_eq!(found(json!({"limit": 1})), (vec![second], 2));
    assert_eq!(found(json!({"limit": 2})), (vec![second, first], 1));
    assert_eq!(found(json!({"kind": "issue", "limit": 1})), (vec![first], 0));
    assert_eq!(found(json!({"status": "open", "limit": 1})), (vec![second], 1));
    assert_eq!(found(json!({"status": "archived"})), (vec![third], 0));
}

#[test]
fn questions_that_look_like_syntax_are_words() {
    let desk = Desk::new();
    desk.save(SHOP, "issue", "NEAR(a b) OR \"x\" * title:y", "");
    for query in ["\"", "NEAR(", "title:y OR", "*", "a AND NOT b", "\0", "(((", "'; DROP TABLE record; --"] {
        desk.call("search", &json!({"query": query, "context": {"repo": SHOP}}));
    }
    for query in ["", " \n"] {
        assert_eq!(desk.refused("search", &json!({"query": query, "project": "*"})).kind(), ErrorKind::Invalid);
    }
    assert!(Context::builder().repo(SHOP).build().is_ok());
    assert_eq!(desk.call("list", &json!({"project": "*"}))["total"], 1);
}
