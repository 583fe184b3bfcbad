//! Tests rows 20 and 21 of the security checklist: scopes that are legal but costly to compare, and memory.

use crate::kit;

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kit::system::status_kib;
use kit::{Response, Serve, command, home};
use serde_json::{Map, Value, json};

/// Returns the path of a folder with as many segments as 4 KiB allow.
fn deep() -> String {
    "/x".repeat(2_000)
}

/// Returns the path of a folder that is a single segment of 4 KiB.
fn long() -> String {
    format!("/{}", "a ".repeat(2_000))
}

/// Makes the hints of two attacks: 2,500 hints of 16 globs each, and a key with 199 variants. Braces multiply the globs
/// of these variants.
fn costly() -> Value {
    let globs = |n: usize| (0..16).map(|g| format!("**/x{n}y{g}/**/z*")).collect::<Vec<_>>();
    let mut components = Map::new();
    for n in 0..2_500 {
        let component = components.entry(format!("c{}", n / 200)).or_insert_with(|| json!({"hints": {}}));
        component["hints"][format!("k{n}")] = json!({"value": "make", "meta": {"scope": {"cwd_glob": globs(n)}}});
    }
    let braced = |n: usize| {
        let glob = |g: usize| format!("/*{}{}b{n} {g}", "{a ,a a ,a a a }".repeat(3), "a ".repeat(20));
        json!({"value": "v", "meta": {"scope": {"cwd_glob": (0..16).map(glob).collect::<Vec<_>>()}}})
    };
    components.insert("braced".into(), json!({"variants": {"k": (0..199).map(braced).collect::<Vec<_>>()}}));
    json!({"payload": {"components": components}, "allow_secret": true})
}

fn start() -> (tempfile::TempDir, Serve) {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let stored = serve.call("nudge.import", &costly());
    assert_eq!(stored["result"]["imported"], 2_699, "{stored}");
    (home, serve)
}

fn attacks() -> [(&'static str, Value); 8] {
    let context_in = |cwd: String| json!({"cwd": cwd});
    let braced = json!({"component": "braced", "key": "k", "context": context_in(long())});
    [
        ("nudge.query", json!({"context": context_in(deep())})),
        ("nudge.query", json!({"context": context_in(deep()), "include_ineligible": true, "limit": 1_000})),
        ("nudge.get_hint", braced.clone()),
        ("nudge.why", braced.clone()),
        ("nudge.bump", braced),
        ("nudge.suggest", json!({"event": "start", "context": context_in(deep())})),
        ("nudge.recall", json!({"query": "make", "context": context_in(deep())})),
        ("nudge.outcome", json!({"command": "make", "ok": true, "context": context_in(deep())})),
    ]
}

/// A client repeats each of these costly calls without a pause. Other callers must still get their answers in time.
#[test]
fn row_20_costly_scopes_hold_up_no_other_call() {
    let (_home, serve) = start();
    for (method, params) in attacks() {
        let (stop, made) = (AtomicBool::new(false), AtomicUsize::new(0));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let (request, port) =
            (format!("{}Content-Length: {}\r\n\r\n{body}", serve.head(), body.len()), serve.file.port);
        let mut calls = std::thread::scope(|threads| {
            let attacker = threads.spawn(|| {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    stream.write_all(request.as_bytes()).unwrap();
                    assert_eq!(Response::read(&mut stream).status, 200);
                    made.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut calls = Vec::new();
            while calls.len() < 200 || (made.load(Ordering::Relaxed) < 4 && !attacker.is_finished()) {
                let (begun, n) = (Instant::now(), calls.len());
                let answer = match n % 2 {
                    0 => serve.call("nudge.get_hint", &json!({"component": "mine", "key": "k"})),
                    _ => serve.call("nudge.set_hint", &json!({"component": "mine", "key": "k", "value": "v"})),
                };
                assert!(n == 0 || answer["result"]["hint"].is_object(), "{answer}");
                calls.push(begun.elapsed());
            }
            stop.store(true, Ordering::Relaxed);
            attacker.join().unwrap();
            calls
        });
        calls.sort_unstable();
        let (made, count) = (made.into_inner(), calls.len());
        let (p50, p99, most) = (calls[count / 2], calls[count * 99 / 100], calls[count - 1]);
        eprintln!("{count} calls beside {made} of {method}: p50 {p50:?}, p99 {p99:?}, most {most:?}");
        assert!(p99 < Duration::from_millis(250), "{method}: p99 {p99:?}");
    }
}

/// The server refuses a call that would take too many steps, and changes nothing. It answers a call that compares fewer
/// hints.
#[test]
fn row_20_a_call_of_too_many_steps_is_refused_and_changes_nothing() {
    let (_home, mut serve) = start();
    let store = || serve.call("nudge.export", &json!({}))["result"]["payload"]["components"].clone();
    let before = store();
    for (method, params) in attacks() {
        let answer = serve.call(method, &params);
        if matches!(method, "nudge.suggest" | "nudge.recall") {
            assert!(answer["result"]["omitted"].as_u64() > Some(0), "{method}: {answer}");
            continue;
        }
        let data = &answer["error"]["data"];
        assert_eq!((&data["reason"], &data["limit"]), (&json!("E_QUOTA"), &json!("steps")), "{method}: {answer}");
    }
    assert_eq!(store(), before);
    let near = json!({"component": "c0", "context": {"cwd": "/work/x3y5/a/z"}});
    assert_eq!(serve.call("nudge.query", &near)["result"]["hints"].as_array().unwrap().len(), 1);
    // The server refuses the call over stdio too.
    serve.initialize("2025-11-25");
    let refused = serve.tool("nudge_query", &json!({"context": {"cwd": deep()}}));
    assert!(refused["result"]["isError"] == true && refused.to_string().contains("E_QUOTA"), "{refused}");
}

/// Waits until the server's resident memory is at most `most` KiB, but at most 30 seconds; returns the memory in KiB.
/// Returns `None` if the system does not report it.
fn settled(serve: &Serve, most: u64) -> Option<u64> {
    let resident = || status_kib(serve.child.id(), "VmRSS");
    let begun = Instant::now();
    while resident()? > most && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    resident()
}

/// Makes a call with a large answer and reads until the server closes the connection; returns the number of bytes.
/// `Response::read` would be slow, because it parses all bytes again after each read.
fn large(serve: &Serve, method: &str, params: &Value) -> usize {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut stream = serve.connect();
    let head = format!("{}Connection: close\r\nContent-Length: {}\r\n\r\n", serve.head(), body.len());
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..200.min(answer.len())]));
    answer.len()
}

