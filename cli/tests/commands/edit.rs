//! Tests `nudge edit`: it overwrites no change that another caller made meanwhile, and loses no text that the user
//! typed.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kit::pty::{Pty, with_terminal};
use kit::system::{nudge, sentence, signal};
use kit::{PATIENCE, Serve, home, wait_for};
use serde_json::Value;

fn ok(runtime: &Path, args: &[&str]) -> String {
    let out = nudge(runtime, args).output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{args:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

/// Returns the command `nudge edit` with a script as the editor and a private folder for temporary files.
fn command(serve: &Serve, args: &[&str], script: &str) -> Command {
    fs::create_dir_all(temp(serve)).unwrap();
    let editor = serve.runtime.with_file_name("editor.sh");
    let script = format!("set -e\nfile=$1\nnudge() {{ '{}' \"$@\"; }}\n{script}\n", env!("CARGO_BIN_EXE_nudge"));
    fs::write(&editor, script).unwrap();
    let mut command: Command = nudge(&serve.runtime, &[&["edit"], args].concat());
    command.env_remove("VISUAL").env("EDITOR", format!("sh '{}'", editor.display())).env("TMPDIR", temp(serve));
    command
}

fn temp(serve: &Serve) -> PathBuf {
    serve.runtime.with_file_name("temp")
}

/// Runs an edit. Asserts that the command leaves a text behind if, and only if, its message names the file.
fn edit(serve: &Serve, args: &[&str], script: &str) -> Output {
    let out = command(serve, args, script).output().unwrap();
    let kept = String::from_utf8_lossy(&out.stderr).contains("your text is in ");
    assert_eq!(kept_text(serve).is_some(), kept, "{script}: {out:?}");
    out
}

/// Returns the file and the text that an edit has left behind, and removes them; `None` if there is none. Asserts that
/// only the user can read the file.
fn kept_text(serve: &Serve) -> Option<(PathBuf, String)> {
    let folders: Vec<_> = fs::read_dir(temp(serve)).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(folders.len() < 2, "{folders:?}");
    let folder = folders.first()?;
    let file = folder.join("hint.jsonc");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(folder), mode(&file)), (0o700, 0o600));
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_dir_all(folder).unwrap();
    Some((file, text))
}

#[test]
fn an_edit_overwrites_nothing_that_changed_meanwhile() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    ok(&serve.runtime, &["set", "a", "k", "mine"]);
    for (meanwhile, code, value) in [
        ("nudge set a k theirs >/dev/null", 4, Some("theirs\n")),
        ("nudge delete a k >/dev/null", 4, None),
        // The second hint has the same version as the first one.
        ("nudge delete a k >/dev/null; nudge set a k again >/dev/null", 4, Some("again\n")),
    ] {
        ok(&serve.runtime, &["set", "a", "k", "mine"]);
        let out = edit(&serve, &["a", "k"], &format!("{meanwhile}\nsed -i.bak s/mine/edited/ \"$file\""));
        assert_eq!(out.status.code(), Some(code), "{meanwhile}: {out:?}");
        assert!(sentence(&out).contains("; your text is in "), "{out:?}");
        let now = nudge(&serve.runtime, &["get", "a", "k", "--value"]).output().unwrap();
        assert_eq!(
            now.status.success().then(|| String::from_utf8(now.stdout).unwrap()).as_deref(),
            value,
            "{meanwhile}"
        );
    }
    let conflict =
        edit(&serve, &["a", "k", "--json"], "nudge set a k x >/dev/null; sed -i.bak s/again/edited/ \"$file\"");
    let error: Value = serde_json::from_slice(&conflict.stderr).unwrap();
    assert_eq!(error["data"]["reason"], "E_CONFLICT", "{error}");
    // A use of the hint is no change of its content, so the edit succeeds.
    let out = edit(&serve, &["a", "k"], "nudge bump a k >/dev/null; sed -i.bak 's/\"x\"/\"edited\"/' \"$file\"");
    assert!(out.status.success(), "{out:?}");
    assert_eq!(ok(&serve.runtime, &["get", "a", "k", "--value"]), "edited\n");
}

