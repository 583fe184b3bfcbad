//! Tests completions, man pages, and the examples in the help, as a user copies them into a shell.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kit::system::nudge;
use kit::{Serve, home};
use serde_json::{Value, json};

const VERBS: [&str; 38] = [
    "hints",
    "ask",
    "brain",
    "capture-session",
    "code",
    "records",
    "model",
    "signals",
    "forget",
    "recall",
    "config",
    "init",
    "doctor",
    "hook",
    "ui",
    "stats",
    "save",
    "seed",
    "serve",
    "set",
    "get",
    "query",
    "ls",
    "why",
    "edit",
    "delete",
    "undo",
    "bump",
    "export",
    "import",
    "watch",
    "status",
    "stop",
    "call",
    "trust",
    "try",
    "completions",
    "man",
];

/// A folder with `nudge`, and with scripts in place of the other programs that the examples call.
struct Desk {
    folder: PathBuf,
    runtime: PathBuf,
}

impl Desk {
    fn new(home: &Path, runtime: &Path) -> Self {
        let folder = home.join("desk");
        let programs = folder.join("bin");
        fs::create_dir_all(&programs).unwrap();
        symlink(env!("CARGO_BIN_EXE_nudge"), programs.join("nudge")).unwrap();
        for (name, script) in [
            ("jq", "echo '{\"port\": 8080}'"),
            ("docker", "echo ran \"$@\""),
            ("code", "true"),
            ("ssh", "shift; exec \"$@\""),
        ] {
            let program = programs.join(name);
            fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { folder, runtime: runtime.to_owned() }
    }

    /// Runs a line in this shell, in the folder.
    fn shell(&self, shell: &str, args: &[&str], line: &str) -> Output {
        let mut command = nudge(&self.runtime, &[]);
        let path = std::env::var("PATH").unwrap();
        let mut typed = Command::new(shell);
        for (name, value) in command.stdin(Stdio::null()).get_envs() {
            match value {
                Some(value) => typed.env(name, value),
                None => typed.env_remove(name),
            };
        }
        typed.env("PATH", format!("{}:{path}", self.folder.join("bin").display()));
        typed.env("HOME", &self.folder).env("EDITOR", "true").env_remove("VISUAL").current_dir(&self.folder);
        typed.args(args).args(["-c", line]).stdin(Stdio::null()).output().unwrap()
    }

    /// Returns the completions that bash offers for the last of these words.
    fn bash(&self, words: &[&str]) -> Vec<String> {
        let quoted: Vec<_> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        let line = format!(
            "source <(nudge completions bash) || exit 9\n\
             COMP_WORDS=(nudge {}); COMP_CWORD={}; COMP_TYPE=9\n\
             function=$(complete -p nudge | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n\
             $function nudge \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            quoted.join(" "),
            words.len()
        );
        let out = self.shell("bash", &["--norc", "--noprofile"], &line);
        assert!(out.status.success() && out.stderr.is_empty(), "{words:?}: {out:?}");
        let lines = String::from_utf8(out.stdout).unwrap();
        lines.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
    }
}

fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\" >/dev/null", program]).status().unwrap().success();
    if !found {
        eprintln!("skipped: there is no {program} here");
    }
    found
}

fn put(serve: &Serve, component: &str, key: &str) {
    let answer = serve.call("nudge.set_hint", &json!({"component": component, "key": key, "value": "x"}));
    assert!(answer["result"].is_object(), "{answer}");
}

fn plain(offered: &[String]) -> Vec<&str> {
    offered.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect()
}

