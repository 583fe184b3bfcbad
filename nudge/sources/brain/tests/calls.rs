//! Tests every method as a caller uses it.

mod kit;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kit::Desk;
use nudge_core::embed::{LetterEmbedder, LoadedModel, NoModels};
use nudge_core::service::Caller;
use serde_json::json;

/// Makes a brain with a note about retries, the notes that are linked with it, and an unrelated note.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("brain.yaml", "brain: 1\n");
    desk.write(
        "domains/coding/retry.md",
        "---\nid: retry\ntype: pattern\ntags: [network]\nconfidence: 0.8\nrelated:\n- {id: backoff, type: uses}\n---\n# Retry with full jitter\n\nRetries of clients that fail together must not come together.\n",
    );
    desk.write(
        "domains/coding/backoff.md",
        "---\nid: backoff\n---\n# Exponential waiting\n\nEach pause is twice the last. See [[Ceiling]].\n",
    );
    desk.write("domains/coding/ceiling.md", "# Ceiling\n\nA pause is a minute at most.\n");
    desk.write("domains/fashion/linen.md", "# Linen\n\nLinen creases; iron it damp.\n");
    desk
}

#[test]
fn a_task_brings_what_is_known_and_what_it_uses() {
    let desk = desk();
    let answer = desk.call("context", &json!({"task_description": "How should clients retry?", "explain": true}));
    let first = &answer["units"][0];
    assert_eq!(
        (&first["id"], &first["title"], &first["type"]),
        (&json!("retry"), &json!("Retry with full jitter"), &json!("pattern"))
    );
    assert_eq!(first["sections"][0]["lines"], "9-11");
    assert!(first["explain"]["parts"].as_object().is_some_and(|parts| !parts.is_empty()));
    assert_eq!(kit::ids(&answer["related"]), ["backoff"]);
    assert_eq!((&answer["related"][0]["via"], &answer["related"][0]["relation"]), (&json!("retry"), &json!("uses")));
    assert_eq!(answer["degraded"], json!(["no embedding model: nudge model add"]));
    assert_eq!(answer["searched"], json!({"units": 4, "chunks": 4}));
    for (params, ids) in [
        (json!({"task_description": "linen pause", "domain": "fashion"}), vec!["domains/fashion/linen"]),
        (json!({"task_description": "retry pause", "tags": ["Network"]}), vec!["retry"]),
        (json!({"task_description": "zebra"}), vec![]),
    ] {
        assert_eq!(kit::ids(&desk.call("context", &params)["units"]), ids, "{params}");
    }
    for params in [
        json!({"task_description": "x", "limit": 0}),
        json!({"task_description": ""}),
        json!({"task_description": " \n"}),
    ] {
        assert_eq!(desk.refused("context", &params).reason(), "E_INVALID", "{params}");
    }
}

#[test]
fn among_a_few_notes_the_share_of_the_words_counts() {
    let desk = Desk::new();
    desk.write("a.md", "# Linen\n\nIron it damp.\n");
    for notes in 1..3 {
        let answer = desk.call("context", &json!({"task_description": "linen damp", "explain": true}));
        assert_eq!(kit::ids(&answer["units"]), ["a"], "{notes}");
        let unit = &answer["units"][0];
        assert!(unit["score"].as_f64().is_some_and(|score| score > 0.3), "{notes} notes: {unit}");
        assert_eq!(unit["explain"]["parts"]["words"], unit["score"]);
        desk.write("b.md", "# Wool\n\nWash it cold.\n");
    }
}

#[test]
fn of_what_is_related_alike_the_more_relevant_comes_first() {
    let desk = Desk::new();
    for number in 0..6 {
        desk.write(&format!("f{number}.md"), format!("# Kiln {number}\n\nA kiln is fired slowly, glaze {number}.\n"));
    }
    desk.write("top.md", "# Kiln and glaze\n\nKiln kiln, glaze glaze: [[Early]], [[Late]].\n");
    desk.write("early.md", "# Early\n\nNothing of the kind.\n");
    desk.write(
        "late.md",
        format!("# Late\n\nOnce a glaze, {}.\n", "and much else that has another subject ".repeat(9)),
    );
    let (units, related) = desk.found("kiln glaze");
    assert!(units[0] == "top" && !units.contains(&"late".to_owned()), "{units:?}");
    assert_eq!(related, ["late"]);
}

