//! Checks the countable rules of the style in CONTRIBUTING.md: names, and the first words of comments.

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;

use super::{files, read};

/// Type names of one word that are allowed: terms of the field, and names that users of the library use.
const TERMS: [&str; 41] = [
    "Backend",
    "Caller",
    "Client",
    "Clock",
    "Config",
    "Context",
    "Db",
    "Deacon",
    "Deletion",
    "Error",
    "Expr",
    "Fence",
    "Git",
    "Glob",
    "Grammar",
    "Hint",
    "Limit",
    "Match",
    "Mutex",
    "Nudge",
    "Offer",
    "Os",
    "Patience",
    "Pooling",
    "Precision",
    "Record",
    "Reranker",
    "Scope",
    "Seed",
    "Sensitivity",
    "Service",
    "Setting",
    "Signal",
    "Source",
    "Store",
    "Suggester",
    "Tools",
    "Transcript",
    "Ttl",
    "View",
    "Watchdog",
];

/// Names of more than one type. Each type of the same name is for another operating system or set of features.
const VARIANTS: [&str; 6] = ["BoltLink", "ConnectionProbe", "FileId", "HeldFolder", "LifeSign", "LocalListener"];

/// Words that are no subject. A comment must not begin with them.
const OPENINGS: [&str; 14] = [
    "What", "Who", "Whoever", "Whose", "Whom", "Whether", "Of", "Those", "That", "One", "Its", "Nobody", "Where",
    "Which",
];

/// The largest share of functions whose name is one word, in percent.
const MAX_ONE_WORD_PERCENT: usize = 30;

/// The most words without a clear subject in 1,000 words of comments: what, who, whoever, whose, nobody.
const MAX_RIDDLES_PER_1000: usize = 4;

/// Returns the product's Rust code by file, without tests, examples and benchmarks.
fn product() -> Vec<(String, String)> {
    let is_product = |name: &String| {
        let is_test = ["tests/", "/tests/", "/examples/", "/benches/"].iter().any(|folder| name.contains(folder));
        Path::new(name).extension().is_some_and(|ending| ending == "rs")
            && !is_test
            && !["tests.rs", "build.rs"].iter().any(|end| name.ends_with(end))
    };
    let code = |name: String| {
        let text = read(&name);
        let code = text.split("#[cfg(test)]\nmod ").next().expect("a split has a first part").to_owned();
        (name, code)
    };
    files().into_iter().filter(is_product).map(code).collect()
}

#[test]
fn every_type_has_a_name_of_its_own() {
    let declared = Regex::new(r"(?m)^\s*(?:pub(?:\([a-z ]+\))? )?(?:struct|enum|trait) ([A-Z]\w+)").unwrap();
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, code) in product() {
        for name in declared.captures_iter(&code) {
            places.entry(name[1].to_owned()).or_default().push(file.clone());
        }
    }
    assert!(places.len() > 1_000, "the types are found");
    let shared: Vec<_> = places.iter().filter(|(_, files)| files.len() > 1).map(|(name, _)| name.as_str()).collect();
    assert_eq!(shared, VARIANTS, "types with the name of another");
    let is_one_word = |name: &&str| name.chars().filter(char::is_ascii_uppercase).count() == 1;
    let one_word: Vec<_> = places.keys().map(String::as_str).filter(is_one_word).collect();
    assert_eq!(one_word, TERMS, "types of one word");
}

#[test]
fn most_functions_say_what_they_do() {
    let declared = Regex::new(r"(?m)^\s*(?:pub(?:\([a-z ]+\))? )?(?:const )?(?:async )?(?:unsafe )?fn (\w+)").unwrap();
    let (mut all, mut one_word) = (0, 0);
    for (_, code) in product() {
        for name in declared.captures_iter(&code) {
            all += 1;
            one_word += usize::from(!name[1].contains('_'));
        }
    }
    assert!(all > 3_000, "the functions are found");
    assert!(100 * one_word <= MAX_ONE_WORD_PERCENT * all, "{one_word} of {all} functions have a name of one word");
}

#[test]
fn variables_are_named_for_their_values() {
    let names = "(?:at|by|it|of|one)";
    let bound_by_let = format!(r"\b(?:let|for) (?:mut )?\(?(?:\w+, )*{names}(?:, \w+)*\)? (?:=|in) ");
    let bound_by_closure = format!(r"[(,=] ?(?:move )?\|[&(]*(?:\w+, )*[&(]*{names}[):,|]");
    let bound = Regex::new(&format!("{bound_by_let}|{bound_by_closure}")).unwrap();
    let lines = |(file, code): (String, String)| {
        let wrong = |(number, line): (usize, &str)| format!("{file}:{number}: {}", line.trim());
        let found = (1..).zip(code.lines()).filter(|(_, line)| !line.trim().starts_with("//") && bound.is_match(line));
        found.map(wrong).collect::<Vec<_>>()
    };
    let wrong: Vec<_> = product().into_iter().flat_map(lines).collect();
    assert!(wrong.is_empty(), "variables called of, at, one, it or by:\n{}", wrong.join("\n"));
    let is_seen = |line: &str| bound.is_match(line);
    assert!(["let at = 1;", "for (at, x) in y {", ".map(|one| one.id)", "f(|(a, by)| a)"].into_iter().all(is_seen));
}

#[test]
fn comments_begin_with_their_subject() {
    let comment = Regex::new(r"^\s*(?:///|//!|//) ?(.*)").unwrap();
    let riddle = Regex::new(r"(?i)\b(?:what|who|whoever|whose|nobody)\b").unwrap();
    let (mut wrong, mut words, mut riddles) = (Vec::new(), 0, 0);
    for (file, code) in product() {
        let mut is_within = false;
        for (number, line) in (1..).zip(code.lines()) {
            let Some(text) = comment.captures(line).map(|found| found[1].to_owned()) else {
                is_within = false;
                continue;
            };
            let first = text.split(' ').next().expect("a split has a first part").trim_matches(['*', '`', ',', ':']);
            if !is_within && OPENINGS.contains(&first) {
                wrong.push(format!("{file}:{number}: {text}"));
            }
            is_within = true;
            words += text.split_whitespace().count();
            riddles += riddle.find_iter(&text).count();
        }
    }
    assert!(words > 50_000, "the comments are found");
    assert!(wrong.is_empty(), "comments without a subject:\n{}", wrong.join("\n"));
    assert!(
        1_000 * riddles <= MAX_RIDDLES_PER_1000 * words,
        "{riddles} of {words} words are what, who, whose or nobody"
    );
}
