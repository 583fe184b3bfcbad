//! Tests parts of rows 12 and 13 of the security checklist: clients that read no answers, and calls that keep the
//! server busy.

use crate::kit;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use kit::{PATIENCE, Response, Serve, home, wait_for};
use serde_json::{Value, json};

/// Returns the number of open descriptors of a process; `None` if the system does not report it.
fn descriptors(pid: u32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}

/// Sends a request again and again without reading an answer, until the connection is full or closed.
fn flood(mut stream: TcpStream, request: &str) -> TcpStream {
    stream.set_nonblocking(true).unwrap();
    for _ in 0..200_000 {
        match stream.write(request.as_bytes()) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    stream
}

#[test]
fn row_12_a_client_that_takes_no_answers_is_cut_off() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    serve.call("nudge.set_hint", &json!({"component": "a", "key": "k", "value": "x".repeat(60_000)}));
    let before = descriptors(serve.child.id());
    let host = format!("Host: 127.0.0.1:{}\r\n", serve.file.port);
    let stranger = format!("POST / HTTP/1.1\r\n{host}Content-Length: 0\r\n\r\n");
    let health = format!("GET /health HTTP/1.1\r\n{host}\r\n");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"nudge.get_hint","params":{"component":"a","key":"k"}}"#;
    let friend = format!("{}Content-Length: {}\r\n\r\n{body}", serve.head(), body.len());
    let mut greedy = Vec::new();
    for number in 0..60 {
        let request = [&stranger, &health, &friend][number % 3];
        greedy.push(flood(serve.connect(), request));
        assert_eq!(serve.call("nudge.status", &json!({}))["result"]["role"], "PRIMARY");
    }
    let begun = Instant::now();
    wait_for("the descriptors to be as before", Duration::from_secs(40), || {
        before.is_none_or(|before| descriptors(serve.child.id()) == Some(before)).then_some(())
    });
    eprintln!("all were cut off after {:?}", begun.elapsed());
    // The server answers one request without a token, then closes the connection.
    let mut stream = serve.connect();
    stream.write_all(stranger.repeat(2).as_bytes()).unwrap();
    let mut all = String::new();
    let _ = stream.read_to_string(&mut all);
    assert_eq!(all.matches("HTTP/1.1 ").count(), 1, "{all}");
}

/// Searches a nearly full store for a pattern that is slow in every regex engine.
#[test]
fn row_13_a_slow_search_holds_up_no_other_call() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    // Makes a text without repeated parts, so that the engine's cache of states does not help.
    let mut state = 7_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 31 == 0 { 'a' } else { 'b' }
    };
    let text: String = (0..20_000).map(|_| random()).chain("dc".chars()).collect();
    let hints = |from: usize| -> serde_json::Map<String, Value> {
        (from..from + 150).map(|n| (format!("k{n}"), json!(text))).collect()
    };
    for part in 0..3 {
        let payload = json!({"components": {format!("c{part}"): {"hints": hints(part * 150)}}});
        assert_eq!(serve.call("nudge.import", &json!({"payload": payload}))["result"]["imported"], 150);
    }
    let send = |body: &str| {
        let mut stream = serve.connect();
        stream.write_all(format!("{}Content-Length: {}\r\n\r\n{body}", serve.head(), body.len()).as_bytes()).unwrap();
        stream
    };
    let call = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut slow = send(&call("nudge.query", json!({"regex": "[ab]*a[ab]{120}c"})).to_string());
    let mut batch = send(&json!(vec![call("nudge.query", json!({"tags": ["t"]})); 1_000]).to_string());
    for _ in 0..50 {
        let begun = Instant::now();
        serve.call("nudge.status", &json!({}));
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
    assert_eq!(Response::read(&mut batch).status, 200);
    let refused: Value = serde_json::from_str(&Response::read(&mut slow).body).unwrap();
    assert_eq!(refused["error"]["code"], 40001, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("simpler"), "{refused}");
    // The server can end while a search runs.
    let mut serve = serve;
    serve.initialize("2025-11-25");
    serve.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nudge_query","arguments":{"regex":"[ab]*a[ab]{120}c"}}}"#);
    wait_for("the search to be under way", PATIENCE, || Some(serve.call("nudge.status", &json!({}))));
    drop(serve.stdin.take());
    assert!(serve.end(Duration::from_secs(1)).success());
}
