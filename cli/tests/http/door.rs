//! Tests access control over HTTP with raw bytes against a real server (rows 1 to 5, 10 and 11 of the security
//! checklist in `checklist/main.rs`).

use crate::kit;

use std::io::{Read, Write};

use kit::{Response, Serve, command, home, run_to_end};
use serde_json::json;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"nudge.list_components","params":{}}"#;

fn with_headers(serve: &Serve, line: &str, headers: &[String]) -> Response {
    let headers = headers.join("\r\n");
    let end = if headers.is_empty() { "" } else { "\r\n" };
    serve.raw(format!("{line}\r\n{headers}{end}Content-Length: {}\r\n\r\n{CALL}", CALL.len()))
}

fn good_headers(serve: &Serve) -> [String; 3] {
    [
        format!("Host: 127.0.0.1:{}", serve.file.port),
        format!("Authorization: Bearer {}", serve.token()),
        "Content-Type: application/json".into(),
    ]
}

/// Sends a valid request, but with `replacement` in place of the header at `index`; returns the response.
fn with(serve: &Serve, index: usize, replacement: &[String]) -> Response {
    let mut headers = good_headers(serve).to_vec();
    headers.splice(index..=index, replacement.to_vec());
    with_headers(serve, "POST / HTTP/1.1", &headers)
}

fn refused(response: &Response, status: u16) {
    assert_eq!(response.status, status, "{response:?}");
    response.error();
    assert!(!response.head.contains("access-control"), "{response:?}");
}

#[test]
fn host_must_be_ours() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let port = serve.file.port;
    for host in ["127.0.0.1", "localhost", "[::1]", "LocalHost"] {
        assert_eq!(with(&serve, 0, &[format!("Host: {host}:{port}")]).status, 200, "{host}");
    }
    let foreign = ["evil.example", "0.0.0.0", "127.0.0.1.nip.io", "127.0.0.1@evil", "localhost.", "[::]", ""];
    for host in foreign.map(|host| format!("Host: {host}:{port}")) {
        refused(&with(&serve, 0, &[host]), 403);
    }
    for host in ["127.0.0.1".to_owned(), format!("127.0.0.1:{}", port ^ 1), "evil.example".into()] {
        refused(&with(&serve, 0, &[format!("Host: {host}")]), 403);
    }
    refused(&with(&serve, 0, &[]), 403);
    let ours = format!("Host: 127.0.0.1:{port}");
    refused(&with(&serve, 0, &[ours.clone(), ours.clone()]), 403);
    refused(&with(&serve, 0, &[ours, "Host: evil.example".into()]), 403);
    let absolute = format!("POST http://127.0.0.1:{port}/ HTTP/1.1");
    refused(&with_headers(&serve, &absolute, &good_headers(&serve)), 403);
}

#[test]
fn further_hosts_can_be_allowed() {
    let home = home();
    let runtime = home.path().join("run");
    let mut allowing = command(&runtime);
    allowing.args(["--allow-host", "Build.Internal", "--allow-host", "other"]);
    let serve = Serve::spawn(allowing, &runtime);
    let port = serve.file.port;
    let ours = format!("127.0.0.1:{port}");
    for host in ["build.internal", "BUILD.internal:80", &format!("other:{port}"), &ours] {
        assert_eq!(with(&serve, 0, &[format!("Host: {host}")]).status, 200, "{host}");
    }
    for host in ["internal", "x.build.internal", "build.internal.evil", "other:x", "other:80:80", "[other]"] {
        refused(&with(&serve, 0, &[format!("Host: {host}")]), 403);
    }
    for name in ["", "*", "http://x", "x:80", "a b"] {
        let mut bad = command(&home.path().join("bad"));
        bad.args(["--allow-host", name]);
        let output = run_to_end(bad);
        assert!(!output.status.success() && !output.stderr.is_empty(), "{name}");
    }
}

#[test]
fn web_pages_have_no_effect() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let [host, token, json] = good_headers(&serve);
    let set = r#"{"jsonrpc":"2.0","id":1,"method":"nudge.set_hint","params":{"component":"a","key":"b","value":"c"}}"#;
    for header in [
        "Origin: https://evil.example",
        "Origin: null",
        "Origin: http://localhost:3000",
        "Origin: ",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Sec-Fetch-Site: same-origin",
    ] {
        let length = set.len();
        let request = format!(
            "POST / HTTP/1.1\r\n{host}\r\n{token}\r\n{json}\r\n{header}\r\nContent-Length: {length}\r\n\r\n{set}"
        );
        refused(&serve.raw(request), 403);
    }
    let components = serve.call("nudge.list_components", &serde_json::json!({}));
    assert_eq!(components["result"]["components"], serde_json::json!([]));
    let none = [host, token, json, "Sec-Fetch-Site: none".into()];
    assert_eq!(with_headers(&serve, "POST / HTTP/1.1", &none).status, 200);
}

