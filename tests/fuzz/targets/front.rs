//! Parses the frontmatter of a note and sets a field in it. Every other byte must stay as it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_brain::front::{parse_mapping, split_file};
use nudge_brain::splice::set_field;
use serde_json::json;

fuzz_target!(|text: &str| {
    let parts = split_file(text);
    assert_eq!([parts.open, parts.yaml, parts.close, parts.body].concat(), text);
    let _ = parse_mapping(parts.yaml);
    for (name, value) in [("title", json!("a: b #c")), ("confidence", json!(0.5)), ("tags", json!(["x", "y, z"]))] {
        let Ok(done) = set_field(text, name, &value) else { continue };
        let after = split_file(&done.text);
        assert_eq!(after.body, parts.body);
        let fields = parse_mapping(after.yaml).expect("what was written is YAML");
        assert!(fields.contains_key(name), "{name} {:?}", done.text);
        // Setting the same value a second time changes nothing.
        assert_eq!(set_field(&done.text, name, &value).map(|again| again.text).ok(), Some(done.text));
    }
});
