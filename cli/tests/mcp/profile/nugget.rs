//! Tests `nudge serve --profile nugget`, which offers only one tool: that of the Nugget specification.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::kit::mcp::{Client, LEGACY, Stdio};
use super::{Place, User, tool};

const TOOL: &str = "get_relevant_context";
const SPECIFIED: &str = "You have access to the user's personal knowledge brain via Nugget. Always check the brain for relevant context before answering questions.";

impl User {
    /// Makes a brain with two domains in the user's home; returns its folder.
    fn brain(&self, name: &str) -> PathBuf {
        let root = self.home.path().join(name);
        for (path, text) in [
            (
                "domains/coding/retry.md",
                "---\nid: retry\nrelated: [{id: backoff, type: uses}]\n---\n# Retry with full jitter\n\nClients that fail together must not retry together.\n",
            ),
            (
                "domains/coding/backoff.md",
                "---\nid: backoff\n---\n# Exponential waiting\n\nEach pause is twice the last.\n",
            ),
            ("domains/fashion/linen.md", "# Linen\n\nLinen creases; iron it damp.\n"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }
}

fn ask(client: &mut dyn Client, task: &str) -> Result<Value, Value> {
    tool(client, TOOL, &json!({"task_description": task}))
}

fn paths(units: &Value) -> Vec<&str> {
    units.as_array().unwrap().iter().map(|unit| unit["path"].as_str().unwrap()).collect()
}

#[test]
fn one_tool_answers_from_the_brain_whoever_serves() {
    for place in [Place::Primary, Place::Proxy] {
        for modern in [false, true] {
            let user = User::new();
            let brain = user.brain("brain");
            let mut served = user.serve_as("nugget", place, "shop", Some(("NUDGE_BRAIN_ROOT", &brain)));
            let mut client = Stdio::new(&mut served.profile, modern);
            let tools = client.result("tools/list", json!({}))["tools"].clone();
            let [listed] = tools.as_array().unwrap().as_slice() else { panic!("{tools}") };
            assert_eq!((&listed["name"], &listed["annotations"]["readOnlyHint"]), (&json!(TOOL), &json!(true)));
            assert_eq!(listed["inputSchema"]["required"], json!(["task_description"]));
            assert_eq!(listed["_meta"]["anthropic/alwaysLoad"], true, "it is there without a search");

            let answer = ask(&mut client, "How should clients retry?").unwrap();
            assert_eq!(paths(&answer["units"]), ["domains/coding/retry.md"], "{place:?} {answer}");
            let section = &answer["units"][0]["sections"][0];
            assert_eq!(section["lines"], "5-7");
            assert!(section["text"].as_str().unwrap().contains("must not retry together"), "{section}");
            assert_eq!(
                (&answer["related"][0]["id"], &answer["related"][0]["via"]),
                (&json!("backoff"), &json!("retry"))
            );
            assert_eq!(paths(&ask(&mut client, "linen").unwrap()["units"]), ["domains/fashion/linen.md"]);
            assert_eq!(ask(&mut client, "zebra").unwrap()["units"], json!([]));
            refusals(&mut client);
        }
    }
}

/// Sends wrong input. The server refuses it in messages that name no method of Nudge, and it has no other tool.
fn refusals(client: &mut dyn Client) {
    for arguments in [
        json!({}),
        json!({"task_description": 5}),
        json!({"task_description": null}),
        json!({"task_description": "x", "limit": 3}),
        json!({"task_description": "x".repeat((64 << 10) + 1)}),
    ] {
        let refused = tool(client, TOOL, &arguments).expect_err("wrong input");
        assert_eq!(refused["data"]["reason"], "E_INVALID", "{refused}");
        assert!(!refused["message"].as_str().unwrap().contains("nudge."), "{refused}");
    }
    for name in ["nudge_brain_context", "nudge_get_hint", "nudge.brain.context", "search"] {
        let refused = client.ask("tools/call", json!({"name": name, "arguments": {}}));
        assert_eq!(refused["error"]["code"], -32602, "{name}: {refused}");
    }
    for method in ["resources/list", "prompts/list"] {
        assert_eq!(client.ask(method, json!({}))["error"]["code"], -32601, "{method}");
    }
}

#[test]
fn it_greets_in_the_words_of_the_specification() {
    let user = User::new();
    let mut served = user.serve_as("nugget", Place::Primary, "shop", None);
    let greeted = served.profile.initialize(LEGACY)["result"].clone();
    assert_eq!((&greeted["serverInfo"]["name"], &greeted["capabilities"]), (&json!("nugget"), &json!({"tools": {}})));
    let said = greeted["instructions"].as_str().unwrap();
    assert!(said.starts_with(SPECIFIED) && !said.contains("nudge_"), "{said}");
}

#[test]
fn the_client_names_its_brain_and_without_one_is_told_how_to_make_it() {
    let user = User::new();
    let (own, other) = (user.brain("own"), user.brain("other"));
    fs::write(other.join("zebra.md"), "# Zebra\n\nStriped.\n").unwrap();
    let served = user.serve_as("nugget", Place::Proxy, "shop", Some(("NUDGE_BRAIN_ROOT", &own)));
    let first = served.first.as_ref().unwrap();
    let mut named = user.command("shop", &["--profile", "nugget"]);
    named.env("NUDGE_BRAIN", &other);
    let mut named = user.beside(named, first);
    assert_eq!(paths(&ask(&mut Stdio::new(&mut named, true), "zebra").unwrap()["units"]), ["zebra.md"]);

    let nobody = User::new();
    let mut served = nobody.serve_as("nugget", Place::Primary, "shop", None);
    let refused = ask(&mut Stdio::new(&mut served.profile, true), "zebra").unwrap_err();
    assert_eq!(refused["data"]["reason"], "E_UNAVAILABLE");
    assert!(refused["message"].as_str().unwrap().contains("`nudge brain init DIR`"), "{refused}");
}
