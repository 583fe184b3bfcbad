//! Tests the commands against a real server: their output on each stream, and their exit codes.

use crate::kit;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use kit::system::{Relay, nudge, sentence};
use kit::{Serve, command, home};
use nudge_client::{RuntimeDir, ServerFile};
use serde_json::{Value, json};

struct Shell<'a> {
    runtime: &'a Path,
    folder: &'a Path,
}

impl Shell<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nudge"));
        command
            .args(args)
            .env("NUDGE_RUNTIME_DIR", self.runtime)
            .env_remove("CLAUDE_PROJECT_DIR")
            .current_dir(self.folder);
        command.env("PWD", self.folder).stdin(Stdio::null());
        command
    }

    /// Runs a command; returns its stdout. Asserts that it succeeds and prints nothing on stderr.
    fn ok(&self, args: &[&str]) -> String {
        let out = self.command(args).output().unwrap();
        assert!(out.status.success() && out.stderr.is_empty(), "{args:?}: {out:?}");
        String::from_utf8(out.stdout).unwrap()
    }

    /// Runs a command; returns its exit code and its error sentence. Asserts that it fails and prints nothing on
    /// stdout.
    fn fails(&self, args: &[&str]) -> (i32, String) {
        let Output { status, stdout, stderr } = self.command(args).output().unwrap();
        assert!(stdout.is_empty(), "{args:?}");
        (status.code().unwrap(), String::from_utf8(stderr).unwrap())
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).unwrap()
    }
}

#[test]
fn set_get_and_query_print_for_people_and_for_scripts() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let shell = Shell { runtime: &serve.runtime, folder: home.path() };
    let printed = shell.ok(&[
        "set",
        "http-proxy",
        "build",
        "docker compose build router",
        "--tags",
        "build,docker",
        "--tags",
        "x",
        "--priority",
        "8",
        "--scope-cwd-glob",
        "**/http-proxy*",
        "--scope-branch",
        "dev,main",
        "--scope-os",
        "macos,linux",
        "--scope-env",
        "STAGE=a",
        "--scope-env",
        "STAGE=b",
    ]);
    assert_eq!(
        printed,
        "✔ upserted hint http-proxy/build (v1)\n  score base: priority=8 tags=build,docker,x ttl=session scope=branch,cwd_glob,env_match,os\n  applies where branch=dev,main cwd_glob=**/http-proxy* STAGE=a,b os=darwin,linux, until the session ends\n"
    );
    let get = ["get", "http-proxy", "build", "--cwd", "/w/http-proxy", "--branch", "dev", "--os", "macos"];
    let mut staged = shell.command(&get);
    let found = staged.env("STAGE", "b").output().unwrap();
    assert_eq!(
        String::from_utf8(found.stdout).unwrap(),
        "value: docker compose build router\nscope: branch=dev,main cwd_glob=**/http-proxy* STAGE=a,b os=darwin,linux\nstored: just now\nexpires: with the session\nmatch:\n  score: 0.49\n  reasons:\n    - cwd matched **/http-proxy*\n    - branch=dev allowed\n    - os=darwin allowed\n    - env STAGE=b matched\n    - priority 8/10\n"
    );
    let (code, sentence) = shell.fails(&get);
    assert_eq!(
        (code, &*sentence),
        (
            1,
            "nudge: One variant is stored, but none fits here: env STAGE is not a or b; `nudge why` explains each condition.\n"
        )
    );

    shell.ok(&["set", "web", "dev", "npm run dev"]);
    let told = shell.command(&["query"]).output().unwrap();
    assert_eq!(String::from_utf8(told.stdout).unwrap(), "web/dev  0.30  npm run dev\n");
    assert_eq!(String::from_utf8(told.stderr).unwrap(), "nudge: 1 matches and does not apply here (--all)\n");
    let rows = shell.ok(&["query", "--all", "--component", "http-proxy"]);
    assert!(
        rows.starts_with("http-proxy/build  0.49  docker compose build router\n") && rows.contains("not here: cwd "),
        "{rows}"
    );
    let none = shell.command(&["query", "--component", "none"]).output().unwrap();
    assert_eq!((none.status.code(), &*none.stdout), (Some(0), &b"no hints\n"[..]));

    // `--json` may be before or after the verb. The output is the result of the method.
    let before = shell.json(&["--json", "get", "web", "dev"]);
    assert_eq!(before, shell.json(&["get", "web", "dev", "--json"]));
    assert_eq!(before["hint"]["value"], "npm run dev");
    assert_eq!(before["hint"]["meta"], json!({"ttl": "session", "source": "user"}));
}

