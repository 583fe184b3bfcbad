//! Tests `nudge serve --profile` on a PRIMARY and on a PROXY. A profile replaces Nudge's own tools by the tools of a
//! specification that was written for another program. These tests use the six tools of the profile `dude`.
#![cfg(unix)]

use crate::kit;
mod nugget;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kit::mcp::{Client, Stdio};
use kit::pty::Pty;
use kit::{Serve, command, home, run_to_end, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

const TOOLS: [&str; 6] = ["search", "upsert_record", "get_record", "list_records", "delete_record", "list_projects"];
/// The time limit for loading a model in a build without optimisation.
const MODEL_PATIENCE: Duration = Duration::from_mins(3);

/// A user with a session and two checkouts.
struct User {
    home: TempDir,
    runtime: PathBuf,
}

/// The role of the server with the profile: PRIMARY, or PROXY of an ordinary server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Primary,
    Proxy,
}

/// The server with the profile. As a PROXY it also has an ordinary PRIMARY.
struct Served {
    profile: Serve,
    first: Option<Serve>,
}

impl Drop for Served {
    fn drop(&mut self) {
        // Kills the PROXY first. Otherwise it would become PRIMARY after the death of the ordinary server.
        let _ = self.profile.child.kill();
    }
}

impl User {
    fn new() -> Self {
        let home = home();
        let runtime = home.path().join("run");
        for name in ["shop", "blog"] {
            let git = home.path().join(name).join(".git");
            for sub in ["objects", "refs/heads"] {
                fs::create_dir_all(git.join(sub)).unwrap();
            }
            fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            let config = format!("[remote \"origin\"]\n\turl = git@github.com:acme/{name}.git\n");
            fs::write(git.join("config"), config).unwrap();
        }
        Self { home, runtime }
    }

    fn command(&self, project: &str, args: &[&str]) -> Command {
        let mut serve = command(&self.runtime);
        let folder = self.home.path().join(project);
        serve.args(["--port", "0"]).args(args).env("NUDGE_DATA_DIR", self.home.path().join("data"));
        serve.current_dir(&folder).env("PWD", &folder).env_remove("CLAUDE_PROJECT_DIR");
        serve
    }

    /// Starts a server with the profile `dude` for a client in a project.
    fn serve(&self, place: Place, project: &str, model: Option<&Path>) -> Served {
        self.serve_as("dude", place, project, model.map(|folder| ("NUDGE_MODEL_DIR", folder)))
    }

    /// Starts a server with this profile and one more environment variable.
    fn serve_as(&self, profile: &str, place: Place, project: &str, variable: Option<(&str, &Path)>) -> Served {
        let with_variable = |mut serve: Command| {
            serve.envs(variable);
            serve
        };
        let served = with_variable(self.command(project, &["--profile", profile]));
        if place == Place::Primary {
            return Served { profile: Serve::spawn(served, &self.runtime), first: None };
        }
        let first = Serve::spawn(with_variable(self.command("blog", &[])), &self.runtime);
        Served { profile: self.beside(served, &first), first: Some(first) }
    }

    fn beside(&self, mut serve: Command, first: &Serve) -> Serve {
        Serve::attach_to(serve.spawn().unwrap(), &self.runtime, first.file.clone())
    }
}

/// Calls a tool; returns its answer or its error. Asserts that the text and the structured content agree.
fn tool(client: &mut dyn Client, name: &str, arguments: &Value) -> Result<Value, Value> {
    let result = client.result("tools/call", json!({"name": name, "arguments": arguments}));
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 1, "{result}");
    let answer: Value = serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
    if result["isError"] == true {
        return Err(answer);
    }
    // Clients of protocols before 2026 accept only an object as structured content.
    let structured = if answer.is_object() { &answer } else { &Value::Null };
    assert_eq!(&result["structuredContent"], structured, "{name}");
    Ok(answer)
}

