//! The frontmatter of a note, and a field set in it: every other byte stays.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_brain::front::{mapping, split};
use nudge_brain::splice::set;
use serde_json::json;

fuzz_target!(|text: &str| {
    let parts = split(text);
    assert_eq!([parts.open, parts.yaml, parts.close, parts.body].concat(), text);
    let _ = mapping(parts.yaml);
    for (name, value) in [("title", json!("a: b #c")), ("confidence", json!(0.5)), ("tags", json!(["x", "y, z"]))] {
        let Ok(done) = set(text, name, &value) else { continue };
        let after = split(&done.text);
        assert_eq!(after.body, parts.body);
        let fields = mapping(after.yaml).expect("what was written is YAML");
        assert!(fields.contains_key(name), "{name} {:?}", done.text);
        // Once more changes nothing.
        assert_eq!(set(&done.text, name, &value).map(|again| again.text).ok(), Some(done.text));
    }
});