#[test]
fn failures_say_what_to_do_and_have_their_codes() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let shell = Shell { runtime: &serve.runtime, folder: home.path() };
    let made_up = ["AK", "IA", "QW3RTYUIOP", "4SDFGH"].concat();
    for (expected, args) in [
        (1, vec!["get", "no", "such"]),
        (2, vec!["get", "", "x"]),
        (2, vec!["get", "a", "x", "--cwd", "relative"]),
        (2, vec!["set", "a", "x", "1", "--ttl", "P1M"]),
        (2, vec!["set", "a", "x", "1", "--scope-cwd-glob", "/a/../b"]),
        (2, vec!["set", "a", "x", "1", "--scope-os", "beos"]),
        (2, vec!["call", "nudge.nothing"]),
        (2, vec!["call", "get_hint", "{"]),
        (2, vec!["call", "get_hint", "[]"]),
        (2, vec!["nonsense"]),
        (4, vec!["set", "a", "x", &made_up]),
        (4, vec!["set", "a", "x", "1", "--if-match-version", "7"]),
    ] {
        let (code, sentence) = shell.fails(&args);
        assert_eq!(code, expected, "{args:?}: {sentence}");
        assert!(!sentence.contains(&made_up), "{sentence}");
    }
    let (code, error) = shell.fails(&["--json", "get", "no", "such"]);
    let error: Value = serde_json::from_str(&error).unwrap();
    assert_eq!((code, &error["code"], &error["data"]["near_misses"]), (1, &json!(40401), &json!([])));
    shell.ok(&["set", "a", "x", &made_up, "--allow-secret"]);
    shell.ok(&["set", "a", "s", &made_up, "--secret"]);
    assert!(!shell.ok(&["get", "a", "s"]).contains(&made_up));
}

#[test]
fn an_empty_flag_means_unknown() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let shell = Shell { runtime: &serve.runtime, folder: home.path() };
    shell.ok(&["set", "a", "k", "here", "--scope-cwd-glob", "/**"]);
    assert!(shell.ok(&["get", "a", "k"]).starts_with("value: here\n"));
    let (code, sentence) = shell.fails(&["get", "a", "k", "--cwd", ""]);
    assert_eq!((code, &*sentence), (1, "nudge: One variant is stored, but the context lacks `--cwd`; pass it.\n"));
}

#[test]
fn a_relative_glob_begins_where_the_command_stands() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    // The name of the folder contains characters that have a meaning in a glob.
    let folder = home.path().join("a[1]");
    std::fs::create_dir_all(folder.join("src/deep")).unwrap();
    let shell = Shell { runtime: &serve.runtime, folder: &folder };
    shell.ok(&["set", "api", "k", "v", "--scope-cwd-glob", "./src/**"]);
    let inside = folder.join("src/deep");
    let get_in =
        |cwd: &Path| shell.command(&["get", "api", "k", "--value", "--cwd", cwd.to_str().unwrap()]).output().unwrap();
    assert_eq!(get_in(&inside).stdout, b"v\n");
    assert!(!get_in(&folder).status.success() && !get_in(Path::new("/src/deep")).status.success());
    let (code, sentence) = shell.fails(&["set", "api", "k", "v", "--scope-cwd-glob", "{src,lib}/**"]);
    assert!(
        code == 2 && sentence.contains("`--scope-cwd-glob` pattern matches no absolute folder"),
        "{code} {sentence}"
    );
}

