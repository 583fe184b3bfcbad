//! Tests that a process leaves no program behind when it ends: neither a program that it has started, nor a program
//! that such a program has started.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kit::system::nudge;
use kit::{PATIENCE, Serve, home, wait_for};
use serde_json::json;

/// A program that hangs. It has started a second program, which hangs too. Their process ids are in a file.
struct Hanging {
    folder: PathBuf,
    ids: PathBuf,
}

impl Hanging {
    /// Makes the program. With `stubborn` it ignores the signals that ask it to end.
    fn new(home: &Path, name: &str, stubborn: bool) -> Self {
        Self::with_start(home, name, stubborn, ":")
    }

    /// Makes a program that hangs after Nudge has reported it to its watcher: a SIGKILL before the report leaves the
    /// program behind. The program writes more than fits into a pipe, and Nudge reads that only after the report.
    fn after_report(home: &Path, name: &str, stubborn: bool) -> Self {
        Self::with_start(home, name, stubborn, "head -c 100000 /dev/zero")
    }

    fn with_start(home: &Path, name: &str, stubborn: bool, start: &str) -> Self {
        let (folder, ids) = (home.join("bin"), home.join("ids"));
        fs::create_dir_all(&folder).unwrap();
        let trap = if stubborn { "trap '' TERM INT HUP" } else { ":" };
        let script = format!(
            "#!/bin/sh\n{trap}\n{start}\nsleep 300 &\necho $$ $! > '{0}.new'\nmv '{0}.new' '{0}'\nwait\n",
            ids.display()
        );
        fs::write(folder.join(name), script).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, ids }
    }

    /// Puts the program first in PATH. `GIT_DIR` makes git's files unreliable, so that Nudge must run git.
    fn is_found_by(&self, command: &mut Command) {
        let path = format!("{}:{}", self.folder.display(), std::env::var("PATH").unwrap());
        command.env("GIT_DIR", "/nowhere").env("PATH", path);
    }

    /// Waits until both programs hang; returns their process ids.
    fn ids(&self) -> Vec<String> {
        let text = wait_for("the program", PATIENCE, || fs::read_to_string(&self.ids).ok());
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Asserts that both programs end. A zombie counts as ended: its new parent may take a while to collect it.
    fn none_is_left(&self, what: &str) {
        for id in self.ids() {
            wait_for(&format!("the end of process {id} after {what}"), PATIENCE, || {
                let out = Command::new("ps").args(["-o", "stat=", "-p", &id]).output().unwrap();
                let state = String::from_utf8_lossy(&out.stdout).trim().to_owned();
                (state.is_empty() || state.starts_with('Z')).then_some(())
            });
        }
        fs::remove_file(&self.ids).unwrap();
    }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
}

/// Promise (programs): A program that Nudge starts ends with Nudge, even when Nudge is killed (Unix).
#[test]
fn no_git_is_left_behind_by_a_command() {
    for stubborn in [false, true] {
        let home = home();
        let serve = Serve::start(&home.path().join("run"));
        serve.call("nudge.set_hint", &json!({"component": "a", "key": "k", "value": "v"}));
        let git = Hanging::new(home.path(), "git", stubborn);
        let get = || {
            let mut get = nudge(&serve.runtime, &["get", "a", "k", "--value"]);
            git.is_found_by(&mut get);
            get.stdout(Stdio::piped()).spawn().unwrap()
        };
        // Waits until Nudge gives git up.
        let out = get().wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout), "v\n");
        git.none_is_left("the end of patience");
        for name in ["TERM", "INT", "HUP"] {
            let mut child = get();
            git.ids();
            signal(&child, name);
            assert!(!child.wait().unwrap().success());
            git.none_is_left(name);
        }
        serve.close();
    }
}

