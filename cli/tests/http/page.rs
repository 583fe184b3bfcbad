//! Tests the page with raw bytes against a real server, and the command that opens it (row 26 of the security checklist
//! in `checklist/main.rs`). `tests/web` loads the page in a real browser.

use crate::kit;

use std::process::Output;

use kit::system::{nudge, sentence};
use kit::{Response, Serve, home};
use serde_json::{Value, json};

const FILES: [&str; 4] = ["/web", "/web/app.js", "/web/app.css", "/web/icon.svg"];

/// Runs `nudge ui`; returns the address of the page, which contains a code.
fn address(serve: &Serve) -> String {
    let Output { status, stdout, stderr } = nudge(&serve.runtime, &["ui"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{stderr}");
    assert!(stderr.contains("works once, within 60 seconds") && stderr.lines().count() == 1, "{stderr}");
    let address = String::from_utf8(stdout).unwrap().trim_end().to_owned();
    let (name, rest) = address.strip_prefix("http://").unwrap().split_once('.').unwrap();
    assert!(name.len() == 40 && rest.starts_with(&format!("localhost:{}/web#code=", serve.file.port)), "{address}");
    address
}

fn code(serve: &Serve) -> String {
    address(serve).split_once("#code=").unwrap().1.to_owned()
}

fn host(serve: &Serve) -> String {
    format!("Host: 127.0.0.1:{}", serve.file.port)
}

fn get(serve: &Serve, path: &str, headers: &[&str]) -> Response {
    serve.raw(format!("GET {path} HTTP/1.1\r\n{}\r\n{}\r\n", host(serve), lines(headers)))
}

fn lines(headers: &[&str]) -> String {
    headers.iter().flat_map(|header| [*header, "\r\n"]).collect()
}

/// Sends a POST as a browser does: with `Host`, the content type and these headers.
fn post(serve: &Serve, path: &str, headers: &[&str], body: &Value) -> Response {
    let (host, headers, body) = (host(serve), lines(headers), body.to_string());
    let length = body.len();
    serve.raw(format!(
        "POST {path} HTTP/1.1\r\n{host}\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    ))
}

const OWN: &str = "Sec-Fetch-Site: same-origin";

/// Exchanges a code for a token of the page; an error is the HTTP status.
fn enter(serve: &Serve, code: &str) -> Result<Value, u16> {
    let answer = post(serve, "/web/session", &[OWN], &json!({"code": code}));
    if answer.status == 200 { Ok(serde_json::from_str(&answer.body).unwrap()) } else { Err(answer.status) }
}

fn page(serve: &Serve) -> String {
    enter(serve, &code(serve)).unwrap()["token"].as_str().unwrap().to_owned()
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Makes a call with the page's token; returns the whole JSON-RPC answer.
fn call(serve: &Serve, token: &str, method: &str, params: &Value) -> Value {
    let bearer = format!("Authorization: Bearer {token}");
    let answer = post(serve, "/web/rpc", &[OWN, &bearer], &request(method, params));
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_str(&answer.body).unwrap()
}

fn refused(answer: &Response, status: u16) {
    assert_eq!(answer.status, status, "{answer:?}");
    answer.error();
    assert!(!answer.head.contains("access-control") && answer.head.contains("connection: close"), "{answer:?}");
}

#[test]
fn the_files_hold_no_data_and_allow_nothing_inline() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    for path in FILES {
        for headers in [&[][..], &[OWN], &["Sec-Fetch-Site: none"]] {
            let answer = get(&serve, path, headers);
            assert_eq!(answer.status, 200, "{path}");
            assert!(!answer.body.contains(serve.token()));
            for part in [
                "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n",
                "referrer-policy: no-referrer\r\n",
                "x-content-type-options: nosniff\r\n",
                "cache-control: no-store\r\n",
                "connection: close\r\n",
            ] {
                assert!(answer.head.contains(part), "{path}: {part} is not in {}", answer.head);
            }
            assert!(!answer.head.contains("set-cookie") && !answer.head.contains("access-control"), "{}", answer.head);
        }
        refused(&post(&serve, path, &[], &json!({})), 405);
    }
    let page = get(&serve, "/web", &[]).body;
    for inline in [" style=", "<style", " onclick=", "javascript:", "<script>"] {
        assert!(!page.contains(inline), "{inline}");
    }
    // The server has every module that the script imports.
    let script = get(&serve, "/web/app.js", &[]).body;
    let modules: Vec<_> = script.split("from '").skip(1).map(|rest| rest.split('\'').next().unwrap()).collect();
    assert!(modules.len() > 3, "{modules:?}");
    for module in modules {
        assert_eq!(get(&serve, module, &[OWN]).status, 200, "{module}");
    }
    refused(&get(&serve, "/web/none.js", &[]), 404);
    refused(&get(&serve, "/web/", &[]), 404);
}

#[test]
fn other_pages_load_nothing_but_may_link_to_it() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    for site in ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"] {
        for path in FILES {
            refused(&get(&serve, path, &[site]), 403);
            refused(&get(&serve, path, &[site, "Sec-Fetch-Mode: no-cors"]), 403);
        }
        assert_eq!(get(&serve, "/web", &[site, "Sec-Fetch-Mode: navigate"]).status, 200);
        refused(&get(&serve, "/web/app.js", &[site, "Sec-Fetch-Mode: navigate"]), 403);
    }
    let foreign = format!("Origin: http://localhost:{}", serve.file.port);
    for origin in ["Origin: null", "Origin: https://evil.example", &foreign] {
        refused(&get(&serve, "/web/app.js", &[OWN, origin]), 403);
        refused(&get(&serve, "/web", &[origin, "Sec-Fetch-Mode: navigate"]), 403);
    }
    refused(&serve.raw("GET /web HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403);
}

#[test]
fn a_code_works_once_and_for_the_page_alone() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let code = code(&serve);
    let body = json!({"code": code});
    let (port, other) = (serve.file.port, serve.file.port ^ 1);
    let own_origin = format!("Origin: http://127.0.0.1:{port}");
    let foreign = [
        "Origin: null".to_owned(),
        "Origin: https://evil.example".into(),
        format!("Origin: http://127.0.0.1:{other}"),
        format!("Origin: https://127.0.0.1:{port}"),
        format!("Origin: http://localhost:{port}"),
        "Origin: ".into(),
    ];
    for path in ["/web/session", "/web/rpc"] {
        for site in
            [&[][..], &["Sec-Fetch-Site: none"], &["Sec-Fetch-Site: same-site"], &["Sec-Fetch-Site: cross-site"]]
        {
            refused(&post(&serve, path, site, &body), 403);
        }
        refused(&post(&serve, path, &[OWN, OWN], &body), 403);
        for origin in &foreign {
            refused(&post(&serve, path, &[OWN, origin], &body), 403);
        }
        refused(&post(&serve, path, &[OWN, &own_origin, &own_origin], &body), 403);
        refused(&serve.raw(format!("OPTIONS {path} HTTP/1.1\r\n{}\r\n{OWN}\r\n\r\n", host(&serve))), 405);
        refused(&get(&serve, path, &[OWN]), 405);
    }
    let form = format!(
        "POST /web/session HTTP/1.1\r\n{}\r\n{OWN}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
        host(&serve),
        body.to_string().len()
    );
    refused(&serve.raw(form), 415);
    refused(&post(&serve, "/web/session", &[OWN], &json!({"code": "x".repeat(8 << 10)})), 413);
    for bad in [json!({}), json!([]), json!({"code": 1}), json!({"code": code, "more": 1})] {
        refused(&post(&serve, "/web/session", &[OWN], &bad), 400);
    }
    assert_eq!(enter(&serve, "0"), Err(403));
    // The code still works: none of the refused requests has used it.
    let entered = post(&serve, "/web/session", &[OWN, &own_origin], &body);
    assert_eq!(entered.status, 200, "{entered:?}");
    assert!(!entered.body.contains(serve.token()) && entered.head.contains("connection: close"));
    let again = post(&serve, "/web/session", &[OWN], &body);
    refused(&again, 403);
    assert!(again.body.contains("run `nudge ui` again"), "{again:?}");
}

#[test]
fn a_page_calls_only_the_methods_that_it_shows() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let token = page(&serve);
    let set = json!({"component": "a", "key": "k", "value": "v"});
    assert_eq!(call(&serve, &token, "nudge.set_hint", &set)["result"]["hint"]["version"], 1);
    let changes = call(&serve, &token, "nudge.changes", &json!({"since": 0}));
    let client = &changes["result"]["changes"][0]["by"];
    assert_eq!(client, concat!("nudge-page/", env!("CARGO_PKG_VERSION")), "whatever the browser calls itself");
    for method in ["nudge.query", "nudge.status", "nudge.deletions", "nudge.client_sessions"] {
        assert!(call(&serve, &token, method, &json!({})).get("result").is_some(), "{method}");
    }
    let unlisted = [
        "nudge.get_hint",
        "nudge.export",
        "nudge.import",
        "nudge.shutdown",
        "nudge.forget",
        "nudge.open_page",
        "nudge.methods",
        "nudge.suggest",
        "nudge.signals.send",
        "nudge.signals.respond",
        "nudge.none",
        "",
    ];
    for method in unlisted {
        let answer = call(&serve, &token, method, &json!({"component": "a", "key": "k"}));
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    // The page cannot call a forbidden method in a batch either.
    let batch = json!([request("nudge.status", &json!({})), request("nudge.export", &json!({}))]);
    let bearer = format!("Authorization: Bearer {token}");
    let answers: Value = serde_json::from_str(&post(&serve, "/web/rpc", &[OWN, &bearer], &batch).body).unwrap();
    assert_eq!((&answers[0]["result"]["role"], &answers[1]["error"]["code"]), (&json!("PRIMARY"), &json!(-32601)));
    // The token of the page opens only the paths of the page.
    let status = request("nudge.status", &json!({}));
    refused(&post(&serve, "/", &[&bearer], &status), 401);
    refused(&post(&serve, "/mcp", &[&bearer], &status), 401);
    refused(&post(&serve, "/", &[OWN, &bearer], &status), 403);
    let servers = format!("Authorization: Bearer {}", serve.token());
    refused(&post(&serve, "/web/rpc", &[OWN, &servers], &status), 401);
    refused(&post(&serve, "/", &[OWN, &servers], &status), 403);
    for shown in [&[OWN][..], &[OWN, "Authorization: Bearer"], &[OWN, &bearer, &bearer]] {
        let answer = post(&serve, "/web/rpc", shown, &status);
        refused(&answer, 401);
        assert!(answer.body.contains("run `nudge ui` again"), "{answer:?}");
    }
    refused(&post(&serve, "/web/rpc", &["Sec-Fetch-Site: same-site", &bearer], &status), 403);
}

#[test]
fn no_secret_reaches_a_page() {
    const SECRET: &str = "correct horse battery staple";
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let token = page(&serve);
    let named = json!({"component": "db", "key": "password"});
    let session = json!({"event": "start", "client_session": "s", "context": {"repo": "a/b"}});
    let with = |more: Value| {
        let mut params = named.clone();
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    // Suggests the hint while it is no secret. Then the hint becomes a secret.
    let scope = json!({"repo": ["a/b"]});
    serve.call("nudge.set_hint", &with(json!({"value": SECRET, "meta": {"scope": scope}})));
    let told = serve.call("nudge.suggest", &session);
    assert!(told.to_string().contains(SECRET), "{told}");
    let lines = || call(&serve, &token, "nudge.client_sessions", &json!({}));
    assert!(lines().to_string().contains(SECRET), "that is what the agent read");
    let set = json!({"value": SECRET, "meta": {"scope": scope, "sensitivity": "secret"}});
    let mut answers = vec![call(&serve, &token, "nudge.set_hint", &with(set))];
    answers.push(lines());
    assert_eq!(answers[1]["result"]["sessions"][0]["told"][0]["line"], "[secret]");
    for (method, params) in [
        ("nudge.query", json!({"include_ineligible": true})),
        ("nudge.query", json!({"regex": "horse", "include_ineligible": true})),
        ("nudge.recall", json!({"query": "db password", "context": {"repo": "a/b"}})),
        ("nudge.why", named.clone()),
        ("nudge.delete_hint", named.clone()),
        ("nudge.deletions", json!({})),
        ("nudge.undo", json!({})),
        ("nudge.changes", json!({"since": 0})),
        ("nudge.status", json!({})),
    ] {
        let answer = call(&serve, &token, method, &params);
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answers.push(answer);
    }
    for answer in answers {
        assert!(!answer.to_string().contains("horse"), "{answer}");
    }
}

#[test]
fn what_agents_were_told_is_told_with_what_came_of_it() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let token = page(&serve);
    let context = json!({"cwd": "/w/shop", "repo": "org/shop", "branch": "dev"});
    for (key, value) in [("build", "make shop"), ("test", "make check")] {
        serve.call("nudge.set_hint", &json!({"component": "shop", "key": key, "value": value}));
    }
    let lent = json!({"event": "start", "client_session": "agent-1", "context": context, "confirm_ms": 60_000});
    let ticket = serve.call("nudge.suggest", &lent)["result"]["ticket"].clone();
    let told = || call(&serve, &token, "nudge.client_sessions", &json!({}))["result"]["sessions"][0].clone();
    assert_eq!(told()["told"], json!([]), "it is not known yet whether the agent read it");
    serve.call("nudge.told", &json!({"client_session": "agent-1", "ticket": ticket}));
    let ran = |command: &str, ok: bool| {
        let outcome = json!({"command": command, "ok": ok, "client_session": "agent-1", "context": context});
        serve.call("nudge.outcome", &outcome);
    };
    ran("make shop", true);
    ran("make check", false);
    let session = told();
    let place = json!([session["cwd"], session["repo"], session["branch"]]);
    assert_eq!(place, json!(["/w/shop", "org/shop", "dev"]), "{session}");
    assert_eq!((&session["followed"], &session["failed"]), (&json!(1), &json!(1)));
    let lines: Vec<_> = session["told"].as_array().unwrap().iter().collect();
    let came: Vec<_> = lines.iter().map(|line| (line["name"].as_str().unwrap(), &line["outcome"]["ok"])).collect();
    assert_eq!(came.len(), 2);
    assert!(came.contains(&("shop/build", &json!(true))) && came.contains(&("shop/test", &json!(false))), "{came:?}");
    assert!(lines.iter().all(|line| line["event"] == "start" && line["source"] == "hints"), "{session}");
    let none = call(&serve, &token, "nudge.client_sessions", &json!({"client_session": "agent-2"}));
    assert_eq!(none["result"]["sessions"], json!([]));
    let refused = call(&serve, &token, "nudge.client_sessions", &json!({"limit": "x"}));
    assert_eq!(refused["error"]["code"], 40001);
}

#[test]
fn here_is_where_it_was_opened() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let scope = json!({"env_required": ["NUDGE_PAGE_TEST"], "env_match": {"NUDGE_PAGE_STAGE": ["a"]}});
    serve.call("nudge.set_hint", &json!({"component": "a", "key": "k", "value": "v", "meta": {"scope": scope}}));
    let mut command = nudge(&serve.runtime, &["ui", "--json", "--branch", "dev"]);
    command.current_dir(home.path()).env("PWD", home.path()).env("NUDGE_PAGE_STAGE", "a").env("NUDGE_PAGE_OTHER", "b");
    let printed = command.output().unwrap();
    assert!(printed.stderr.is_empty(), "{printed:?}");
    let opened: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(opened["expires_s"], 60);
    let code = opened["url"].as_str().unwrap().split_once("#code=").unwrap().1;
    let here = enter(&serve, code).unwrap()["here"].clone();
    let folder = home.path().canonicalize().unwrap();
    assert_eq!((&here["cwd"], &here["branch"]), (&json!(folder.to_str().unwrap()), &json!("dev")), "{here}");
    assert_eq!(here["env"], json!({"NUDGE_PAGE_STAGE": "a", "NUDGE_PAGE_TEST": null}), "what scopes mention alone");
    let token = page(&serve);
    let found = call(&serve, &token, "nudge.query", &json!({"context": here, "include_ineligible": true}));
    assert_eq!(found["result"]["hints"][0]["match_explain"]["matched"], false, "{found}");

    let wrong = nudge(&serve.runtime, &["ui", "--cwd", "relative"]).output().unwrap();
    assert!(sentence(&wrong).contains("absolute"), "{wrong:?}");
}

#[test]
fn without_a_server_it_says_what_to_do() {
    let home = home();
    let refused = nudge(&home.path().join("run"), &["ui"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    assert!(sentence(&refused).contains("`nudge serve --detach`"));
}

#[test]
fn another_session_does_not_know_the_page() {
    let home = home();
    let runtime = home.path().join("run");
    let first = Serve::start(&runtime);
    let (token, code) = (page(&first), code(&first));
    first.close();
    let second = Serve::start(&runtime);
    let bearer = format!("Authorization: Bearer {token}");
    refused(&post(&second, "/web/rpc", &[OWN, &bearer], &request("nudge.status", &json!({}))), 401);
    assert_eq!(enter(&second, &code), Err(403));
}

/// The first agent ends. The page continues with the next PRIMARY: on the same port, in the same session.
#[cfg(unix)]
#[test]
fn the_next_primary_of_the_session_knows_the_page() {
    use kit::session::Session;

    let session = Session::start(1);
    let first = session.primary(|_| true);
    let opened = session.nudge(&["ui", "--json"]);
    let opened: Value = serde_json::from_slice(&opened.stdout).unwrap();
    let code = opened["url"].as_str().unwrap().split_once("#code=").unwrap().1.to_owned();
    let ask = |path: &str, bearer: &str, body: &Value| {
        use std::io::Write as _;
        let port = session.primary(|_| true).port;
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let body = body.to_string();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{OWN}\r\n{bearer}Content-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        Response::read(&mut stream)
    };
    let entered: Value = serde_json::from_str(&ask("/web/session", "", &json!({"code": code})).body).unwrap();
    let bearer = format!("Authorization: Bearer {}\r\n", entered["token"].as_str().unwrap());
    let set = request("nudge.set_hint", &json!({"component": "a", "key": "k", "value": "v"}));
    assert_eq!(ask("/web/rpc", &bearer, &set).status, 200);
    session.kill_primary();
    let next = session.next_primary(first.pid);
    assert_eq!(next.port, first.port);
    let found = ask("/web/rpc", &bearer, &request("nudge.query", &json!({})));
    assert!(found.status == 200 && found.body.contains("\"value\":\"v\""), "{found:?}");
}

/// Another user can read the page's code, because every user of the machine sees the arguments of a browser.
#[cfg(target_os = "linux")]
#[test]
fn row_26_another_users_process_cannot_use_a_code() {
    use std::io::{Read as _, Write as _};
    use std::process::Stdio;

    use kit::system::{as_stranger, stage};

    let Some((home, _)) = stage() else { return };
    let serve = Serve::start(&home.path().join("run"));
    let code = code(&serve);
    let body = json!({"code": code}).to_string();
    let asked = format!(
        "POST /web/session HTTP/1.1\r\n{}\r\n{OWN}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        host(&serve),
        body.len()
    );
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{} && cat >&3 && cat <&3", serve.file.port);
    let mut asking = as_stranger("bash");
    let mut asking = asking.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    asking.stdin.take().unwrap().write_all(asked.as_bytes()).unwrap();
    let mut answer = String::new();
    asking.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    asking.wait().unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("another user"), "{answer}");
    // The attempt of the other user has not used up the code.
    assert!(enter(&serve, &code).is_ok());
}

/// On a terminal with a display, `nudge ui` opens the address in the browser. Otherwise it only prints the address.
#[cfg(all(unix, not(target_os = "macos")))]
#[test]
fn it_opens_where_somebody_sits() {
    use std::os::unix::fs::PermissionsExt as _;

    use kit::pty::on_terminal;
    use kit::{PATIENCE, wait_for};

    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let programs = home.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let opener = programs.join("xdg-open");
    let address_file = home.path().join("address");
    std::fs::write(
        &opener,
        format!("#!/bin/sh\nprintf %s \"$1\" > '{0}.part' && mv '{0}.part' '{0}'\n", address_file.display()),
    )
    .unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths([programs, "/bin".into(), "/usr/bin".into()]).unwrap();
    let ui = |args: &[&str], display: Option<&str>| {
        let mut command = nudge(&serve.runtime, args);
        command.env("PATH", &path).env_remove("WAYLAND_DISPLAY").env_remove("DISPLAY");
        display.map(|display| command.env("DISPLAY", display));
        command
    };
    let (status, said) = on_terminal(ui(&["ui"], Some(":0")));
    assert!(status.success() && said.contains("it opens in your browser"), "{said}");
    let address = wait_for("the opener", PATIENCE, || std::fs::read_to_string(&address_file).ok());
    assert!(said.contains(&address) && address.contains("/web#code="), "{said} {address}");
    std::fs::remove_file(&address_file).unwrap();
    let (_, said) = on_terminal(ui(&["ui"], None));
    assert!(said.contains("no browser can be opened here"), "{said}");
    let (_, said) = on_terminal(ui(&["ui", "--no-open"], Some(":0")));
    assert!(said.contains("open it in a browser of yours"), "{said}");
    let piped = ui(&["ui"], Some(":0")).output().unwrap();
    assert!(String::from_utf8_lossy(&piped.stderr).contains("open it in a browser of yours"), "{piped:?}");
    assert!(!address_file.exists(), "it was opened");
}

#[test]
fn each_address_has_an_origin_of_its_own_for_the_page_alone() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let address = address(&serve);
    let (origin, code) = address.split_once("/web#code=").unwrap();
    let host = format!("Host: {}", origin.strip_prefix("http://").unwrap());
    let ask = |host: &str, line: &str, headers: &str, body: &str| {
        let length = body.len();
        let head = format!("{line} HTTP/1.1\r\n{host}\r\nContent-Type: application/json\r\n{headers}");
        serve.raw(format!("{head}Content-Length: {length}\r\n\r\n{body}"))
    };
    let own = format!("{OWN}\r\nOrigin: {origin}\r\n");
    assert_eq!(ask(&host, "GET /web", "", "").status, 200);
    // The session's token is refused under the page's host name.
    let token = format!("Authorization: Bearer {}\r\n", serve.token());
    for (line, headers) in [("POST /", &token), ("POST /mcp", &token), ("GET /health", &String::new())] {
        refused(&ask(&host, line, headers, "{}"), 403);
    }
    refused(&ask(&host, "GET /api/projects", &token, ""), 401);
    // The server refuses a host name that it did not make.
    let other = host.replace(".localhost", "0.localhost");
    for wrong in [other, host.replace(".localhost", ".localhost.evil.example"), "Host: x.localhost:1".into()] {
        refused(&ask(&wrong, "GET /web", "", ""), 403);
    }
    let entered = ask(&host, "POST /web/session", &own, &json!({"code": code}).to_string());
    let entered: Value = serde_json::from_str(&entered.body).unwrap();
    let token = format!("{own}Authorization: Bearer {}\r\n", entered["token"].as_str().unwrap());
    let told = ask(&host, "POST /web/rpc", &token, &request("nudge.status", &json!({})).to_string());
    assert!(told.status == 200 && told.body.contains("session_id"), "{}", told.body);
}
