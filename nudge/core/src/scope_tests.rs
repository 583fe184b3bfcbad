use super::*;

fn scope(json: &str) -> Scope {
    Scope::new(&wire::parse_json(json, "scope").unwrap()).unwrap()
}

#[test]
fn equal_scopes_have_one_form() {
    let parsed = scope(
        r#"{"os":["windows","darwin","windows"],"repo":"GIT@github.com:Org/x.git","cwd_glob":["/b/","/a"],"branch":[],"env_match":{"B":["2","1"],"A":"x"}}"#,
    );
    assert_eq!(
        parsed.canonical_json(),
        r#"{"cwd_glob":["/a","/b"],"env_match":{"A":["x"],"B":["1","2"]},"os":["darwin","windows"],"repo":["github.com/org/x"]}"#
    );
    assert_eq!(parsed.specificity(), 4);
    assert_eq!(parsed.variant().len(), 12);
    assert_eq!(scope(parsed.canonical_json()).variant(), parsed.variant());
    assert_eq!(Scope::new(&parsed.to_spec()).unwrap().variant(), parsed.variant());
    assert_eq!(scope("{}").variant(), "");
    // Another implementation computed this SHA-256 of {"os":["linux"]}.
    assert_eq!(scope(r#"{"os":"linux"}"#).variant(), "6b64c9434700");
}

#[test]
fn refused() {
    for (json, reason) in [
        (r#"{"cwd_glob":[""]}"#, "E_SCOPE_INVALID"),
        (r#"{"branch":""}"#, "E_SCOPE_INVALID"),
        (r#"{"repo":""}"#, "E_INVALID"),
        (r#"{"repo":["a/../b","https://x"],"cwd_glob":".."}"#, "E_INVALID"),
        (r#"{"env_required":[""]}"#, "E_INVALID"),
        (r#"{"env_match":{"A":[]}}"#, "E_INVALID"),
        (r#"{"env_match":{"A":""}}"#, "E_INVALID"),
        (r#"{"env_match":{"":"x"}}"#, "E_INVALID"),
    ] {
        let spec: ScopeSpec = wire::parse_json(json, "scope").unwrap();
        assert_eq!(Scope::new(&spec).unwrap_err().reason(), reason, "{json}");
    }
    for json in [r#"{"os":"macos"}"#, r#"{"os":[1]}"#, r#"{"cwd":"x"}"#, r#"{"env_match":["A"]}"#, "[1]"] {
        assert!(wire::parse_json::<ScopeSpec>(json, "scope").is_err(), "{json}");
    }
}

#[test]
fn what_is_held_counts_every_text_twice_as_json_and_as_itself() {
    let long = "x".repeat(200);
    // Even the text of one letter takes the smallest allocation, 32 bytes, so the first 32 bytes of the long text cost
    // nothing more.
    let twice = 2 * (long.len() - 32);
    for json in [
        r#"{"cwd_glob":["/TEXT"]}"#,
        r#"{"repo":["host/TEXT"]}"#,
        r#"{"branch":["TEXT"]}"#,
        r#"{"env_required":["TEXT"]}"#,
        r#"{"env_match":{"TEXT":["x"]}}"#,
        r#"{"env_match":{"A":["TEXT"]}}"#,
    ] {
        let held = |text: &str| scope(&json.replace("TEXT", text)).held_bytes();
        let (short, more) = (held("x"), held(&long));
        assert!(short >= size_of::<Scope>() && more >= short + twice, "{json}: {short}, then {more}");
        let [single, both] =
            [r#"{"os":"linux"}"#.to_owned(), json.replacen('{', r#"{"os":"linux","#, 1).replace("TEXT", &long)];
        assert!(scope(&both).held_bytes() > scope(&single).held_bytes() + twice, "{json}");
    }
}