#[test]
fn an_edit_keeps_what_was_not_edited() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let data = r#"{"z":1,"a":{"y":[2,"//no comment"],"b":null},"m":"é\n// x"}"#;
    ok(
        &serve.runtime,
        &["set", "a", "k", data, "--type", "json", "--scope-os", "linux,macos,windows", "--tags", "x,y"],
    );
    let before: Value = serde_json::from_str(&ok(&serve.runtime, &["get", "a", "k", "--json"])).unwrap();
    let out = edit(
        &serve,
        &["a", "k"],
        "test \"$(ls -ld \"$(dirname \"$file\")\" | cut -c5-10)\" = ------\nsed -i.bak 's/\"z\": 1/\"z\": 3/' \"$file\"",
    );
    assert!(out.status.success(), "{out:?}");
    assert_eq!(ok(&serve.runtime, &["get", "a", "k", "--value"]), format!("{}\n", data.replace("\"z\":1", "\"z\":3")));
    let after: Value = serde_json::from_str(&ok(&serve.runtime, &["get", "a", "k", "--json"])).unwrap();
    assert_eq!(after["hint"]["version"], 2);
    for field in ["/hint/meta", "/hint/variant", "/hint/created_at"] {
        assert_eq!(before.pointer(field), after.pointer(field), "{field}");
    }
    for (script, code) in [
        ("true", 0),
        (": > \"$file\"", 0),
        ("exit 1", 2),
        ("echo nonsense > \"$file\"", 2),
        ("echo '[]' > \"$file\"", 2),
        ("rm \"$file\"", 2),
    ] {
        let out = edit(&serve, &["a", "k"], script);
        assert_eq!(out.status.code(), Some(code), "{script}: {out:?}");
        assert_eq!(out.stdout, b"", "{script}");
        assert_eq!(String::from_utf8(out.stderr).unwrap().lines().count(), 1, "{script}");
    }
    let unchanged: Value = serde_json::from_str(&ok(&serve.runtime, &["get", "a", "k", "--json"])).unwrap();
    assert_eq!(unchanged["hint"], after["hint"]);
}

#[test]
fn what_was_typed_and_not_stored_stays() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    ok(&serve.runtime, &["set", "a", "k", "mine", "--priority", "5"]);
    for (script, code, kept) in [
        ("nudge set a k theirs >/dev/null; sed -i.bak s/mine/typed/ \"$file\"", 4, true),
        ("sed -i.bak 's/\"priority\": 5/\"priority\": \"typed\"/' \"$file\"", 2, true),
        ("echo typed nonsense > \"$file\"", 2, true),
        // The editor replaces the file with a new file that every user may read.
        ("echo typed > \"$file.new\"; chmod 666 \"$file.new\"; mv \"$file.new\" \"$file\"", 2, true),
        ("echo typed > \"$file\"; exit 1", 2, true),
        ("echo '{\"value\": \"typed\", \"meta\": {\"sensitivity\": \"secret\", \"x\": 1}}' > \"$file\"", 2, false),
        ("echo '{\"value\": \"typed\", \"meta\": {\"sensitivity\": \"secret\",}}' > \"$file\"", 2, false),
        ("exit 1", 2, false),
    ] {
        ok(&serve.runtime, &["set", "a", "k", "mine", "--priority", "5"]);
        let out = command(&serve, &["a", "k"], script).output().unwrap();
        let said = sentence(&out);
        assert_eq!(out.status.code(), Some(code), "{script}: {said}");
        match kept_text(&serve) {
            Some((file, text)) => {
                assert!(kept && text.contains("typed"), "{script}: {text}");
                assert!(said.trim_end().ends_with(&format!("; your text is in {}.", file.display())), "{said}");
            }
            None => assert!(!kept, "{script}: {said}"),
        }
        assert_eq!(said.contains("your text was not kept"), script.contains("secret"), "{script}: {said}");
        assert!(!said.contains("typed"), "{said}");
    }
    // With `--json`, the error's message names the file. The error's data is the same as without the file.
    let out = command(&serve, &["a", "k", "--json"], "nudge set a k x >/dev/null; echo typed > \"$file\"").output();
    let error: Value = serde_json::from_slice(&out.unwrap().stderr).unwrap();
    assert!(error["message"].as_str().unwrap().contains("your text is in "), "{error}");
    assert!(kept_text(&serve).is_some());
}

