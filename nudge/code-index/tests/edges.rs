//! Checks the targets of calls in small folders. There is a case for each rule, and for each mistake that was found.
//! Each language has a file with cases.
//!
//! A case begins with `### ` and a title, and each file of the case begins with `--- ` and the path. The text after
//! `=:` is the expected target of a call on that line. It has the form `name -> path:qualified.name how`, without the
//! path if the target is in the same file, or the form `name -> none`. `tests/code/fixtures.py` compares the same cases
//! with other tools.

use std::fmt::Write;
use std::sync::Arc;

use nudge_code_index::{CodeIndex, CodeLanguage, extract, is_manifest};

#[derive(Default)]
struct Case<'a> {
    title: &'a str,
    files: Vec<(&'a str, String)>,
    wanted: Vec<(&'a str, u32, &'a str)>,
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            cases.push(Case { title, ..Case::default() });
            continue;
        }
        let Some(case) = cases.last_mut() else { continue };
        if let Some(path) = line.strip_prefix("--- ") {
            case.files.push((path, String::new()));
            continue;
        }
        let Some((path, content)) = case.files.last_mut() else { continue };
        let (code, wanted) = line.split_once("=:").map_or((line, None), |(code, wanted)| (code, Some(wanted)));
        writeln!(content, "{}", code.trim_end().trim_end_matches(['/', '#'])).expect("a string takes all");
        let number = u32::try_from(content.lines().count()).expect("few lines");
        for edge in wanted.into_iter().flat_map(|wanted| wanted.split(';')) {
            case.wanted.push((path, number, edge.trim()));
        }
    }
    cases
}

fn index(case: &Case<'_>) -> CodeIndex {
    let mut index = CodeIndex::new();
    for (path, content) in &case.files {
        if is_manifest(path) {
            index.put_manifest(path, content.as_bytes());
        } else {
            let facts =
                extract(path, content.as_bytes()).unwrap_or_else(|skip| panic!("{}: {path}: {skip}", case.title));
            index.put_file(path, Arc::new(facts));
        }
    }
    index
}

fn check(file: &str, text: &str) {
    let mut wrong = String::new();
    let cases = cases(text);
    assert!(!cases.is_empty(), "{file}: no case");
    for case in cases {
        let index = index(&case);
        assert!(!case.wanted.is_empty(), "{file}: {}: nothing is asked", case.title);
        for (path, line, wanted) in &case.wanted {
            let (name, target) =
                wanted.split_once(" -> ").unwrap_or_else(|| panic!("{file}: {}: {wanted}", case.title));
            let said: Vec<String> = index
                .list_calls(path)
                .into_iter()
                .filter(|site| site.line == *line && site.name == name)
                .map(|site| match site.to.and_then(|(id, how)| Some((index.find_node(id)?, how))) {
                    Some((to, how)) => {
                        let prefix = if to.path == *path { String::new() } else { format!("{}:", to.path) };
                        let how = serde_json::to_string(&how).expect("a name");
                        format!("{prefix}{} {}", to.view.qual(), how.trim_matches('"'))
                    }
                    None => "none".into(),
                })
                .collect();
            if said.first().map(String::as_str) != Some(target) {
                writeln!(wrong, "{file}: {}: {path}:{line}: {wanted}, but {said:?}", case.title).expect("a string");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

macro_rules! edges {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), include_str!(concat!("edges/", stringify!($name), ".txt")));
        })*
    };
}

edges!(python rust typescript go java c);

#[cfg(feature = "code-all")]
edges!(cpp ruby c_sharp php);

#[test]
fn a_chain_of_names_ends() {
    let mut text = String::from("class A:\n    def m(self): pass\nx0 = A()\n");
    for number in 1..3_000 {
        writeln!(text, "x{number} = x{}", number - 1).expect("a string takes all");
    }
    text.push_str("x9.m()\nx2999.m()\n");
    let case = Case { title: "chain", files: vec![("a.py", text)], ..Case::default() };
    let known: Vec<bool> =
        index(&case).list_calls("a.py").iter().filter(|site| site.name == "m").map(|site| site.to.is_some()).collect();
    assert_eq!(known, [true, false], "one that is short, and one that no machine's stack would take");
}

#[test]
fn each_language_is_read() {
    for path in ["a.rs", "a.py", "a.js", "a.ts", "a.tsx", "a.go", "a.java", "a.c"] {
        let language = CodeLanguage::from_path(path).expect(path);
        assert_eq!(extract(path, b"\n").expect(path).language, language);
    }
    assert_eq!(CodeLanguage::from_path("a.unknown"), None);
    assert_eq!(CodeLanguage::from_path(".py"), None);
}
