//! Tests the brain by the command line: making a brain, naming an existing one, and asking it. Also tests the rules of
//! its specification for finding notes.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kit::system::{nudge, sentence};
use kit::{PATIENCE, Serve, command, home, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A user with settings.
struct User {
    home: TempDir,
    runtime: PathBuf,
}

impl User {
    fn new() -> Self {
        let home = home();
        let runtime = home.path().join("run");
        Self { home, runtime }
    }

    fn place<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let path_of = |name: &str| self.home.path().join(name);
        command
            .env("HOME", path_of(""))
            .env("XDG_CONFIG_HOME", path_of("config"))
            .env("NUDGE_CACHE_DIR", path_of("caches"));
        command.env("NUDGE_DATA_DIR", path_of("data")).env_remove("CLAUDE_PROJECT_DIR");
        command.current_dir(self.home.path()).env("PWD", self.home.path())
    }

    fn nudge(&self, args: &[&str]) -> Output {
        self.place(&mut nudge(&self.runtime, args)).output().unwrap()
    }

    /// Runs a command; returns its stdout and its stderr.
    #[track_caller]
    fn told(&self, args: &[&str]) -> (String, String) {
        let output = self.nudge(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.told(&[args, &["--json"]].concat()).0).unwrap()
    }

    fn serve(&self) -> Serve {
        let mut serve = command(&self.runtime);
        serve.args(["--port", "0"]);
        self.place(&mut serve);
        Serve::spawn(serve, &self.runtime)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn settings(&self) -> PathBuf {
        self.home.path().join("config/nudge/config.toml")
    }
}

#[test]
fn a_brain_is_made_named_and_asked_and_each_step_says_the_next() {
    let user = User::new();
    user.write("config/nudge/config.toml", "# mine\nport = 0\n");
    let root = user.home.path().canonicalize().unwrap().join("my notes");
    let root = root.to_str().unwrap();
    let refused = sentence(&user.nudge(&["ask", "retries"]));
    assert!(refused.contains("`nudge brain init DIR`") && refused.contains("`nudge brain use DIR`"), "{refused}");

    let (made, next) = user.told(&["brain", "init", "my notes", "--git"]);
    assert_eq!(made, format!("✔ made .git and brain.yaml and domains in {root}\n"));
    assert!(next.contains(&format!("`nudge brain use '{root}'`")), "{next}");
    assert!(Path::new(root).join(".git/HEAD").is_file());
    let again = user.told(&["brain", "init", "my notes", "--git"]).0;
    assert_eq!(again, format!("✔ {root} is a brain already, of 0 units\n"));

    let (named, beside) = user.told(&["brain", "use", "my notes"]);
    assert_eq!(
        (named.as_str(), beside.as_str()),
        (&*format!("✔ {root} is your brain now, of 0 units; `nudge brain add TITLE BODY` writes the first\n"), "")
    );
    let settings = fs::read_to_string(user.settings()).unwrap();
    assert_eq!(settings, format!("# mine\nport = 0\n\n[brain]\nroot = {}\n", json!(root)));
    assert!(!user.told(&["brain", "init", "my notes"]).1.contains("brain use"), "it is named already");

    user.told(&["brain", "add", "Retry with jitter", "Clients must not retry together.", "--domain", "coding"]);
    let (found, _) = user.told(&["ask", "how", "do", "clients", "retry?"]);
    let lines: Vec<_> = found.lines().collect();
    assert_eq!(lines[0], "Retry with jitter  (coding)");
    assert!(lines[1].starts_with("  domains/coding/retry-with-jitter.md:"), "{found}");
    assert_eq!(lines[2], "  > Clients must not retry together.");
    for same in [&["brain", "ask", "clients retry"][..], &["brain", "context", "clients retry"]] {
        assert_eq!(user.json(same), user.json(&["ask", "clients", "retry"]), "{same:?}");
    }
    let (nothing, next) = user.told(&["ask", "zebra"]);
    assert!(nothing == "nothing found\n" && next.contains("`nudge brain list`"), "{next}");
}

#[test]
fn what_keeps_a_name_from_counting_is_told() {
    let user = User::new();
    user.write("a/x.md", "# A\n");
    user.write("b/x.md", "# B\n");
    user.told(&["brain", "use", "a"]);
    let session = user.serve();
    let (named, beside) = user.told(&["brain", "use", "b"]);
    assert!(named.contains("of 1 unit; `nudge ask WORDS` asks it"), "{named}");
    assert!(beside.contains("`nudge stop`") && beside.lines().count() == 1, "{beside}");
    assert!(user.json(&["brain", "status"])["root"].as_str().unwrap().ends_with("/a"), "{beside}");
    user.told(&["stop"]);
    drop(session);
    assert!(user.json(&["brain", "status"])["root"].as_str().unwrap().ends_with("/b"));
    let mut set = nudge(&user.runtime, &["brain", "use", "a"]);
    let output = user.place(&mut set).env("NUDGE_BRAIN_ROOT", "/elsewhere").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("NUDGE_BRAIN_ROOT is set here and counts more"));

    let before = fs::read(user.settings()).unwrap();
    for (dir, told) in [("nowhere", "There is no folder "), ("a/x.md", "is no folder that can be opened")] {
        let refused = sentence(&user.nudge(&["brain", "use", dir]));
        assert!(refused.contains(told), "{refused}");
    }
    assert_eq!(fs::read(user.settings()).unwrap(), before, "what is refused changes nothing");
    fs::write(user.settings(), "port = [").unwrap();
    assert!(sentence(&user.nudge(&["brain", "use", "a"])).contains("is broken at line 1"));
    assert_eq!(fs::read_to_string(user.settings()).unwrap(), "port = [");
}

