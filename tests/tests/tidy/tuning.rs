//! Makes the table of tuning constants from the constants in the code and the comments above them.

use std::fmt::Write as _;

use regex::Regex;

use super::{has_generated_part, read};

const PAGE: &str = "nudge/docs/tuning.md";
const BEGINS: &str = "<!-- tuning: UPDATE=1 cargo test -p nudge-tests --test tidy -->";
const ENDS: &str = "<!-- end of tuning -->";

/// The sections of the page, each with the files that have its constants.
const SECTIONS: [(&str, &[&str]); 8] = [
    ("Words of a prompt", &["nudge/core/src/relevance.rs", "nudge/core/src/relevance/likeness.rs"]),
    ("Hints at a start and a prompt", &["nudge/src/method/suggest/rank.rs", "nudge/src/method/suggest/index.rs"]),
    ("Hints after a failed command", &["nudge/src/method/suggest/failure.rs"]),
    ("Learned commands", &["cli/server/src/session/learn.rs"]),
    ("Full-text search", &["nudge/storage/src/rank.rs", "nudge/storage/src/search.rs"]),
    (
        "Records",
        &[
            "nudge/sources/records/src/offer.rs",
            "nudge/sources/records/src/search.rs",
            "nudge/sources/records/src/write.rs",
            "nudge/sources/records/src/method.rs",
            "nudge/sources/records/src/meaning.rs",
        ],
    ),
    (
        "Code",
        &[
            "nudge/sources/code/src/prompt.rs",
            "nudge/sources/code/src/search/fields.rs",
            "nudge/sources/code/src/search/query.rs",
            "nudge/sources/code/src/search.rs",
            "nudge/sources/code/src/offer.rs",
        ],
    ),
    (
        "Brain",
        &[
            "nudge/sources/brain/src/retrieve.rs",
            "nudge/sources/brain/src/graph.rs",
            "nudge/sources/brain/src/context.rs",
            "nudge/sources/brain/src/unit.rs",
            "nudge/sources/brain/src/write.rs",
            "nudge/sources/brain/src/capture/near.rs",
        ],
    ),
];

/// A comment and the constants below it, which the comment describes together.
struct ConstantGroup {
    comment: String,
    constants: Vec<String>,
}

/// Reads the constants with a fraction from the product's code in a file, in the order of the file.
fn read_constants(code: &str) -> Vec<ConstantGroup> {
    let constant = Regex::new(r"^(?:pub(?:\([a-z]+\))? )?const ([A-Z0-9_]+): (\w+) = (.+);$").unwrap();
    let mut groups: Vec<ConstantGroup> = Vec::new();
    let mut comment = String::new();
    let mut is_joined = false;
    for line in code.lines() {
        if let Some(text) = line.strip_prefix("///") {
            if is_joined {
                comment.clear();
            }
            is_joined = false;
            let space = if comment.is_empty() { "" } else { " " };
            let _ = write!(comment, "{space}{}", text.trim());
        } else if let Some(found) = constant.captures(line) {
            if ["f32", "f64"].contains(&&found[2]) {
                let text = format!("`{}` {}", &found[1], found[3].replace("_f64", "").replace("_f32", ""));
                match groups.last_mut() {
                    Some(group) if is_joined && group.comment == comment => group.constants.push(text),
                    _ => groups.push(ConstantGroup { comment: comment.clone(), constants: vec![text] }),
                }
            }
            is_joined = true;
        } else {
            comment.clear();
            is_joined = false;
        }
    }
    groups
}

fn tuning_tables() -> String {
    let mut out = String::new();
    for (title, files) in SECTIONS {
        let _ = writeln!(out, "## {title}\n\n| constants | meaning |\n|---|---|");
        for file in files {
            let code = read(file);
            let code = code.split("#[cfg(test)]\nmod ").next().expect("a split has a first part");
            let groups = read_constants(code);
            assert!(!groups.is_empty(), "{file}: no constants");
            for group in groups {
                assert!(!group.comment.is_empty(), "{file}: {} has no comment", group.constants.join(", "));
                let _ = writeln!(out, "| {} | {} |", group.constants.join(", "), group.comment.replace('|', "\\|"));
            }
        }
        out.push('\n');
    }
    out.trim_end().to_owned() + "\n"
}

#[test]
fn the_page_of_tuning_has_the_constants_of_the_code() {
    has_generated_part(PAGE, BEGINS, ENDS, &tuning_tables());
}

#[test]
fn constants_share_the_comment_above_them() {
    let code = "/// Two\n/// weights.\nconst A: f64 = 0.5;\npub const B: f32 = 1.0 / 3.0;\n/// A count.\nconst N: usize = 3;\n\n\
                fn f() {}\n/// Third.\nconst C: f64 = 2.0;\n";
    let read: Vec<_> =
        read_constants(code).into_iter().map(|group| (group.comment, group.constants.join(", "))).collect();
    let pair = |comment: &str, constants: &str| (comment.to_owned(), constants.to_owned());
    assert_eq!(read, [pair("Two weights.", "`A` 0.5, `B` 1.0 / 3.0"), pair("Third.", "`C` 2.0")]);
}
