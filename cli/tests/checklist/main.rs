//! The project's security checklist: every attack, made from outside against the real binary. Each row names its tests;
//! for tests in other files the folder in `cli/tests/` comes first.
//!
//! 1. DNS rebinding: `http::door::{host_must_be_ours, further_hosts_can_be_allowed}`
//! 2. calls by web pages: `http::door::web_pages_have_no_effect`
//! 3. preflights: `http::door::no_preflight_succeeds`
//! 4. requests that need no preflight: `http::door::only_json_posts_to_the_root`
//! 5. another user of the machine: `http::door::{the_token_is_asked_for, the_token_can_be_fixed_or_switched_off}`,
//!    `files::row_5_*`
//! 6. a runtime directory that is planted, open to others, foreign or full: `files::row_6_*`
//! 7. links, pipes and directories in the place of files: `files::row_7_*`
//! 8. a stale or forged `server.pid`: `files::row_8_*`, `mcp::server::a_killed_server_is_replaced_at_once`
//! 9. a foreign process on the port: `lock::row_9_*`
//! 10. floods of bytes: `row_10_*`, `http::door::{large_bodies_are_refused_before_they_are_read, heads_are_bounded}`
//! 11. deep and bad JSON: `row_11_*`, `http::door::deep_and_bad_json_do_no_harm`
//! 12. slow clients: `row_12_*`
//! 13. patterns that are slow or that leave their folder: `row_13_*`
//! 14. memory: `row_14_*`
//! 15. control characters for the terminal: `words::row_15_*`
//! 16. a leak of the environment: `words::row_16_*`
//! 17. secrets in output: `words::row_17_*`
//! 18. two PRIMARYs: `lock::row_18_*`, `mcp::server::{of_many_that_start_at_once_one_wins,
//!    a_stopped_holder_of_the_lock_is_told_of}`
//! 19. files that are replaced while they are read: `foreign::row_19_*`
//! 20. legal scopes that are costly to compare: `costly::row_20_*`
//! 21. memory: contents that multiply, deleted contents, and the rest of large calls: `costly::row_21_*`
//! 22. lines that hooks lose when the server is suspended now and then: `hooks::row_22_*`
//! 23. strangers that hold connections, listen on `::1` or fill the log: `channel::row_23_*`
//! 24. the local channel: strangers, tokens, and files in its place: `channel::row_24_*`
//! 25. an event loop that hangs: `row_25_*` in `tests/tests/watchdog.rs`
//! 26. the page: other pages, other users, stolen codes, hostile texts: `http::page`, `tests/web`

#[path = "../kit/mod.rs"]
mod kit;

mod channel;
mod costly;
mod files;
mod foreign;
mod greedy;
mod hooks;
mod lock;
mod words;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use kit::system::{assert_modest, assert_quick, descriptors, status_kib};
use kit::{PATIENCE, Response, Serve, command, home, wait_for};
use serde_json::{Map, Value, json};

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"nudge.list_components","params":{}}"#;
const SET: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"nudge.set_hint","params":{"component":"a","key":"b","value":"c"}}"#;

fn assert_empty(serve: &Serve) {
    let components = serve.call("nudge.list_components", &json!({}));
    assert_eq!(components["result"]["components"], json!([]));
}