#[test]
fn the_index_follows_the_files() {
    let desk = desk();
    assert_eq!(desk.found("linen").0, ["domains/fashion/linen"]);
    desk.write("domains/fashion/linen.md", "# Wool\n\nWool is washed cold.\n");
    assert_eq!((desk.found("linen").0.len(), desk.found("wool").0), (0, vec!["domains/fashion/linen".to_owned()]));
    fs::rename(desk.path("domains/fashion/linen.md"), desk.path("domains/fashion/wool.md")).unwrap();
    assert_eq!(desk.found("wool").0, ["domains/fashion/wool"]);
    fs::remove_file(desk.path("domains/coding/backoff.md")).unwrap();
    assert_eq!(desk.found("How should clients retry?"), (vec!["retry".to_owned()], vec![]));
    let check = desk.call("check", &json!({}));
    assert_eq!(check["problems"][0]["kind"], "dangling", "{check}");
}

#[test]
fn a_unit_and_its_neighbours() {
    let desk = desk();
    let got = desk.call("get", &json!({"id": "backoff"}));
    assert_eq!(got["related"], json!([{"id": "domains/coding/ceiling", "title": "Ceiling", "relation": "links_to"}]));
    assert_eq!(got["backlinks"], json!([{"id": "retry", "title": "Retry with full jitter", "relation": "uses"}]));
    assert_eq!(
        (&got["frontmatter"]["id"], got["body"].as_str().map(|body| body.starts_with("# Exp"))),
        (&json!("backoff"), Some(true))
    );
    assert_eq!(desk.call("get", &json!({"id": "domains/coding/ceiling.md"}))["unit"]["title"], "Ceiling");
    let refused = desk.refused("get", &json!({"id": "backof"}));
    assert_eq!(
        (refused.reason(), refused.message()),
        ("E_NOT_FOUND", "There is no unit of this id or path. Did you mean `backoff`?")
    );
    let listed = desk.call("list", &json!({"limit": 2}));
    assert_eq!(listed["units"].as_array().map(Vec::len), Some(2));
    assert_eq!(listed["domains"][0], json!({"name": "coding", "count": 3}));
    let rest = desk.call("list", &json!({"after": listed["next"]}));
    assert_eq!(kit::ids(&rest["units"]), ["retry", "domains/fashion/linen"]);
    assert_eq!(
        kit::ids(&desk.call("list", &json!({"type": "pattern", "tag": "network", "domain": "coding"}))["units"]),
        ["retry"]
    );
}

#[test]
fn a_unit_is_added_once_and_found_at_once() {
    let desk = desk();
    let params = json!({"title": "Circuit breakers: half open", "body": "One try passes.", "type": "concept", "domain": "coding", "tags": ["net"], "related": ["retry"]});
    let mut caller = Caller::with_name("test").with_key(Some("k1"));
    caller.call = None;
    let added = desk.by(caller, "add", &params).unwrap();
    assert_eq!(
        (&added["path"], &added["created"]),
        (&json!("domains/coding/circuit-breakers-half-open.md"), &json!(true))
    );
    assert_eq!(desk.by(caller, "add", &params).unwrap(), added, "made once by key");
    assert_eq!(desk.refused("add", &params).reason(), "E_CONFLICT");
    let mut again = params.clone();
    again["if_absent"] = json!(true);
    let again = desk.call("add", &again);
    assert_eq!((&again["created"], &again["id"]), (&json!(false), &added["id"]));
    assert_eq!(kit::ids(&again["similar"]), [added["id"].as_str().unwrap()]);
    let (found, _) = desk.found("circuit breakers");
    assert_eq!(found[0], added["id"].as_str().unwrap());
    assert_eq!(desk.call("get", &json!({"id": "retry"}))["backlinks"][0]["id"], added["id"]);
    let token = ["gh", "p_", &"x7Kq9ZtR2mWv".repeat(3)].concat();
    for (params, reason) in [
        (json!({"title": "x", "body": format!("token {token}")}), "E_SECRET_REJECTED"),
        (json!({"title": "", "body": "x"}), "E_INVALID"),
        (json!({"title": "x", "body": "x", "type": "patern"}), "E_INVALID"),
    ] {
        assert_eq!(desk.refused("add", &params).reason(), reason, "{params}");
    }
    // Every title and domain give a path inside the brain.
    let odd = desk.call("add", &json!({"title": "../../etc: passwd", "body": "x", "domain": "../.."}));
    assert_eq!(odd["path"], "domains/unit/etc-passwd.md");
}

