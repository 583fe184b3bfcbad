//! Tests reach (semantics section 12): a hint that is stored without a scope inside a repository applies only in that
//! repository.
#![cfg(unix)]

use crate::kit;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kit::{Serve, command, home};
use serde_json::{Value, json};

struct Place {
    home: tempfile::TempDir,
    _serve: Serve,
}

impl Place {
    fn new() -> Self {
        let home = home();
        let runtime = home.path().join("run");
        let serve = Serve::spawn(with_reach(command(&runtime)), &runtime);
        Self { home, _serve: serve }
    }

    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.home.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Makes a repository with or without a remote.
    fn repo(&self, name: &str, remote: Option<&str>) -> PathBuf {
        let folder = self.folder(name);
        git(&folder, &["init", "--quiet", "--initial-branch", "dev"]);
        git(&folder, &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--allow-empty", "-m", "x"]);
        if let Some(url) = remote {
            git(&folder, &["remote", "add", "origin", url]);
        }
        folder
    }

    fn run(&self, cwd: &Path, env: &[(&str, &str)], words: &[&str]) -> Output {
        let mut nudge = with_reach(kit::command(&self.home.path().join("run")));
        // The kit's command is `nudge serve`. Copies its environment to another command.
        let mut told = Command::new(nudge.get_program());
        for (name, value) in nudge.get_envs() {
            match value {
                Some(value) => told.env(name, value),
                None => told.env_remove(name),
            };
        }
        nudge = told;
        nudge.args(words).current_dir(cwd).env("PWD", cwd).envs(env.iter().copied()).output().unwrap()
    }

    fn json(&self, cwd: &Path, words: &[&str]) -> Value {
        let out = self.run(cwd, &[], &[&["--json"], words].concat());
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    }

    fn value(&self, cwd: &Path, component: &str, key: &str) -> Option<String> {
        let out = self.run(cwd, &[], &["get", component, key, "--value"]);
        out.status.success().then(|| String::from_utf8(out.stdout).unwrap().trim_end().to_owned())
    }
}

fn with_reach(mut command: Command) -> Command {
    command.env_remove("NUDGE_DEFAULT_REACH");
    command
}

fn git(folder: &Path, words: &[&str]) {
    let done = Command::new("git").args(words).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Promise (hints): A hint stored without a scope stays in its repository.
#[test]
fn two_repositories_with_the_same_key_do_not_meet() {
    let place = Place::new();
    let (shop, bank) = (place.repo("shop", Some("git@host.example:Org/shop.git")), place.repo("bank", None));
    let stored = place.json(&shop, &["set", "api", "test", "npm test"]);
    assert_eq!(stored["hint"]["meta"]["scope"], json!({"repo": ["host.example/org/shop"]}));
    assert!(stored["reach"].as_str().unwrap().contains("host.example/org/shop"), "{stored}");
    assert!(stored["reach"].as_str().unwrap().contains("--everywhere"), "{stored}");
    let stored = place.json(&bank, &["set", "api", "test", "cargo test"]);
    assert_eq!(stored["hint"]["version"], 1, "nothing is overwritten");
    assert_eq!(stored["hint"]["meta"]["scope"], json!({"repo": [format!("file://{}", bank.display())]}));
    assert_eq!(place.value(&shop, "api", "test").as_deref(), Some("npm test"));
    assert_eq!(place.value(&bank, "api", "test").as_deref(), Some("cargo test"));
    assert_eq!(place.value(&place.folder("none"), "api", "test"), None);

    // The hint also applies in a folder of the repository and in a linked worktree.
    let below = shop.join("web");
    std::fs::create_dir(&below).unwrap();
    assert_eq!(place.value(&below, "api", "test").as_deref(), Some("npm test"));
    let linked = place.home.path().canonicalize().unwrap().join("linked");
    git(&bank, &["worktree", "add", "--quiet", linked.to_str().unwrap()]);
    assert_eq!(place.value(&linked, "api", "test").as_deref(), Some("cargo test"));
    let stored = place.json(&linked, &["set", "api", "test", "cargo test --locked"]);
    assert_eq!((&stored["hint"]["version"], &stored["variants"]), (&json!(2), &json!(2)));
    assert_eq!(place.value(&bank, "api", "test").as_deref(), Some("cargo test --locked"));
}

#[test]
fn what_people_are_told() {
    let place = Place::new();
    let shop = place.repo("shop", Some("https://host.example/org/shop"));
    let out = place.run(&shop, &[], &["set", "api", "build", "make"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("scope=repo") && text.contains("it applies in host.example/org/shop alone"), "{text}");
    let out = place.run(&shop, &[], &["set", "api", "build", "make", "--everywhere"]);
    assert!(!String::from_utf8(out.stdout).unwrap().contains("alone"));
}

#[test]
fn a_scope_that_is_given_is_taken_as_it_is() {
    let place = Place::new();
    let (shop, none) = (place.repo("shop", Some("https://host.example/org/shop")), place.folder("none"));
    let scope = |cwd: &Path, words: &[&str]| {
        let stored = place.json(cwd, &[&["set", "a", words[0], "x"], &words[1..]].concat());
        assert_eq!(stored.get("reach"), None, "{stored}");
        stored["hint"]["meta"].get("scope").cloned().unwrap_or_default()
    };
    assert_eq!(scope(&shop, &["k1", "--everywhere"]), Value::Null);
    assert_eq!(scope(&shop, &["k2", "--scope-os", "linux"]), json!({"os": ["linux"]}));
    assert_eq!(scope(&shop, &["k3", "--scope-repo", "org/other"]), json!({"repo": ["org/other"]}));
    assert_eq!(scope(&shop, &["k4", "--scope-repo", "."]), json!({"repo": ["host.example/org/shop"]}));
    let glob = format!("{}/**", shop.display());
    assert_eq!(scope(&shop, &["k5", "--here"]), json!({"cwd_glob": [glob], "repo": ["host.example/org/shop"]}));
    assert_eq!(scope(&none, &["k6"]), Value::Null);
    // The empty variant is the hint without a scope. So this call changes that hint and adds no scope.
    assert_eq!(scope(&shop, &["k6", "--variant", ""]), Value::Null);
    let odd = place.folder("a[b]{c}*");
    assert_eq!(scope(&odd, &["k7", "--here"])["cwd_glob"].as_array().unwrap().len(), 1);
    assert_eq!(place.value(&odd, "a", "k7").as_deref(), Some("x"));
    assert_eq!(place.value(&place.folder("ab"), "a", "k7"), None);

    let outside = place.run(&none, &[], &["set", "a", "k", "x", "--scope-repo", "."]);
    assert_eq!(outside.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&outside.stderr).contains("in no repository"));
    for words in [["--everywhere", "--here"], ["--everywhere", "--scope-os=linux"], ["--here", "--variant="]] {
        let wrong = place.run(&shop, &[], &[&["set", "a", "k", "x"], &words[..]].concat());
        assert_eq!(wrong.status.code(), Some(2), "{words:?}");
    }
    let env = [("NUDGE_DEFAULT_REACH", "everywhere")];
    let stored = place.run(&shop, &env, &["--json", "set", "a", "k8", "x"]);
    let stored: Value = serde_json::from_slice(&stored.stdout).unwrap();
    assert_eq!((stored["hint"]["meta"].get("scope"), stored.get("reach")), (None, None));
}

#[test]
fn an_agents_hints_are_for_its_repository_and_plain_http_adds_nothing() {
    let home = home();
    let runtime = home.path().join("run");
    let folder = home.path().canonicalize().unwrap().join("shop");
    std::fs::create_dir(&folder).unwrap();
    git(&folder, &["init", "--quiet"]);
    git(&folder, &["remote", "add", "origin", "https://host.example/org/shop"]);
    let mut serve = with_reach(command(&runtime));
    serve.current_dir(&folder).env("PWD", &folder).env_remove("CLAUDE_PROJECT_DIR");
    let mut serve = Serve::spawn(serve, &runtime);
    let hello = serve.initialize(kit::mcp::LEGACY);
    let instructions = hello["result"]["instructions"].as_str().unwrap();
    assert!(instructions.contains("for this repository") && instructions.contains("keeping is off"), "{instructions}");
    let mut stored = |key: &str, more: Value| {
        let mut arguments = json!({"component": "api", "key": key, "value": "x"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = serve.tool("nudge_set_hint", &arguments);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let stored = &answer["result"]["structuredContent"];
        (stored["hint"]["meta"].get("scope").cloned(), stored["reach"].as_str().map(str::to_owned))
    };
    let repo = Some(json!({"repo": ["host.example/org/shop"]}));
    for (key, more) in
        [("k1", json!({})), ("k2", json!({"meta": {"ttl": "session"}})), ("k3", json!({"meta": {"scope": {}}}))]
    {
        let (scope, reach) = stored(key, more);
        assert_eq!(scope, repo, "{key}");
        assert!(reach.unwrap().contains("`reach: everywhere`"));
    }
    assert_eq!(stored("k4", json!({"reach": "everywhere"})), (None, None));
    assert_eq!(stored("k4", json!({"variant": ""})), (None, None));
    let linux = json!({"os": ["linux"]});
    assert_eq!(stored("k5", json!({"meta": {"scope": {"os": "linux"}}})), (Some(linux), None));
    for wrong in [
        json!({"component": "a", "key": "k", "value": "x", "reach": "repo"}),
        json!({"component": "a", "key": "k", "value": "x", "reach": "everywhere", "meta": {"scope": {"os": "linux"}}}),
        json!({"component": "a", "key": "k", "value": "x", "reach": "everywhere", "variant": ""}),
    ] {
        assert_eq!(serve.tool("nudge_set_hint", &wrong)["result"]["isError"], true, "{wrong}");
    }
    let plain = serve.call("nudge.set_hint", &json!({"component": "h", "key": "k", "value": "x"}));
    assert_eq!(plain["result"]["hint"]["meta"].get("scope"), None, "{plain}");
    let plain =
        serve.call("nudge.set_hint", &json!({"component": "h", "key": "k", "value": "x", "reach": "everywhere"}));
    assert_eq!(plain["result"]["hint"]["version"], 2);
}