#[test]
fn row_10_floods_are_bounded() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let announced = serve.raw(format!("{}Content-Length: 1073741824\r\n\r\n", serve.head()));
    assert_eq!(announced.status, 413);

    // Sends 64 MiB without a length. The test reads while it sends: otherwise the connection may be reset before the
    // answer arrives.
    let stream = serve.connect();
    let mut writer = stream.try_clone().unwrap();
    let head = format!("{}Transfer-Encoding: chunked\r\n\r\n", serve.head());
    let sender = std::thread::spawn(move || {
        let mib = [b"100000\r\n".to_vec(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
        let _ = writer.write_all(head.as_bytes());
        (0..64).take_while(|_| writer.write_all(&mib).is_ok()).count()
    });
    assert_eq!(Response::read(&mut { stream }).status, 413);
    assert!(sender.join().unwrap() >= 32, "refused before the limit");

    // Sends headers without an end: first one endless line, then endlessly many lines.
    for line in [&"a".repeat(1000)[..], "X: y\r\n"] {
        let mut stream = serve.connect();
        stream.write_all(serve.head().as_bytes()).unwrap();
        let sent = (0..1 << 20).take_while(|_| stream.write_all(line.as_bytes()).is_ok()).count();
        assert!(sent * line.len() < 64 << 20, "the server goes on reading heads");
    }
    assert_modest(serve.child.id());
    assert_eq!(serve.post(CALL).status, 200);
}

#[test]
fn row_10_no_request_hides_behind_another() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let hidden = format!("{}Content-Length: {}\r\n\r\n{SET}", serve.head(), SET.len());
    // Sends two lengths that contradict each other, and then a complete request. Only a reader that believes the wrong
    // length takes these bytes for a second request.
    let both = [
        format!("Content-Length: {}\r\nTransfer-Encoding: chunked", hidden.len() + 5),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {}", hidden.len() + 5),
    ];
    for lengths in both {
        let mut stream = serve.connect();
        stream.write_all(format!("{}{lengths}\r\n\r\n0\r\n\r\n{hidden}", serve.head()).as_bytes()).unwrap();
        let first = Response::read(&mut stream);
        assert!(first.status == 400 || first.body.contains("-32700"), "{first:?}");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).contains(r#""version":1"#), "{lengths}");
        assert_empty(&serve);
    }
    for lengths in [
        "Content-Length: 4\r\nContent-Length: 5",
        "Content-Length: 4, 5",
        "Content-Length: -1",
        "Content-Length: +4",
        "Content-Length: 0x4",
        "Content-Length: 99999999999999999999999",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding:\r\n chunked",
    ] {
        let mut stream = serve.connect();
        stream.write_all(format!("{}{lengths}\r\n\r\n{hidden}", serve.head()).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = stream.read_to_string(&mut answer);
        assert!(!answer.contains(" 200 ") && !answer.contains(" 202 "), "{lengths}: {answer}");
        assert_empty(&serve);
    }
    // Sends chunks whose sizes are wrong.
    for chunk in ["zz\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "5\r\n{}\r\n0\r\n\r\n"] {
        let mut stream = serve.connect();
        let head = serve.head();
        stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunk}{hidden}").as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{chunk}: {answer}");
        assert_empty(&serve);
    }
}

