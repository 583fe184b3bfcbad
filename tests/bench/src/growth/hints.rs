//! Measures how the cost of a store grows with its number of hints.

use std::hint::black_box;
use std::path::Path;

use serde_json::{Value, json};

use super::{call, of};
use crate::data;

/// The number of hints in an import.
const IMPORTED: usize = 100;
/// The number of hints whose words a single prompt reads.
const WORDS_READ: usize = 1_000;

/// Calls all verbs of the hints.
pub fn ask(_: &Path, items: usize) {
    let seeds = data::seeds(items);
    let store = data::store(&seeds);
    let place = json!({"cwd": "/work/mono/svc-12/src", "repo": "https://github.com/acme/mono.git", "branch": "feature/login",
        "os": "linux", "env": {"CI": "1"}});
    // Takes keys that are far apart, and another key at each step.
    let named = |step: usize| {
        let seed = &seeds[step * 7_919 % items].set;
        (seed.component.clone(), seed.key.clone())
    };
    let about = |method: &str, step: usize, more: &Value| {
        let (component, key) = named(step);
        let mut params = json!({"component": component, "key": key});
        params.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        black_box(call(&store, method, &params));
    };
    let asked = |method: &str, params: Value| drop(black_box(call(&store, method, &params)));

    of("query", 4, |_| asked("nudge.query", json!({"context": place})));
    of("query, words", 4, |_| asked("nudge.query", json!({"context": place, "text": "deploy the profile"})));
    of("query, a tag", 4, |_| asked("nudge.query", json!({"context": place, "tags": ["tag-00"]})));
    of("list_components", 4, |_| asked("nudge.list_components", json!({})));
    of("stats", 4, |_| asked("nudge.stats", json!({})));
    of("status", 4, |_| asked("nudge.status", json!({})));
    of("env_names", 4, |_| asked("nudge.env_names", json!({})));
    of("suggest, a start", 4, |_| asked("nudge.suggest", json!({"event": "start", "context": place})));
    let prompt = || {
        asked("nudge.suggest", json!({"event": "prompt", "prompt": "deploy service-12 again", "context": place}));
    };
    // A prompt reads the words of only this many hints. Repeats it until the words of all hints are read.
    (0..items / WORDS_READ).for_each(|_| prompt());
    of("suggest, a prompt", 4, |_| prompt());
    of("suggest, a failure", 4, |_| {
        let failed = json!({"event": "failure", "command": "docker compose build --service service-12",
            "error": "no such profile", "context": place});
        asked("nudge.suggest", failed);
    });
    of("outcome", 4, |step| {
        let command = format!("docker compose build --service service-12 --profile dev-{step:06x}");
        asked("nudge.outcome", json!({"command": command, "ok": true, "context": place}));
    });
    of("export", 1, |_| asked("nudge.export", json!({"include_secrets": true})));

    let payload = |step: usize| {
        let new = data::store(&data::seeds(IMPORTED));
        let exported = super::answer(&new, "nudge.export", &json!({"include_secrets": true}));
        let text = exported["payload"].to_string().replace("service-", &format!("imported-{step}-"));
        serde_json::from_str::<Value>(&text).expect("it is JSON")
    };
    let payloads: Vec<_> = (0..=2).map(payload).collect();
    of("import, 100 hints", 2, |step| asked("nudge.import", json!({"payload": payloads[step]})));
    of("set_hint, a new one", 20, |step| {
        let params = json!({"component": format!("service-{:02}", step % 100), "key": format!("new-{step}"), "value": "make it"});
        asked("nudge.set_hint", params);
    });
    of("set_hint, again", 20, |step| about("nudge.set_hint", step, &json!({"value": format!("make it {step} times")})));
    of("get_hint", 20, |step| about("nudge.get_hint", step, &json!({"context": place})));
    of("why", 20, |step| about("nudge.why", step, &json!({"context": place})));
    of("bump", 20, |step| about("nudge.bump", step, &json!({"context": place, "variant": ""})));
    of("delete_hint", 20, |step| about("nudge.delete_hint", step, &json!({"all": true})));
    of("deletions", 4, |_| asked("nudge.deletions", json!({})));
    of("undo", 10, |_| asked("nudge.undo", json!({})));
}