#[test]
fn one_field_is_set_and_the_rest_stays() {
    let desk = desk();
    let before = fs::read_to_string(desk.path("domains/coding/retry.md")).unwrap();
    let hash = desk.call("get", &json!({"id": "retry"}))["hash"].clone();
    let set = desk.call("set_field", &json!({"id": "retry", "field": "confidence", "value": "0.9", "if_hash": hash}));
    assert_eq!(set["diff"], "-confidence: 0.8\n+confidence: 0.9\n");
    let after = fs::read_to_string(desk.path("domains/coding/retry.md")).unwrap();
    assert_eq!(after, before.replace("0.8", "0.9"));
    let stale = desk.refused("set_field", &json!({"id": "retry", "field": "confidence", "value": 1, "if_hash": hash}));
    assert_eq!(stale.reason(), "E_CONFLICT");
    let set = desk.call("set_field", &json!({"id": "domains/coding/ceiling", "field": "id", "value": "ceiling"}));
    assert_eq!(set["id"], "ceiling");
    assert_eq!(kit::ids(&desk.call("get", &json!({"id": "backoff"}))["related"]), ["ceiling"]);
}

#[test]
fn a_brain_is_made_where_there_is_none_and_left_as_it_is_else() {
    let desk = Desk::new();
    let new = desk.folder.path().join("new");
    let made = desk.call("init", &json!({"dir": new}));
    assert_eq!(made["made"], json!(["brain.yaml", "domains"]));
    assert_eq!(desk.call("init", &json!({"dir": new}))["made"], json!([]));
    desk.write("a.md", "x");
    assert_eq!(
        desk.call("init", &json!({"dir": desk.path("")}))["made"],
        json!(["brain.yaml"]),
        "notes have folders of their own"
    );
    // A caller in the folder of a brain uses this brain, unless the caller has named another brain.
    let here = json!({"context": {"cwd": new.join("domains")}});
    assert_eq!(desk.call("status", &here)["root"], json!(desk.path("").canonicalize().unwrap()));
    let named = json!({"context": {"cwd": "/", "env": {"NUDGE_BRAIN": new}}});
    assert_eq!(desk.call("status", &named)["root"], json!(new.canonicalize().unwrap()));
    // A library sends only the environment variables that the session requests.
    let asked = desk.by(Caller::with_name("test").asking_env(), "status", &here).unwrap_err();
    assert_eq!(asked.env_names().unwrap().names, ["NUDGE_BRAIN".to_owned()].into_iter().collect());
    let none = json!({"context": {"cwd": new, "env": {"NUDGE_BRAIN": null}}});
    assert_eq!(
        desk.by(Caller::with_name("test").asking_env(), "status", &none).unwrap()["root"],
        json!(desk.path("").canonicalize().unwrap())
    );
}

#[test]
fn what_is_wrong_is_told_and_nothing_is_changed() {
    let desk = Desk::new();
    let token = ["gh", "p_", &"x7Kq9ZtR2mWv".repeat(3)].concat();
    desk.write("a.md", "---\nid: same\n---\n[[nowhere]]");
    desk.write("b.md", "---\nid: same\ntype: thing\n---\n");
    desk.write("c.md", "---\ndescription: a: b\n---\n");
    desk.write("d.md", format!("the key is {token}\n"));
    desk.write("e.md", [0xff, 0xfe]);
    desk.write("f.md", "x".repeat((1 << 20) + 1));
    desk.write("g.md", "+++\ntitle = 'x'\n+++\n");
    desk.write("h\u{200b}.md", "# Hidden\n");
    desk.write("i ❤\u{fe0f}.md", "---\nid: heart\n---\n# Heart\n");
    desk.write("Templates/t.md", "# {{title}}\n");
    let check = desk.call("check", &json!({}));
    assert_eq!(check["other_folders"], json!(["Templates"]));
    let told: Vec<_> = check["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (file["path"].as_str().unwrap(), file["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("a.md", "dangling"),
            ("b.md", "duplicate id"),
            ("b.md", "frontmatter"),
            ("c.md", "frontmatter"),
            ("d.md", "secret"),
            ("e.md", "skipped"),
            ("f.md", "skipped"),
            ("g.md", "frontmatter"),
            ("h\\u{200b}.md", "skipped")
        ]
    );
    assert!(!check.to_string().contains(&token));
    assert_eq!(kit::ids(&desk.call("list", &json!({}))["units"]), ["same", "b", "c", "d", "g", "heart"]);
    let answer = desk.call("context", &json!({"task_description": "the key"}));
    assert!(!answer.to_string().contains(&token) && answer["units"][0]["id"] == "d", "{answer}");
}

