//! Measures reading files of code. The peer is tree-sitter's parse of the same bytes, without any use of the tree.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nudge_code_index::{CodeIndex, CodeLanguage, extract};
use tree_sitter::Parser;

use crate::measure::{Turns, interleave, work};
use crate::process::program;
use crate::table::{Line, Scale, versus};

/// Projects of other authors, in three languages.
pub const PROGRAMS: &[&str] = &["code-trees"];

/// The sources of this repository.
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../nudge");

/// A file in memory, with its grammar.
struct Text {
    path: String,
    bytes: Vec<u8>,
    grammar: tree_sitter::Language,
}

/// Measures the extraction from whole projects.
pub fn extraction(scale: &Scale) -> Vec<Line> {
    let trees = program("code-trees").and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let turns = Turns { rounds: scale.long_rounds, ..scale.turns };
    let lines = trees.lines().map(|tree| {
        let texts = texts(Path::new(tree));
        let mut parser = Parser::new();
        let parse = work(|_| {
            for text in &texts {
                parser.set_language(&text.grammar).expect("the versions fit");
                black_box(parser.parse(&text.bytes, None));
            }
        });
        let read = work(|_| texts.iter().for_each(|text| drop(black_box(extract(&text.path, &text.bytes)))));
        let times = interleave(turns, &mut [read, parse]);
        let name = tree.rsplit('/').next().unwrap_or(tree);
        line(name, Some(times.ratio(0, 1)), versus(times.median(0), times.median(1)))
    });
    let mut lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        lines.push(line("whole projects", None, "not fetched here".into()));
    }
    lines.extend(trees.lines().chain([OWN]).map(|tree| memory(Path::new(tree))));
    lines
}

/// Measures the memory of a project's index, as the index reports it.
fn memory(root: &Path) -> Line {
    let mut index = CodeIndex::new();
    for text in texts(root) {
        let path = text.path.strip_prefix(&format!("{}/", root.display())).unwrap_or(&text.path);
        if let Ok(facts) = extract(path, &text.bytes) {
            index.put_file(path, Arc::new(facts));
        }
    }
    let nodes = index.nodes().count();
    let name = if root == Path::new(OWN) { "this repository" } else { root.to_str().unwrap_or_default() };
    Line {
        what: format!("code: memory a node of {}, with its calls", name.rsplit('/').next().unwrap_or(name)),
        limit: 800.0,
        unit: "B",
        measured: Some(index.memory_bytes() as f64 / nodes as f64),
        peer: "-".into(),
        absolute: format!("{nodes} nodes"),
    }
}

fn line(what: &str, measured: Option<f64>, absolute: String) -> Line {
    let peer = "tree-sitter's parse".into();
    Line { what: format!("code: reading {what}"), limit: 1.5, unit: "x", measured, peer, absolute }
}

/// Returns the files of a project that Nudge reads. Files that Nudge skips would make it look faster than the parse.
fn texts(root: &Path) -> Vec<Text> {
    let (mut ahead, mut texts) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = ahead.pop() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() {
                // Skips the folders of build output, which is no source.
                ahead.extend((name != "target" && name != "node_modules").then_some(path));
            } else if let Some((path, grammar)) = path.to_str().and_then(|name| Some((name, grammar(name)?)))
                && let Ok(bytes) = fs::read(path)
                && extract(path, &bytes).is_ok()
            {
                texts.push(Text { path: path.to_owned(), bytes, grammar });
            }
        }
    }
    texts
}

fn grammar(path: &str) -> Option<tree_sitter::Language> {
    Some(match CodeLanguage::from_path(path)? {
        CodeLanguage::Rust => tree_sitter_rust::LANGUAGE.into(),
        CodeLanguage::Python => tree_sitter_python::LANGUAGE.into(),
        CodeLanguage::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        _ => return None,
    })
}
