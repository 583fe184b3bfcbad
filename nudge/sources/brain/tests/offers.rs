//! Tests the offers that an agent gets without a request.

mod kit;

use std::sync::Arc;
use std::time::Duration;

use kit::Desk;
use nudge_core::clock::Clock as _;
use nudge_core::context::ContextSpec;
use nudge_core::embed::{LetterEmbedder, LoadedModel, ModelProvider, NoModels};
use nudge_core::suggest::{SuggestEvent, SuggestParams, SuggestRequest, Suggester};
use serde_json::Value;

/// Returns the lines that a prompt gets.
fn drawn(desk: &Desk, models: &dyn ModelProvider, prompt: &str, context: ContextSpec) -> Vec<String> {
    let mut event = SuggestParams::at_event(SuggestEvent::Prompt);
    event.prompt = Some(prompt.to_owned());
    event.context = context;
    let offer = |request: &Arc<SuggestRequest>| {
        let mut request = SuggestRequest::clone(request);
        request.deadline += Duration::from_mins(1);
        request.embed_question(models, Duration::from_mins(1));
        (vec![("brain", desk.source.find_offers(&request))], Vec::new())
    };
    let told = Suggester::new(100).answer_suggest(event, || desk.clock.now(), offer).unwrap();
    let told: Value = serde_json::to_value(&told).unwrap();
    told["suggestions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|suggestion| suggestion["line"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_prompt_draws_what_means_the_same_and_nothing_else() {
    let model = Arc::new(LoadedModel(Arc::new(LetterEmbedder("one"))));
    let desk = Desk::with(model.clone());
    desk.write("listen.md", "# listen\n\nsilent tinsel inlets enlist\n");
    desk.write("zoo.md", "---\ndescription: buzz\n---\n# zoo\n\nfuzzy buzz fizz\n");
    desk.write("help.md", "# help\n\n+\n\n***\n\n(\ncold scold clod\n");
    desk.work();
    let here = ContextSpec::default;
    assert_eq!(
        drawn(&desk, &*model, "silent tinsel inlets", here()),
        ["note listen (listen.md): silent tinsel inlets enlist"]
    );
    // A line that has only punctuation marks is skipped.
    assert_eq!(drawn(&desk, &*model, "cold scold clod", here()), ["note help (help.md): cold scold clod"]);
    assert_eq!(drawn(&desk, &*model, "qqq www kkk", here()), [""; 0]);
    // There are no offers without a model, and none for a prompt of two words.
    assert_eq!(drawn(&desk, &NoModels, "silent tinsel inlets", here()), [""; 0]);
    assert_eq!(drawn(&desk, &*model, "silent tinsel", here()), [""; 0]);
}

#[test]
#[cfg(unix)]
fn a_prompt_asks_no_language_model() {
    let model = Arc::new(LoadedModel(Arc::new(LetterEmbedder("one"))));
    let place = tempfile::tempdir().unwrap();
    let asked = place.path().join("asked");
    let command = format!("echo >> {}; echo '{{\"order\": []}}'", asked.display());
    let settings = [("brain.rerank", "llm"), ("brain.llm", "command"), ("brain.llm_command", &*command)];
    let settings = settings.map(|(name, value)| (name, value.to_owned()));
    let desk = Desk::set(model.clone(), settings.into());
    desk.write("listen.md", "# listen\n\nsilent tinsel inlets enlist\n");
    desk.write("list.md", "# list\n\nsilent tinsel inlets\n");
    desk.work();
    assert_eq!(drawn(&desk, &*model, "silent tinsel inlets", ContextSpec::default()).len(), 2);
    assert!(!asked.exists());
    desk.call("context", &serde_json::json!({"task_description": "silent tinsel inlets"}));
    assert!(asked.exists(), "who asks has it in order");
}

#[test]
fn a_brain_that_nobody_named_tells_nothing() {
    let model = Arc::new(LoadedModel(Arc::new(LetterEmbedder("one"))));
    let desk = Desk::with(model.clone());
    let cloned = desk.folder.path().join("cloned");
    std::fs::create_dir(&cloned).unwrap();
    std::fs::write(cloned.join("brain.yaml"), "brain: 1\n").unwrap();
    std::fs::write(cloned.join("a.md"), "# listen\n\nsilent tinsel inlets enlist\n").unwrap();
    let here = ContextSpec { cwd: Some(cloned.to_string_lossy().into()), ..ContextSpec::default() };
    assert_eq!(drawn(&desk, &*model, "silent tinsel inlets", here), [""; 0]);
}

#[test]
fn a_line_holds_no_credential() {
    let model = Arc::new(LoadedModel(Arc::new(LetterEmbedder("one"))));
    let desk = Desk::with(model.clone());
    let token = ["gh", "p_", &"x7Kq9ZtR2mWv".repeat(3)].concat();
    desk.write("a.md", format!("# listen {token}\n\n{token} silent tinsel inlets enlist\n"));
    desk.work();
    let lines = drawn(&desk, &*model, "silent tinsel inlets enlist listen", ContextSpec::default());
    assert!(lines.iter().all(|line| !line.contains(&token)), "{lines:?}");
}
