//! Tests calls over HTTP: which requests a client sends, which it repeats, and to which server.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nudge::{Caller, Result, Service};
use nudge_client::{Client, GiveUp, PROTOCOL, RemoteServer, RuntimeDir, ServerFile, SessionFile};
use serde_json::value::RawValue;
use tempfile::TempDir;

use server::{CannedReply, Gate, Request, Server};

mod server;

const NO_SERVER: &str = "No Nudge server is running; start one with `nudge serve --detach`.";
const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"n":1}}"#;
const ENDING: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":50301,"message":"It ends.","data":{"reason":"E_UNAVAILABLE","ending":true}}}"#;

fn home() -> (TempDir, RuntimeDir) {
    let home = TempDir::with_prefix("nudge-client-").unwrap();
    let dir = RuntimeDir::create(Some(&home.path().join("run"))).unwrap();
    (home, dir)
}

fn session() -> SessionFile {
    SessionFile { id: "one".into(), protocol: PROTOCOL, created_at: 1, port: 0, token: None, keep: false }
}

fn params() -> Box<RawValue> {
    RawValue::from_string("{}".into()).unwrap()
}

/// Makes a runtime with two worker threads, like that of a PROXY.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn call(client: &Client, method: &str) -> Result<Box<RawValue>> {
    runtime().block_on(client.call(Caller::default(), method, &params()))
}

fn keys(seen: &[Request]) -> Vec<Option<&str>> {
    seen.iter().map(|request| request.header("idempotency-key")).collect()
}