#[test]
fn no_git_is_left_behind_by_a_server() {
    type End = fn(&mut Serve);
    let ends: [(&str, End); 3] = [
        ("the end of stdin", |serve| drop(serve.stdin.take())),
        ("SIGTERM", |serve| signal(&serve.child, "TERM")),
        ("nudge stop", |serve| drop(serve.call("nudge.shutdown", &json!({})))),
    ];
    for (what, end) in ends {
        for stubborn in [false, true] {
            let home = home();
            let git = Hanging::new(home.path(), "git", stubborn);
            let runtime = home.path().join("run");
            let mut command = kit::command(&runtime);
            git.is_found_by(&mut command);
            let mut serve = Serve::spawn(command, &runtime);
            serve.initialize("2025-11-25");
            serve.send(
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nudge_query","arguments":{}}}"#,
            );
            git.ids();
            end(&mut serve);
            assert!(serve.end(Duration::from_secs(2)).success(), "{what}");
            git.none_is_left(what);
        }
    }
}

#[test]
fn no_program_of_a_client_is_left_behind() {
    for (program, args) in [("claude", &["init", "claude", "--yes"][..]), ("server", &["doctor", "claude"])] {
        let home = home();
        let hanging = Hanging::new(home.path(), program, false);
        let server = hanging.folder.join("server");
        fs::create_dir_all(home.path().join(".claude")).unwrap();
        if program == "server" {
            let entry = json!({"mcpServers": {"nudge": {"command": server, "args": ["serve"]}}});
            fs::write(home.path().join(".claude.json"), entry.to_string()).unwrap();
        }
        let mut command = nudge(&home.path().join("run"), args);
        hanging.is_found_by(&mut command);
        command.env("HOME", home.path()).env("XDG_STATE_HOME", home.path().join("state"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        hanging.ids();
        signal(&child, "TERM");
        assert!(!child.wait().unwrap().success());
        hanging.none_is_left(program);
    }
}

/// Ends `nudge model add` while its child curl has not sent anything yet.
///
/// Promise: see `no_git_is_left_behind_by_a_command`.
#[test]
fn no_curl_is_left_behind() {
    for name in ["TERM", "INT", "HUP", "KILL"] {
        let home = home();
        let curl = Hanging::after_report(home.path(), "curl", false);
        let mut add = nudge(&home.path().join("run"), &["model", "add", "--yes"]);
        curl.is_found_by(&mut add);
        for variable in ["XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            add.env(variable, home.path().join("data"));
        }
        let mut child = add.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        curl.ids();
        signal(&child, name);
        assert!(!child.wait().unwrap().success());
        curl.none_is_left(name);
    }
}

/// Ends a server while its child git, which looks for changes in a checkout, hangs.
///
/// Promise: see `no_git_is_left_behind_by_a_command`.
#[test]
fn no_git_is_left_behind_by_the_index_of_code() {
    for (name, stubborn) in [("TERM", false), ("TERM", true), ("KILL", false), ("KILL", true)] {
        let home = home();
        let repo = home.path().join("repo");
        fs::create_dir_all(&repo).unwrap();
        fs::write(repo.join("a.rs"), "fn a() {}\n").unwrap();
        assert!(Command::new("git").args(["init", "-q"]).current_dir(&repo).status().unwrap().success());
        let git = Hanging::after_report(home.path(), "git", stubborn);
        let runtime = home.path().join("run");
        let mut command = kit::command(&runtime);
        git.is_found_by(&mut command);
        command.env_remove("GIT_DIR").env("XDG_CACHE_HOME", home.path().join("cache"));
        let mut serve = Serve::spawn(command, &runtime);
        serve.initialize("2025-11-25");
        let arguments = json!({"changed": true, "context": {"cwd": repo}});
        let params = json!({"name": "nudge_code_tests", "arguments": arguments});
        serve.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string());
        git.ids();
        signal(&serve.child, name);
        assert_eq!(serve.end(PATIENCE).success(), name == "TERM");
        git.none_is_left(name);
    }
}
