//! Tests faults of a running session's rows and descriptors, which the system or other programs cause.
#![cfg(unix)]

use crate::kit;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kit::agent::{Agent, Failure, LONG};
use kit::rng::Rng;
use kit::session::{Session, get, set, shown};
use kit::wait_for;
use rustix::process::Signal;
use serde_json::{Value, json};

/// The environment variable with the folder for a test that runs again in its own process.
const FOLDER: &str = "NUDGE_TEST_FOLDER";

/// The acknowledged hints: key and value.
type Acknowledged = BTreeSet<(String, String)>;

fn all(agent: &Agent) -> Acknowledged {
    shown(agent).into_iter().collect()
}

/// Sets a hint, and adds it to `acknowledged` if the server acknowledges it. Otherwise returns the refusal, which must
/// be one sentence.
fn try_set(agent: &Agent, key: &str, value: &str, acknowledged: &mut Acknowledged) -> Option<String> {
    match agent.tool("nudge_set_hint", &set(key, value), LONG) {
        Ok(_) => {
            acknowledged.insert((key.into(), value.into()));
            None
        }
        Err(Failure::Refused(error)) => Some(sentence(&error)),
        Err(why) => panic!("{key}: {why:?}: {}", agent.stderr()),
    }
}

fn sentence(error: &Value) -> String {
    assert_eq!(error["data"]["reason"], "E_UNAVAILABLE", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with('.') && message.lines().count() == 1, "{message}");
    message.to_owned()
}

/// Repeats a set until the server acknowledges it.
fn set_until_taken(agent: &Agent, key: &str, acknowledged: &mut Acknowledged) {
    wait_for("changes to be taken again", LONG, || try_set(agent, key, "x", acknowledged).is_none().then_some(()));
}

/// Returns the path of the database with the session's rows.
fn database(session: &Session) -> PathBuf {
    session.runtime.join("session.db")
}

/// Returns the path of the database's write-ahead log. It has the rows of a short session.
fn log(session: &Session) -> PathBuf {
    session.runtime.join("session.db-wal")
}

/// Suspends the PROXYs, kills the PRIMARY, runs `act` while no server answers, and resumes the PROXYs.
fn between(session: &Session, act: impl FnOnce()) {
    let first = session.primary(|_| true).pid;
    let others: Vec<_> = session.agents.iter().filter(|agent| agent.pid != first && agent.is_running()).collect();
    for agent in &others {
        agent.stop();
    }
    session.agent(first).kill();
    act();
    for agent in others {
        agent.resume();
    }
}

/// Returns an agent that runs.
fn survivor(session: &Session) -> &Arc<Agent> {
    session.agents.iter().find(|agent| agent.is_running()).expect("somebody lives")
}

fn can(what: &str, command: &mut Command) -> bool {
    let done = command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success());
    if !done {
        eprintln!("skipped: this user cannot {what} here");
    }
    done
}