#[test]
fn a_model_finds_what_means_the_same_and_an_old_vector_answers_until_the_new_one_is_made() {
    let mut desk = Desk::with(Arc::new(LoadedModel(Arc::new(LetterEmbedder("one")))));
    desk.write("a.md", "# listen\n\nsilent tinsel inlets enlist\n");
    desk.write("b.md", "# cargo\n\nbuild bundle double\n");
    desk.work();
    let ask = |desk: &Desk| desk.call("context", &json!({"task_description": "tensil", "explain": true}));
    let answer = ask(&desk);
    assert_eq!(
        (&answer["units"][0]["id"], &answer["weak"], &answer["degraded"]),
        (&json!("a"), &json!(false), &json!([]))
    );
    desk.write("a.md", "# listen\n\nsilent tinsel inlets enlist more\n");
    let answer = ask(&desk);
    assert!(
        answer["units"][0]["explain"]["similarity"].as_f64().is_some_and(|similarity| similarity > 0.9),
        "{answer}"
    );
    // The other model has no vectors yet. A process without a session has no worker, so the question itself makes the
    // vectors.
    desk.work();
    desk.again(Arc::new(LoadedModel(Arc::new(LetterEmbedder("two")))));
    let answer = ask(&desk);
    assert_eq!((&answer["units"][0]["id"], &answer["degraded"]), (&json!("a"), &json!([])));
    assert_eq!(desk.call("status", &json!({}))["vectors"], 2);
}

#[test]
fn a_rebuild_finds_what_was_found() {
    let desk = desk();
    let before = desk.call("context", &json!({"task_description": "How should clients retry after a pause?"}));
    let rebuilt = desk.call("rebuild", &json!({}));
    assert_eq!((&rebuilt["units"], &rebuilt["chunks"]), (&json!(4), &json!(4)));
    assert_eq!(desk.call("context", &json!({"task_description": "How should clients retry after a pause?"})), before);
}

#[test]
#[cfg(unix)]
fn a_language_model_puts_in_order_what_was_found_where_that_is_wanted_and_is_missed_where_it_fails() {
    let asked = |command: &str| {
        let settings = [("brain.rerank", "llm"), ("brain.llm", "command"), ("brain.llm_command", command)];
        let settings = settings.map(|(name, value)| (name, value.to_owned()));
        let desk = Desk::set(Arc::new(NoModels), settings.into());
        for (name, text) in [("a", "jitter backoff ceiling"), ("b", "jitter backoff"), ("c", "jitter")] {
            desk.write(&format!("{name}.md"), format!("# {name}\n\n{text}\n"));
        }
        let answer = desk.call("context", &json!({"task_description": "jitter backoff ceiling"}));
        (kit::ids(&answer["units"]), answer["degraded"].to_string())
    };
    let asks = |order: &str| asked(&format!("cat > /dev/null; echo '{{\"order\": {order}}}'"));
    for (order, ids) in [("[2, 0]", ["c", "a", "b"]), ("[1]", ["b", "a", "c"]), ("[]", ["a", "b", "c"])] {
        let (found, degraded) = asks(order);
        assert_eq!(found, ids, "{order}");
        assert!(!degraded.contains("rerank"), "{degraded}");
    }
    for command in ["exit 1", "echo x", "echo '{\"order\": [7]}'"] {
        let (found, degraded) = asked(command);
        assert_eq!(found, ["a", "b", "c"], "{command}");
        assert!(degraded.contains("not reranked: "), "{degraded}");
    }
    let begun = Instant::now();
    assert_eq!(asked("exec sleep 60").0, ["a", "b", "c"]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