#[test]
fn row_11_a_session_survives_bad_lines() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    serve.initialize("2025-11-25");
    let open = "[".repeat(500_000);
    let deep = format!("{open}{}", "]".repeat(500_000));
    let objects = format!("{}1{}", r#"{"a":"#.repeat(500_000), "}".repeat(500_000));
    let call = |id: u32, arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"nudge_query","arguments":{arguments}}}}}"#
        )
    };
    for line in [
        &open[..],
        &deep,
        &objects,
        "nonsense",
        "\u{0}",
        "",
        "[]",
        "{}",
        "7",
        "null",
        r#"{"jsonrpc":"2.0","method":7}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
        r#"{"jsonrpc":"1.0","method":"tools/list"}"#,
        &format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{deep}}}"#),
    ] {
        serve.send(line);
    }
    serve.stdin.as_mut().unwrap().write_all(b"\xff\xfe\x80\n").unwrap();
    // Sends a line that is longer than the limit of a body.
    let mib = vec![b'x'; 1 << 20];
    for _ in 0..33 {
        serve.stdin.as_mut().unwrap().write_all(&mib).unwrap();
    }
    serve.send("");
    for (id, arguments) in [(1, deep), (2, format!(r#"{{"x":{objects}}}"#)), (3, format!(r#"{{"context":{objects}}}"#))]
    {
        serve.send(&call(id, &arguments));
        let answer = wait_for("an answer with the id", PATIENCE, || {
            let answer = serve.receive();
            (answer["id"] == id).then_some(answer)
        });
        let refused = answer["error"].is_object() || answer["result"]["isError"] == true;
        assert!(refused, "{answer}");
    }
    serve.send(&call(4, "{}"));
    let answer = wait_for("the answer", PATIENCE, || Some(serve.receive()).filter(|answer| answer["id"] == 4));
    assert_eq!(answer["result"]["structuredContent"]["hints"], json!([]));
    assert_modest(serve.child.id());
    serve.close();
}

/// Makes one call on an open connection; returns the time until the answer.
fn ask(serve: &Serve, kept: &mut TcpStream) -> Duration {
    let begun = Instant::now();
    kept.write_all(format!("{}Content-Length: {}\r\n\r\n{CALL}", serve.head(), CALL.len()).as_bytes()).unwrap();
    assert_eq!(Response::read(kept).status, 200);
    begun.elapsed()
}

/// Sends a byte on each connection every 100 ms until the server has closed all; returns the elapsed time.
fn dribble(mut slow: Vec<TcpStream>, begun: Instant) -> Duration {
    let mut buffer = [0; 4096];
    while !slow.is_empty() {
        slow.retain_mut(|stream| {
            let _ = stream.write(b"a");
            match stream.read(&mut buffer) {
                Ok(0) => false,
                Ok(read) => {
                    let said = String::from_utf8_lossy(&buffer[..read]);
                    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
                    true
                }
                Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
            }
        });
        // Waits, because the attack is the slow pace.
        std::thread::sleep(Duration::from_millis(100));
        assert!(begun.elapsed() < Duration::from_secs(31), "{} are still connected", slow.len());
    }
    begun.elapsed()
}

#[test]
fn row_12_slow_clients_are_cut_off_and_hold_up_no_other() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let mut kept = serve.connect();
    ask(&serve, &mut kept);
    let before = descriptors(serve.child.id());
    let begun = Instant::now();
    let slow = (0..200).map(|number| {
        let mut stream = serve.connect();
        // Stops in the first line, in the headers, in a body of known length, or in a body of unknown length.
        let head = serve.head();
        let start = match number % 4 {
            0 => "POST /".to_owned(),
            1 => format!("{head}X: "),
            2 => format!("{head}Content-Length: 1000000\r\n\r\n{{"),
            _ => format!("{head}Transfer-Encoding: chunked\r\n\r\n100000\r\n"),
        };
        stream.write_all(start.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    });
    let slow: Vec<_> = slow.collect();
    assert!(descriptors(serve.child.id()).is_none_or(|now| now > before.unwrap_or_default()), "nobody came in");
    let dribbling = std::thread::spawn(move || dribble(slow, begun));
    let mut calls = Vec::new();
    while !dribbling.is_finished() {
        calls.push(ask(&serve, &mut kept));
        std::thread::sleep(Duration::from_millis(2));
    }
    let closed = dribbling.join().unwrap();
    calls.sort_unstable();
    let p99 = calls[calls.len() * 99 / 100];
    assert!(calls.len() >= 100 && p99 < Duration::from_millis(250), "{p99:?} over {} calls", calls.len());
    eprintln!("{} calls, p99 {p99:?}; the last slow client was cut off after {closed:?}", calls.len());
    wait_for("the descriptors to be as before", PATIENCE, || (descriptors(serve.child.id()) == before).then_some(()));
    assert_modest(serve.child.id());
}

/// Makes a call and asserts that the answer comes quickly, even if it is an error; returns the answer.
fn quick(serve: &Serve, method: &str, params: &Value) -> Value {
    let shown: String = params.to_string().chars().take(120).collect();
    assert_quick(serve.child.id(), &shown, || serve.call(method, params))
}

#[test]
fn row_13_bombs_go_off_quietly() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    for (index, text) in ["a", "ab", "aaaaaaaaab", "x y "].into_iter().enumerate() {
        let value = format!("{}!", text.repeat(60_000 / text.len()));
        let stored =
            serve.call("nudge.set_hint", &json!({"component": "a", "key": format!("k{index}"), "value": value}));
        assert_eq!(stored["result"]["variants"], 1);
    }
    let optional = format!("{}{}", "a?".repeat(400), "a".repeat(200));
    let nested = format!("{}a{}", "(".repeat(200), ")*".repeat(200));
    let alternatives = vec!["a{50}b{50}"; 90].join("|");
    for (regex, compiles) in [
        ("(a+)+$", Some(true)),
        ("^(a|a)*$", Some(true)),
        ("(a|aa)+!$", Some(true)),
        ("(.*)(.*)(.*)(.*)x$", Some(true)),
        ("(a*)*(a*)*b$", Some(true)),
        (&optional, None),
        (&nested, None),
        (&alternatives, None),
        (r"(\w+\s?)*z$", None),
        ("((a{1,100}){1,100}){1,100}", Some(false)),
        (r"(\p{L}{1,1000}){1,1000}", Some(false)),
        ("a{4294967295}", Some(false)),
        ("(?=a)", Some(false)),
        (r"(a)\1", Some(false)),
        ("(", Some(false)),
        (&"a".repeat(2000), Some(false)),
    ] {
        let answer = quick(&serve, "nudge.query", &json!({"regex": regex}));
        match compiles {
            Some(true) => assert!(answer["result"]["hints"].is_array(), "{regex}: {answer}"),
            Some(false) => assert_eq!(answer["error"]["code"], 40001, "{regex}: {answer}"),
            None => assert!(answer["result"].is_object() || answer["error"]["code"] == 40001, "{regex}: {answer}"),
        }
    }

    let cwd = format!("/{}", "a/".repeat(2000));
    let name = format!("/{}b", "a".repeat(4000));
    let braces = format!("/{}", "{a,b,c}".repeat(60));
    let nested = format!("/{}a{}", "{a,".repeat(120), "}".repeat(120));
    let many: Vec<_> = (0..16).map(|number| format!("/{}{number}", "**/*a*/".repeat(60))).collect();
    let globs = json!([
        format!("/{}b", "**/a/".repeat(80)),
        format!("/{}b", "*a".repeat(200)),
        format!("/{}b", "**/".repeat(150)),
        format!("/{}x", "[a-z]*".repeat(70)),
        braces,
        nested,
        many,
    ]);
    for (index, glob) in globs.as_array().unwrap().iter().enumerate() {
        let key = format!("g{index}");
        let meta = json!({"scope": {"cwd_glob": glob, "branch": glob}});
        let params = json!({"component": "g", "key": key, "value": "x", "meta": meta});
        let answer = quick(&serve, "nudge.set_hint", &params);
        assert!(answer["result"].is_object() || answer["error"]["code"] == 40003, "{glob}: {answer}");
        for place in [&cwd, &name] {
            let context = json!({"cwd": place, "branch": place.trim_matches('/')});
            quick(&serve, "nudge.get_hint", &json!({"component": "g", "key": key, "context": context}));
        }
    }
    quick(&serve, "nudge.query", &json!({"context": {"cwd": cwd}, "include_ineligible": true}));
    assert_modest(serve.child.id());
}

#[test]
fn row_13_no_path_climbs() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let set = |value: Value, scope: Value| {
        let params = json!({"component": "a", "key": "b", "value": value, "meta": {"scope": scope}});
        quick(&serve, "nudge.set_hint", &params)["error"]["code"].clone()
    };
    for glob in [
        "..",
        "../x",
        "/a/../b",
        "/a/..",
        "/a/%2e%2e/b",
        "/a/%2E%2E",
        "/a/.%2e/b",
        "/a\\..\\b",
        r"C:\a\..\b",
        r"\\host\share\..\x",
        "/a/{..,b}/c",
        "/a\0b",
        "/a\nb",
        "~/x",
        "!/x",
        "/[",
        "",
    ] {
        assert_eq!(set(json!("x"), json!({"cwd_glob": [glob]})), 40003, "{glob:?}");
    }
    for path in ["../x", "x", "/a/../b", "/..", "/a/%2e%2e/b", r"C:\..\x", r"\\host\share\x", "/a\0b", "~/x", ""] {
        let code = set(json!({"type": "path", "abs": path}), Value::Null);
        assert!(code == 40003 || code == 40001, "{path:?}: {code}");
    }
    for cwd in ["x", "../x", "/a/../b", "/a/..", "", "/a\0b", r"C:\a\..\b", r"\\host\share\..\x", "~"] {
        let answer = quick(&serve, "nudge.query", &json!({"context": {"cwd": cwd}}));
        // The server may treat an empty `cwd` as absent.
        let refused = answer["error"]["code"] == 40001;
        assert!(refused || cwd.is_empty(), "{cwd:?}: {answer}");
    }
    assert_empty(&serve);
}