/// Runs a test again in a new process with a small private file system, if this user may mount one. In the new process
/// returns the folder of that file system; in the first process returns `None`.
fn on_a_small_disk(test: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return Some(folder.into());
    }
    let home = kit::home();
    let mount = "mount -t tmpfs -o size=512k,mode=700 tmpfs \"$0\"";
    let own = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script]).arg(home.path());
        command
    };
    if can("mount a file system for itself", &mut own(mount)) {
        let mut again = own(&format!("{mount} && exec \"$@\""));
        again.arg(std::env::current_exe().unwrap()).args([
            "--exact",
            &format!("faults::{test}"),
            "--nocapture",
            "--test-threads=1",
        ]);
        let output = again.env(FOLDER, home.path()).stdin(Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
    None
}

/// Fills the file system with a file; returns its path.
fn fill_up(folder: &Path) -> PathBuf {
    let ballast = folder.join("ballast");
    let mut file = fs::File::create(&ballast).unwrap();
    while file.write(&[0; 1024]).is_ok_and(|written| written > 0) {}
    ballast
}

/// Fills the disk of a session until a change is refused; returns the file that fills it and the acknowledged hints.
fn full(session: &Session, folder: &Path) -> (PathBuf, Acknowledged) {
    let mut acknowledged = Acknowledged::new();
    for (number, agent) in session.agents.iter().enumerate() {
        assert_eq!(try_set(agent, &format!("before{number}"), "x", &mut acknowledged), None);
    }
    let ballast = fill_up(folder);
    // The last page of the log still has room for a few changes.
    let proxy = &session.agents[1];
    let refused = (0..200).find_map(|number| {
        let key = format!("filling{number}");
        try_set(proxy, &key, &"y".repeat(200), &mut acknowledged)
    });
    let said = refused.expect("the disk is full");
    assert!(said.contains("session.db"), "{said}");
    (ballast, acknowledged)
}

/// Promise (session): A session with a full disk refuses changes and still answers reads. When there is space again,
/// it needs no restart.
#[test]
fn a_full_disk_refuses_changes_until_there_is_space_and_loses_nothing() {
    let Some(folder) = on_a_small_disk("a_full_disk_refuses_changes_until_there_is_space_and_loses_nothing") else {
        return;
    };
    let mut session = Session::at(&folder.join("run"), &[]);
    session.fill(2);
    for round in 0..2 {
        let (ballast, mut acknowledged) = full(&session, &folder);
        let large = "z".repeat(5000);
        for agent in &session.agents {
            assert!(try_set(agent, "refused", &large, &mut acknowledged).is_some());
        }
        let answer = session.raw().attempt("nudge.set_hint", &set("refused", &large), None).unwrap();
        sentence(&answer["error"]);
        let output = session.nudge(&["set", "c", "refused", &large]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        kit::system::sentence(&output);
        for agent in &session.agents {
            assert_eq!(all(agent), acknowledged, "reads are served, and what is refused is not there");
        }
        fs::remove_file(ballast).unwrap();
        // The session accepts changes again, without a restart.
        for agent in &session.agents {
            assert_eq!(try_set(agent, "after", &format!("{round}"), &mut acknowledged), None);
            acknowledged.retain(|(key, value)| key != "after" || *value == format!("{round}"));
        }
        session.kill_primary();
        session.agents.retain(|agent| agent.is_running());
        session.join();
        for agent in &session.agents {
            assert_eq!(all(agent), acknowledged);
        }
        for (key, _) in acknowledged {
            session.agents[0].result("nudge_delete_hint", &get(&key));
        }
    }
    session.end();
}

#[test]
fn a_primary_that_dies_on_a_full_disk_is_followed_once_there_is_space() {
    let Some(folder) = on_a_small_disk("a_primary_that_dies_on_a_full_disk_is_followed_once_there_is_space") else {
        return;
    };
    let mut session = Session::at(&folder.join("run"), &[]);
    session.fill(2);
    let (ballast, mut acknowledged) = full(&session, &folder);
    let first = session.primary(|_| true).pid;
    session.agent(first).kill();
    fill_up(&folder.join("run"));
    std::thread::sleep(Duration::from_secs(1));
    assert!(session.agents[1].is_running() && session.agents[2].is_running());
    fs::remove_file(ballast).unwrap();
    fs::remove_file(folder.join("run").join("ballast")).unwrap();
    session.next_primary(first);
    assert_eq!(all(&session.agents[1]), acknowledged);
    set_until_taken(&session.agents[2], "after", &mut acknowledged);
    session.kill_primary();
    assert_eq!(all(survivor(&session)), acknowledged);
    session.end();
}

/// Sets a limit of a running process, such as `--fsize=65536:`. Returns false if this user may not.
fn limit(agent: &Agent, limit: &str) -> bool {
    let pid = agent.pid.to_string();
    can("limit a running process", Command::new("prlimit").args(["--pid", &pid, limit]))
}

/// Limits the file descriptors of a process to `most`: [`NONE`] allows no new one, [`ENOUGH`] allows as many as at the
/// start. Returns false if this user may not.
fn allow_descriptors(agent: &Agent, most: &str) -> bool {
    limit(agent, &format!("--nofile={most}:"))
}

const NONE: &str = "3";
const ENOUGH: &str = "1024";

#[test]
fn a_primary_without_descriptors_recovers_and_loses_nothing() {
    let session = Session::start(2);
    let mut acknowledged = Acknowledged::new();
    let mut kept = session.raw();
    for (number, agent) in session.agents.iter().enumerate() {
        assert_eq!(try_set(agent, &format!("before{number}"), "x", &mut acknowledged), None);
    }
    kept.result("nudge.status", &json!({}));
    if !allow_descriptors(&session.agents[0], NONE) {
        return;
    }
    for (number, agent) in session.agents.iter().enumerate() {
        // The server may acknowledge or refuse the change.
        try_set(agent, &format!("meanwhile{number}"), "x", &mut acknowledged);
    }
    let found = kept.attempt("nudge.get_hint", &get("before0"), None).expect("a connection that was there");
    assert_eq!(found["result"]["hint"]["value"], "x", "reads are served");
    let mut late = session.raw();
    late.patience = Duration::from_millis(500);
    for _ in 0..5 {
        // A new connection cannot succeed. The attempt must do no harm.
        let _ = late.attempt("nudge.status", &json!({}), None);
    }
    assert!(session.agents.iter().all(|agent| agent.is_running()));
    assert!(allow_descriptors(&session.agents[0], ENOUGH));
    assert_eq!(session.raw().result("nudge.status", &json!({}))["pid"], session.agents[0].pid);
    set_until_taken(&session.agents[1], "after", &mut acknowledged);
    session.kill_primary();
    let found = all(&session.agents[1]);
    assert!(found.is_superset(&acknowledged), "{:?} are lost", acknowledged.difference(&found));
    session.end();
}

#[test]
fn a_proxy_without_descriptors_is_primary_once_it_has_some_again() {
    let session = Session::start(1);
    let mut acknowledged = Acknowledged::new();
    for number in 0..5 {
        assert_eq!(try_set(&session.agents[1], &format!("before{number}"), "x", &mut acknowledged), None);
    }
    if !allow_descriptors(&session.agents[1], NONE) {
        return;
    }
    session.agents[0].kill();
    let pending = session.agents[1].begin_tool("nudge_set_hint", &set("meanwhile", "x")).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(session.agents[1].is_running());
    assert!(allow_descriptors(&session.agents[1], ENOUGH));
    // The server may acknowledge or refuse the call.
    if pending.tool(LONG).map_err(|why| assert_eq!(why.reason(), "E_UNAVAILABLE")).is_ok() {
        acknowledged.insert(("meanwhile".into(), "x".into()));
    }
    session.next_primary(session.agents[0].pid);
    let found = all(&session.agents[1]);
    assert!(found.is_superset(&acknowledged), "{:?} are lost", acknowledged.difference(&found));
    set_until_taken(&session.agents[1], "after", &mut acknowledged);
    session.end();
}

#[test]
fn a_proxy_without_descriptors_leaves_it_to_another_to_be_primary() {
    let session = Session::start(2);
    let mut acknowledged = Acknowledged::new();
    assert_eq!(try_set(&session.agents[1], "before", "x", &mut acknowledged), None);
    if !allow_descriptors(&session.agents[1], NONE) {
        return;
    }
    assert_eq!(session.kill_primary().pid, session.agents[2].pid);
    set_until_taken(&session.agents[2], "after", &mut acknowledged);
    assert_eq!(all(&session.agents[2]), acknowledged);
    assert!(allow_descriptors(&session.agents[1], ENOUGH));
    wait_for("it to serve again", LONG, || {
        let found = session.agents[1].tool("nudge_get_hint", &get("after"), LONG);
        found.is_ok().then_some(())
    });
    session.end();
}

#[test]
fn a_limit_of_file_size_refuses_changes_and_ends_nothing() {
    let session = Session::start(1);
    let mut acknowledged = Acknowledged::new();
    if !limit(&session.agents[0], "--fsize=65536:") {
        return;
    }
    let text = "y".repeat(5_000);
    let refused =
        (0..200).find_map(|number| try_set(&session.agents[1], &format!("filling{number}"), &text, &mut acknowledged));
    assert!(refused.is_some(), "the log is at its limit");
    assert!(session.agents[0].is_running());
    assert_eq!(all(&session.agents[0]), acknowledged, "reads are served");
    assert!(limit(&session.agents[0], "--fsize=unlimited:"));
    set_until_taken(&session.agents[1], "after", &mut acknowledged);
    session.kill_primary();
    assert_eq!(all(&session.agents[1]), acknowledged);
    session.end();
}

/// Returns a command that runs `nudge serve` within limits, such as `--nofile=32:32`.
fn serve_within(runtime: &Path, limits: &[&str]) -> Command {
    let serve = kit::command(runtime);
    let mut command = Command::new("prlimit");
    command.args(limits).arg(serve.get_program()).args(serve.get_args());
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn too_few_descriptors_are_raised_or_refused_in_a_sentence() {
    let home = kit::home();
    let runtime = home.path().join("run");
    if !can("limit a process", Command::new("prlimit").args(["--nofile=256:256", "true"])) {
        return;
    }
    let refused = serve_within(&runtime, &["--nofile=32:32"]).output().unwrap();
    let said = kit::system::sentence(&refused);
    assert!(said.contains("64 open files") && said.contains("ulimit -n"), "{said}");
    let agent = Agent::spawn(serve_within(&runtime, &["--nofile=32:256"]));
    agent.result("nudge_set_hint", &set("key", "x"));
    let status = kit::system::nudge(&runtime, &["status"]).output().unwrap();
    assert!(status.status.success(), "others are answered, too: {status:?}");
}

/// A user id that only these tests use: the limit of threads counts all processes of a user.
const LIMITED_USER: u32 = 54_322;

#[test]
fn no_limit_of_threads_aborts_a_server_that_begins_to_follow_a_brain() {
    use std::os::unix::process::ExitStatusExt as _;

    let Some((home, binary)) = kit::system::stage() else { return };
    let place = home.path().join("place");
    fs::create_dir_all(place.join("brain")).unwrap();
    fs::write(place.join("brain/a.md"), "# Alpha\n\nClients wait a random time.\n").unwrap();
    for folder in [place.clone(), place.join("brain"), place.join("brain/a.md")] {
        std::os::unix::fs::chown(folder, Some(LIMITED_USER), Some(LIMITED_USER)).unwrap();
    }
    let call =
        |id: u32, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let ask = json!({"name": "nudge_brain_context", "arguments": {"task_description": "clients wait"}});
    let lines = [
        call(1, "initialize", hello),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        call(2, "tools/call", ask.clone()),
        call(3, "tools/call", ask),
    ];
    let input = lines.map(|line| line.to_string()).join("\n") + "\n";
    let mut answered = 0;
    for threads in (4..=28).step_by(3) {
        let mut command = Command::new("setpriv");
        let user = [format!("--reuid={LIMITED_USER}"), format!("--regid={LIMITED_USER}"), "--clear-groups".into()];
        command.args(user).args(["prlimit", &format!("--nproc={threads}:{threads}")]).arg(&binary).arg("serve");
        command.env_clear().env("HOME", &place).env("NUDGE_RUNTIME_DIR", place.join(format!("run{threads}")));
        command.env("NUDGE_BRAIN_ROOT", place.join("brain")).current_dir(&place);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Ignores a failed write: a server that refuses to start has already closed its stdin.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let ended = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.signal(), None, "{threads} threads: {stderr}");
        assert!(!stderr.contains("panicked"), "{threads} threads: {stderr}");
        assert!(ended.status.success() || stderr.contains("16 threads at least"), "{threads} threads: {stderr}");
        answered += usize::from(String::from_utf8_lossy(&ended.stdout).contains("random time"));
    }
    assert!(answered > 0, "with 28 threads it answers");
}

#[test]
fn a_user_without_a_home_is_told_and_nothing_is_kept_where_the_system_clears() {
    let Some((home, binary)) = kit::system::stage() else { return };
    let place = home.path().join("place");
    fs::create_dir(&place).unwrap();
    std::os::unix::fs::chown(&place, Some(LIMITED_USER), Some(LIMITED_USER)).unwrap();
    // A relative HOME would be another folder for each process.
    for variable in [None, Some(("HOME", "not/absolute"))] {
        let run = |args: &[&str]| {
            let mut command = Command::new("setpriv");
            command.args([&format!("--reuid={LIMITED_USER}"), &format!("--regid={LIMITED_USER}"), "--clear-groups"]);
            command.arg(&binary).args(args).current_dir(&place).env_clear();
            command.env("NUDGE_RUNTIME_DIR", place.join("run")).env("TMPDIR", &place).stdin(Stdio::null());
            command.envs(variable);
            command.output().unwrap()
        };
        let record = ["--kind", "issue", "--title", "Login loops", "--body", "Lax keeps it.", "--project", "a/b"];
        let said = kit::system::sentence(&run(&[&["records", "add", "--create-project"][..], &record].concat()));
        let advice = "no home folder; set HOME, or NUDGE_DATA_DIR";
        assert!(said.contains(advice), "{said}");
        // A session that should keep hints runs, and says with each hint that it keeps none.
        for (args, expected) in [
            (&["serve", "--detach", "--port", "0", "--keep"][..], "serving http://"),
            (&["set", "a", "k", "x", "--ttl", "P1D"], advice),
            (&["status"], advice),
            (&["stop"], advice),
        ] {
            let output = run(args);
            let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.contains(expected), "{args:?}: {said}");
        }
        let left: Vec<_> = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name == "run"), "{left:?}");
    }
}

