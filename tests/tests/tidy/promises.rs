//! Makes the tables of promises from the comments above the tests of these promises.
//!
//! The comment of the first test has the section and the sentence: `Promise (SECTION): SENTENCE`. The sentence ends at
//! an empty line or at another tag. The comment of a further test names the first test: ``Promise: see `NAME`.`` In a
//! test vector the tag ends the `why`.

use std::fmt::Write as _;
use std::fs;

use super::{files, has_generated_part, root};

const PAGE: &str = "nudge/docs/promises.md";
const BEGINS: &str = "<!-- promises: UPDATE=1 cargo test -p nudge-tests --test tidy -->";
const ENDS: &str = "<!-- end of promises -->";

/// The sections of the page in order.
const SECTIONS: [&str; 12] = [
    "hints",
    "kept hints",
    "storage",
    "session",
    "server",
    "programs",
    "command line",
    "agents",
    "sources",
    "models",
    "bindings",
    "code and documents",
];

struct PromiseTag {
    tag: TagKind,
    /// `FILE::NAME`, or the path of a command.
    test: String,
}

enum TagKind {
    First { section: String, sentence: String },
    Further { first: String },
}

impl TagKind {
    /// Reads the tag in the text of a comment without comment marks. Returns `None` if there is no tag.
    fn read(text: &str) -> Option<Self> {
        if let Some(first) = text.strip_prefix("Promise: see ") {
            return Some(Self::Further { first: first.trim_end_matches('.').trim_matches('`').to_owned() });
        }
        let (section, sentence) = text.strip_prefix("Promise (")?.split_once("): ")?;
        Some(Self::First { section: section.to_owned(), sentence: sentence.to_owned() })
    }
}

#[test]
fn the_page_of_promises_has_what_stands_above_the_tests() {
    has_generated_part(PAGE, BEGINS, ENDS, &promise_tables());
}

#[test]
fn promises_are_read_in_every_form() {
    for (file, text, tests) in [
        (
            "a.rs",
            "/// Text.\n///\n/// Promise (hints): A read\n/// is free.\n#[test]\nfn a() {",
            vec!["a.rs::a A read is free."],
        ),
        ("a.rs", "/// Promise: see `a`.\n/// Promise: see `b`.\n#[test]\nfn c() {", vec!["a.rs::c a", "a.rs::c b"]),
        ("a.py", "# Promise: see `a`.\n@skip\ndef test_b() -> None:", vec!["a.py::test_b a"]),
        ("a.mjs", "// Promise: see `a`.\nit('does b', () => 1)", vec!["a.mjs::does b a"]),
        ("a.json", "\"name\": \"b, c\",\n\"why\": \"semantics 2. Promise: see `a`.\",", vec!["a.json::b, c a"]),
        ("tests/run", "#!/bin/sh\n# Runs.\n#\n# Promise (hints): It runs.\nset -e", vec!["tests/run It runs."]),
    ] {
        let read = read_tags(file, text).into_iter().map(|tag| match tag.tag {
            TagKind::First { sentence, .. } => format!("{} {sentence}", tag.test),
            TagKind::Further { first } => format!("{} {first}", tag.test),
        });
        assert_eq!(read.collect::<Vec<_>>(), tests, "{text}");
    }
}

fn promise_tables() -> String {
    let mut tags = Vec::new();
    for file in files().iter().filter(|file| *file != "tests/tests/tidy/promises.rs") {
        if let Some(text) = has_tags(file).then(|| fs::read_to_string(root().join(file)).ok()).flatten() {
            tags.extend(read_tags(file, &text));
        }
    }
    tags.sort_by(|a, b| a.test.cmp(&b.test));

    let name = |test: &str| test.split_once("::").map_or(test, |(_, name)| name).to_owned();
    let mut promises = Vec::new();
    for tag in &tags {
        if let TagKind::First { section, sentence } = &tag.tag {
            assert!(SECTIONS.contains(&section.as_str()), "{}: no section {section}; see SECTIONS", tag.test);
            promises.push((section, sentence, vec![tag.test.as_str()]));
        }
    }
    for tag in &tags {
        if let TagKind::Further { first } = &tag.tag {
            let mut named = promises.iter_mut().filter(|(_, _, tests)| name(tests[0]) == *first);
            let (Some((_, _, tests)), None) = (named.next(), named.next()) else {
                panic!("{}: not one promise stands above a test named {first}", tag.test);
            };
            tests.push(&tag.test);
        }
    }
    assert!(promises.len() > 80, "the walk found the promises, not only {}", promises.len());

    let mut out = String::new();
    for section in SECTIONS {
        let title = section[..1].to_uppercase() + &section[1..];
        let _ = writeln!(out, "## {title}\n\n| promise | shown by |\n|---|---|");
        for (_, sentence, tests) in promises.iter().filter(|(heading, ..)| *heading == section) {
            let tests: Vec<_> = tests.iter().map(|test| format!("`{test}`")).collect();
            let _ = writeln!(out, "| {} | {} |", sentence.replace('|', "\\|"), tests.join(", "));
        }
        out.push('\n');
    }
    out.trim_end().to_owned() + "\n"
}

