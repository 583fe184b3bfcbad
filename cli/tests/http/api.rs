//! Tests the routes below `/api` and the server's further ports with raw bytes. `tests/web` tests the content of the
//! answers.

use crate::kit;

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};

use kit::session::free_port;
use kit::system::nudge;
use kit::{Response, Serve, command, home};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Starts a server with a data folder of its own.
fn serve() -> (TempDir, Serve) {
    let home = home();
    let runtime = home.path().join("run");
    let mut serve = command(&runtime);
    serve.args(["--port", "0"]).env("NUDGE_DATA_DIR", home.path().join("data"));
    let serve = Serve::spawn(serve, &runtime);
    (home, serve)
}

/// Sends a request to a port, with this JSON body if there is one; returns the response.
fn ask(port: u16, line: &str, headers: &[String], body: Option<&Value>) -> Response {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let host = if headers.iter().any(|header| header.starts_with("Host:")) {
        String::new()
    } else {
        format!("Host: 127.0.0.1:{port}\r\n")
    };
    let headers: String = headers.iter().flat_map(|header| [header.as_str(), "\r\n"]).collect();
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    let json = "Content-Type: application/json\r\n";
    write!(stream, "{line} HTTP/1.1\r\n{host}{json}{headers}Content-Length: {length}\r\n\r\n{body}").unwrap();
    Response::read(&mut stream)
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

fn ui(serve: &Serve, port: u16) -> Output {
    nudge(&serve.runtime, &["ui", "--port", &port.to_string()]).output().unwrap()
}

/// Opens the page on a port; returns the page's token.
fn page(serve: &Serve, port: u16) -> String {
    let Output { status, stdout, stderr } = ui(serve, port);
    assert!(status.success(), "{stderr:?}");
    let address = String::from_utf8(stdout).unwrap();
    let (origin, code) = address.trim().split_once("/web#code=").unwrap();
    assert!(origin.ends_with(&format!(".localhost:{port}")), "{address}");
    let entered = ask(port, "POST /web/session", &["Sec-Fetch-Site: same-origin".into()], Some(&json!({"code": code})));
    let entered: Value = serde_json::from_str(&entered.body).unwrap();
    entered["token"].as_str().unwrap().to_owned()
}

#[test]
fn the_door_is_the_same_at_every_port() {
    let (_home, serve) = serve();
    let further = free_port();
    let page = page(&serve, further);
    let new = json!({"kind": "issue", "title": "x", "project": "p", "create_project": true});
    for port in [serve.file.port, further] {
        let get = |headers: &[String]| ask(port, "GET /api/records", headers, None);
        for token in [serve.token(), &page] {
            assert_eq!((get(&[bearer(token)]).status, &*get(&[bearer(token)]).body), (200, "[]"));
        }
        let token = bearer(serve.token());
        for bad in [vec![], vec![bearer("x")], vec![bearer(&serve.token()[1..])], vec![token.clone(), token.clone()]] {
            let refused = get(&bad);
            assert_eq!(refused.status, 401, "{bad:?}");
            refused.error();
        }
        let other = if port == further { serve.file.port } else { further };
        for bad in [
            "Origin: null".to_owned(),
            "Origin: https://evil.example".into(),
            format!("Origin: http://127.0.0.1:{other}"),
            format!("Origin: http://localhost:{port}"),
            "Sec-Fetch-Site: cross-site".into(),
            "Sec-Fetch-Site: same-site".into(),
            "Host: evil.example".into(),
            format!("Host: 127.0.0.1:0{port}"),
            format!("Host: 127.0.0.1:{}", port ^ 1),
        ] {
            for shown in [&token, &bearer(&page)] {
                let refused = ask(port, "POST /api/records", &[shown.clone(), bad.clone()], Some(&new));
                assert_eq!(refused.status, 403, "{bad}");
                refused.error();
                assert!(!refused.head.contains("access-control"), "{refused:?}");
            }
        }
        let own = [token.clone(), format!("Origin: http://127.0.0.1:{port}"), "Sec-Fetch-Site: same-origin".into()];
        assert_eq!(get(&own).status, 200);
        // The token of a page opens no other path.
        let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "nudge.status"});
        for line in ["POST /", "POST /mcp"] {
            assert_eq!(ask(port, line, &[bearer(&page)], Some(&rpc)).status, 401, "{line}");
        }
        assert_eq!(ask(port, "OPTIONS /api/records", &[], None).status, 405);
        assert_eq!(ask(port, "POST /", &[token], Some(&rpc)).status, 200, "the rest of the server is there, too");
        let front = ask(port, "GET /", &[], None);
        assert!(front.status == 200 && front.body.starts_with("<!doctype html>"), "{front:?}");
        assert_eq!(ask(port, "GET /", &["Sec-Fetch-Site: cross-site".into()], None).status, 403);
    }
}