#[test]
fn bash_completes_from_the_running_server() {
    if !has("bash") {
        return;
    }
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let desk = Desk::new(home.path(), &serve.runtime);
    for (component, key) in [("http-proxy", "build"), ("http-proxy", "directory"), ("api", "env.FEATURE_X")] {
        put(&serve, component, key);
    }
    put(&serve, "@scope/pkg", "a");
    // Stores names that a shell would interpret or a command would read as flags. No completion may offer them.
    let pwned = home.path().join("pwned");
    let touch = format!("$(touch {})", pwned.display());
    for name in [&*touch, "`id`", "a b", "*", "a;b", "a'b", "a\"b", "a\\b", "-x", "a&b", "~", "\u{202e}x", "a\u{b}b"] {
        let _ = serve.call("nudge.set_hint", &json!({"component": name, "key": "k", "value": "x"}));
        let _ = serve.call("nudge.set_hint", &json!({"component": "odd", "key": name, "value": "x"}));
    }
    put(&serve, "odd", "even");

    let components = ["@scope/pkg", "api", "http-proxy", "odd"];
    for verb in ["get", "why", "edit", "delete", "bump", "set", "ls", "watch"] {
        let offered = desk.bash(&[verb, ""]);
        let mut offered = plain(&offered);
        offered.sort_unstable();
        assert_eq!(offered, components, "{verb}");
    }
    for words in [&["query", "--component", ""][..], &["export", "--component", ""]] {
        assert_eq!(plain(&desk.bash(words)).len(), 4, "{words:?}");
    }
    for before in [&["get"][..], &["--json", "why"], &["rm"], &["-p", "1", "bump"], &["get", "--cwd", "/x"]] {
        let offered = desk.bash(&[before, &["http-proxy", ""]].concat());
        let mut offered = plain(&offered);
        offered.sort_unstable();
        assert_eq!(offered, ["build", "directory"], "{before:?}");
    }
    assert_eq!(desk.bash(&["get", "http-proxy", "b"]), ["build"]);
    assert_eq!(plain(&desk.bash(&["get", "odd", ""])), ["even"]);
    // A user who types such a name in quotes is offered its keys.
    assert_eq!(plain(&desk.bash(&["get", &touch, ""])), ["k"]);
    assert!(!pwned.exists(), "a name was run");

    assert_eq!(desk.bash(&["wh"]), ["why"]);
    assert_eq!(desk.bash(&["set", "--scope-b"]), ["--scope-branch"]);
    assert_eq!(desk.bash(&["set", "a", "b", "c", "--type", "te"]), ["text", "template"]);
    let verbs = desk.bash(&[""]);
    assert!(VERBS.iter().all(|verb| verbs.iter().any(|offered| offered == verb)), "{verbs:?}");
    assert!(!desk.bash(&["serve", "--d"]).contains(&"--detached".to_owned()), "what is hidden stays hidden");

    // The completion uses the session that the command line names, not the session of the environment.
    let other = Desk { runtime: home.path().join("none"), folder: desk.folder.clone() };
    let run = serve.runtime.display().to_string();
    assert_eq!(other.bash(&["get", "--runtime-dir", &run, "http-proxy", "b"]), ["build"]);
    // Without a server there are no completions and no errors.
    for words in [&["get", ""][..], &["get", "http-proxy", ""], &["query", "--component", ""]] {
        assert_eq!(plain(&other.bash(words)), [""; 0], "{words:?}");
    }
    assert_eq!(other.bash(&["get", "http-proxy", "b"]), [""; 0]);
}

#[test]
fn other_shells_take_their_scripts() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let desk = Desk::new(home.path(), &serve.runtime);
    put(&serve, "http-proxy", "build");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let out = nudge(&serve.runtime, &["completions", shell]).output().unwrap();
        let script = String::from_utf8(out.stdout).unwrap();
        assert!(out.status.success() && script.contains("NUDGE_COMPLETE"), "{shell}: {script}");
        // The script calls `nudge` by its name, not by the path of this binary.
        assert!(!script.contains(env!("CARGO_BIN_EXE_nudge")), "{shell}: {script}");
    }
    if has("zsh") {
        let checked = desk.shell("zsh", &["-f"], "nudge completions zsh > _nudge && zsh -n _nudge");
        assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
    }
    if has("fish") {
        let line = "nudge completions fish | source; complete -C 'nudge get http-proxy '";
        let out = desk.shell("fish", &["--no-config"], line);
        assert!(String::from_utf8_lossy(&out.stdout).lines().any(|line| line.starts_with("build")), "{out:?}");
    }
}

