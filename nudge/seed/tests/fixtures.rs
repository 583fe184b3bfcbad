//! A repository of each kind, and what is read of it: `tests/fixtures/*.txt` has the files of one, each after a line
//! `== PATH`, and below `== expected` the seeds. `UPDATE=1` writes these anew, to be read.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use nudge_seed::{Limits, Report, changed, read};

const EXPECTED: &str = "\n== expected\n";

fn unpack(text: &str, into: &Path) {
    for part in format!("\n{text}").split("\n== ").skip(1) {
        let (path, text) = part.split_once('\n').unwrap_or((part, ""));
        let path = into.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }
}

fn listed(report: &Report) -> String {
    let mut out = String::new();
    for seed in &report.seeds {
        let place = if seed.folder.is_empty() { "." } else { &seed.folder };
        let (key, command, about) = (&seed.key, &seed.command, &seed.about);
        writeln!(out, "{place} | {key} | {command} | {about} | {}:{}", seed.file, seed.line).unwrap();
    }
    for passed in &report.passed_over {
        writeln!(out, "passed over {}: {}", passed.file, passed.why).unwrap();
    }
    out
}

#[test]
fn what_repositories_say_is_what_is_expected() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths: Vec<_> = fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 8);
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let (files, expected) = text.split_once(EXPECTED).unwrap_or((&text, ""));
        let top = tempfile::tempdir().unwrap();
        unpack(files, top.path());
        let report = read(top.path(), &Limits::default());
        let found = listed(&report);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, format!("{}{EXPECTED}{found}", files.trim_end())).unwrap();
            continue;
        }
        assert_eq!(found, expected, "{}", path.display());
        assert_eq!(read(top.path(), &Limits::default()), report);
        assert!(!changed(top.path(), &report.manifests, &Limits::default()));
    }
}

#[test]
fn a_change_of_a_manifest_is_seen() {
    let top = tempfile::tempdir().unwrap();
    let at = |name: &str| top.path().join(name);
    fs::write(at("Makefile"), "test:\n\ttrue\n").unwrap();
    let known = read(top.path(), &Limits::default()).manifests;
    let is_changed = || changed(top.path(), &known, &Limits::default());
    fs::write(at("README.md"), "x").unwrap();
    assert!(!is_changed());
    fs::write(at("justfile"), "x:\n").unwrap();
    assert!(is_changed(), "one has come");
    fs::remove_file(at("justfile")).unwrap();
    fs::write(at("Makefile"), "test:\n\tfals\n").unwrap();
    assert!(is_changed(), "one is other");
    fs::remove_file(at("Makefile")).unwrap();
    assert!(is_changed(), "one is gone");
}

#[test]
fn a_thousand_folders_are_read_and_more_than_allowed_are_not() {
    let top = tempfile::tempdir().unwrap();
    for at in 0..1_000 {
        let folder = top.path().join(format!("packages/p{at:04}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("package.json"), r#"{"scripts": {"test": "vitest"}}"#).unwrap();
    }
    let limits = Limits { seeds: 2_000, ..Limits::default() };
    assert_eq!(read(top.path(), &limits).seeds.len(), 1_000);
    let report = read(top.path(), &Limits { folders: 11, ..limits });
    assert_eq!(report.seeds.len(), 9);
    assert!(report.passed_over[0].why.contains("more than 11 folders"), "{report:?}");
    let report = read(top.path(), &Limits { seeds: 5, ..limits });
    assert_eq!(report.seeds.len(), 5);
    assert!(report.passed_over[0].why.contains("the first 5 of 1000"), "{report:?}");
}

/// Whoever wrote the repository may want to harm who opens it.
#[test]
#[cfg(unix)]
fn a_hostile_repository_is_bounded_and_says_so() {
    let top = tempfile::tempdir().unwrap();
    let at = |name: &str| top.path().join(name);
    let many: Vec<_> = (0..100_000).map(|number| format!("\"s{number:06}\": \"x\"")).collect();
    let many = format!("{{\"scripts\": {{{}}}}}", many.join(","));
    assert!(many.len() > 1 << 20);
    fs::write(at("package.json"), &many).unwrap();
    fs::create_dir_all(at("less")).unwrap();
    fs::write(at("less/package.json"), format!("{}}}}}", &many[..many.find(",\"s030000").unwrap()])).unwrap();
    fs::File::create(at("Makefile")).unwrap().set_len(100 << 20).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("justfile")).status().unwrap().success());
    std::os::unix::fs::symlink("/etc/passwd", at("Taskfile.yml")).unwrap();
    std::os::unix::fs::symlink("/", at("everything")).unwrap();
    fs::write(at("tox.ini"), [0xff, 0xfe]).unwrap();
    fs::write(at("composer.json"), "[".repeat(500_000)).unwrap();
    fs::write(at(".gitlab-ci.yml"), "a: &a [x]\n".to_owned() + &"b: *a\n".repeat(9)).unwrap();
    fs::write(at("mise.toml"), "a = ".to_owned() + &"[".repeat(500_000)).unwrap();
    fs::create_dir_all(at("odd")).unwrap();
    fs::write(at("odd/package.json"), r#"{"scripts": {"a\u001b[31mred": "x", "b\nrm -rf /": "x", "c;rm x": "x\u001b[2J", "\u202eevil": "x", "ok": "y"}}"#)
        .unwrap();
    let report = read(top.path(), &Limits::default());
    let why = |file: &str| &report.passed_over.iter().find(|passed| passed.file == file).unwrap().why;
    assert!(why("package.json").contains("more than 1048576 bytes"));
    assert!(why("Makefile").contains("more than 1048576 bytes"));
    assert_eq!(why("less/package.json"), "only the first 40 of 30000 commands are taken");
    assert_eq!((why("justfile").as_str(), why("Taskfile.yml").as_str()), ("it is not a regular file", "it is a link"));
    assert_eq!(why("tox.ini"), "it is not UTF-8 text");
    assert!(why("composer.json").starts_with("it is not JSON") && why("mise.toml").starts_with("it is not TOML"));
    let odd: Vec<_> = report.seeds.iter().filter(|seed| seed.folder == "odd").collect();
    let commands: Vec<_> = odd.iter().map(|seed| seed.command.as_str()).collect();
    assert_eq!(commands, ["npm run 'c;rm x'", "npm run ok"]);
    assert!(report.seeds.iter().all(|seed| !seed.about.contains('\u{1b}') && !seed.command.contains('\u{1b}')));
}
