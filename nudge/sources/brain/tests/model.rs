//! Tests a real model, if `NUDGE_TEST_MODEL_DIR` names the folder of its weights.

mod kit;

use std::sync::Arc;

use kit::Desk;
use nudge_core::embed::LoadedModel;
use nudge_embed::{Precision, SentenceModel};
use serde_json::json;

#[test]
fn what_stands_at_the_end_of_a_long_section_is_found_by_meaning() {
    let Some(folder) = std::env::var_os("NUDGE_TEST_MODEL_DIR") else {
        println!("skipped: NUDGE_TEST_MODEL_DIR names no folder");
        return;
    };
    let model = SentenceModel::load(folder.as_ref(), Precision::default()).unwrap();
    let desk = Desk::with(Arc::new(LoadedModel(Arc::new(model))));
    let tail = "Descale the espresso machine with citric acid twice a month.";
    // Words that exist in no language take many tokens of a model.
    let letter = |number: usize| char::from(b"bcdfghjkmnpqrstvwxz"[number % 19]);
    let word = |number: usize| (1..7).map(|part| letter(number * part + number / 19 + part)).collect::<String>();
    let names: String = (0..420).map(|number| word(number) + if number % 30 == 29 { "\n\n" } else { " " }).collect();
    desk.write("long.md", format!("# Notes\n\n{names}{tail}\n"));
    desk.write("alone.md", format!("# Notes\n\n{tail}\n"));
    desk.work();
    let question = json!({"task_description": "how often does an espresso machine need cleaning", "explain": true});
    let answer = desk.call("context", &question);
    let similarity = |id: &str| {
        let unit = answer["units"].as_array().unwrap().iter().find(|unit| unit["id"] == id);
        unit.map_or(0.0, |unit| unit["explain"]["similarity"].as_f64().unwrap())
    };
    let (long, alone) = (similarity("long"), similarity("alone"));
    println!("at the end of a long section {long:.2}, alone {alone:.2}");
    assert!(long > alone * 0.5, "{answer}");
}