#[test]
fn the_value_is_not_respelled() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let data = r#"{"z":1e20,"a":[-0.0,2.5,{"é":null}],"empty":[{},[]]}"#;
    ok(&serve.runtime, &["set", "a", "k", data, "--type", "json", "--priority", "5"]);
    let stored = ok(&serve.runtime, &["get", "a", "k", "--json"]);
    let data = stored.split("\"data\":").nth(1).unwrap().split(",\"empty\"").next().unwrap();
    let seen = home.path().join("seen");
    let script =
        format!("cp \"$file\" '{}'; sed -i.bak 's/\"priority\": 5/\"priority\": 6/' \"$file\"", seen.display());
    assert!(edit(&serve, &["a", "k"], &script).status.success());
    assert!(ok(&serve.runtime, &["get", "a", "k", "--json"]).contains(data), "{data}");
    let seen = fs::read_to_string(seen).unwrap().replace(char::is_whitespace, "");
    assert!(seen.contains(data), "{seen}");
}

#[test]
fn the_interrupt_key_is_the_editors() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    ok(&serve.runtime, &["set", "a", "k", "mine"]);
    let (open, go) = (home.path().join("open"), home.path().join("go"));
    let script = format!(
        "touch '{}'; until test -e '{}'; do sleep 0.01; done; sed -i.bak s/mine/edited/ \"$file\"",
        open.display(),
        go.display()
    );
    let child = command(&serve, &["a", "k"], &script).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the editor", PATIENCE, || open.exists().then_some(()));
    for name in ["INT", "QUIT", "HUP"] {
        signal(child.id(), name);
    }
    fs::write(&go, "").unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{out:?}");
    assert_eq!(ok(&serve.runtime, &["get", "a", "k", "--value"]), "edited\n");
    assert!(kept_text(&serve).is_none());
}

#[test]
fn a_refused_text_can_be_mended_or_given_up() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    // The editor writes a wrong text the first time, and a correct text the second time.
    let script = "if test -e \"$file.once\"; then echo '{\"value\": \"mended\"}' > \"$file\"\nelse touch \"$file.once\"; echo typed > \"$file\"; fi";
    for (keys, stored) in [(&b"\x03\n"[..], true), (b"\n", true), (b"n\n", false), (b"No\n", false), (b"\x04", false)] {
        ok(&serve.runtime, &["set", "a", "k", "mine"]);
        let (mut pty, end) = Pty::open();
        let Some(mut command) = with_terminal(&command(&serve, &["a", "k"], script), &end) else { return };
        command.stdout(Stdio::null()).stderr(Stdio::from(end));
        let mut child = command.spawn().unwrap();
        drop(command);
        pty.wait_for("[Enter] edits again, n gives up: ");
        for key in keys {
            pty.press(&[*key]);
        }
        let status = wait_for("the end", PATIENCE, || child.try_wait().unwrap());
        let said = pty.finish();
        assert_eq!(status.code(), Some(if stored { 0 } else { 2 }), "{keys:?}: {said}");
        let kept = kept_text(&serve);
        assert_eq!(kept.as_ref().map(|(_, text)| &**text), (!stored).then_some("typed\n"), "{keys:?}: {said}");
        if let Some((file, _)) = kept {
            assert!(said.contains(&format!("; your text is in {}.", file.display())), "{said}");
        }
        let value = if stored { "mended\n" } else { "mine\n" };
        assert_eq!(ok(&serve.runtime, &["get", "a", "k", "--value"]), value, "{keys:?}");
    }
}
