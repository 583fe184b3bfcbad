//! Tests that reading changes no byte of any file. Setting a field changes only this field, or nothing.

mod kit;

use std::fs;

use kit::Desk;
use serde_json::json;

/// Files in the forms that people and programs write. Each has a name and a content.
const FILES: &[(&str, &str)] = &[
    ("plain", "---\nid: one\ntitle: Plain\nconfidence: 0.8\ntags: [a, b]\n---\n# Body\n\n---\n\nno fence\n"),
    ("crlf", "---\r\nid: two\r\nconfidence: 0.8\r\n---\r\nbody\r\n"),
    (
        "comments",
        "---\n# by hand\nid: three   # mine\nconfidence: 0.8  # guessed\n\nrelated:\n  - {id: one, type: uses}   # why\n---\nx\n",
    ),
    ("list", "---\nid: four\ntags:\n  - x\n  - y\n---\nx\n"),
    (
        "block",
        "---\nid: five\nsummary: |\n  line one\n\n  confidence: no key\nconfidence: 0.8\ntags:\n- x\n- y\n---\nx\n",
    ),
    ("quotes", "---\nid: \"a: b\"\ntitle: 'it''s --- here # no comment'\nconfidence: \"0.8\" # text\n---\nx\n"),
    ("empty-head", "---\n---\nbody\n"),
    ("comment-head", "---\n# nothing yet\n---\nbody\n"),
    ("no-fence", "---foo\nid: a\n---\nbody\n"),
    ("open-fence", "---\nid: a\nbody without end\n"),
    ("byte-order-mark", "\u{feff}---\nid: b\nconfidence: 1\n---\nbody\n"),
    (
        "obsidian",
        "---\naliases: [A, B]\ncssclasses:\n  - wide\ncreated: 2024-01-02T03:04\ntags: \"#retry #net\"\nup: \"[[Index]]\"\nconfidence: 0.5\n---\n# x [[Link|alias]] #tag\n",
    ),
    (
        "basic-memory",
        "---\ntitle: Coffee\ntype: note\npermalink: coffee/coffee\ntags:\n- coffee\n---\n\n# Coffee\n\n## Observations\n- [method] Pour over #brew\n\n## Relations\n- pairs_with [[Chocolate]]\n",
    ),
    (
        "agent-memory",
        "---\nname: retry-policy\ndescription: Retries use full jitter: see net/\nmetadata:\n  type: feedback\n---\n\nbody\n",
    ),
    ("anchors", "---\nbase: &b {x: 1}\nuse: *b\nconfidence: 0.2\nid: six\n---\nx\n"),
    ("twice", "---\nid: a\nid: b\nconfidence: 0.1\n---\nx\n"),
    ("tabs", "---\nid: a\nmeta:\n\tx: 1\nconfidence: 0.1\n---\nx\n"),
    ("json", "---\n{\"id\": \"seven\", \"confidence\": 0.2}\n---\nx\n"),
    ("words", "---\nid: no\ntitle: yes\ncountry: NO\nversion: 1.10\ndate: 2024-01-01\nconfidence: .5\n---\nx\n"),
    ("flow", "---\nid: eight\ntags: [\n  x, # one\n  y\n]\nconfidence: 0.4\n---\nx\n"),
    ("blanks", "---   \nid: nine\nconfidence: 0.4\n---  \nx\n"),
    ("no-end-of-line", "---\nid: ten\nconfidence: 0.4\n---"),
    ("scripts", "---\nid: eleven\ntitle: Größe – 重试 🚀\nconfidence: 0.4\n---\nx\u{2028}y\u{200b}z\n"),
    ("fence-in-block", "---\nid: twelve\nnote: |\n  ---\n  inside\nconfidence: 0.4\n---\nx\n"),
    ("template", "---\nid: {{id}}\nconfidence: 0.4\n---\nx\n"),
    ("nulls", "---\nid:\ntags:\nconfidence:\n---\nx\n"),
    ("quoted-names", "---\n\"id\": thirteen\n\"confidence\": 0.4\n---\nx\n"),
    ("last-comment", "---\nid: fourteen\nconfidence: 0.4\n# the end\n---\nx\n"),
    ("dots", "---\nid: fifteen\nconfidence: 0.4\n...\nx\n---\n"),
    ("wikilinks", "---\nid: sixteen\nrelated: [[Other note]]\nup: [[A]]\nconfidence: 0.4\n---\nx\n"),
    ("folded", "---\nid: seventeen\ntitle: a long title\n  that goes on\nconfidence: 0.4\n---\nx\n"),
    ("marks", "---\nid: a\nowner: @me\nconfidence: 0.4\n---\nx\n"),
    ("empty", ""),
    ("blank", " \n\t\n"),
    ("open-code", "# x\n\n```sh\n# no heading\n"),
    ("mixed-ends", "---\nid: eighteen\r\nconfidence: 0.4\n---\r\na\rb\r\n"),
    ("long-line", "x y [[a]] "),
    ("toml", "+++\ntitle = 'Hugo'\nconfidence = 0.4\n+++\nx\n"),
    ("late", "\n---\nid: late\n---\nx\n"),
    ("directive", "%YAML 1.2\n---\nid: directive\n---\nx\n"),
    ("logseq", "title:: Log\ntags:: a, b\n\n- x\n"),
];
/// The names of the files in which a single field cannot be changed.
const REFUSED: &[&str] =
    &["agent-memory", "twice", "tabs", "json", "marks", "open-fence", "toml", "late", "directive", "logseq"];