#[test]
fn no_preflight_succeeds() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let host = format!("Host: 127.0.0.1:{}", serve.file.port);
    let ask = ["Access-Control-Request-Private-Network: true".into(), "Access-Control-Request-Method: POST".into()];
    let from_page = ["Origin: https://evil.example".into()];
    for path in ["/", "/health"] {
        let line = format!("OPTIONS {path} HTTP/1.1");
        refused(&with_headers(&serve, &line, &[&[host.clone()][..], &ask].concat()), 405);
        refused(&with_headers(&serve, &line, &[&[host.clone()][..], &ask, &from_page].concat()), 403);
    }
}

#[test]
fn only_json_posts_to_the_root() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    for good in ["application/json", "Application/JSON; charset=utf-8"] {
        assert_eq!(with(&serve, 2, &[format!("Content-Type: {good}")]).status, 200);
    }
    for bad in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "text/json", ""] {
        refused(&with(&serve, 2, &[format!("Content-Type: {bad}")]), 415);
    }
    refused(&with(&serve, 2, &[]), 415);
    for (line, status) in [
        ("PUT / HTTP/1.1", 405),
        ("DELETE /health HTTP/1.1", 405),
        ("POST /rpc HTTP/1.1", 404),
        ("GET /../etc/passwd HTTP/1.1", 404),
    ] {
        refused(&with_headers(&serve, line, &good_headers(&serve)), status);
    }
}

#[test]
fn the_token_is_asked_for() {
    let home = home();
    let runtime = home.path().join("run");
    let serve = Serve::start(&runtime);
    assert_eq!(serve.token().len(), 64);
    let token = serve.token();
    let (short, swapped) = (&token[1..], token.chars().rev().collect::<String>());
    for bad in ["Bearer", "Bearer ", "Basic x", &format!("Bearer {short}"), &format!("Bearer {swapped}"), token] {
        let response = with(&serve, 1, &[format!("Authorization: {bad}")]);
        refused(&response, 401);
        assert!(response.body.contains(&runtime.join("server.pid").display().to_string()), "{response:?}");
        assert!(!response.body.contains(token));
    }
    refused(&with(&serve, 1, &[]), 401);
    let good = format!("Authorization: Bearer {token}");
    refused(&with(&serve, 1, &[good.clone(), good]), 401);

    let health = serve.raw(format!("GET /health HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", serve.file.port));
    assert_eq!(health.status, 200);
    assert_eq!(health.body, format!("{{\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION")));

    let first = token.to_owned();
    let stderr = serve.close();
    assert!(!stderr.contains(&first), "the token is logged");
    let second = Serve::start(&runtime);
    assert_ne!(second.token(), first, "each run has its own token");
}

#[test]
fn the_token_can_be_fixed_or_switched_off() {
    let home = home();
    let runtime = home.path().join("run");
    let mut fixed = command(&runtime);
    fixed.env("NUDGE_TOKEN", "constant-for-a-test");
    assert_eq!(Serve::spawn(fixed, &runtime).token(), "constant-for-a-test");
    let mut open = command(&runtime);
    open.env("NUDGE_AUTH", "0");
    let open = Serve::spawn(open, &runtime);
    assert_eq!(open.file.token, None);
    let [host, json] = [format!("Host: 127.0.0.1:{}", open.file.port), "Content-Type: application/json".into()];
    assert_eq!(with_headers(&open, "POST / HTTP/1.1", &[host.clone(), json.clone()]).status, 200);
    refused(&with_headers(&open, "POST / HTTP/1.1", &[host, json, "Origin: null".into()]), 403);
}

