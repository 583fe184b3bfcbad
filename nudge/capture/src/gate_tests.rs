//! Tests which proposals each gate accepts and which it refuses.

use super::*;

const SENT: &str =
    "user how do retries go? assistant clients that fail together must not retry together: use full jitter.";
const BODY: &str = "Clients that fail together must not retry together. Wait a random time between zero and a growing ceiling, \
and cap the ceiling; the load of a whole fleet then spreads by itself.";

fn good() -> UnitProposal {
    UnitProposal {
        kind: "pattern".into(),
        title: "Retry with full jitter".into(),
        body: BODY.into(),
        domain: "Coding".into(),
        tags: vec!["Retry".into(), "retry".into(), " ".into()],
        confidence: Some(0.8),
        scope: "general".into(),
        durable: true,
        quote: "clients that fail together  MUST not\nretry together".into(),
        related: vec![
            ProposedRelation { id: "known".into(), kind: "uses".into() },
            ProposedRelation { id: "unknown".into(), kind: "uses".into() },
            ProposedRelation { id: "known".into(), kind: "likes".into() },
        ],
        updates: Some("unknown".into()),
    }
}

fn judged(proposal: UnitProposal) -> Result<UnitProposal, RejectedProposal> {
    let scene = GateFacts {
        sent: SENT,
        project: &["shopfront".into(), "src".into()],
        home: Some(Path::new("/srv/people/ann")),
        has: &|id| id == "known",
        same: &|title, _| (title == "Retry without jitter").then(|| "known".to_owned()),
    };
    apply_gates(proposal, &scene)
}

/// Changes a good proposal, and returns the name of the gate that refuses the result.
fn gate(change: impl FnOnce(&mut UnitProposal)) -> String {
    let mut proposal = good();
    change(&mut proposal);
    judged(proposal).map_or_else(|rejected| rejected.gate, |_| String::new())
}

#[test]
fn what_is_good_passes_and_is_tidied() {
    let passed = judged(good()).unwrap();
    assert_eq!((passed.domain.as_str(), &passed.tags[..]), ("coding", &["retry".to_owned()][..]));
    assert_eq!(passed.related, [ProposedRelation { id: "known".into(), kind: "uses".into() }]);
    assert_eq!(passed.updates, None, "there is no such unit");
    let mut loose = good();
    loose.title = " Retry with full jitter\n".into();
    loose.body = format!("\r\n{}\r\n", BODY.replace(". ", ".\r\n"));
    let passed = judged(loose).unwrap();
    assert_eq!((passed.title.as_str(), passed.body), ("Retry with full jitter", BODY.replace(". ", ".\n")));
}

#[test]
fn form_and_length() {
    assert_eq!(gate(|unit| unit.kind = "story".into()), "schema");
    assert_eq!(gate(|unit| unit.title = "Retry\u{202e} with jitter".into()), "schema");
    assert_eq!(gate(|unit| unit.title = "Retries".into()), "length");
    assert_eq!(gate(|unit| unit.title = "x".repeat(121)), "length");
    assert_eq!(gate(|unit| unit.body = "Too short.".into()), "length");
    assert_eq!(gate(|unit| unit.body = "word ".repeat(1_300)), "length");
    for (said, kept) in [(Some(7.0), None), (Some(-0.1), None), (Some(f64::NAN), None), (Some(1.0), Some(1.0))] {
        let passed = judged(UnitProposal { confidence: said, ..good() }).unwrap();
        assert_eq!(passed.confidence, kept, "a number that means nothing is dropped: {said:?}");
    }
}

#[test]
fn scope_durability_and_quote() {
    assert_eq!(gate(|unit| unit.scope = "project".into()), "scope");
    assert_eq!(gate(|unit| unit.durable = false), "durable");
    for quote in ["", "jitter", "nobody has ever said that here", "[line withheld: jwt]"] {
        assert_eq!(gate(|unit| unit.quote = quote.into()), "quote", "{quote}");
    }
}

#[test]
fn nothing_private() {
    for part in [
        "See /home/ann/notes.",
        "See /srv/people/ann/notes.",
        "Fixed in 3f2a9bc1.",
        "See SHOP-1234.",
        "See #4711.",
        r"In C:\Users\ann it is.",
    ] {
        assert_eq!(gate(|unit| unit.body = format!("{BODY} {part}")), "private", "{part}");
    }
    for part in [
        "Hash with SHA-256, write UTF-8.",
        "The effaced facade decade.",
        "Listen on port 12345.",
        "See RFC-7231, 2026-11-22.",
    ] {
        assert_eq!(gate(|unit| unit.body = format!("{BODY} {part}")), "", "{part}");
    }
}

#[test]
fn not_of_the_project() {
    assert_eq!(gate(|unit| unit.title = "How shopfront retries".into()), "project");
    assert_eq!(gate(|unit| unit.body = format!("{BODY} Shopfront. Shopfront.")), "");
    assert_eq!(gate(|unit| unit.body = format!("{BODY} Shopfront. Shopfront! shopfront?")), "project");
    assert_eq!(gate(|unit| unit.title = "Shopfronts retry with jitter".into()), "", "another word");
    assert_eq!(gate(|unit| unit.title = "Keep sources in src".into()), "", "every project has that");
}

#[test]
fn refusals_and_chatter() {
    for part in
        ["As an AI, I cannot help.", "I\u{2019}m sorry.", "The user asked for it.", "In this session the tests passed."]
    {
        assert_eq!(gate(|unit| unit.body = format!("{BODY} {part}")), "refusal", "{part}");
    }
    assert_eq!(gate(|unit| unit.body = "retry jitter ".repeat(20)), "refusal");
}

#[test]
fn secrets_and_what_is_there() {
    let token = ["ghp", "_", "q7Zk2Vx9Lw4Tn8Rb3Yc6Md1Hf5Js0PgAeUoK"].concat();
    assert_eq!(gate(|unit| unit.body = format!("{BODY} {token}")), "secret");
    let mut secret = good();
    secret.title = format!("Use {token}");
    assert_eq!(judged(secret).unwrap_err().title, "(withheld)");
    let mut same = good();
    same.title = "Retry without jitter".into();
    let rejected = judged(same).unwrap_err();
    assert_eq!((rejected.gate.as_str(), rejected.of.as_deref()), ("duplicate", Some("known")));
    assert_eq!(rejected.text.as_deref(), Some(BODY), "it may change the unit that is there");
}

#[test]
fn answers_of_models() {
    let unit = serde_json::json!({"type": "pattern", "title": "t", "body": "b", "domain": "d", "scope": "general", "durable": true, "quote": "q"});
    let (proposals, rejected) = read(&serde_json::json!({"units": [unit, {"title": "half"}, 7]})).unwrap();
    assert_eq!((proposals.len(), rejected.len()), (1, 2));
    assert_eq!((rejected[0].title.as_str(), rejected[0].gate.as_str()), ("half", "schema"));
    assert_eq!(read(&serde_json::json!([])).unwrap().0, []);
    for odd in
        [serde_json::json!({}), serde_json::json!("x"), serde_json::json!({"units": {}}), serde_json::json!(null)]
    {
        assert!(read(&odd).is_none(), "{odd}");
    }
}