/// Puts something in the place of the database; `victim` is the renamed database.
type Plant = fn(place: &Path, victim: &Path);

const PLANTS: [(&str, Plant); 6] = [
    ("nothing", |_, _| {}),
    ("garbage", |place, _| {
        let mut rng = Rng::new(1);
        let garbage: Vec<_> = (0..5000).flat_map(|_| rng.next().to_le_bytes()).collect();
        fs::write(place, garbage).unwrap();
    }),
    ("an empty file", |place, _| fs::write(place, "").unwrap()),
    ("a directory", |place, _| fs::create_dir(place).unwrap()),
    ("a pipe", |place, _| assert!(Command::new("mkfifo").arg(place).status().unwrap().success())),
    ("a link", |place, victim| symlink(victim, place).unwrap()),
];

fn plant(session: &Session, plant: Plant) -> (PathBuf, Vec<u8>) {
    let (place, victim) = (database(session), session.runtime.join("victim"));
    fs::rename(&place, &victim).unwrap();
    fs::remove_file(log(session)).unwrap();
    let before = fs::read(&victim).unwrap();
    plant(&place, &victim);
    (victim, before)
}

/// If a directory is in the place of the database, asserts that changes are refused, and removes it. A server replaces
/// anything else itself.
fn refused_until_it_is_gone(session: &Session, acknowledged: &mut Acknowledged) {
    if database(session).is_dir() {
        for _ in 0..2 {
            let said = try_set(survivor(session), "refused", "x", acknowledged).expect("a refusal");
            assert!(said.contains("directory"), "{said}");
        }
        fs::remove_dir(database(session)).unwrap();
    }
}