#[test]
fn every_verb_has_a_man_page_that_renders() {
    let home = home();
    let pages = home.path().join("man").join("man1");
    let out = nudge(home.path(), &["man", pages.to_str().unwrap()]).output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    let names = VERBS.iter().map(|verb| format!("nudge-{verb}")).chain(["nudge".to_owned()]);
    let groff = has("groff");
    for name in names {
        let path = pages.join(format!("{name}.1"));
        let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(&format!(".TH {name} 1 ")), "{page}");
        if groff {
            let out = Command::new("groff").args(["-man", "-Tutf8", "-ww", "-P-cbou"]).arg(&path).output().unwrap();
            let text = String::from_utf8_lossy(&out.stdout);
            assert!(out.status.success() && out.stderr.is_empty(), "{name}: {out:?}");
            let heading = if name == "nudge" { "EXIT STATUS" } else { "EXAMPLES" };
            assert!(text.contains("NAME") && text.contains(heading), "{name}: {text}");
        }
    }
    assert_eq!(fs::read_dir(&pages).unwrap().count(), VERBS.len() + 1);
    let output = nudge(home.path(), &["man"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), fs::read_to_string(pages.join("nudge.1")).unwrap());
}

/// Returns the commands of the examples in a verb's help.
fn examples(verb: &str) -> Vec<String> {
    let out = nudge(Path::new("/nowhere"), &[verb, "--help"]).output().unwrap();
    let help = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{verb}");
    let (_, examples) = help
        .split_once("\nExamples:\n")
        .or(help.split_once("\nExample:\n"))
        .unwrap_or_else(|| panic!("{verb}: {help}"));
    let lines = examples.lines().take_while(|line| line.starts_with("  "));
    let examples: Vec<_> =
        lines.map(|line| line.trim().split("   ").next().unwrap_or_default().trim_end().to_owned()).collect();
    assert!(
        !examples.is_empty() && examples.iter().all(|line| line.contains(&format!("nudge {verb}"))),
        "{examples:?}"
    );
    examples
}

/// Replaces the store with the hints that the examples name, and makes three deletions.
fn prepare(serve: &Serve) {
    let hint = |value: &str, scope: Value| json!({"value": value, "meta": {"tags": ["build"], "scope": scope}});
    let everywhere = |value| hint(value, json!({}));
    let payload = json!({"components": {"http-proxy": {
        "hints": {"build": everywhere("docker compose build router"), "directory": everywhere("/srv")},
        "variants": {"directory": [hint("/other", json!({"os": ["windows"]}))]},
    }}});
    let imported = serve.call("nudge.import", &json!({"payload": payload, "mode": "replace"}));
    assert_eq!(imported["result"]["imported"], 3, "{imported}");
    for key in ["a", "b", "c"] {
        put(serve, "gone", key);
        assert!(serve.call("nudge.delete_hint", &json!({"component": "gone", "key": key}))["result"].is_object());
    }
}

#[test]
fn the_examples_in_the_help_work() {
    if !has("bash") {
        return;
    }
    let home = home();
    for verb in VERBS {
        let examples = examples(verb);
        // Skips the commands that run until a user ends them, and the commands with tests of their own.
        if ["serve", "watch", "try", "stop", "completions", "man", "init", "doctor", "model", "hints"].contains(&verb) {
            continue;
        }
        for (index, example) in examples.iter().enumerate() {
            let folder = home.path().join(format!("{verb}-{index}"));
            fs::create_dir(&folder).unwrap();
            let serve = Serve::start(&folder.join("run"));
            let desk = Desk::new(&folder, &serve.runtime);
            let short = r#"{"components": {"api": {"hints": {"build": "make"}}}}"#;
            fs::write(desk.folder.join("seed-hints.json"), short).unwrap();
            fs::write(desk.folder.join("params.json"), format!("{{\"payload\": {short}}}")).unwrap();
            fs::write(desk.folder.join("brain.yaml"), "").unwrap();
            if ["save", "seed", "trust"].contains(&verb) {
                fs::create_dir_all(desk.folder.join(".git/objects")).unwrap();
                fs::create_dir_all(desk.folder.join(".git/refs")).unwrap();
                fs::write(desk.folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            }
            prepare(&serve);
            if ["save", "trust"].contains(&verb) {
                let out = desk.shell("bash", &["--norc", "--noprofile"], "nudge set api test make && nudge save --all");
                assert!(out.status.success(), "{out:?}");
            }
            let out = desk.shell("bash", &["--norc", "--noprofile", "-o", "pipefail"], example);
            // This example names a variant that does not exist here, so it must fail.
            let expected = i32::from(example.contains("--variant 3f2a"));
            assert_eq!(out.status.code(), Some(expected), "{example}: {out:?}");
        }
    }
}