/// Returns true for files whose tags are read: sources, test vectors, and commands of the tests.
fn has_tags(file: &str) -> bool {
    match extension(file) {
        Some(extension) => {
            ["rs", "py", "mjs"].contains(&extension) || (extension == "json" && file.starts_with("tests/vectors/"))
        }
        None => file.starts_with("tests/"),
    }
}

fn extension(file: &str) -> Option<&str> {
    file.rsplit('/').next()?.rsplit_once('.').map(|(_, extension)| extension)
}

fn read_tags(file: &str, text: &str) -> Vec<PromiseTag> {
    let mark = match extension(file) {
        Some("rs") => "///",
        Some("mjs") => "//",
        Some("json") => return read_vector_tags(file, text),
        _ => "#",
    };
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let comment = |index: usize| lines.get(index).and_then(|line| line.strip_prefix(mark)).map(str::trim);
    let begins = |text: &str| text.starts_with("Promise (") || text.starts_with("Promise: see ");
    let mut out = Vec::new();
    for index in 0..lines.len() {
        let Some(first) = comment(index).filter(|text| begins(text)) else { continue };
        let more = (index + 1..).map_while(comment).take_while(|text| !text.is_empty() && !begins(text));
        let whole: Vec<_> = std::iter::once(first).chain(more).collect();
        let tag = TagKind::read(&whole.join(" ")).unwrap_or_else(|| panic!("{file}: {first}"));
        let shown_by = if extension(file).is_some() {
            format!("{file}::{}", named_test(file, &lines, index).unwrap_or_else(|| panic!("{file}: no test: {first}")))
        } else {
            file.to_owned()
        };
        out.push(PromiseTag { tag, test: shown_by });
    }
    out
}

/// Finds the name of the test below a comment. A Rust function is a test if it has the attribute. In a file without
/// Rust's test harness, the test is `main`, or a name in `trial("NAME", ..)`.
fn named_test<'a>(file: &str, all: &[&'a str], from: usize) -> Option<&'a str> {
    let lines = &all[from..];
    let name = |line: &'a str| match extension(file) {
        Some("rs") => line.strip_prefix("fn ")?.split(['(', '<']).next(),
        Some("py") => line.trim_start_matches("async ").strip_prefix("def ")?.split('(').next(),
        _ => line.strip_prefix("it('")?.split('\'').next(),
    };
    let (index, name) = lines.iter().enumerate().find_map(|(index, line)| Some((index, name(line)?)))?;
    let is_test = extension(file) != Some("rs") || name == "main" || lines[..index].contains(&"#[test]");
    let is_listed = || all.iter().any(|line| line.starts_with(&format!("trial(\"{name}\"")));
    (is_test || is_listed()).then_some(name)
}

/// Reads the tag at the end of a vector's `why`. The line above has the vector's name.
fn read_vector_tags(file: &str, text: &str) -> Vec<PromiseTag> {
    let lines: Vec<_> = text.lines().map(|line| line.trim().trim_end_matches(',').trim_end_matches('"')).collect();
    let pairs = lines.iter().zip(lines.iter().skip(1));
    let tag = |(above, line): (&&str, &&str)| {
        let why = line.strip_prefix("\"why\": \"")?;
        let tag = TagKind::read(&why[why.find("Promise")?..])?;
        let name = above.strip_prefix("\"name\": \"").unwrap_or_else(|| panic!("{file}: no name above {why}"));
        Some(PromiseTag { tag, test: format!("{file}::{name}") })
    };
    pairs.filter_map(tag).collect()
}