fn desk() -> Desk {
    let desk = Desk::new();
    for (name, text) in FILES {
        let text = if *name == "long-line" { text.repeat(20_000) } else { (*text).to_owned() };
        desk.write(&format!("{name}.md"), text);
    }
    desk.write("brain.yaml", "# mine\nbrain: 1\nignore: [x]\n");
    desk.write("picture.png", [0, 1, 2, 0xff]);
    desk.write(".obsidian/app.json", "{}");
    desk
}

#[test]
fn reading_changes_no_byte() {
    let desk = desk();
    let real = desk.copy_real();
    let before = desk.bytes();
    assert!(before.len() >= 32);
    let working = desk.working();
    // All files are units, except the picture and the settings. Two units have the same id.
    desk.wait_for("all to be read", |stands| stands["units"] == real + FILES.len());
    for (verb, params) in [
        ("context", json!({"task_description": "retries with jitter"})),
        ("list", json!({})),
        ("check", json!({})),
        ("status", json!({})),
        ("rebuild", json!({})),
        ("init", json!({"dir": desk.path("")})),
        ("context", json!({"task_description": "x", "limit": 20, "hops": 3})),
    ] {
        desk.call(verb, &params);
    }
    let (mut after, mut count) = (json!(""), 0);
    while !after.is_null() {
        let listed = desk.call("list", &json!({"after": after, "limit": 1000}));
        let units = listed["units"].as_array().unwrap();
        // Each answer checks every file, so the test asks only for some of the units if there are thousands.
        for unit in units.iter().step_by(1 + real / 100) {
            desk.call("get", &json!({"id": unit["id"]}));
        }
        count += units.len();
        after = listed["next"].clone();
    }
    drop(working);
    let after = desk.bytes();
    assert!(
        after == before,
        "files were changed: {:?}",
        after.iter().filter(|(path, text)| before.get(*path) != Some(*text))
    );
    eprintln!("{count} units, {} files, each byte as before", after.len());
}

#[test]
fn setting_a_field_changes_its_lines_or_nothing() {
    let desk = desk();
    desk.call("list", &json!({}));
    for (name, _) in FILES {
        let path = format!("{name}.md");
        let before = fs::read(desk.path(&path)).unwrap();
        let params = json!({"id": path, "field": "confidence", "value": 0.9});
        let caller = nudge_core::service::Caller::with_name("test");
        let set = desk.by(caller, "set_field", &params);
        let after = fs::read(desk.path(&path)).unwrap();
        assert_eq!(set.is_err(), REFUSED.contains(name), "{name}: {set:?}");
        let Ok(set) = set else {
            assert_eq!(after, before, "{name}");
            continue;
        };
        // Without the removed and the added lines, both texts are equal.
        let diff = set["diff"].as_str().unwrap();
        let without = |bytes: &[u8], sign: char| {
            let mut gone: Vec<&str> = diff.lines().filter_map(|line| line.strip_prefix(sign)).collect();
            let mut kept = Vec::new();
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                let text = String::from_utf8_lossy(line);
                match gone.iter().position(|own| *own == text.trim_end_matches(['\r', '\n'])) {
                    Some(index) => drop(gone.remove(index)),
                    None => kept.extend_from_slice(line),
                }
            }
            assert!(gone.is_empty(), "{name}: {gone:?}");
            kept
        };
        assert_eq!(without(&before, '-'), without(&after, '+'), "{name}");
        let got = desk.call("get", &json!({"id": path}));
        assert_eq!(got["frontmatter"]["confidence"], 0.9, "{name}");
    }
}