fn members(row: &Value) -> Vec<&str> {
    let mut names: Vec<_> = row.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Calls every tool of the profile as a client would use it.
fn story(client: &mut dyn Client) {
    let mut call = |name: &str, arguments: Value| tool(client, name, &arguments).unwrap();
    for (name, arguments) in [
        ("search", json!({"query": "uploads"})),
        ("list_records", json!({})),
        ("list_records", json!({"project": "acme/nobody"})),
        ("list_projects", json!({})),
    ] {
        assert_eq!(call(name, arguments), json!([]), "{name}");
    }
    let body = "nginx had client_max_body_size 1m; now 20m.";
    let made =
        call("upsert_record", json!({"kind": "issue", "title": "Uploads above 1 MB fail with 413", "body": body}));
    assert_eq!((&made["created"], &made["deduplicated"]), (&json!(true), &json!(false)), "{made}");
    assert_eq!((&made["project"], &made["status"], &made["version"]), (&json!("acme/shop"), &json!("open"), &json!(1)));
    let id = made["id"].clone();

    // The title differs only in case and punctuation, so it names the same record. This needs no model.
    let title = "uploads above 1 MB fail with 413.";
    let again = call("upsert_record", json!({"kind": "issue", "title": title, "body": body, "status": "resolved"}));
    assert_eq!((&again["id"], &again["deduplicated"], &again["previous_version"]), (&id, &json!(true), &json!(1)));
    assert_eq!((&again["title"], &again["status"]), (&json!(title), &json!("resolved")));
    // The id names the record to change. Fields that are not given keep their values.
    let changed = call("upsert_record", json!({"id": id, "kind": "issue", "title": "Uploads fail with 413"}));
    assert_eq!(
        (&changed["version"], &changed["body"], &changed["status"]),
        (&json!(3), &json!(body), &json!("resolved"))
    );
    let got = call("get_record", json!({"id": id}));
    assert_eq!(
        members(&got),
        ["body", "by", "created_at", "id", "kind", "origin", "project", "status", "title", "updated_at", "version"]
    );
    assert_eq!((&got["title"], &got["origin"]), (&json!("Uploads fail with 413"), &json!("tool")));

    call(
        "upsert_record",
        json!({"kind": "arch", "title": "Sessions live in Redis", "body": "A deploy logs nobody out."}),
    );
    let found = call("search", json!({"query": "uploads fail 413"}));
    assert_eq!(members(&found[0]), ["body", "id", "kind", "project", "similarity", "status", "title"]);
    assert_eq!((&found[0]["id"], &found[0]["project"]), (&id, &json!("acme/shop")));
    assert_eq!(call("search", json!({"query": "uploads fail 413", "kind": "arch"})), json!([]));
    assert_eq!(call("search", json!({"query": "redis sessions", "kind": "all", "limit": 1}))[0]["kind"], "arch");
    // The parameter ranks the records of that project higher and leaves out no others.
    for project in ["*", "acme/shop", "acme/nobody"] {
        assert_eq!(call("search", json!({"query": "uploads fail 413", "project": project}))[0]["id"], id, "{project}");
    }

    let listed = call("list_records", json!({"kind": "both", "status": ""}));
    assert_eq!(members(&listed[0]), ["id", "kind", "status", "title", "updated_at"]);
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(call("list_records", json!({"kind": "issue", "status": "resolved"}))[0]["id"], id);
    assert_eq!(call("list_records", json!({"status": "archived"})), json!([]));
    let projects = call("list_projects", json!({}));
    assert_eq!(projects[0]["name"], "acme/shop");

    assert_eq!(call("delete_record", json!({"id": id})), json!({"deleted": true, "id": id}));
    assert_eq!(call("search", json!({"query": "uploads fail 413"})), json!([]));
    refusals(client, &id);
}

/// Calls each tool with wrong input. The tools change nothing, and their refusals use the names of the profile.
fn refusals(client: &mut dyn Client, gone: &Value) {
    let token = ["ghp_", "k3Jx9Qw2Lm7Rt5Yv8Bn4Hd6Fs1Zc0Pa3Ge9U"].concat();
    for (name, arguments, reason) in [
        ("search", json!({}), "E_INVALID"),
        ("search", json!({"query": 5}), "E_INVALID"),
        ("search", json!({"query": "x", "kind": "bug"}), "E_INVALID"),
        ("search", json!({"query": "x", "limit": 0}), "E_INVALID"),
        ("search", json!({"query": "x", "explain": true}), "E_INVALID"),
        ("upsert_record", json!({"title": "x"}), "E_INVALID"),
        ("upsert_record", json!({"kind": "issue"}), "E_INVALID"),
        ("upsert_record", json!({"kind": "all", "title": "x"}), "E_INVALID"),
        ("upsert_record", json!({"kind": "issue", "title": ""}), "E_INVALID"),
        ("upsert_record", json!({"kind": "issue", "title": "x", "status": "done"}), "E_INVALID"),
        ("upsert_record", json!({"kind": "issue", "title": "x", "dedup": "ask"}), "E_INVALID"),
        (
            "upsert_record",
            json!({"kind": "issue", "title": "x", "body": format!("token {token}")}),
            "E_SECRET_REJECTED",
        ),
        ("upsert_record", json!({"id": 99, "kind": "issue", "title": "x"}), "E_NOT_FOUND"),
        ("get_record", json!({"id": 99}), "E_NOT_FOUND"),
        ("get_record", json!({"id": gone}), "E_NOT_FOUND"),
        ("get_record", json!({"id": "1"}), "E_INVALID"),
        ("get_record", json!({}), "E_INVALID"),
        ("list_records", json!({"status": "done"}), "E_INVALID"),
        ("list_records", json!({"kind": 1}), "E_INVALID"),
        ("delete_record", json!({"id": gone}), "E_NOT_FOUND"),
        ("delete_record", json!({}), "E_INVALID"),
        ("list_projects", json!({"kind": "issue"}), "E_INVALID"),
    ] {
        let refused = tool(client, name, &arguments).expect_err(name);
        assert_eq!(refused["data"]["reason"], reason, "{name} {arguments}: {refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(!message.contains("nudge.") && !message.contains(&token), "{message}");
    }
    assert_eq!(tool(client, "list_records", &json!({"project": "*"})).unwrap().as_array().unwrap().len(), 1);
    for name in ["nudge_set_hint", "nudge_recall", "nudge_records_search", "nudge.records.search", "nothing"] {
        let refused = client.ask("tools/call", json!({"name": name, "arguments": {}}));
        assert_eq!(refused["error"]["code"], -32602, "{name}: {refused}");
    }
    for method in ["resources/list", "resources/templates/list", "prompts/list"] {
        assert_eq!(client.ask(method, json!({}))["error"]["code"], -32601, "{method}");
    }
}

#[test]
fn it_offers_six_tools_and_they_do_what_the_specification_says() {
    for place in [Place::Primary, Place::Proxy] {
        for modern in [false, true] {
            let user = User::new();
            let mut served = user.serve(place, "shop", None);
            let mut client = Stdio::new(&mut served.profile, modern);
            let tools = client.result("tools/list", json!({}))["tools"].clone();
            let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
            assert_eq!(json!(names), json!(TOOLS), "{place:?}");
            story(&mut client);
        }
    }
}

#[test]
fn its_instructions_speak_of_its_own_tools_and_it_has_nothing_else() {
    let user = User::new();
    let mut served = user.serve(Place::Primary, "shop", None);
    let greeted = served.profile.initialize(kit::mcp::LEGACY)["result"].clone();
    assert_eq!(greeted["serverInfo"]["name"], "dude");
    assert_eq!(greeted["capabilities"], json!({"tools": {}}));
    let said = greeted["instructions"].as_str().unwrap();
    assert!(said.contains("upsert_record") && !said.contains("nudge_"), "{said}");
}

#[test]
fn what_one_project_learned_another_finds_beside_an_ordinary_server_and_after_it_was_killed() {
    let user = User::new();
    let mut served = user.serve(Place::Proxy, "shop", None);
    let first = served.first.take().unwrap();
    let mut shop = Stdio::new(&mut served.profile, true);
    let made = tool(&mut shop, "upsert_record", &json!({"kind": "issue", "title": "Uploads fail with 413"})).unwrap();
    // The ordinary server has the same records under its own method names.
    let found = first.call("nudge.records.search", &json!({"query": "uploads fail", "project": "*"}));
    assert_eq!(found["result"]["results"][0]["id"], made["id"]);

    let mut other = user.beside(user.command("blog", &["--profile", "dude"]), &first);
    let mut blog = Stdio::new(&mut other, true);
    let same = tool(&mut blog, "upsert_record", &json!({"kind": "issue", "title": "Uploads fail with 413"})).unwrap();
    assert_eq!(
        (&same["created"], &same["project"]),
        (&json!(true), &json!("acme/blog")),
        "another project's is another"
    );
    let ids = |found: &Value| found.as_array().unwrap().iter().map(|hit| hit["id"].clone()).collect::<Vec<_>>();
    let found = tool(&mut blog, "search", &json!({"query": "uploads fail 413"})).unwrap();
    assert_eq!(ids(&found), [same["id"].clone(), made["id"].clone()], "the own one first");
    let found = tool(&mut blog, "search", &json!({"query": "uploads fail 413", "project": "acme/shop"})).unwrap();
    assert_eq!(ids(&found), [made["id"].clone(), same["id"].clone()]);

    drop(first);
    let kept = tool(&mut shop, "get_record", &json!({"id": made["id"]})).unwrap();
    assert_eq!(kept["title"], "Uploads fail with 413", "whoever is PRIMARY now, the profile is the same");
    let names = shop.result("tools/list", json!({}))["tools"].as_array().unwrap().len();
    assert_eq!(names, TOOLS.len());
}

/// Returns the folder of the model; prints a message and returns `None` if there is no model.
fn model() -> Option<PathBuf> {
    let folder = std::env::var_os("NUDGE_TEST_MODEL_DIR").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: NUDGE_TEST_MODEL_DIR names no model");
    }
    folder
}

#[test]
fn with_a_model_one_nearly_the_same_is_changed_and_can_be_taken_back() {
    let Some(model) = model() else { return };
    for place in [Place::Primary, Place::Proxy] {
        let user = User::new();
        let mut served = user.serve(place, "shop", Some(&model));
        let mut client = Stdio::new(&mut served.profile, true);
        let (title, body) = ("Uploads above 1 MB fail with 413", "nginx had client_max_body_size 1m; now 20m.");
        let made = tool(&mut client, "upsert_record", &json!({"kind": "issue", "title": title, "body": body})).unwrap();
        let id = made["id"].clone();
        let similarity = wait_for("the model", MODEL_PATIENCE, || {
            let found = tool(&mut client, "search", &json!({"query": "files too large are refused"})).unwrap();
            found[0]["similarity"].as_f64()
        });
        assert!((0.1..1.0).contains(&similarity), "{similarity}");

        let near = json!({"kind": "issue", "title": "Uploads larger than 1 MB fail with 413", "body": body});
        // A record of another kind, or with another meaning, is no duplicate.
        let arch = json!({"kind": "arch", "title": "Uploads larger than 1 MB fail with 413", "body": body});
        for other in [arch, json!({"kind": "issue", "title": "The nightly backup ran out of disk"})] {
            assert_eq!(tool(&mut client, "upsert_record", &other).unwrap()["created"], true);
        }
        let merged = tool(&mut client, "upsert_record", &near).unwrap();
        assert_eq!(
            (&merged["id"], &merged["deduplicated"], &merged["version"]),
            (&id, &json!(true), &json!(2)),
            "{merged}"
        );
        assert_eq!(merged["title"], near["title"]);

        // Over the ordinary method, Nudge asks the caller about the duplicate.
        let mut ask = near;
        ask["title"] = json!("Uploads over 1 MB fail with 413");
        ask["project"] = json!("acme/shop");
        let asked = served.profile.call("nudge.records.upsert", &ask)["result"].clone();
        assert_eq!((&asked["written"], &asked["near"][0]["record"]["id"]), (&json!(false), &id), "{asked}");
        let restored = served.profile.call("nudge.records.restore", &json!({"id": id, "version": 1}))["result"].clone();
        assert_eq!((&restored["title"], &restored["version"]), (&json!(title), &json!(3)), "{restored}");
    }
}

#[test]
fn a_profile_that_there_is_not_is_refused_by_the_names_of_those_that_there_are() {
    let user = User::new();
    for (args, told) in [
        (&["--profile", "dud"][..], "dude"),
        (&["--profile"], "dude"),
        (&["--profile", "dude", "--detach"], "--detach"),
    ] {
        let output = run_to_end(user.command("shop", args));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{args:?}: {said}");
        assert!(said.contains(told), "{said}");
        assert!(!user.runtime.join("server.pid").exists(), "nothing was started");
    }
}

#[test]
fn a_person_at_a_terminal_is_told_who_starts_it() {
    let user = User::new();
    let (terminal, end) = Pty::open();
    let output = user.command("shop", &["--profile", "dude"]).stdin(end).output().unwrap();
    terminal.close();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("`claude mcp add dude -- nudge serve --profile dude`"), "{said}");
}