#[test]
fn large_bodies_are_refused_before_they_are_read() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let announced = serve.raw(format!("{}Content-Length: 1073741824\r\n\r\n", serve.head()));
    refused(&announced, 413);

    // Sends a body without a length, so the server must count the bytes. The refusal arrives although the test does not
    // read while it writes.
    let mut stream = serve.connect();
    stream.write_all(format!("{}Transfer-Encoding: chunked\r\n\r\n", serve.head()).as_bytes()).unwrap();
    let mib = vec![b' '; 1 << 20];
    for _ in 0..33 {
        let sent = stream.write_all(b"100000\r\n").and_then(|()| stream.write_all(&mib));
        sent.and_then(|()| stream.write_all(b"\r\n")).unwrap();
    }
    refused(&Response::read(&mut stream), 413);

    // A caller without a token gets the refusal, even while it sends a large body.
    let mut stream = serve.connect();
    let head =
        format!("POST / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\n\r\n", serve.file.port, 16 << 20);
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..16 {
        stream.write_all(&mib).unwrap();
    }
    refused(&Response::read(&mut stream), 401);
    // A caller that sends `Expect: 100-continue` is refused before it sends its body.
    let asking = format!("{}Content-Length: 1073741824\r\nExpect: 100-continue\r\n\r\n", serve.head());
    let answer = serve.raw(asking);
    refused(&answer, 413);
    assert!(!answer.head.starts_with("http/1.1 100"));
    #[cfg(target_os = "linux")]
    {
        let status = std::fs::read_to_string(format!("/proc/{}/status", serve.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kib: u32 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kib < 200 * 1024, "{kib} KiB");
    }
}

#[test]
fn heads_are_bounded() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    for flood in [
        format!("{}X: {}\r\n\r\n", serve.head(), "a".repeat(64 << 10)),
        format!("{}{}\r\n", serve.head(), "X: a\r\n".repeat(1000)),
    ] {
        let mut stream = serve.connect();
        let _ = stream.write_all(flood.as_bytes());
        let mut answer = Vec::new();
        // Accepts an empty answer: a reset connection may have lost it.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
    }
    // Sends two lengths that contradict each other. The server must not take the rest for a second request.
    let both = format!(
        "{}Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{CALL}",
        serve.head(),
        5 + CALL.len()
    );
    let response = serve.raw(both);
    assert!(response.status == 400 || response.body.contains("-32700"), "{response:?}");
    assert_eq!(serve.post(CALL).status, 200);
}

#[test]
fn deep_and_bad_json_do_no_harm() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    let deep = "[".repeat(500_000);
    for (body, code) in [
        (deep.clone(), -32700),
        (format!("{deep}{}", "]".repeat(500_000)), -32600),
        (
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"nudge.query","params":{{"x":{deep}{}}}}}"#,
                "]".repeat(500_000)
            ),
            40001,
        ),
        ("{".into(), -32700),
        ("nonsense".into(), -32700),
        ("\u{feff}{}".into(), -32700),
        ("7".into(), -32600),
        ("null".into(), -32600),
    ] {
        let response = serve.post(&body);
        assert_eq!(response.status, 200);
        let answer: serde_json::Value =
            serde_json::from_str(response.body.trim_start_matches('[').trim_end_matches(']')).unwrap();
        assert_eq!(answer["error"]["code"], code, "{}", &body[..body.len().min(80)]);
    }
    // A body is not JSON if a byte in any place is not UTF-8.
    let mut body =
        br#"{"jsonrpc":"2.0","id":1,"method":"nudge.set_hint","params":{"component":"a","key":"k","value":"v"},"x":""#
            .to_vec();
    body.extend(b"\xff\"}");
    for body in [body.clone(), [b"[", &body[..], b"]"].concat()] {
        let head = format!("{}Content-Length: {}\r\nConnection: close\r\n\r\n", serve.head(), body.len());
        let answer: serde_json::Value =
            serde_json::from_str(&serve.raw([head.as_bytes(), &body].concat()).body).unwrap();
        assert_eq!(answer["error"]["code"], -32700, "{answer}");
    }
    assert_eq!(serve.call("nudge.list_components", &json!({}))["result"]["components"], json!([]));
    // The answer does not repeat an id of a wrong type.
    let answer = serve.post(r#"[{"jsonrpc":"2.0","id":{"a":[1]},"method":"nudge.changes"}]"#).body;
    assert!(answer.contains(r#""id":null"#) && !answer.contains(r#""a""#), "{answer}");
    for line in [&deep[..], "nonsense", "\u{0}", "[]", "{}", r#"{"jsonrpc":"2.0","method":7}"#] {
        serve.send(line);
    }
    serve.stdin.as_mut().unwrap().write_all(b"\xff\xfe\n").unwrap();
    serve.initialize("2025-11-25");
    serve.close();
}