#[test]
fn a_record_by_plain_http() {
    let (_home, serve) = serve();
    let call = |line: &str, body: Option<&Value>| {
        let answer = ask(serve.file.port, line, &[bearer(serve.token()), "User-Agent: an editor".into()], body);
        (answer.status, serde_json::from_str::<Value>(&answer.body).unwrap())
    };
    let new = json!({"kind": "issue", "title": "Uploads are refused", "project": "acme/shop", "create_project": true});
    let (status, made) = call("POST /api/records", Some(&new));
    assert_eq!((status, &made["by"], &made["status"]), (201, &json!("an editor"), &json!("open")));
    assert_eq!(call("POST /api/records", Some(&new)), (200, made.clone()), "the same is one record");
    assert_eq!(call("GET /api/records/1", None), (200, made));
    let (status, refused) = call("PUT /api/records/1", Some(&json!({"title": "x", "if_match_version": 7})));
    assert_eq!((status, &refused["error"]["data"]["reason"]), (409, &json!("E_CONFLICT")));
    assert_eq!(call("DELETE /api/records/1", None), (200, json!({"deleted": true, "id": 1})));
    assert_eq!(call("GET /api/records/1", None).0, 404);
}

#[test]
fn a_port_is_had_until_the_server_ends_and_one_that_is_taken_is_refused() {
    let (home, serve) = serve();
    let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = held.local_addr().unwrap().port();
    let said = |out: &Output| String::from_utf8(out.stderr.clone()).unwrap();
    let out = ui(&serve, taken);
    let expected = format!("nudge: Port {taken} is taken by another program; give another with --port.\n");
    assert_eq!((out.status.code(), out.stdout.is_empty(), said(&out)), (Some(4), true, expected));
    assert_eq!(ui(&serve, 0).status.code(), Some(2));
    let with = |port: &str, args: &[&str]| -> Output {
        let mut ui: Command = nudge(&serve.runtime, &[&["ui"], args].concat());
        ui.env("DUDE_PORT", port).output().unwrap()
    };
    for wrong in ["x", "0", "65536", "-1"] {
        let out = with(wrong, &[]);
        let expected = "nudge: DUDE_PORT must be a port from 1 to 65535; set another, or unset it.\n";
        assert_eq!((out.status.code(), said(&out)), (Some(2), expected.to_owned()), "{wrong}");
    }
    let further = free_port();
    for _ in 0..2 {
        let out = with(&further.to_string(), &[]);
        assert!(String::from_utf8_lossy(&out.stdout).contains(&format!(".localhost:{further}/web#code=")));
        assert!(said(&out).contains(&format!("http://127.0.0.1:{further}/api")), "{out:?}");
    }
    let own = serve.file.port.to_string();
    assert!(with("x", &["--port", &own]).status.success(), "the flag counts first");
    assert!(with("", &[]).status.success());
    serve.close();
    assert!(TcpStream::connect(("127.0.0.1", further)).is_err(), "it ends with the server");
    assert!(!fs::exists(home.path().join("data/records.db")).unwrap());
}
