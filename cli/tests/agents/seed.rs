//! Tests `nudge seed`: agents are told the commands that a clone's own files name, and the hints change with the files.
#![cfg(unix)]

use crate::kit;

use std::fs;

use kit::desk::Desk;
use serde_json::{Value, json};

fn event(desk: &Desk, name: &str, session: &str, more: &Value) -> Value {
    let mut event = json!({"hook_event_name": name, "session_id": session, "cwd": desk.checkout});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

/// Runs the first hook of a client session; returns its text for the model.
fn start(desk: &Desk, session: &str) -> String {
    desk.hook(&[], &event(desk, "SessionStart", session, &json!({"source": "startup"})))
}

fn prompt(desk: &Desk, session: &str, text: &str) -> String {
    desk.hook(&[], &event(desk, "UserPromptSubmit", session, &json!({"prompt": text})))
}

fn write(desk: &Desk, file: &str, text: &str) {
    let path = desk.checkout.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Lists key and value of each hint of a component.
fn listed(desk: &Desk, component: &str) -> Vec<String> {
    let all = desk.run(&["ls", component]);
    let hints = all["hints"].as_array().unwrap().iter();
    let mut lines: Vec<_> = hints
        .map(|row| {
            let hint = row.get("hint").unwrap_or(row);
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!(
                "{} {}",
                text(&hint["key"]),
                text(&hint["value"]["cmd"]) + hint["value"].as_str().unwrap_or_default()
            )
        })
        .collect();
    lines.sort();
    lines
}

/// Promise (agents): A hint from a file of the repository displaces no hint that a person or an agent stored.
#[test]
fn agents_are_told_and_follow_the_files() {
    let desk = Desk::new();
    write(&desk, "Makefile", "test: ## Runs all tests\n\tpytest\nlint:\n\truff check\n");
    let shown = desk.run(&["seed", "--dry-run"]);
    assert_eq!(shown["seeds"][0]["command"], "make test");
    assert!(!desk.home.path().join("state").exists(), "a dry run leaves nothing");
    assert_eq!(desk.run(&["seed"])["seeds"].as_array().unwrap().len(), 2, "without a session");
    let serve = desk.serve();
    assert!(start(&desk, "a").contains("shop/make.test: make test"), "{}", start(&desk, "b"));
    let told = prompt(&desk, "c", "run the linter, please");
    assert!(told.contains("make lint") && told.contains("Makefile:3: ruff check"), "{told}");

    write(&desk, "Makefile", "check: ## Runs all tests\n\tpytest -q\nlint:\n\truff check\n");
    let told = start(&desk, "d");
    assert!(told.contains("make check") && !told.contains("make test"), "{told}");
    assert_eq!(listed(&desk, "shop"), ["make.check make check", "make.lint make lint"]);

    desk.run(&["set", "shop", "make.check", "make check -j8", "--scope-repo", "."]);
    desk.run(&["delete", "shop", "make.lint"]);
    write(&desk, "Makefile", "check: ## Runs everything\n\tpytest -qq\nlint:\n\truff check\nbuild:\n\tcc\n");
    start(&desk, "e");
    let now = listed(&desk, "shop");
    assert_eq!(now, ["make.build make build", "make.check make check -j8"], "what people did stays");
    let said = desk.run(&["seed"]);
    assert_eq!(said["left"].as_array().unwrap().len(), 2, "{said}");

    desk.run(&["set", "shop", "deploy", "make deploy", "--scope-repo", ".", "--tags", "deploy"]);
    let told = start(&desk, "told what is doubtful");
    let line = |text: &str| told.lines().find(|line| line.contains(text)).unwrap_or_default();
    assert!(line("make.check").ends_with("; Makefile changed since)"), "{told}");
    assert!(line("make deploy").ends_with("; no deploy in Makefile)"), "{told}");
    assert!(!line("make.build").contains("Makefile changed"), "{told}");
    let found = desk.run(&["doctor", "--hints"]);
    let what: Vec<_> =
        found["findings"].as_array().unwrap().iter().map(|finding| finding["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["Makefile has no deploy", "Makefile says something else now"], "{found}");
    desk.run(&["delete", "shop", "deploy"]);
    serve.close();

    let serve = desk.serve();
    let told = start(&desk, "f");
    assert!(told.contains("make check") && told.contains("make lint"), "a new session begins with them: {told}");
    assert_eq!(desk.run(&["seed", "--forget"])["forgotten"], 3);
    write(&desk, "Makefile", "other:\n\ttrue\n");
    assert_eq!(start(&desk, "g"), "");
    assert_eq!(desk.run(&["seed", "--forget"])["forgotten"], 0);
    serve.close();
}

/// Promise (agents): A client that starts while another process stores the commands of a clone is told all of them.
#[test]
#[cfg(target_os = "linux")]
fn a_start_waits_for_a_process_that_stores_the_others() {
    let desk = Desk::new();
    write(&desk, "Makefile", "test: ## Runs all tests\n\tpytest\nlint:\n\truff check\n");
    desk.run(&["seed"]);
    let serve = desk.serve();
    desk.run(&["seed"]);
    desk.run(&["delete", "shop", "make.lint"]);
    let lock = desk.home.path().join("state/nudge/seeds.lock");
    let storing = fs::File::create(&lock).unwrap();
    storing.lock().unwrap();
    let hook = desk.spawn_hook(&[], &event(&desk, "SessionStart", "a", &json!({"source": "startup"})));
    let fds = format!("/proc/{}/fd", serve.child.id());
    kit::wait_for("the session waits for the lock", kit::PATIENCE, || {
        let links = fs::read_dir(&fds).ok()?.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        links.into_iter().any(|file| file == lock).then_some(())
    });
    desk.run(&["set", "shop", "make.lint", "make lint", "--scope-repo", "."]);
    fs::remove_file(&lock).unwrap();
    drop(storing);
    let told = Desk::told_by(hook);
    assert!(told.contains("make.test") && told.contains("make.lint"), "{told}");
    serve.close();
}

/// Counts how often any process opens the watched files.
#[cfg(target_os = "linux")]
struct OpenCounter(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl OpenCounter {
    fn watch(files: &[std::path::PathBuf]) -> Self {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let fd = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        for file in files {
            add_watch(&fd, file, WatchFlags::OPEN).unwrap();
        }
        Self(fd)
    }

    /// Returns the number since the last call.
    fn count(&self) -> usize {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = rustix::fs::inotify::Reader::new(&self.0, &mut buffer);
        std::iter::from_fn(|| reader.next().ok().map(drop)).count()
    }
}

/// Promise (agents): The files of a seeded clone are read again only after a change.
#[test]
#[cfg(target_os = "linux")]
fn an_unchanged_clone_is_not_read_again() {
    let desk = Desk::new();
    write(&desk, "Makefile", "test: ## Runs all tests\n\tpytest\n");
    write(&desk, "package.json", r#"{"scripts": {"build": "vite build"}}"#);
    desk.run(&["seed"]);
    let serve = desk.serve();
    assert!(start(&desk, "a").contains("make test"));
    let watch = |name: &str| OpenCounter::watch(&[desk.checkout.join(name)]);
    let state = OpenCounter::watch(&[desk.home.path().join("state/nudge/seeds.json")]);
    let (makefile, package) = (watch("Makefile"), watch("package.json"));
    let opened = || [&makefile, &package, &state].map(OpenCounter::count);
    // A file that has just changed is read with each event, because its times could stay the same at another change.
    let ask = || {
        assert_eq!(prompt(&desk, "a", "thanks"), "");
        opened()
    };
    kit::wait_for("an event that reads nothing", kit::PATIENCE, || (ask() == [0, 0, 0]).then_some(()));
    for _ in 0..20 {
        assert_eq!(ask(), [0, 0, 0]);
    }
    write(&desk, "Makefile", "check: ## Runs all tests\n\tpytest\n");
    opened();
    let told = start(&desk, "b");
    assert!(told.contains("make check") && !told.contains("make test"), "{told}");
    assert!(opened()[0] > 0);
    serve.close();
}

/// In a large clone a prompt looks only at the files whose commands fit the agent's folder; a start
/// looks at all of them.
#[test]
#[cfg(target_os = "linux")]
fn a_prompt_follows_the_files_of_its_folder_and_a_start_all() {
    let desk = Desk::new();
    let scripts = |name: &str| format!(r#"{{"scripts": {{"{name}": "vite"}}}}"#);
    let target = |name: &str| format!("{name}:\n\tvite\n");
    let ci = |line: &str| format!("jobs:\n  a:\n    steps:\n      - run: {line}\n        working-directory: web\n");
    write(&desk, "package.json", &scripts("build"));
    write(&desk, "web/package.json", &scripts("serve"));
    // The code index also reads `package.json`, in the background. Only seeds read a Makefile.
    write(&desk, "docs/Makefile", &target("serve"));
    write(&desk, ".github/workflows/ci.yml", &ci("npx playwright test"));
    desk.run(&["seed"]);
    let serve = desk.serve();
    let web = desk.checkout.join("web/src");
    fs::create_dir(&web).unwrap();
    let ask = |session: &str, text: &str| {
        desk.hook(&[], &event(&desk, "UserPromptSubmit", session, &json!({"prompt": text, "cwd": web})))
    };
    start(&desk, "a");
    let opened = OpenCounter::watch(&[desk.checkout.join("docs/Makefile")]);
    // A file that has just changed is read with each event, because its times could stay the same at another change.
    let wait_until_quiet = || {
        kit::wait_for("an event that reads nothing", kit::PATIENCE, || {
            prompt(&desk, "a", "thanks");
            (opened.count() == 0).then_some(())
        });
    };
    wait_until_quiet();
    write(&desk, "docs/Makefile", &target("preview"));
    opened.count();
    ask("b", "thanks");
    assert_eq!((opened.count(), listed(&desk, "docs")), (0, vec!["make.serve make serve".to_owned()]));
    start(&desk, "c");
    assert_eq!(listed(&desk, "docs"), ["make.preview make preview"]);

    wait_until_quiet();
    write(&desk, "web/package.json", &scripts("preview"));
    let told = ask("d", "how do I preview it?");
    assert!(told.contains("npm run preview"), "{told}");

    wait_until_quiet();
    write(&desk, ".github/workflows/ci.yml", &ci("npx cypress run"));
    let told = ask("e", "how do I run cypress?");
    assert!(told.contains("npx cypress run"), "a file of CI is for any folder: {told}");
    serve.close();
}

#[test]
fn a_client_without_hooks_has_them_too() {
    let desk = Desk::new();
    write(&desk, "package.json", r#"{"scripts": {"build": "vite build"}}"#);
    write(&desk, "web/package.json", r#"{"scripts": {"dev": "vite"}}"#);
    desk.run(&["seed"]);
    let mut serve = desk.serve();
    serve.initialize(kit::mcp::LEGACY);
    let there = kit::wait_for("the commands", kit::PATIENCE, || {
        let all = desk.run(&["ls"]);
        (all["components"].as_array()?.len() == 2).then_some(all)
    });
    assert_eq!(there["components"][1]["name"], "web", "{there}");
    let mut get = desk.nudge(&["get", "web", "npm.dev", "--value"]);
    assert_eq!(get.output().unwrap().status.code(), Some(1), "it is for the folder");
    let got = get.current_dir(desk.checkout.join("web")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&got.stdout), "npm run dev\n", "{got:?}");
    serve.close();
}

#[test]
fn a_command_that_holds_a_secret_is_refused_and_the_others_stand() {
    let desk = Desk::new();
    let token = ["ghp_", &"a1B2c3D4e5F6".repeat(3)].concat();
    write(
        &desk,
        "package.json",
        &json!({"scripts": {"test": "vitest", "push": format!("TOKEN={token} ./push")}}).to_string(),
    );
    let serve = desk.serve();
    let said = desk.run(&["seed"]);
    assert_eq!((said["set"].as_u64(), said["refused"].as_array().unwrap().len()), (Some(1), 1), "{said}");
    assert!(!said["refused"].to_string().contains(&token), "{said}");
    assert_eq!(listed(&desk, "shop"), ["npm.test npm test"]);
    serve.close();
}

#[test]
fn what_cannot_be_done_says_what_to_do() {
    let desk = Desk::new();
    let mut outside = desk.nudge(&["seed"]);
    let output = outside.current_dir(desk.home.path()).output().unwrap();
    assert!(kit::system::sentence(&output).contains("in no git repository; go into one"), "{output:?}");
    write(&desk, "Makefile", "test:\n\ttrue\n");
    let state = desk.home.path().join("state/nudge");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("seeds.json"), "{").unwrap();
    let (code, said) = desk.refused(&["seed"]);
    assert!(code == Some(4) || code == Some(3), "{code:?}");
    assert!(said.contains("seeds.json") && said.contains("move it away"), "{said}");
    let serve = desk.serve();
    assert_eq!(start(&desk, "a"), "", "a hook says nothing");
    serve.close();
}

/// Starts a session that keeps hints, and waits until it has read the clone's files.
fn serve_keeping(desk: &Desk, hints: usize) -> kit::Serve {
    let mut server = desk.server();
    server.env("NUDGE_KEEP", "1");
    let serve = kit::Serve::spawn(server, &desk.runtime);
    until_listed(desk, hints);
    serve
}

fn until_listed(desk: &Desk, hints: usize) {
    kit::wait_for("the hints of the files", kit::PATIENCE, || (listed(desk, "shop").len() == hints).then_some(()));
}

/// Lists the keys in the file of kept hints.
fn kept(desk: &Desk) -> Vec<String> {
    kit::kept::list_keys(&desk.home.path().join("data/hints.db"))
}

/// Runs `nudge stop`; returns its result.
fn stop(desk: &Desk, serve: kit::Serve) -> Value {
    let said = desk.run(&["stop"]);
    drop(serve);
    said
}

/// Promise (agents): Seeds are not kept but read again by the next session, without what a user deleted and with the
/// counts of what was used.
#[test]
fn a_session_that_keeps_reads_the_files_again() {
    let desk = Desk::new();
    write(&desk, "Makefile", "build:\n\tcc\ncheck:\n\tpytest\nlint:\n\truff check\ntest:\n\tpytest -q\n");
    desk.run(&["seed"]);
    let serve = serve_keeping(&desk, 4);
    desk.run(&["set", "shop", "own", "make own"]);
    desk.run(&["bump", "shop", "make.test"]);
    desk.run(&["delete", "shop", "make.lint"]);
    let said = stop(&desk, serve);
    assert_eq!((&said["hints"], &said["kept"]), (&json!(1), &json!(1)), "seeds neither stay nor go: {said}");
    assert_eq!(kept(&desk), ["make.test", "own"], "a count is in no file");

    let serve = serve_keeping(&desk, 4);
    let names = ["make.build make build", "make.check make check", "make.test make test", "own make own"];
    assert_eq!(listed(&desk, "shop"), names);
    let told = desk.run(&["get", "shop", "make.test"]);
    assert_eq!(told["hint"]["use_count"], 1, "{told}");
    let keeping = kit::wait_for("the hints are counted", kit::PATIENCE, || {
        Some(desk.run(&["status"])["keeping"].take()).filter(|keeping| keeping["of_files"] == 3)
    });
    assert_eq!(keeping["hints"], 1, "{keeping}");
    assert!(start(&desk, "a").contains("make test"));
    desk.run(&["delete", "shop", "make.build"]);
    desk.run(&["delete", "shop", "make.check"]);
    desk.run(&["undo"]);
    stop(&desk, serve);

    let serve = serve_keeping(&desk, 3);
    let names = ["make.check make check", "make.test make test", "own make own"];
    assert_eq!(listed(&desk, "shop"), names, "an undone deletion is none");
    write(&desk, "Makefile", "check:\n\tpytest\n");
    start(&desk, "b");
    assert_eq!(listed(&desk, "shop"), ["make.check make check", "own make own"], "a used seed goes with its source");
    desk.run(&["delete", "shop", "make.check"]);
    stop(&desk, serve);

    let serve = serve_keeping(&desk, 1);
    start(&desk, "c");
    assert_eq!(listed(&desk, "shop"), ["own make own"], "also the last one stays away");
    assert_eq!(desk.run(&["seed"])["left"].as_array().unwrap().len(), 1);
    desk.run(&["seed", "--forget"]);
    assert_eq!(desk.run(&["seed"])["set"], 1, "a clone that is seeded anew has all");
    stop(&desk, serve);
}

/// A changed seed is kept like other hints, even if the tool that changed it left the author's name.
#[test]
fn a_seed_that_was_changed_is_kept() {
    let desk = Desk::new();
    write(&desk, "Makefile", "check:\n\tpytest\ntest:\n\tpytest -q\n");
    desk.run(&["seed"]);
    let serve = serve_keeping(&desk, 2);
    let mut hint = desk.run(&["get", "shop", "make.check"])["hint"].clone();
    hint["value"]["cmd"] = "make check -j8".into();
    let params = json!({"component": "shop", "key": "make.check", "value": hint["value"], "meta": hint["meta"]});
    desk.run(&["call", "nudge.set_hint", &params.to_string()]);
    stop(&desk, serve);
    assert_eq!(kept(&desk), ["make.check"]);
    let serve = serve_keeping(&desk, 2);
    assert_eq!(listed(&desk, "shop"), ["make.check make check -j8", "make.test make test"]);
    stop(&desk, serve);
}

#[test]
fn a_session_that_lost_its_journal_reads_the_files_again() {
    let desk = Desk::new();
    write(&desk, "Makefile", "check:\n\tpytest\ntest:\n\tpytest -q\n");
    desk.run(&["seed"]);
    let begin = || {
        let mut server = desk.server();
        server.env("NUDGE_JOURNAL", "0").env("NUDGE_KEEP", "1");
        server
    };
    let first = kit::Serve::spawn(begin(), &desk.runtime);
    until_listed(&desk, 2);
    desk.run(&["delete", "shop", "make.check"]);
    let seeds = desk.home.path().join("state/nudge/seeds.json");
    kit::wait_for("the deletion is noted", kit::PATIENCE, || {
        fs::read_to_string(&seeds).unwrap().contains("is_deleted").then_some(())
    });
    let mut second = kit::Serve::attach_to(begin().spawn().unwrap(), &desk.runtime, first.file.clone());
    second.initialize(kit::mcp::LEGACY);
    drop(first);
    kit::wait_for("a server", kit::PATIENCE, || {
        desk.nudge(&["status"]).output().unwrap().status.success().then_some(())
    });
    start(&desk, "a");
    assert_eq!(listed(&desk, "shop"), ["make.test make test"]);
    second.close();
}