#[test]
fn a_call_that_was_not_answered_is_sent_again_with_its_key() {
    for broken in
        [CannedReply::Nothing, CannedReply::Part, CannedReply::Text(200, ENDING), CannedReply::Text(401, ENDING)]
    {
        let (_home, dir) = home();
        let server = Server::start(&dir, move |count, _| if count == 0 { broken } else { CannedReply::Text(200, OK) });
        let remote = RemoteServer::connect(&dir).unwrap();
        assert_eq!(remote.call("nudge.bump", &params()).unwrap().get(), r#"{"n":1}"#, "{broken:?}");
        assert!(remote.call("nudge.bump", &params()).is_ok());
        let seen = server.seen();
        let keys = keys(&seen);
        assert!(keys.len() == 3 && keys[0].unwrap().len() == 32 && keys[0] == keys[1], "{broken:?}: {keys:?}");
        assert_ne!(keys[1], keys[2], "{broken:?}");
        assert_eq!(seen[0].body, seen[1].body);
        let ways: HashSet<_> = seen.iter().map(|request| request.connection).collect();
        assert_eq!(ways.len(), 2, "{broken:?}: a new connection, kept for the next call");
    }
}

#[test]
fn every_call_has_a_key() {
    let (_home, dir) = home();
    let server = Server::start(&dir, |_, _| CannedReply::Text(200, OK));
    let client = Client::new(&dir, "test/1").with_header("nudge-proxy", "7");
    let runtime = runtime();
    runtime.block_on(client.connect()).unwrap();
    let call = |caller, method| runtime.block_on(client.call(caller, method, &params())).unwrap();
    for method in ["nudge.get_hint", "nudge.changes", "nudge.shutdown"] {
        call(Caller::with_name("me").with_key(Some("k")).asking_env(), method);
    }
    for method in ["nudge.set_hint", "nudge.new"] {
        call(Caller::default().with_key(Some("k 1")), method);
        call(Caller::default(), method);
    }
    let seen = server.seen();
    // The client sends a key with reads too, because only the PRIMARY knows which methods only read.
    assert_eq!(keys(&seen)[..3], [Some("k"); 3]);
    assert_eq!((keys(&seen)[3], keys(&seen)[5]), (Some("k 1"), Some("k 1")));
    assert!(keys(&seen)[4].is_some() && keys(&seen)[4] != keys(&seen)[6]);
    let header_of = |index: usize, name| seen[index].header(name);
    assert_eq!((header_of(0, "user-agent"), header_of(4, "user-agent")), (Some("me"), Some("test/1")));
    assert_eq!((header_of(0, "nudge-env"), header_of(4, "nudge-env")), (Some("ask"), None));
    assert!(seen.iter().all(|request| request.header("nudge-proxy") == Some("7") && request.connection == 0));
    assert_eq!(header_of(0, "authorization"), Some("Bearer swordfish"));
    assert_eq!(header_of(0, "host").unwrap(), format!("127.0.0.1:{}", server.port()));
    let refused = runtime.block_on(client.call(Caller::default().with_key(Some("\n")), "nudge.bump", &params()));
    assert_eq!(refused.unwrap_err().reason(), "E_INVALID");
}

#[test]
fn a_shutdown_is_sent_once_unless_it_was_refused_by_one_that_leaves() {
    let (_home, dir) = home();
    let server = Server::start(&dir, |_, _| CannedReply::Nothing);
    let remote = RemoteServer::connect(&dir).unwrap();
    assert_eq!(remote.shutdown().unwrap_err().reason(), "E_UNAVAILABLE");
    assert_eq!(server.seen().len(), 1);
    // The idle connection has ended meanwhile, and the client has sent nothing over it.
    assert!(remote.shutdown().is_err());
    assert_eq!(server.seen().len(), 2);

    let (_home, dir) = home();
    let server = Server::start(&dir, |index, _| CannedReply::Text(200, if index < 2 { ENDING } else { OK }));
    assert!(RemoteServer::connect(&dir).unwrap().shutdown().is_ok());
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn a_refused_token_is_the_answer_when_it_is_refused_again() {
    let (_home, dir) = home();
    let refusal =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":50301,"message":"Show it.","data":{"reason":"E_UNAVAILABLE"}}}"#;
    let server = Server::start(&dir, move |_, _| CannedReply::Text(401, refusal));
    let client = Client::new(&dir, "test");
    assert_eq!(call(&client, "nudge.status").unwrap_err().message(), "Show it.");
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn the_next_primary_is_found_across_the_gap() {
    let (_home, dir) = home();
    let mut server = Server::start(&dir, |_, _| CannedReply::Text(200, OK));
    server.write_session(&session());
    let remote = RemoteServer::connect(&dir).unwrap();
    assert!(remote.call("nudge.bump", &params()).is_ok());
    for end in [Server::die, Server::leave] {
        end(&server);
        let next = std::thread::spawn({
            let dir = dir.clone();
            move || {
                std::thread::sleep(Duration::from_millis(50));
                Server::start(&dir, |_, _| CannedReply::Text(200, OK))
            }
        });
        let begun = Instant::now();
        assert!(remote.call("nudge.bump", &params()).is_ok());
        assert!(begun.elapsed() < Duration::from_millis(450), "{:?}", begun.elapsed());
        server = next.join().unwrap();
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn without_a_holder_it_ends_at_once_or_after_the_gap() {
    let (_home, dir) = home();
    let lock = dir.try_lock().unwrap().unwrap();
    let client = Client::new(&dir, "test");
    let refused = || {
        let begun = Instant::now();
        assert_eq!(call(&client, "nudge.bump").unwrap_err().message(), NO_SERVER);
        begun.elapsed()
    };
    dir.write_session(&lock, &session()).unwrap();
    dir.stop_session().unwrap();
    dir.write_server_file(&lock, &ServerFile { pid: 1, port: 1, started: String::new(), token: None }).unwrap();
    drop(lock);
    assert!(refused() < Duration::from_millis(300), "stopped");
    let lock = dir.try_lock().unwrap().unwrap();
    dir.remove_session(&lock).unwrap();
    drop(lock);
    assert!(refused() < Duration::from_millis(300), "unknown");
    let lock = dir.try_lock().unwrap().unwrap();
    dir.write_session(&lock, &session()).unwrap();
    drop(lock);
    let waited = refused();
    assert!(waited > Duration::from_millis(450) && waited < Duration::from_secs(2), "{waited:?}");
}

/// A process that now has the port of a dead server gets no token, and not even a connection.
#[test]
fn no_token_without_a_holder() {
    let (_home, dir) = home();
    let server = Server::start(&dir, |_, _| CannedReply::Text(200, OK));
    server.write_session(&session());
    server.unlock();
    let client = Client::new(&dir, "test");
    assert_eq!(call(&client, "nudge.status").unwrap_err().message(), NO_SERVER);
    assert!(server.seen().is_empty());
}

#[test]
fn calls_do_not_wait_for_each_other() {
    let (_home, dir) = home();
    let answers = Gate::default();
    let slow = answers.clone();
    let server = Server::start(&dir, move |_, request| {
        if request.body.contains("nudge.slow") {
            slow.pass();
        }
        CannedReply::Text(200, OK)
    });
    let client = Arc::new(Client::new(&dir, "test"));
    let runtime = runtime();
    let spawn = |method: &'static str| {
        let client = Arc::clone(&client);
        // The spawned future must be able to move between threads.
        runtime.spawn(async move { client.call(Caller::default(), method, &params()).await.map(drop) })
    };
    let late: Vec<_> = (0..12).map(|_| spawn("nudge.slow")).collect();
    for _ in 0..20 {
        runtime.block_on(spawn("nudge.quick")).unwrap().unwrap();
    }
    server.wait_for_requests(32);
    answers.open();
    for late in late {
        runtime.block_on(late).unwrap().unwrap();
    }
    // The client keeps eight of the twelve connections for later calls.
    answers.shut();
    let late: Vec<_> = (0..8).map(|_| spawn("nudge.slow")).collect();
    server.wait_for_requests(40);
    answers.open();
    for late in late {
        runtime.block_on(late).unwrap().unwrap();
    }
    let ways: HashSet<_> = server.seen().iter().map(|request| request.connection).collect();
    assert!((12..=13).contains(&ways.len()), "{}", ways.len());
}

/// A suspended server accepts connections but does not answer.
#[test]
fn a_silent_server_is_given_up() {
    let (_home, dir) = home();
    let server = Server::start(&dir, |_, _| CannedReply::Late(Duration::from_mins(1), OK));
    let client = Client::new(&dir, "test");
    // The clock is paused, so time jumps forward whenever all tasks wait.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let call = || runtime.block_on(client.call(Caller::default(), "nudge.bump", &params())).unwrap_err();
    for seconds in [7, 2, 7] {
        let error = call();
        let expected = format!(
            "The Nudge server does not answer within {seconds} seconds and the call may still be carried out; end process 1 or try again."
        );
        assert_eq!((error.reason(), error.message()), ("E_UNAVAILABLE", &*expected));
    }
    server.wait_for_requests(3);
    let seen = server.seen();
    assert_eq!(keys(&seen).into_iter().collect::<HashSet<_>>().len(), 3, "each was sent once");
}

/// While a caller waits, the client asks it repeatedly, on its own thread, whether it gives up.
///
/// Promise: see `test_ctrl_c_while_the_server_does_not_answer`.
#[test]
fn a_caller_may_give_up_a_silent_server() {
    let (_home, dir) = home();
    let server = Server::start(&dir, |_, _| CannedReply::Late(Duration::from_mins(1), OK));
    let (looks, here) = (Arc::new(AtomicUsize::new(0)), std::thread::current().id());
    let asked = Arc::clone(&looks);
    let give_up: GiveUp = Arc::new(move || {
        assert_eq!(std::thread::current().id(), here);
        asked.fetch_add(1, Ordering::SeqCst) >= 2
    });
    let remote = RemoteServer::connect_giving_up(&dir, Some(give_up)).unwrap();
    let error = remote.call("nudge.bump", &params()).unwrap_err();
    assert_eq!(error.reason(), "E_UNAVAILABLE");
    assert!(error.message().starts_with("The call was given up"), "{}", error.message());
    assert_eq!(looks.load(Ordering::SeqCst), 3);
    assert_eq!(server.seen().len(), 1, "it was sent once");
}

#[test]
fn threads_share_a_remote() {
    let (_home, dir) = home();
    let answers = Gate::default();
    let answer = answers.clone();
    let server = Server::start(&dir, move |_, _| {
        answer.pass();
        CannedReply::Text(200, OK)
    });
    let remote = RemoteServer::connect(&dir).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| remote.call("nudge.status", &params()).unwrap());
        }
        server.wait_for_requests(8);
        answers.open();
    });
    assert_eq!(server.seen().len(), 8);
}

