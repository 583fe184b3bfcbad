use proptest::prelude::*;

use super::*;

#[path = "glob_oracle.rs"]
mod oracle;

fn cwd_matches(pattern: &str, cwd: &str) -> bool {
    Glob::new(pattern, GlobKind::Cwd)
        .unwrap()
        .matches(&GlobSubject::from_cwd(cwd, false).unwrap(), &mut StepBudget::unlimited())
        .unwrap()
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
    let text = |cwd, windows| GlobSubject::from_cwd(cwd, windows).map(|subject| subject.as_str().to_owned());
    assert_eq!(text(r"/a\b", false).as_deref(), Some(r"/a\b"));
    assert_eq!(text(r"\a\b", true).as_deref(), Some("/a/b"));
    assert_eq!(text(r"C:\a\\b\", false).as_deref(), Some("C:/a/b"));
    assert_eq!(text("C:/", false).as_deref(), Some("C:/"));
    for bad in ["", "a/b", ".", "C:", "C:x", "/a/../b", r"C:\a\..", "~"] {
        assert_eq!(text(bad, false), None, "{bad}");
    }
    let above = |pattern: &str, cwd: &str| {
        Glob::new(pattern, GlobKind::Cwd)
            .unwrap()
            .matches_above(&GlobSubject::from_cwd(cwd, false).unwrap(), &mut StepBudget::unlimited())
            .unwrap()
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
    assert!(Glob::new(&format!("/{}", "x".repeat(511)), GlobKind::Cwd).is_ok());
    assert!(Glob::new(&format!("/{}", "x".repeat(512)), GlobKind::Cwd).is_err());
    assert!(Glob::new(&"{a,b}".repeat(60), GlobKind::Cwd).is_err());
    assert!(Glob::new(&"{".repeat(512), GlobKind::Cwd).is_err());
    assert!(Glob::new(&format!("/{}{}", "{".repeat(255), "}".repeat(255)), GlobKind::Cwd).is_ok());
}

#[test]
fn a_pattern_that_no_absolute_folder_can_match_is_refused() {
    for pattern in ["src", "src/**", "./x", "src*/x", "1*", ".*/x", "{src,lib}/**", "{a,b}", "dc:/x"] {
        assert!(Glob::new(pattern, GlobKind::Cwd).is_err(), "{pattern}");
        assert!(Glob::new(pattern, GlobKind::Branch).is_ok(), "{pattern}");
    }
    for pattern in [
        "/",
        "**",
        "**/src",
        "*/x",
        "?:/x",
        "[a-z]:/x",
        "c*/x",
        "C:",
        "C:/x",
        "//s/x",
        r"\\s\x",
        "{src,/a}/b",
        "*",
        "**x/y",
    ] {
        assert!(Glob::new(pattern, GlobKind::Cwd).is_ok(), "{pattern}");
    }
}

/// A pattern takes only the memory of its text, even with many alternatives.
#[test]
fn alternatives_take_no_memory() {
    let pattern = format!("/{}", "{a,b}".repeat(7));
    let glob = Glob::new(&pattern, GlobKind::Cwd).unwrap();
    assert_eq!(oracle::expand_braces(&pattern).unwrap().len(), 128);
    assert!(glob.heap_bytes() <= pattern.len() + 32 && size_of::<Glob>() <= 48, "{}", glob.heap_bytes());
    for pattern in ["/a/{b,c}/**", "C:/{a,b}", "/{a,b,c,d}{a,b,c,d}", "/a"] {
        let bytes = Glob::new(pattern, GlobKind::Cwd).unwrap().heap_bytes();
        assert!(bytes <= 3 * pattern.len() + 48, "{pattern}: {bytes}");
    }
}

#[test]
fn steps_are_counted_and_end() {
    let taken = |pattern: &str, text: &str| {
        let mut steps = StepBudget::of_a_call();
        let before = steps.remaining();
        let matched = Glob::new(pattern, GlobKind::Cwd)
            .unwrap()
            .matches(&GlobSubject::from_cwd(text, false).unwrap(), &mut steps);
        (matched.ok(), before - steps.remaining())
    };
    let folder = "/home/somebody/work/company/projects/backend/services/http-proxy/src/main/java/com/example/proxy/api";
    for (pattern, most) in [
        ("/home/other/**", 2),
        ("/srv/{api,web,db}/**", 2),
        ("**/http-proxy/**", 60),
        ("**/*-service/**", 150),
        ("/home/somebody/work/{api,company}/**", 100),
    ] {
        let (_, steps) = taken(pattern, folder);
        assert!(steps <= most, "{pattern} took {steps} steps");
    }
    // The steps of one call suffice for fewer than a few dozen of these patterns.
    let bomb = format!("/*{}b", "a".repeat(500));
    let (matched, steps) = taken(&bomb, &format!("/{}", "a".repeat(4000)));
    assert!(matched == Some(false) && steps > 100_000, "{steps}");
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
            Glob::new(pattern, GlobKind::Branch)
                .unwrap()
                .matches(&GlobSubject::from_branch(branch), &mut StepBudget::unlimited())
                .unwrap(),
            expected,
            "{pattern} on {branch}"
        );
    }
}

/// Matches the same patterns by brute force: tries every way to split the text.
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
    /// Promise (hints): The glob matcher accepts the same paths as a brute-force matcher, and the same as all
    /// alternatives of its braces.
    #[test]
    fn agrees_with_brute_force(
        pattern in prop::collection::vec("[ab*?]{1,4}|\\*\\*", 1..5),
        text in prop::collection::vec("[ab]{1,4}", 1..6),
    ) {
        let (pattern_text, text_text) = (format!("/{}", pattern.join("/")), format!("/{}", text.join("/")));
        let pattern: Vec<_> = pattern.iter().map(String::as_str).collect();
        let text: Vec<_> = text.iter().map(String::as_str).collect();
        let glob = Glob::new(&pattern_text, GlobKind::Branch).unwrap();
        prop_assert_eq!(glob.matches(&GlobSubject::from_branch(&*text_text), &mut StepBudget::unlimited()).unwrap(), slow(&pattern, &text));
    }

    /// The alternatives that are expanded one by one are the same as the oracle's list of all alternatives.
    ///
    /// Promise: see `agrees_with_brute_force`.
    #[test]
    fn agrees_with_every_alternative_written_down(
        pattern in "(/|//|/\\./|a|b|B|é|,|\\.|\\*|/\\*\\*|\\?|\\[ab\\]|\\[!a,\\]|\\{|\\{a|,b\\}|\\}|\\{1\\.\\.3\\}|C:|,//){1,12}",
        texts in prop::collection::vec("(|/|C:|//)((a|b|ab|B|é|1|\\.a)/?){0,5}", 8),
        kind in prop::sample::select(vec![GlobKind::Cwd, GlobKind::Branch]),
    ) {
        let Ok(glob) = Glob::new(&pattern, kind) else { return Ok(()) };
        let (mut alternatives, mut all) = (BraceAlternatives::new(glob.as_str()), Vec::new());
        while let Some(alternative) = alternatives.next(&mut StepBudget::unlimited()).unwrap() {
            all.push(alternative.to_owned());
        }
        prop_assert_eq!(all, oracle::expand_braces(glob.as_str()).unwrap());
        for text in texts {
            let subject = match kind {
                GlobKind::Cwd => GlobSubject::from_cwd(&text, false),
                GlobKind::Branch => Some(GlobSubject::from_branch(&*text)),
            };
            let Some(subject) = subject else { continue };
            let found = glob.matches(&subject, &mut StepBudget::unlimited()).unwrap();
            prop_assert_eq!(found, oracle::oracle_matches(glob.as_str(), kind, &subject), "{} on {}", glob.as_str(), text);
        }
    }

    /// The check refuses a pattern that is too large, or that has an open bracket, without storing the alternatives.
    #[test]
    fn refuses_as_every_alternative_written_down(pattern in "(a|bcd{9}|,|\\{|\\}|\\{,|\\[,\\]|\\]|\\{a,b\\}){1,14}") {
        let expected = oracle::expand_braces(&pattern).is_ok();
        prop_assert_eq!(Glob::new(&format!("/x{pattern}"), GlobKind::Branch).is_ok(), expected, "{}", pattern);
    }

    #[test]
    fn never_panics(pattern in "[a/*?{},\\[\\]!^.\\-é]{0,40}", text in "[a/é.]{0,40}") {
        if let (Ok(glob), Some(cwd)) = (Glob::new(&pattern, GlobKind::Cwd), GlobSubject::from_cwd(format!("/{text}"), false)) {
            glob.matches(&cwd, &mut StepBudget::unlimited()).unwrap();
            let again = Glob::new(glob.as_str(), GlobKind::Cwd).unwrap();
            prop_assert_eq!(again.as_str(), glob.as_str());
        }
    }
}