#[test]
fn values_and_params_come_from_stdin() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let shell = Shell { runtime: &serve.runtime, folder: home.path() };
    let fed = |args: &[&str], text: &str| {
        let file = home.path().join("stdin");
        std::fs::write(&file, text).unwrap();
        let out = shell.command(args).stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stdout).unwrap()
    };
    fed(&["set", "a", "k", "-"], "two\nlines");
    let result = fed(&["call", "nudge.get_hint", "-"], r#"{"component": "a", "key": "k"}"#);
    assert!(
        result.starts_with(r#"{"hint":{"component":"a","key":"k","value":"two\nlines","#) && result.ends_with("}\n"),
        "{result}"
    );
    assert_eq!(shell.ok(&["get", "a", "k"]).lines().take(2).collect::<Vec<_>>(), ["value: two", "       lines"]);
}

#[test]
fn without_a_server_and_stopping_one() {
    let home = home();
    let runtime = home.path().join("run");
    let shell = Shell { runtime: &runtime, folder: home.path() };
    for args in [&["get", "a", "k"][..], &["status"], &["watch"], &["call", "nudge.status"]] {
        let (code, sentence) = shell.fails(args);
        assert_eq!((code, sentence.contains("nudge serve")), (3, true), "{args:?}: {sentence}");
    }
    let nothing = "nudge: No Nudge server is running, so there is nothing to stop.\n";
    assert_eq!(shell.fails(&["stop"]), (3, nothing.to_owned()));
    let mut serve = Serve::start(&runtime);
    let status = shell.ok(&["status"]);
    assert!(status.starts_with("✔ Nudge 0.1.0 runs on 127.0.0.1:") && !status.contains(serve.token()), "{status}");
    let port = serve.file.port;
    assert_eq!(shell.fails(&["-p", &(port ^ 1).to_string(), "status"]).0, 3);
    assert_eq!(shell.ok(&["-p", &port.to_string(), "stop"]), "stopped\n");
    assert!(serve.end(std::time::Duration::from_secs(1)).success());
    assert_eq!(shell.fails(&["status"]).0, 3);
}

/// Promise (command line): `nudge try` leaves nothing behind.
#[test]
fn the_tour_shows_all_and_leaves_nothing_behind() {
    let home = home();
    let shell = Shell { runtime: home.path(), folder: home.path() };
    let temp = home.path().join("temp");
    std::fs::create_dir(&temp).unwrap();
    let mut tour = shell.command(&["try"]);
    let out = tour.env("TMPDIR", &temp).env("TEMP", &temp).env("TMP", &temp).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{text}");
    for part in [
        r"value: C:\code\http-proxy",
        "- cwd matched **/http-proxy*",
        "none fits here",
        "--ttl PT2H",
        "looks like a credential",
        "docker compose build router",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0, "its folder is gone");
}

#[test]
fn a_question_leaves_no_directory() {
    let home = home();
    let runtime = home.path().join("a/run");
    for args in [&["get", "a", "k"][..], &["ls"], &["set", "a", "k", "v"], &["status"], &["watch"], &["call", "status"]]
    {
        let out = nudge(&runtime, args).output().unwrap();
        assert_eq!(out.status.code(), Some(3), "{args:?}");
        assert_eq!(
            sentence(&out),
            "nudge: No Nudge server is running; start one with `nudge serve --detach`.\n",
            "{args:?}"
        );
    }
    let mut complete = nudge(&runtime, &["--", "nudge", "get", ""]);
    assert!(complete.env("NUDGE_COMPLETE", "fish").output().unwrap().status.success());
    assert!(!home.path().join("a").exists());
}

#[test]
fn a_list_that_is_cut_says_so() {
    let home = home();
    let runtime = home.path().join("run");
    let mut roomy = command(&runtime);
    roomy.args(["--max-hints-per-component", "2000"]);
    let serve = Serve::spawn(roomy, &runtime);
    let hints: serde_json::Map<_, _> = (0..1000).map(|number| (format!("k{number}"), "v".into())).collect();
    let payload = json!({"components": {"a": {"hints": hints}}});
    assert_eq!(serve.call("nudge.import", &json!({"payload": payload}))["result"]["imported"], 1000);
    let list = || {
        let out = nudge(&runtime, &["ls", "a"]).output().unwrap();
        assert!(out.status.success());
        assert_eq!(String::from_utf8(out.stdout).unwrap().lines().count(), 1001);
        String::from_utf8(out.stderr).unwrap()
    };
    assert_eq!(list(), "");
    serve.call("nudge.set_hint", &json!({"component": "a", "key": "one more", "value": "v"}));
    assert_eq!(list(), "nudge: only 1000 of 1001 hints are shown; `nudge query --component` finds the others\n");
}

#[test]
fn secrets_are_fetched_once_for_each_component() {
    let home = home();
    let runtime = home.path().join("run");
    let mut open = command(&runtime);
    // Allows any port in the `Host` header, because clients of the relay send its port.
    open.args(["--allow-host", "127.0.0.1"]);
    let serve = Serve::spawn(open, &runtime);
    for (component, key) in [("a", "one"), ("a", "two"), ("b", "one"), ("a", "three")] {
        let meta = json!({"sensitivity": "secret"});
        let params =
            json!({"component": component, "key": key, "value": format!("{key} of {component}"), "meta": meta});
        assert!(serve.call("nudge.set_hint", &params)["result"].is_object());
    }
    let relay = Relay::to(serve.file.port);
    let between = RuntimeDir::create(Some(&home.path().join("between"))).unwrap();
    let lock = between.try_lock().unwrap().unwrap();
    between.write_server_file(&lock, &ServerFile { port: relay.port, ..serve.file.clone() }).unwrap();
    let out = nudge(between.path(), &["query", "--reveal"]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(["one of a", "two of a", "one of b", "three of a"].iter().all(|value| text.contains(value)), "{text}");
    assert_eq!(relay.heard().matches("nudge.export").count(), 2);
}