/// Writes three domains of eight files each, as the specification requires. A few files have relations.
fn specified(user: &User) {
    let notes = [
        (
            "coding",
            "cache-invalidation",
            "Cache invalidation",
            "Name the key after what the entry depends on.",
            "related: [{id: coding/ttl, type: uses}]",
        ),
        (
            "coding",
            "ttl",
            "Times to live",
            "An entry lives for a minute.",
            "related: [{id: coding/clock, type: requires_understanding_of}]",
        ),
        ("coding", "clock", "Clocks", "Take a monotonic clock.", "related: [{id: coding/leap, type: informed_by}]"),
        ("coding", "leap", "Leap seconds", "Smear them over a day.", ""),
        (
            "coding",
            "retry",
            "Retry with jitter",
            "Wait a random time.",
            "related: [{id: coding/backoff, type: often_combined_with}]",
        ),
        ("coding", "backoff", "Exponential waiting", "Twice the last.", ""),
        ("coding", "locks", "Locks", "Hold none over a call.", ""),
        ("coding", "logs", "Logs", "One line an event.", ""),
        ("fashion", "linen", "Linen", "Linen creases; iron it damp.", ""),
        ("fashion", "wool", "Wool", "Wash it cold.", ""),
        ("fashion", "cache-of-buttons", "Spare buttons", "Keep a box of spare buttons.", ""),
        ("fashion", "denim", "Denim", "Turn it inside out.", ""),
        ("fashion", "silk", "Silk", "By hand alone.", ""),
        ("fashion", "felt", "Felt", "Brush it.", ""),
        ("fashion", "shoes", "Shoes", "Trees keep their form.", ""),
        ("fashion", "hats", "Hats", "Steam them.", ""),
        ("cooking", "stock", "Stock", "Never let it boil.", ""),
        ("cooking", "bread", "Bread", "Let it rise overnight.", "related: [{id: cooking/flour, type: uses}]"),
        ("cooking", "flour", "Flour", "Strong flour for bread.", ""),
        ("cooking", "rice", "Rice", "Rinse it first.", ""),
        ("cooking", "beans", "Beans", "Soak them.", ""),
        ("cooking", "eggs", "Eggs", "Seven minutes.", ""),
        ("cooking", "salt", "Salt", "Early and a little.", ""),
        ("cooking", "oil", "Oil", "Before the pan is hot.", ""),
    ];
    for (domain, name, title, body, more) in notes {
        let text = format!(
            "---\nid: {domain}/{name}\n{more}{}---\n# {title}\n\n{body}\n",
            if more.is_empty() { "" } else { "\n" }
        );
        user.write(&format!("brain/domains/{domain}/{name}.md"), &text);
    }
}

fn ids(units: &Value) -> Vec<&str> {
    units.as_array().unwrap().iter().map(|unit| unit["id"].as_str().unwrap()).collect()
}

#[test]
fn the_specification_of_the_read_path_holds() {
    let user = User::new();
    specified(&user);
    user.told(&["brain", "use", "brain"]);
    let status = user.json(&["brain", "status"]);
    assert_eq!(
        (&status["units"], &status["relations"], &status["problems"]),
        (&json!(24), &json!(5), &json!(0)),
        "{status}"
    );

    let answer = user.json(&["ask", "cache", "invalidation"]);
    assert_eq!(ids(&answer["units"])[0], "coding/cache-invalidation");
    assert!(ids(&answer["units"]).iter().all(|id| id.starts_with("coding/")), "{answer}");
    assert_eq!(ids(&answer["related"]), ["coding/ttl"]);
    let hops = |hops: &str| user.json(&["ask", "cache", "invalidation", "--limit", "20", "--hops", hops]);
    let reached = |answer: &Value| ids(&answer["related"]).iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(reached(&hops("1")), ["coding/ttl"]);
    assert_eq!(reached(&hops("3")), ["coding/ttl", "coding/clock", "coding/leap"]);

    // A removed file disappears with its relations.
    fs::remove_file(user.home.path().join("brain/domains/coding/ttl.md")).unwrap();
    assert_eq!(ids(&user.json(&["ask", "cache", "invalidation"])["related"]), Vec::<&str>::new());
    let status = user.json(&["brain", "status"]);
    assert_eq!((&status["units"], &status["relations"]), (&json!(23), &json!(3)), "{status}");
    let problems = user.json(&["brain", "check"])["problems"].clone();
    assert_eq!(problems.as_array().unwrap().len(), 1, "{problems}");

    // A deleted index is built again and gives the same answers.
    let ask = ["ask", "how", "long", "does", "bread", "rise", "--explain"];
    let before = user.json(&ask);
    fs::remove_dir_all(user.home.path().join("caches")).unwrap();
    assert_eq!(user.json(&ask), before);
    user.told(&["brain", "rebuild"]);
    assert_eq!(user.json(&ask), before);
}