#[test]
fn whatever_takes_the_place_of_the_rows_loses_nothing_that_a_living_primary_knows() {
    for (what, planted) in PLANTS {
        let session = Session::start(1);
        let mut acknowledged = Acknowledged::new();
        for number in 0..5 {
            assert_eq!(try_set(&session.agents[1], &format!("before{number}"), "x", &mut acknowledged), None);
        }
        let (victim, before) = plant(&session, planted);
        assert_eq!(all(&session.agents[1]), acknowledged, "{what}: reads are served");
        refused_until_it_is_gone(&session, &mut acknowledged);
        set_until_taken(&session.agents[1], "after", &mut acknowledged);
        assert_eq!(fs::read(&victim).unwrap(), before, "{what}: what was there is untouched");
        session.kill_primary();
        assert_eq!(all(&session.agents[1]), acknowledged, "{what}");
        fs::remove_file(victim).unwrap();
        session.end();
    }
}

#[test]
fn rows_that_are_shortened_are_written_anew_by_a_living_primary() {
    for (file, left) in [(database as fn(&Session) -> PathBuf, 0), (database, 100), (log, 0), (log, 10), (log, 5000)] {
        let session = Session::start(1);
        let mut acknowledged = Acknowledged::new();
        for number in 0..5 {
            assert_eq!(try_set(&session.agents[1], &format!("before{number}"), "x", &mut acknowledged), None);
        }
        fs::OpenOptions::new().write(true).open(file(&session)).unwrap().set_len(left).unwrap();
        set_until_taken(&session.agents[1], "after", &mut acknowledged);
        session.kill_primary();
        assert_eq!(all(&session.agents[1]), acknowledged, "{left} bytes left");
        session.end();
    }
}