/// Makes the hint with this number.
type Hint = fn(usize) -> Value;

/// Lists the kinds of hints that take the most memory for their stored bytes: a name, and a function that makes the
/// hint with a number.
fn contents() -> [(&'static str, Hint); 6] {
    fn scoped(scope: &Value) -> Value {
        json!({"value": "v", "meta": {"scope": scope}})
    }
    [
        ("globs whose braces multiply", |n| {
            let glob = |g: usize| format!("/{n}/{g}/{}/**", "{ab,cd}".repeat(6));
            scoped(&json!({"cwd_glob": (0..16).map(glob).collect::<Vec<_>>()}))
        }),
        ("lists of 256", |n| {
            let names = (0..256).map(|index| format!("{:x}", n * 256 + index));
            scoped(&json!({"env_required": names.collect::<Vec<_>>()}))
        }),
        ("many small ones", |n| scoped(&json!({"branch": format!("b{n}")}))),
        ("tags of their own", |n| {
            let tags = (0..32).map(|index| format!("{:x}", n * 32 + index));
            json!({"value": "v", "meta": {"tags": tags.collect::<Vec<_>>()}})
        }),
        ("globs with long lists", |n| {
            let parts = (0..70).fold(String::new(), |mut parts, part| {
                let _ = write!(parts, "ab{part},");
                parts
            });
            let globs = (0..16).map(|g| format!("/{n}/{g}/{{{parts}}}"));
            scoped(&json!({"cwd_glob": globs.collect::<Vec<_>>()}))
        }),
        ("large values", |n| json!(format!("{n} lorem ipsum ").repeat(400))),
    ]
}

/// Fills the store to its limit, then replaces all hints, so that the store also remembers as many deletions as
/// possible. Asserts that the memory has then grown by at most three times the limit. The growth counts from the same
/// server after a first use, with an empty store.
fn memory_is_at_most(limit: u64, contents: &[(&str, Hint)]) {
    for (name, hint) in contents {
        let home = home();
        let runtime = home.path().join("run");
        let mut unguarded = command(&runtime);
        unguarded.args(["--no-secret-guard", "--max-bytes", &limit.to_string()]);
        unguarded.args(["--max-hints", "1000000", "--max-components", "1000", "--max-hints-per-component", "1000000"]);
        let serve = Serve::spawn(unguarded, &runtime);
        let import = |from: usize, count: usize, mode: &str| {
            let hints: Map<_, _> = (from..from + count).map(|n| (format!("k{n}"), hint(n))).collect();
            serve.call("nudge.import", &json!({"payload": {"components": {"c": {"hints": hints}}}, "mode": mode}))
        };
        import(0, 20, "merge");
        import(0, 0, "replace");
        let Some(at_start) = status_kib(serve.child.id(), "VmRSS") else { return };
        let (mut stored, mut batch) = (0, 100);
        while batch > 0 {
            let answer = import(stored, batch, "merge");
            if answer["result"]["imported"] == batch {
                stored += batch;
                batch = (batch * 2).min(1_000);
            } else {
                assert_eq!(answer["error"]["data"]["limit"], "bytes", "{name}: {answer}");
                batch /= 4;
            }
        }
        let most = at_start + 3 * (limit >> 10);
        let full = settled(&serve, most).unwrap();
        import(stored, stored / 2, "replace");
        let replaced = settled(&serve, most).unwrap();
        let mib = |kib: u64| kib >> 10;
        let (start, limit) = (mib(at_start), limit >> 20);
        eprintln!("{limit} MiB of {name}: {stored} hints; {start} MiB, full {}, replaced {}", mib(full), mib(replaced));
        assert!(full <= most && replaced <= most, "{name}: {full} KiB, then {replaced}, of {most}");
    }
}

#[test]
fn row_21_memory_is_at_most_three_times_a_small_limit() {
    memory_is_at_most(4 << 20, &contents());
}

#[test]
fn row_21_memory_is_at_most_three_times_the_default_limit() {
    memory_is_at_most(24 << 20, &contents()[..3]);
}

/// Calls of 20 MB over HTTP and stdio leave no memory behind. The test first makes small calls of each kind and
/// measures the memory after them, because the system loads a program's pages as the program runs.
#[test]
fn row_21_memory_of_large_calls_is_given_back() {
    let home = home();
    let runtime = home.path().join("run");
    let mut unguarded = command(&runtime);
    unguarded.arg("--no-secret-guard");
    let mut serve = Serve::spawn(unguarded, &runtime);
    serve.initialize("2025-11-25");
    let small = json!({"payload": {"components": {"c": {"hints": {"k": "v"}}}}});
    large(&serve, "nudge.import", &small);
    for (method, tool, params) in
        [("nudge.export", "nudge_export", json!({})), ("nudge.query", "nudge_query", json!({"limit": 1_000}))]
    {
        large(&serve, method, &params);
        serve.tool(tool, &params);
    }
    serve.tool("nudge_import", &small);
    serve.call("nudge.import", &json!({"payload": {"components": {}}, "mode": "replace"}));
    let Some(at_start) = status_kib(serve.child.id(), "VmRSS") else { return };
    let text = "lorem ipsum ".repeat(2_000);
    let component = |_| json!({"hints": (0..100).map(|n| (format!("k{n}"), json!(text))).collect::<Map<_, _>>()});
    let components: Map<_, _> = (0..8).map(|n| (format!("c{n}"), component(n))).collect();
    let payload = json!({"payload": {"components": components}});
    let bytes = 800 * text.len() as u64;
    // The limit in KiB: the stored bytes, a fifth of them for the gaps between them, and 4 MiB.
    let most = at_start + (bytes + bytes / 5) / 1024 + (4 << 10);
    let given_back = |serve: &Serve, what: &str, most: u64| {
        let resident = settled(serve, most).unwrap();
        eprintln!("after {what}: {resident} KiB, {at_start} at the start, {most} at most");
        assert!(resident <= most, "after {what}: {resident} KiB, {most} at most");
    };
    for round in 0..2 {
        large(&serve, "nudge.import", &payload);
        given_back(&serve, &format!("import {round}"), most);
    }
    for (method, params) in [("nudge.export", json!({})), ("nudge.query", json!({"limit": 1_000}))] {
        assert!(large(&serve, method, &params) as u64 > bytes);
        given_back(&serve, method, most);
    }
    for (tool, arguments) in [("nudge_import", &payload), ("nudge_export", &json!({}))] {
        serve.tool(tool, arguments);
        given_back(&serve, tool, most);
    }
    // After a hundred more deletions, the store no longer remembers the deletions of the import.
    serve.call("nudge.import", &json!({"payload": {"components": {}}, "mode": "replace"}));
    for n in 0..100 {
        let name = json!({"component": "a", "key": format!("k{n}"), "value": "v"});
        serve.call("nudge.set_hint", &name);
        serve.call("nudge.delete_hint", &json!({"component": "a", "key": format!("k{n}")}));
    }
    large(&serve, "nudge.import", &json!({"payload": {"components": {}, "left": " ".repeat(60_000)}}));
    given_back(&serve, "all is deleted", at_start + (8 << 10));
}