#[test]
fn a_call_given_up_leaves_the_client_usable() {
    let (_home, dir) = home();
    let answers = Gate::default();
    let answer = answers.clone();
    let server = Server::start(&dir, move |_, _| {
        answer.pass();
        CannedReply::Text(200, OK)
    });
    let client = Client::new(&dir, "test");
    let runtime = runtime();
    runtime.block_on(async {
        for patience in [0, 1, 5, 20, 50] {
            let (given, params) = (Duration::from_millis(patience), params());
            let call = client.call(Caller::default(), "nudge.bump", &params);
            assert!(tokio::time::timeout(given, call).await.is_err());
        }
        answers.open();
        for _ in 0..5 {
            assert!(client.call(Caller::default(), "nudge.bump", &params()).await.is_ok());
        }
    });
    assert!(server.seen().len() <= 10);
}

/// A server may close an idle connection. The client notices this before it sends a request.
#[test]
fn a_connection_closed_while_idle_is_not_used() {
    let (_home, dir) = home();
    let server = Server::start(&dir, |_, _| CannedReply::Last(OK));
    let client = Client::new(&dir, "test");
    let runtime = runtime();
    for count in 1..20 {
        runtime.block_on(client.call(Caller::default(), "nudge.shutdown", &params())).unwrap();
        server.wait_for_ends(count);
        assert_eq!(server.seen().len(), count);
    }
}

#[test]
fn a_server_is_alive_when_it_says_so() {
    let (_home, dir) = home();
    let server = Server::start(&dir, |_, request| match (&*request.line, request.header("authorization")) {
        ("GET /health HTTP/1.1", None) => CannedReply::Text(200, "{}"),
        _ => CannedReply::Text(404, "{}"),
    });
    let file = dir.read_server_file().unwrap();
    assert!(RemoteServer::is_alive(&dir, &file));
    server.die();
    assert!(!RemoteServer::is_alive(&dir, &file));
}

#[test]
fn nobody_there_and_nothing_hidden() {
    let (_home, dir) = home();
    assert_eq!(RemoteServer::connect(&dir).unwrap_err().message(), NO_SERVER);
    let server = Server::start(&dir, |_, _| CannedReply::Text(200, OK));
    let remote = RemoteServer::connect(&dir).unwrap();
    assert!(!format!("{remote:?}").contains("swordfish"));
    server.stop_accepting();
    let begun = Instant::now();
    assert_eq!(RemoteServer::connect(&dir).unwrap_err().reason(), "E_UNAVAILABLE");
    assert!(begun.elapsed() < Duration::from_secs(4));
}
