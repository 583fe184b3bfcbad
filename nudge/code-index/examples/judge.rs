//! Prints the calls or the nodes of a folder, for `tests/code`: `judge FOLDER > ours.tsv` or `judge FOLDER nodes >
//! ours.jsonl`.
//!
//! A row about a call has the call's path, line, column, name and certainty, and the path, line and name of the target.
//! If the target is unknown, the certainty and the target's path and name are `-`, and its line is 0. A row about a
//! node has the node's complexity, the contradictions in its documentation, and its tests.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs, io};

use nudge_code_index::{CodeIndex, CodeLanguage, extract, is_manifest};
use serde_json::json;

/// A limit that is larger than the number of tests of any node.
const ALL: usize = 100_000;

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::args().nth(1).unwrap_or_else(|| ".".into()));
    let mut files = Vec::new();
    walk(&root, &root, &mut files)?;
    let (mut index, mut bytes, start) = (CodeIndex::new(), 0, Instant::now());
    for path in &files {
        let content = fs::read(root.join(path))?;
        if is_manifest(path) {
            index.put_manifest(path, &content);
        } else {
            bytes += content.len();
            match extract(path, &content) {
                Ok(facts) => index.put_file(path, Arc::new(facts)),
                Err(skip) => eprintln!("{path}: {skip}"),
            }
        }
    }
    let read = start.elapsed();
    let mut out = BufWriter::new(io::stdout().lock());
    let start = Instant::now();
    let (what, count) = match env::args().nth(2).as_deref() {
        Some("nodes") => ("nodes", print_nodes(&index, &mut out)?),
        _ => ("calls", print_calls(&root, &index, &files, &mut out)?),
    };
    let nodes = index.nodes().count();
    eprintln!(
        "{} files, {bytes} bytes, read in {read:?}; {count} {what} told in {:?}; {nodes} nodes, {} bytes a node",
        files.len(),
        start.elapsed(),
        index.memory_bytes() / nodes.max(1)
    );
    out.flush()
}

fn print_nodes(index: &CodeIndex, out: &mut impl Write) -> io::Result<usize> {
    let mut count = 0;
    for found in index.nodes() {
        count += 1;
        let (view, node) = (found.view, found.view.node());
        let tests = index.find_tests(found.id, ALL);
        let links: Vec<_> = tests
            .links
            .iter()
            .filter_map(|link| Some((index.find_node(link.test)?, link.depth)))
            .map(|(test, depth)| json!([test.path, test.view.qual(), depth]))
            .collect();
        let drift: Vec<_> = view.list_drift().map(|drift| json!([drift.rule, drift.detail])).collect();
        let row = json!({
            "path": found.path,
            "qual": view.qual(),
            "kind": view.kind(),
            "line": node.span.line,
            "end_line": node.span.end_line,
            "signature": view.signature(),
            "doc": view.doc(),
            "complexity": node.complexity,
            "drift": drift,
            "tests": links,
        });
        writeln!(out, "{row}")?;
    }
    Ok(count)
}

fn print_calls(root: &Path, index: &CodeIndex, files: &[String], out: &mut impl Write) -> io::Result<usize> {
    let mut calls = 0;
    for path in files {
        let text = fs::read(root.join(path))?;
        for site in index.list_calls(path) {
            calls += 1;
            write!(out, "{path}\t{}\t{}\t{}\t", site.line, column(&text, site.byte), site.name)?;
            match site.to.and_then(|(to, how)| Some((index.find_node(to)?, how))) {
                Some((to, how)) => {
                    let how = format!("{how:?}").to_lowercase();
                    writeln!(out, "{how}\t{}\t{}\t{}", to.path, to.view.node().span.line, to.view.qual())?;
                }
                None => writeln!(out, "-\t-\t0\t-")?,
            }
        }
    }
    Ok(calls)
}

/// Returns the column of the byte at this offset of a text.
fn column(text: &[u8], byte: u32) -> usize {
    let before = text.get(..byte as usize).unwrap_or_default();
    before.iter().rev().take_while(|other| **other != b'\n').count()
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<String>) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if kind.is_dir() && !name.starts_with('.') && name != "node_modules" && name != "target" {
            walk(root, &path, files)?;
        } else if kind.is_file()
            && let Some(path) = path.strip_prefix(root).ok().and_then(Path::to_str)
            && (CodeLanguage::from_path(path).is_some() || is_manifest(path))
        {
            files.push(path.to_owned());
        }
    }
    Ok(())
}
