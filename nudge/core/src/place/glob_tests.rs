use proptest::prelude::*;

use super::*;

fn cwd_matches(pattern: &str, cwd: &str) -> bool {
    Glob::new(pattern, GlobKind::Cwd).unwrap().matches(&Subject::cwd(cwd, false).unwrap())
}

#[test]
fn folders() {
    for (pattern, cwd, expected) in [
        ("/work/x", "/work/x", true),
        ("/work/x", "/work/x/", true),
        ("/work/x/", "/work/x", true),
        ("/work/x", "/work/xy", false),
        ("/work/*", "/work/x", true),
        ("/work/*", "/work/x/y", false),
        ("/work/?", "/work/é", true),
        ("/work/?", "/work", false),
        ("**", "/anything/at/all", true),
        ("**", "/", true),
        ("/**", "/", true),
        ("/", "/", true),
        ("/", "/x", false),
        ("**/x*", "/xyz", true),
        ("**/x*", "/a/b/xyz", true),
        ("**/x*", "/a/.b/xz", true),
        ("**/x*", "/a/xyz/deeper", false),
        ("/a/**", "/a", true),
        ("/a/**", "/a/b/c", true),
        ("/a/**", "/ab", false),
        ("/a/**/c", "/a/c", true),
        ("/a/**/c", "/a/b/b/c", true),
        ("/a/**/c", "/a/bc", false),
        ("/a/**/c*d", "/a/c/x/cd", true),
        ("/a/**/b/**/c", "/a/x/b/y/b/z/c", true),
        ("/a**b/c", "/axxb/c", true),
        ("/a**b/c", "/ax/xb/c", false),
        ("**x", "/x", false),
        ("**/src/**", "/p/src", true),
        ("**/*a*b*c", "/k/xaybzc", true),
        ("**/*a*b*c", "/k/xaybz/c", false),
        ("/[a-c]x", "/bx", true),
        ("/[!a-c]x", "/bx", false),
        ("/[^a-c]x", "/dx", true),
        ("/a[!b]c", "/a/c", false),
        ("/[]a]", "/]", true),
        ("/a[x[^b]", "/a^", true),
        ("/a[x[^b]", "/a!", false),
        (r"{//srv/share/x,/y}", r"\\srv\share\x", true),
        ("/[a-]", "/-", true),
        ("/{a,b}/c", "/b/c", true),
        ("/{a,b/d}/c", "/b/d/c", true),
        ("/{a,{b,c}}x", "/cx", true),
        ("/{a}", "/a", true),
        ("/a{,b}", "/a", true),
        ("/a/{**,b}/c", "/a/x/y/c", true),
        ("/a/{,b}/c", "/a/c", true),
        ("/n{1..3}", "/n{1..3}", true),
        ("/n{1..3}", "/n2", false),
        ("/[{]x", "/{x", true),
        (r"\work\x", "/work/x", true),
        ("/work//./x", "/work/x", true),
        ("/work/x", "/work//./x/.", true),
        ("C:/Code/*", r"c:\code\Proxy", true),
        (r"c:\code\**", "C:/CODE", true),
        ("C:/**", r"C:\", true),
        (r"\\Srv\share\**", r"\\srv\Share\x", true),
        ("**/code", "C:/code", true),
        ("**/Code", "C:/code", false),
        ("/Work", "/work", false),
        ("/a/..b", "/a/..b", true),
    ] {
        assert_eq!(cwd_matches(pattern, cwd), expected, "{pattern} on {cwd}");
    }
}

#[test]
fn cwd_forms() {
    let text = |cwd, windows| Subject::cwd(cwd, windows).map(|subject| subject.as_str().to_owned());
    assert_eq!(text(r"/a\b", false).as_deref(), Some(r"/a\b"));
    assert_eq!(text(r"\a\b", true).as_deref(), Some("/a/b"));
    assert_eq!(text(r"C:\a\\b\", false).as_deref(), Some("C:/a/b"));
    assert_eq!(text("C:/", false).as_deref(), Some("C:/"));
    for bad in ["", "a/b", ".", "C:", "C:x", "/a/../b", r"C:\a\..", "~"] {
        assert_eq!(text(bad, false), None, "{bad}");
    }
    let above = |pattern: &str, cwd: &str| {
        Glob::new(pattern, GlobKind::Cwd).unwrap().matches_above(&Subject::cwd(cwd, false).unwrap())
    };
    assert!(above("**/x*", "/a/xy/b/c") && above("/", "/a") && above("{/a,/b}", "/b/c"));
    assert!(!above("**/x*", "/a/b") && !above("/a/**", "/b"));
}

#[test]
fn refused() {
    for pattern in [
        "",
        ".",
        "./.",
        "..",
        "/a/../b",
        "/a/%2e%2E/b",
        "/a/.%2e",
        r"/a\..\b",
        "/a%2f..%2fb",
        "/{..}/b",
        "/{.,x}{.,y}",
        "a\u{7}",
        "!x",
        "~/x",
        "/@(a|b)",
        "/+(a)",
        "/*(a)",
        "/?(a)",
        "/!(a)",
        "/{a",
        "/a}",
        "/[a",
        "/a]",
        "/{a,[}",
        "/{a,{b}",
    ] {
        assert!(Glob::new(pattern, GlobKind::Cwd).is_err(), "{pattern}");
        assert!(Glob::new(pattern, GlobKind::Branch).is_err(), "{pattern}");
    }
    assert!(Glob::new(&"x".repeat(512), GlobKind::Cwd).is_ok());
    assert!(Glob::new(&"x".repeat(513), GlobKind::Cwd).is_err());
    assert!(Glob::new(&"{a,b}".repeat(60), GlobKind::Cwd).is_err());
    assert!(Glob::new(&"{".repeat(512), GlobKind::Cwd).is_err());
    assert!(Glob::new(&format!("{}{}", "{".repeat(256), "}".repeat(256)), GlobKind::Cwd).is_ok());
}

#[test]
fn branches() {
    for (pattern, branch, expected) in [
        ("hotfix/*", "hotfix/a", true),
        ("hotfix/*", "hotfix/a/b", false),
        ("hotfix/**", "hotfix/a/b", true),
        ("hotfix/**", "hotfix", true),
        ("**/fix", "fix", true),
        ("**", "x/y", true),
        ("{main,dev}", "dev", true),
        ("Main", "main", false),
        ("v[0-9].*", "v2.1", true),
    ] {
        assert_eq!(
            Glob::new(pattern, GlobKind::Branch).unwrap().matches(&Subject::branch(branch)),
            expected,
            "{pattern} on {branch}"
        );
    }
}

/// Matches the same patterns by brute force: every way to split the text is tried.
fn slow(pattern: &[&str], text: &[&str]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ["**", rest @ ..] => (0..=text.len()).any(|taken| slow(rest, &text[taken..])),
        [first, rest @ ..] => text
            .split_first()
            .is_some_and(|(head, tail)| slow_segment(first.as_bytes(), head.as_bytes()) && slow(rest, tail)),
    }
}

fn slow_segment(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|taken| slow_segment(rest, &text[taken..])),
        [first, rest @ ..] => {
            text.split_first().is_some_and(|(head, tail)| (*first == b'?' || first == head) && slow_segment(rest, tail))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn agrees_with_brute_force(
        pattern in prop::collection::vec("[ab*?]{1,4}|\\*\\*", 1..5),
        text in prop::collection::vec("[ab]{1,4}", 1..6),
    ) {
        let (pattern_text, text_text) = (format!("/{}", pattern.join("/")), format!("/{}", text.join("/")));
        let pattern: Vec<_> = pattern.iter().map(String::as_str).collect();
        let text: Vec<_> = text.iter().map(String::as_str).collect();
        let glob = Glob::new(&pattern_text, GlobKind::Branch).unwrap();
        prop_assert_eq!(glob.matches(&Subject::branch(&text_text)), slow(&pattern, &text));
    }

    #[test]
    fn never_panics(pattern in "[a/*?{},\\[\\]!^.\\-é]{0,40}", text in "[a/é.]{0,40}") {
        if let (Ok(glob), Some(cwd)) = (Glob::new(&pattern, GlobKind::Cwd), Subject::cwd(&format!("/{text}"), false)) {
            glob.matches(&cwd);
            let again = Glob::new(glob.as_str(), GlobKind::Cwd).unwrap();
            prop_assert_eq!(again.as_str(), glob.as_str());
        }
    }
}
