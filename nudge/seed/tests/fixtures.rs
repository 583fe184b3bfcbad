//! Reads a repository of each kind and compares the seeds. Each `tests/fixtures/*.txt` is one repository: each file
//! follows a line `== PATH`, and the expected seeds follow `== expected`. With `UPDATE=1` the test rewrites the
//! expected seeds; review the changes afterwards.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use nudge_seed::{SeedLimits, SeedReport, has_changed, read};

const EXPECTED: &str = "\n== expected\n";

fn unpack(text: &str, into: &Path) {
    for part in format!("\n{text}").split("\n== ").skip(1) {
        let (path, text) = part.split_once('\n').unwrap_or((part, ""));
        let path = into.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }
}

fn listed(report: &SeedReport) -> String {
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
        let report = read(top.path(), &SeedLimits::default());
        let found = listed(&report);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, format!("{}{EXPECTED}{found}", files.trim_end())).unwrap();
            continue;
        }
        assert_eq!(found, expected, "{}", path.display());
        assert_eq!(read(top.path(), &SeedLimits::default()), report);
        assert!(!has_changed(top.path(), &report.manifests, &SeedLimits::default()));
    }
}

#[test]
fn a_change_of_a_manifest_is_seen() {
    let top = tempfile::tempdir().unwrap();
    let path_of = |name: &str| top.path().join(name);
    fs::write(path_of("Makefile"), "test:\n\ttrue\n").unwrap();
    let known = read(top.path(), &SeedLimits::default()).manifests;
    let is_changed = || has_changed(top.path(), &known, &SeedLimits::default());
    fs::write(path_of("README.md"), "x").unwrap();
    assert!(!is_changed());
    fs::write(path_of("justfile"), "x:\n").unwrap();
    assert!(is_changed(), "one has come");
    fs::remove_file(path_of("justfile")).unwrap();
    fs::write(path_of("Makefile"), "test:\n\tfals\n").unwrap();
    assert!(is_changed(), "one is other");
    fs::remove_file(path_of("Makefile")).unwrap();
    assert!(is_changed(), "one is gone");
}

