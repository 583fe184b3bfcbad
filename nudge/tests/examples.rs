//! Tests the page of examples that agents read: every example can be stored and has three to six tags.

use nudge::{Context, Nudge, SetHint};

#[test]
fn every_example_is_accepted_and_has_the_tags_that_it_should_have() {
    let store = Nudge::default();
    let page = include_str!("../docs/examples.md");
    let examples: Vec<_> = page.lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(examples.len(), 10);
    for example in examples {
        let hint: SetHint = serde_json::from_str(example).unwrap();
        assert!((3..=6).contains(&hint.meta.tags.len()), "{example}");
        store.set(hint).unwrap();
    }
    let context = Context::builder().repo("acme/shop").branch("dev").build().unwrap();
    assert_eq!(store.get("shop", "deploy", &context).unwrap().hint().text(), "make deploy ENV=staging");
}