#[test]
fn row_14_memory_is_bounded() {
    let home = home();
    let runtime = home.path().join("run");
    // Switches the secret guard off: in a test build it needs milliseconds for each value.
    let mut unguarded = command(&runtime);
    unguarded.arg("--no-secret-guard");
    let serve = Serve::spawn(unguarded, &runtime);
    let text = "lorem ipsum ".repeat(400);
    let value = |number: usize| format!("{number:04} {}", &text[..4091]);
    let batch = |first: usize| {
        let call = |number: usize| {
            let params =
                json!({"component": format!("c{}", number % 30), "key": format!("k{number}"), "value": value(number)});
            let mut call = json!({"jsonrpc": "2.0", "method": "nudge.set_hint", "params": params});
            if number >= 5000 {
                call["id"] = number.into();
            }
            call
        };
        serve.post(&(first..first + 100).map(call).collect::<Value>().to_string())
    };
    // These calls are notifications without an answer. Only the calls beyond the limit have an id, and their answers
    // show the refusal.
    assert!((0..50).all(|number| batch(number * 100).status == 202));
    assert_eq!(serve.call("nudge.status", &json!({}))["result"]["hints"], 5000);
    for first in (5000..6000).step_by(100) {
        let answers: Vec<Value> = serde_json::from_str(&batch(first).body).unwrap();
        assert_eq!(answers.len(), 100);
        for error in answers.iter().map(|answer| &answer["error"]) {
            assert_eq!((&error["code"], &error["data"]["limit"]), (&json!(42901), &json!("hints")), "{error}");
        }
    }

    // Sends a value above the limit of a value, then an import above the limits of the store. The import must store all
    // its hints or none.
    let large =
        serve.call("nudge.set_hint", &json!({"component": "a", "key": "b", "value": "x".repeat((64 << 10) + 1)}));
    assert_eq!(large["error"]["code"], 40001);
    let hints = |component: usize| (0..150).map(move |number| (format!("k{number}"), component * 150 + number));
    let components = (0..40).map(|component| {
        let hints: Map<_, _> = hints(component).map(|(key, number)| (key, json!(value(number)))).collect();
        (format!("i{component}"), json!({"hints": hints}))
    });
    let payload = json!({"schema_version": "1.0", "components": components.collect::<Map<_, _>>()});
    let answer = serve.call("nudge.import", &json!({"payload": payload, "mode": "replace"}));
    assert_eq!(answer["error"]["code"], 42901, "{answer}");
    let status = serve.call("nudge.status", &json!({}));
    assert_eq!((&status["result"]["hints"], &status["result"]["components"]), (&json!(5000), &json!(30)));
    if let Some(kib) = status_kib(serve.child.id(), "VmRSS") {
        assert!(kib < 200 << 10, "{kib} KiB");
    }
}
