//! Tests the command line on a terminal: colours, the server in the foreground, and values with control characters.
#![cfg(unix)]

use crate::kit;

use std::process::{Command, Output, Stdio};

use kit::pty::{Pty, on_terminal, on_terminal_of, with_terminal};
use kit::system::{nudge, sentence, signal};
use kit::{PATIENCE, Serve, home, wait_for};
use nudge_client::{RuntimeDir, ServerFile};
use serde_json::{Value, json};

/// A hostile text. It would write to the clipboard, move the cursor, hide or reorder text, or forge a line.
const HOSTILE: &str = "x\u{1b}]52;c;QQ==\u{7}\u{1b}[8mhid\u{9b}31m\u{9d}0;t\u{9c}\u{7f}\u{8}\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\u{2028}\u{e0041}\r\nnudge: forged";
/// The characters of [`HOSTILE`] that names may contain.
const HOSTILE_NAME: &str = "n\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\u{2028}\u{e0041}";
const SECRET: &str = "correct horse battery staple";

fn run(serve: &Serve, args: &[&str]) -> Output {
    nudge(&serve.runtime, args).output().unwrap()
}

fn ok(serve: &Serve, args: &[&str]) -> String {
    let out = run(serve, args);
    assert!(out.status.success() && out.stderr.is_empty(), "{args:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

/// Returns the text that a person sees on the terminal after this command.
fn seen(serve: &Serve, args: &[&str], env: &[(&str, &str)]) -> String {
    let mut command = nudge(&serve.runtime, args);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm-256color").env_remove("CI").envs(env.iter().copied());
    on_terminal(command).1
}

/// Removes the colours that Nudge itself prints.
fn without_colours(text: &str) -> String {
    ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[4m", "\u{1b}[31m", "\u{1b}[32m"]
        .iter()
        .fold(text.to_owned(), |text, colour| text.replace(colour, ""))
}

/// Asserts that the text contains no control character except line ends and tabs.
fn assert_tame(text: &str, what: &str) {
    let text = without_colours(text);
    let bad = |c: &char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || "\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\u{2028}\u{e0041}".contains(*c)
    };
    assert_eq!(text.chars().find(bad), None, "{what}: {text:?}");
}

#[test]
fn colours_are_for_terminals_alone() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    for key in ["k", "gone"] {
        ok(&serve, &["set", "a", key, "value", "--reason", "because", "--scope-os", "linux,macos,windows"]);
    }
    ok(&serve, &["delete", "a", "gone"]);
    for args in [
        &["ls"][..],
        &["ls", "a"],
        &["query"],
        &["get", "a", "k"],
        &["why", "a", "k"],
        &["undo", "--list"],
        &["status"],
        &["--help"],
        &["set", "--help"],
    ] {
        let piped = ok(&serve, args);
        assert!(!piped.contains('\u{1b}'), "{args:?}: {piped:?}");
        let seen_by_people = seen(&serve, args, &[]);
        assert!(seen_by_people.contains("\u{1b}["), "{args:?} has no colour: {seen_by_people:?}");
        assert_eq!(without_colours(&seen_by_people), piped, "{args:?} says something by colour alone");
        for plain in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            assert_eq!(seen(&serve, args, &[plain]), piped, "{args:?} with {plain:?}");
        }
        let forced = nudge(&serve.runtime, args).env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR").output().unwrap();
        assert!(forced.stdout.contains(&0x1b), "{args:?}");
    }
    for args in [&["--json", "get", "a", "k"][..], &["export"], &["get", "a", "k", "--value"]] {
        assert!(!seen(&serve, args, &[]).contains('\u{1b}'), "{args:?}");
    }
}

/// Waits until `server.pid` names this server; returns its content.
fn where_it_serves(serve: &std::process::Child, runtime: &std::path::Path) -> ServerFile {
    let dir = wait_for("the runtime directory", PATIENCE, || {
        runtime.exists().then(|| RuntimeDir::open(Some(runtime)).ok()).flatten()
    });
    wait_for("server.pid", PATIENCE, || dir.read_server_file().filter(|file| file.pid == serve.id()))
}

#[test]
fn a_server_on_a_terminal_serves_http_until_it_is_stopped() {
    for ending in ["Ctrl-C", "INT", "TERM", "HUP", "nudge stop", "the terminal closes"] {
        let home = home();
        let runtime = home.path().join("run");
        let (mut pty, end) = Pty::open();
        let Some(mut command) = with_terminal(&nudge(&runtime, &["serve", "--port", "0"]), &end) else { return };
        command.stdout(Stdio::piped()).stderr(Stdio::from(end));
        let mut serve = command.spawn().unwrap();
        drop(command);
        let file = where_it_serves(&serve, &runtime);
        let said = pty.wait_for("serving http://");
        assert!(said.contains(&format!("http://127.0.0.1:{} ({}", file.port, file_path(&runtime))), "{said}");
        assert!(!said.contains(file.token.as_deref().unwrap()), "{said}");
        // The server prints its purpose and how to end it.
        let said = pty.wait_for("ends it");
        assert!(
            said.contains("the memory that your coding agents") && said.contains("Ctrl-C or `nudge stop`"),
            "{said}"
        );
        // The server ignores what a person types: it reads no MCP from a terminal.
        pty.press(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
        let status = nudge(&runtime, &["set", "a", "k", SECRET]).output().unwrap();
        assert!(status.status.success(), "{status:?}");
        let pid = serve.id();
        let mut pty = Some(pty);
        match ending {
            "Ctrl-C" => pty.as_mut().unwrap().press(b"\x03"),
            "nudge stop" => assert!(nudge(&runtime, &["stop"]).output().unwrap().status.success()),
            "the terminal closes" => pty.take().unwrap().close(),
            name => signal(pid, name),
        }
        let status = wait_for(ending, PATIENCE, || serve.try_wait().unwrap());
        assert!(status.success(), "{ending}: {status}");
        let mut stdout = String::new();
        std::io::Read::read_to_string(&mut serve.stdout.take().unwrap(), &mut stdout).unwrap();
        assert_eq!(stdout, "", "{ending}: stdout is for data");
        assert!(!runtime.join("server.pid").exists(), "{ending}");
        if let Some(pty) = pty {
            let said = pty.finish();
            assert!(!said.contains("jsonrpc\":\"2.0\",\"result") && !said.contains(SECRET), "{ending}: {said}");
            assert_tame(&said.replace("^C", ""), ending);
        }
    }
}

fn file_path(runtime: &std::path::Path) -> String {
    runtime.join("server.pid").display().to_string()
}

/// Stores a hostile text in every field that accepts it.
fn plant(serve: &mut Serve) {
    let meta = json!({
        "reason": HOSTILE, "added_by": HOSTILE, "tags": [HOSTILE_NAME],
        "scope": {"branch": [HOSTILE_NAME], "env_match": {"STAGE": [HOSTILE]}},
    });
    for (key, value) in [
        (HOSTILE_NAME, json!(HOSTILE)),
        ("cmd", json!({"type": "command", "cmd": HOSTILE})),
        ("json", json!({"type": "json", "data": {HOSTILE: [HOSTILE]}})),
        ("template", json!({"type": "template", "format": "mustache", "body": HOSTILE, "defaults": {"a": HOSTILE}})),
    ] {
        for meta in [&meta, &json!({})] {
            let params = json!({"component": HOSTILE_NAME, "key": key, "value": value, "meta": meta});
            let answer = serve.call("nudge.set_hint", &params);
            assert!(answer["result"].is_object(), "{answer}");
        }
    }
    // A client whose name is hostile deletes a hint.
    serve.call("nudge.set_hint", &json!({"component": "b", "key": "gone", "value": HOSTILE}));
    let hello = json!({"protocolVersion": kit::mcp::LEGACY, "capabilities": {}, "clientInfo": {"name": HOSTILE, "version": HOSTILE}});
    serve.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
    serve.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let gone = serve.tool("nudge_delete_hint", &json!({"component": "b", "key": "gone"}));
    assert!(!gone["result"]["isError"].as_bool().unwrap_or_default(), "{gone}");
}

#[test]
fn hostile_texts_steer_no_terminal() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    plant(&mut serve);
    let name = HOSTILE_NAME;
    let fits = ["--branch", name, "--env", &format!("STAGE={HOSTILE}")];
    let with = |args: &[&'static str], more: &[&str]| -> Vec<String> {
        args.iter().copied().chain(more.iter().copied()).map(str::to_owned).collect()
    };
    let mut lines = vec![with(&["ls"], &[]), with(&["query", "--all"], &[]), with(&["undo", "--list"], &[])];
    lines.extend([with(&["export"], &[]), with(&["ls"], &[name]), with(&["query"], &fits)]);
    for key in [name, "cmd", "json", "template"] {
        lines.extend([
            with(&["get"], &[name, key]),
            with(&["get"], &[&[name, key][..], &fits].concat()),
            with(&["get", "--value"], &[name, key]),
            with(&["why"], &[name, key]),
            with(&["why"], &[&[name, key][..], &fits].concat()),
            with(&["bump"], &[&[name, key][..], &fits].concat()),
        ]);
    }
    // An error message repeats the words that the user typed.
    lines.extend([
        with(&[], &[HOSTILE]),
        with(&["get", "a"], &[HOSTILE]),
        with(&["get", "a", "b", "--cwd"], &[HOSTILE]),
        with(&["get", "a", "b", "--os"], &[HOSTILE]),
        with(&["get", "a", "b", "--variant"], &[HOSTILE]),
        with(&["set", "a", "b", "c", "--type"], &[HOSTILE]),
        with(&["set", "a", "b", "c", "--ttl"], &[HOSTILE]),
        with(&["set", "a", "b", "c", "--scope-branch"], &[HOSTILE]),
        with(&["set", "a", "b", "--type", "json", "--"], &[HOSTILE]),
        with(&["import"], &[HOSTILE]),
        with(&["call"], &[HOSTILE]),
        with(&["call", "get_hint"], &[&json!({"component": "a", "key": "b", HOSTILE: 1}).to_string()]),
        with(&["man"], &[&format!("/dev/null/{HOSTILE}")]),
        with(&["--runtime-dir"], &[&format!("/dev/null/{HOSTILE}"), "ls"]),
        with(&["serve", "--log-level"], &[HOSTILE]),
        with(&["serve", "--default-ttl"], &[HOSTILE]),
        with(&["serve", "--token-file"], &[HOSTILE]),
        with(&["undo"], &[]),
        with(&["delete", "b", "gone"], &[]),
        with(&["delete", "--all"], &[name, "cmd"]),
    ]);
    assert!(ok(&serve, &["ls", name]).contains("\\u{202e}"), "they are stored, and shown");
    assert!(
        ok(&serve, &["undo", "--list"]).contains("by x]52;c;QQ==[8mhid31m0;t\\u{202e}"),
        "a client calls itself so"
    );
    for line in &lines {
        let args: Vec<_> = line.iter().map(String::as_str).collect();
        let shown = seen(&serve, &args, &[]);
        assert_tame(&shown, &format!("{args:?}"));
        // Only `--value` may print this line, because it prints the value as it is stored.
        let forged = without_colours(&shown).lines().any(|line| line == "nudge: forged");
        assert!(!forged || args.contains(&"--value"), "{args:?}: {shown}");
        assert_tame(&seen(&serve, &[&["--json"], &args[..]].concat(), &[]), &format!("--json {args:?}"));
    }
}

#[test]
fn hostile_changes_are_watched_safely() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    for args in [&["watch"][..], &["watch", "--json"]] {
        let (pty, end) = Pty::open();
        let mut watch = nudge(&serve.runtime, args);
        watch.stdout(Stdio::from(end.try_clone().unwrap())).stderr(Stdio::from(end));
        let mut child = watch.spawn().unwrap();
        drop(watch);
        // Repeats the change: `nudge watch` reports changes only after its first request has reached the server.
        wait_for("the first change", PATIENCE, || {
            ok(&serve, &["set", "probe", "k", "x"]);
            pty.said().contains("probe").then_some(())
        });
        plant(&mut serve);
        pty.wait_for("gone");
        ok(&serve, &["set", "last", "one", "x"]);
        pty.wait_for("last");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_tame(&pty.finish(), &format!("{args:?}"));
        serve.close();
        serve = Serve::start(&home.path().join("run"));
    }
}

#[test]
fn a_value_in_a_pipe_is_the_value_that_was_stored() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let params = json!({"component": "a", "key": "k", "value": HOSTILE});
    assert!(serve.call("nudge.set_hint", &params)["result"].is_object());
    assert_eq!(ok(&serve, &["get", "a", "k", "--value"]), format!("{HOSTILE}\n"));
    for (args, pointer) in [
        (&["export"][..], "/components/a/hints/k/value"),
        (&["--json", "get", "a", "k"], "/hint/value"),
        (&["call", "get_hint", r#"{"component":"a","key":"k"}"#], "/hint/value"),
    ] {
        let piped: Value = serde_json::from_str(&ok(&serve, args)).unwrap();
        assert_eq!(piped.pointer(pointer), Some(&json!(HOSTILE)), "{args:?}");
        let on_terminal: Value = serde_json::from_str(&seen(&serve, args, &[])).unwrap();
        assert_eq!(on_terminal.pointer(pointer), Some(&json!(HOSTILE)), "{args:?} on a terminal");
    }
}

#[test]
fn secrets_are_hidden_unless_revealed() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let hidden = |args: &[&str]| {
        for text in [String::from_utf8(run(&serve, args).stdout).unwrap(), seen(&serve, args, &[])] {
            assert!(!text.contains(SECRET), "{args:?}: {text}");
        }
    };
    hidden(&["set", "a", "k", SECRET, "--secret"]);
    hidden(&["set", "a", "k", SECRET, "--secret", "--scope-os", "linux,macos,windows", "--json"]);
    let reading = [&["ls", "a"][..], &["query"], &["get", "a", "k"], &["why", "a", "k"]];
    for args in reading {
        hidden(args);
        let revealed = [args, &["--reveal"]].concat();
        assert!(ok(&serve, &revealed).contains(SECRET), "{revealed:?}");
    }
    hidden(&["why", "a", "k", "--json"]);
    hidden(&["query", "--json"]);
    hidden(&["query", "--regex", "battery"]);
    hidden(&["export"]);
    hidden(&["bump", "a", "k", "--json"]);
    hidden(&["status", "--json"]);
    let refused = run(&serve, &["get", "a", "k", "--value"]);
    assert!(sentence(&refused).contains("--reveal") && refused.status.code() == Some(4));
    assert_eq!(ok(&serve, &["get", "a", "k", "--value", "--reveal"]), format!("{SECRET}\n"));
    let edited = nudge(&serve.runtime, &["edit", "a", "k"]).env("EDITOR", "cat >&2").env_remove("VISUAL").output();
    assert!(!sentence(&edited.unwrap()).contains(SECRET));
    for args in [&["delete", "a", "k", "--all"][..], &["undo", "--list"], &["undo", "--list", "--json"], &["undo"]] {
        hidden(args);
    }
    let payload = home.path().join("payload.json");
    std::fs::write(&payload, ok(&serve, &["export", "--include-secrets"])).unwrap();
    hidden(&["import", payload.to_str().unwrap(), "--mode", "replace"]);
    assert!(ok(&serve, &["get", "a", "k", "--reveal"]).contains(SECRET));
}

#[test]
fn a_terminal_on_one_side_only_changes_nothing_on_the_other() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    // Stderr is a terminal and stdout is a pipe, so the output has no colours.
    ok(&serve, &["set", "a", "k", "x"]);
    let (pty, end) = Pty::open();
    let mut command: Command = nudge(&serve.runtime, &["ls"]);
    command.stdout(Stdio::piped()).stderr(Stdio::from(end));
    let child = command.spawn().unwrap();
    drop(command);
    let out = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(out.stdout).unwrap(),
        "COMPONENT  KEY  VALUE  HERE  SCOPE       EXPIRES  AGE  USED\na          k    x      ✔     everywhere  session  now  never\n"
    );
    assert_eq!(pty.finish(), "");
}