#[test]
fn whatever_the_next_primary_finds_it_serves_and_keeps_what_is_acknowledged_then() {
    for (what, planted) in PLANTS {
        let session = Session::start(2);
        let mut acknowledged = Acknowledged::new();
        for number in 0..5 {
            assert_eq!(try_set(&session.agents[1], &format!("before{number}"), "x", &mut acknowledged), None);
        }
        let mut found = None;
        between(&session, || found = Some(plant(&session, planted)));
        let (victim, before) = found.unwrap();
        session.next_primary(session.agents[0].pid);
        acknowledged.clear();
        for agent in &session.agents[1..] {
            assert_eq!(all(agent), acknowledged, "{what} is not believed");
        }
        refused_until_it_is_gone(&session, &mut acknowledged);
        set_until_taken(&session.agents[2], "after", &mut acknowledged);
        session.kill_primary();
        assert_eq!(all(survivor(&session)), acknowledged, "{what}");
        assert_eq!(fs::read(&victim).unwrap(), before, "{what}: what was there is untouched");
        fs::remove_file(victim).unwrap();
        session.end();
    }
}

/// Returns the length to which the test cuts the log. The argument has the log's length after each change.
type Cut = fn(&[u64]) -> u64;

const CUTS: [Cut; 20] = [
    |_| 0,
    |_| 1,
    |_| 15,
    |_| 16,
    |_| 17,
    |ends| ends[0] - 1,
    |ends| ends[0],
    |ends| ends[0] + 1,
    |ends| ends[4] - 9,
    |ends| ends[4] - 2,
    |ends| ends[4] - 1,
    |ends| ends[4],
    |ends| ends[4] + 1,
    |ends| ends[4] + 4,
    |ends| ends[4] + 7,
    |ends| ends[4] + 8,
    |ends| ends[4] + 9,
    |ends| ends[7].midpoint(ends[8]),
    |ends| ends[9] - 1,
    |ends| ends[9],
];