#[test]
fn a_thousand_folders_are_read_and_more_than_allowed_are_not() {
    let top = tempfile::tempdir().unwrap();
    for number in 0..1_000 {
        let folder = top.path().join(format!("packages/p{number:04}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("package.json"), r#"{"scripts": {"test": "vitest"}}"#).unwrap();
    }
    let limits = SeedLimits { seeds: 2_000, ..SeedLimits::default() };
    assert_eq!(read(top.path(), &limits).seeds.len(), 1_000);
    let report = read(top.path(), &SeedLimits { folders: 11, ..limits });
    assert_eq!(report.seeds.len(), 9);
    assert!(report.passed_over[0].why.contains("more than 11 folders"), "{report:?}");
    let report = read(top.path(), &SeedLimits { seeds: 5, ..limits });
    assert_eq!(report.seeds.len(), 5);
    assert!(report.passed_over[0].why.contains("the first 5 of 1000"), "{report:?}");
}

/// The author of a repository may want to harm a user who opens it.
#[test]
#[cfg(unix)]
fn a_hostile_repository_is_bounded_and_says_so() {
    let top = tempfile::tempdir().unwrap();
    let path_of = |name: &str| top.path().join(name);
    let many: Vec<_> = (0..100_000).map(|number| format!("\"s{number:06}\": \"x\"")).collect();
    let many = format!("{{\"scripts\": {{{}}}}}", many.join(","));
    assert!(many.len() > 1 << 20);
    fs::write(path_of("package.json"), &many).unwrap();
    fs::create_dir_all(path_of("less")).unwrap();
    fs::write(path_of("less/package.json"), format!("{}}}}}", &many[..many.find(",\"s030000").unwrap()])).unwrap();
    fs::File::create(path_of("Makefile")).unwrap().set_len(100 << 20).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path_of("justfile")).status().unwrap().success());
    std::os::unix::fs::symlink("/etc/passwd", path_of("Taskfile.yml")).unwrap();
    std::os::unix::fs::symlink("/", path_of("everything")).unwrap();
    fs::write(path_of("tox.ini"), [0xff, 0xfe]).unwrap();
    fs::write(path_of("composer.json"), "[".repeat(500_000)).unwrap();
    fs::write(path_of(".gitlab-ci.yml"), "a: &a [x]\n".to_owned() + &"b: *a\n".repeat(9)).unwrap();
    fs::write(path_of("mise.toml"), "a = ".to_owned() + &"[".repeat(500_000)).unwrap();
    fs::create_dir_all(path_of("odd")).unwrap();
    fs::write(path_of("odd/package.json"), r#"{"scripts": {"a\u001b[31mred": "x", "b\nrm -rf /": "x", "c;rm x": "x\u001b[2J", "\u202eevil": "x", "ok": "y"}}"#)
        .unwrap();
    let report = read(top.path(), &SeedLimits::default());
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

/// The names contain shell syntax, or look like options of the program.
#[test]
#[cfg(unix)]
fn a_hostile_name_is_one_word_of_its_command_or_left_out() {
    let top = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        fs::create_dir_all(top.path().join(name).parent().unwrap()).unwrap();
        fs::write(top.path().join(name), text).unwrap();
    };
    let bins = "[[bin]]\nname = \"c$(touch pwned)\"\n[[bin]]\nname = \"d\"\n[[bin]]\nname = \"--config=x\"\n";
    write("Cargo.toml", &format!("[workspace]\n[package]\nname = \"p; touch pwned\"\n{bins}"));
    write(".cargo/config.toml", "[alias]\n\"al; touch pwned\" = \"test\"\n\"--help\" = \"test\"\n");
    write("hatch.toml", "[envs.\"e; touch pwned\".scripts]\nt = \"x\"\n[envs.default.scripts]\n\"-x\" = \"y\"\n");
    write("compose.yaml", "services:\n  --file=/etc/passwd: {image: a}\n  a&touch pwned: {image: b}\n");
    let scripts = "\"a;touch pwned\" = \"x:y\"\n\"-c\" = \"x:y\"\n";
    write(
        "pyproject.toml",
        &format!("[project.scripts]\n{scripts}[tool.poe.tasks]\n{scripts}[tool.pdm.scripts]\n{scripts}"),
    );
    write("package.json", r#"{"scripts": {"`touch pwned`": "x", "-g": "y"}}"#);
    write("composer.json", r#"{"scripts": {"$(touch pwned)": "x", "--working-dir=/": "y"}}"#);
    write("Taskfile.yml", "tasks:\n  t|touch pwned: {cmds: [x]}\n  --dir=/: {cmds: [x]}\n");
    write("mise.toml", "[tasks.\"m>pwned\"]\nrun = \"x\"\n[tasks.\"--cd=/\"]\nrun = \"x\"\n");
    write("noxfile.py", "@nox.session(name=\"n&touch pwned\")\ndef n(session):\n  pass\n");
    write("tox.toml", "[env.\"x;touch pwned\"]\ndescription = \"y\"\n");
    write("Makefile", ".PHONY: -f m;touch\nm;touch pwned:\n\ttrue\n-f:\n\ttrue\n");
    let report = read(top.path(), &SeedLimits::default());
    assert!(report.seeds.len() > 12, "{report:?}");
    let work = tempfile::tempdir().unwrap();
    for seed in &report.seeds {
        let split = format!("printf '%s\\0' {}", seed.command);
        let output = std::process::Command::new("sh").args(["-c", &split]).current_dir(work.path()).output().unwrap();
        let words = String::from_utf8(output.stdout).unwrap();
        let dashes: Vec<_> = words.split('\0').filter(|word| word.starts_with('-')).collect();
        assert!(output.status.success(), "{seed:?}");
        assert!(
            dashes.iter().all(|word| matches!(*word, "-d" | "-p" | "--bin" | "--workspace" | "-s" | "-e")),
            "{seed:?}"
        );
        assert!(!seed.command.contains("pwned") || words.contains("pwned"), "{seed:?}");
    }
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0, "a shell that reads the commands runs nothing else");
    let commands: Vec<_> = report.seeds.iter().map(|seed| seed.command.as_str()).collect();
    for expected in [
        "cargo run -p 'p; touch pwned' --bin 'c$(touch pwned)'",
        "cargo 'al; touch pwned'",
        "hatch run 'e; touch pwned:t'",
    ] {
        assert!(commands.contains(&expected), "{commands:?}");
    }
}
