//! The code map of ARCHITECTURE.md against the tree: a newcomer looks there first.

use std::collections::BTreeSet;
use std::path::Path;

use super::{files, read};

/// The sections of the map, by the folder that a section is about: what each names, by the last part of its path.
fn sections() -> Vec<(String, BTreeSet<String>)> {
    let page = read("ARCHITECTURE.md");
    let map = page.split("## Code map\n").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a code map");
    let section = |text: &str| {
        let folder = text.split('`').nth(1).unwrap_or_default().to_owned();
        let named = text.split('`').skip(1).step_by(2).map(|name| last(name).to_owned()).collect();
        (folder, named)
    };
    map.split("\n### ").skip(1).map(section).collect()
}

/// `b` of `a/b/`, `b.rs` of `a/b.rs`.
fn last(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

pub fn is_rust(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "rs")
}

/// Every module below `src` is named, or is below one that is: `scope.rs` speaks for `scope/`, and `scope/` for it.
#[test]
fn the_code_map_names_every_module() {
    let sections = sections();
    let mut missing = Vec::new();
    for name in files().iter().filter(|name| is_rust(name) && name.contains("/src/")) {
        // The longest folder is the floor: `nudge/` is the hints', `nudge/core/` is not.
        let floor =
            sections.iter().filter(|(folder, _)| name.starts_with(folder)).max_by_key(|(folder, _)| folder.len());
        let Some((folder, named)) = floor.filter(|(folder, _)| folder != "bindings/" && folder != "tests/") else {
            continue;
        };
        let below = name.rsplit("/src/").next().unwrap_or_default();
        let is_root = ["lib.rs", "main.rs"].contains(&below) || below.contains("test");
        let is_named = below.split('/').any(|part| {
            let stem = part.trim_end_matches(".rs");
            named.contains(part) || named.contains(stem) || named.contains(&format!("{stem}.rs"))
        });
        if !is_root && !is_named {
            missing.push(format!("{folder} says nothing of {name}"));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// A file or a folder that the map names is in the tree.
#[test]
fn what_the_code_map_names_is_there() {
    let there = files();
    let is_there = |name: &String| there.iter().any(|file| file.split('/').any(|part| part == name)) || !is_rust(name);
    let gone: Vec<_> = sections().into_iter().flat_map(|(_, named)| named).filter(|name| !is_there(name)).collect();
    assert!(gone.is_empty(), "{gone:?}");
}