#[test]
fn a_log_that_is_cut_anywhere_gives_back_all_that_is_whole_before() {
    for (number, cut) in CUTS.iter().enumerate() {
        let session = Session::start(1);
        let (mut sets, mut ends) = (Vec::new(), Vec::new());
        for number in 0..10 {
            let (key, value) = (format!("k{number}"), format!("value {number}"));
            session.agents[number % 2].result("nudge_set_hint", &set(&key, &value));
            sets.push((key, value));
            ends.push(fs::metadata(log(&session)).unwrap().len());
        }
        assert!(ends.is_sorted_by(|first, next| first < next), "each change is written at once: {ends:?}");
        let bytes = cut(&ends);
        between(&session, || {
            fs::OpenOptions::new().write(true).open(log(&session)).unwrap().set_len(bytes).unwrap();
        });
        let second = session.next_primary(session.agents[0].pid);
        let mut expected: Vec<_> =
            sets.into_iter().zip(&ends).filter(|(_, end)| **end <= bytes).map(|(set, _)| set).collect();
        assert_eq!(shown(&session.agents[1]), expected, "cut {number} at {bytes} of {ends:?}");
        // The session continues with the changes before the cut.
        session.agents[1].result("nudge_set_hint", &set("next", "x"));
        expected.push(("next".into(), "x".into()));
        let heir = Agent::spawn(session.command());
        session.agent(second.pid).signal(Signal::KILL);
        wait_for("the next PRIMARY", LONG, || session.dir().read_server_file().filter(|file| file.pid == heir.pid));
        assert_eq!(shown(&heir), expected, "cut {number} at {bytes} of {ends:?}");
        assert!(session.nudge(&["stop"]).status.success());
        assert!(heir.ended(LONG).success());
    }
}