#[test]
fn a_session_reads_what_changes_and_offers_the_tool() {
    let user = User::new();
    specified(&user);
    user.told(&["brain", "use", "brain"]);
    let mut session = user.serve();
    session.initialize(kit::mcp::LEGACY);
    let tools =
        session.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}))["result"]["tools"]
            .clone();
    assert!(tools.as_array().unwrap().iter().any(|tool| tool["name"] == "nudge_brain_context"), "{tools}");
    let units = |count: usize| {
        let status = || session.call("nudge.status", &json!({}))["result"]["brain"].clone();
        wait_for("the files", PATIENCE, || (status()["units"] == count).then_some(()));
    };
    units(24);
    user.write("brain/domains/new/zebra.md", "# Zebra\n\nStriped.\n");
    units(25);
    fs::remove_dir_all(user.home.path().join("brain/domains/cooking")).unwrap();
    units(17);
    // The index counts the folders only after the files.
    let follows = || session.call("nudge.brain.status", &json!({}))["result"]["follows"].clone();
    wait_for("the folders", PATIENCE, || (follows() == "as they change, in 5 folders").then_some(()));
    // Repeats the recall: on a busy machine a source may be late, and the answer then says so.
    let recall = || session.call("nudge.recall", &json!({"query": "zebra striped"}))["result"].clone();
    let in_time = || Some(recall()).filter(|answer| answer["late"].is_null());
    let recalled = wait_for("an answer in time", PATIENCE, in_time)["items"].clone();
    assert_eq!((&recalled[0]["source"], &recalled[0]["name"]), (&json!("brain"), &json!("note Zebra")), "{recalled}");
}

#[test]
fn where_the_user_wants_it_a_language_model_answers_from_what_was_found_and_cites_it() {
    let user = User::new();
    user.write("brain/coding/retry.md", "# Retry\n\nClients wait a random time before they retry.\n");
    user.told(&["brain", "use", "brain"]);
    let ask = |wanted: &str, words: &[&str], command: &str| {
        let mut ask = nudge(&user.runtime, &[&["ask"], words].concat());
        user.place(&mut ask).env("NUDGE_BRAIN_ANSWER", wanted).env("NUDGE_BRAIN_LLM", "command");
        let output = ask.env("NUDGE_BRAIN_LLM_COMMAND", command).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let says = |answer: &str, cites: &Value| {
        user.write("says.json", &json!({"answer": answer, "cites": cites}).to_string());
        format!("cat > {0}/sent; cat {0}/says.json", user.home.path().display())
    };
    let sent = user.home.path().join("sent");
    let words = ["how", "do", "clients", "retry"];

    let command = says("They wait a random time [coding/retry].", &json!(["coding/retry"]));
    let sections = ask("0", &words, &command);
    assert!(
        sections.0.contains("> Clients wait") && !sent.exists(),
        "nothing is sent unless it is wanted: {sections:?}"
    );
    let answered = "They wait a random time [coding/retry].\n\n[coding/retry] Retry  (coding/retry.md)\n";
    let (told, beside) = ask("1", &words, &command);
    assert_eq!((told.as_str(), beside.contains("do not rely")), (answered, false), "{beside}");
    let request: Value = serde_json::from_str(&fs::read_to_string(&sent).unwrap()).unwrap();
    let text = request["text"].as_str().unwrap();
    assert!(text.contains("how do clients retry") && text.contains("### [coding/retry] Retry"), "{text}");

    let (told, beside) = ask("1", &words, &says("Never [coding/never].", &json!(["coding/never"])));
    assert!(told.starts_with("Never") && beside.contains("cites what is no unit here"), "{told}{beside}");

    // The model's answer cannot be used. The result has the sections of the notes and the reason.
    let secret = ["gh", "p_", &"a1B2c3D4e5F6".repeat(3)].concat();
    fs::remove_file(&sent).unwrap();
    for (words, command, why) in [
        (&words[..], "exit 3", "ended with code 3"),
        (&words[..], "echo no", "answered no JSON"),
        (&words[..], &*says("", &json!([])), "They do not say it"),
        (&["clients", "retry", &*secret][..], "exit 3", "may hold a credential"),
    ] {
        let (told, beside) = ask("1", words, command);
        assert!(told.contains("> Clients wait") && beside.contains(why), "{command}: {told}{beside}");
    }
    let (nothing, _) = ask("1", &["zebra"], "exit 3");
    assert_eq!(nothing, "nothing found\n");
}