/// A client in an interactive shell starts the PRIMARY. The user presses Ctrl-Z, which suspends only the client. When
/// the client dies, its pipe closes, and the server ends.
#[test]
fn a_client_that_is_stopped_by_its_terminal_stops_no_other() {
    let home = home();
    let runtime = home.path().join("run");
    let (mut pty, end) = Pty::open();
    let mut shell = Command::new("setsid");
    kit::clean(&mut shell);
    // The subshell is the client: it holds the pipe to the server and waits.
    shell.args(["--ctty", "bash", "--norc", "--noprofile", "-i"]);
    shell.env("NUDGE_RUNTIME_DIR", &runtime).env("NUDGE", env!("CARGO_BIN_EXE_nudge")).env("PS1", "ready> ");
    shell.stdin(Stdio::from(end.try_clone().unwrap())).stdout(Stdio::from(end.try_clone().unwrap()));
    let Ok(mut bash) = shell.stderr(Stdio::from(end)).spawn() else { return };
    drop(shell);
    pty.wait_for("ready> ");
    pty.press(b"(coproc \"$NUDGE\" serve --port 0; echo client \"is\" up; read -r never </dev/tty)\n");
    pty.wait_for("client is up");
    let dir = RuntimeDir::create(Some(&runtime)).unwrap();
    wait_for("server.pid", PATIENCE, || dir.read_server_file());
    pty.press(b"\x1a");
    pty.wait_for("Stopped");
    let set = nudge(&runtime, &["set", "a", "k", "v"]).stdin(Stdio::null()).output().unwrap();
    assert!(set.status.success(), "{set:?}");
    // Kills the client, so that its pipe closes.
    pty.press(b"kill -KILL %1\n");
    wait_for("the end of the server", PATIENCE, || (!dir.is_held()).then_some(()));
    bash.kill().unwrap();
    bash.wait().unwrap();
}

#[test]
fn help_and_long_lines_wrap_between_words() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    ok(&serve, &["set", "a", "k", "v", "--priority", "7", "--tags", "x"]);
    for args in [&["--help"][..], &["set", "--help"], &["records", "--help"], &["why", "a", "k"], &["status"]] {
        let piped = ok(&serve, args);
        let mut command = nudge(&serve.runtime, args);
        command.env("NO_COLOR", "1");
        let (_, seen) = on_terminal_of(command, Some(60));
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for line in seen.lines() {
            assert!(line.chars().count() <= 60 || words(line).len() == 1, "{args:?}: {line}");
        }
        if args[0] == "why" {
            assert_eq!(words(&seen), words(&piped), "{args:?}");
        }
    }
}
