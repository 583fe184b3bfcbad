//! Imports a payload. An export and another import must give the same hints.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge::{Config, ExportHints, ImportHints, ImportMode, Nudge};
use serde_json::Value;
use serde_json::value::RawValue;

fn export(nudge: &Nudge) -> (String, Value) {
    let export =
        nudge.export(&ExportHints { include_secrets: true, ..ExportHints::default() }).expect("the whole store");
    let text = serde_json::to_string(&export.payload).expect("an export is JSON");
    let components = serde_json::from_str::<Value>(&text).expect("an export is JSON")["components"].take();
    (text, components)
}

fn import(text: &str) -> Option<Nudge> {
    let payload = RawValue::from_string(text.to_owned()).ok()?;
    let nudge = Nudge::new(Config { secret_guard: false, ..Config::default() });
    nudge.import(&ImportHints { payload, mode: ImportMode::Merge, allow_secret: true }).ok()?;
    Some(nudge)
}

fuzz_target!(|text: &str| {
    let Some(nudge) = import(text) else { return };
    let (text, stored) = export(&nudge);
    let again = import(&text).expect("an export can be imported");
    assert_eq!(export(&again).1, stored);
});
