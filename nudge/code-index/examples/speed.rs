//! Measures how much longer it takes to extract the facts of a file than to parse it: `speed FOLDER...`, built with
//! `--release`.
//!
//! Each round parses every file and then extracts its facts. The shortest time of all rounds counts.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, io};

use nudge_code_index::{CodeLanguage, extract};
use tree_sitter::Parser;

const ROUNDS: u32 = 5;

fn main() -> io::Result<()> {
    for root in env::args().skip(1).map(PathBuf::from) {
        let mut files = Vec::new();
        walk(&root, &mut files)?;
        let (mut bytes, mut nodes, mut memory) = (0, 0, 0);
        let (mut parse, mut read) = (Duration::ZERO, Duration::ZERO);
        for path in files {
            let Some((name, grammar)) =
                path.to_str().and_then(|name| Some((name, grammar(CodeLanguage::from_path(name)?)?)))
            else {
                continue;
            };
            let source = fs::read(&path)?;
            let Ok(facts) = extract(name, &source) else { continue };
            let mut parser = Parser::new();
            parser.set_language(&grammar).map_err(io::Error::other)?;
            let (mut least_parse, mut least_read) = (Duration::MAX, Duration::MAX);
            for _ in 0..ROUNDS {
                let start = Instant::now();
                std::hint::black_box(parser.parse(&source, None));
                least_parse = least_parse.min(start.elapsed());
                let start = Instant::now();
                let _ = std::hint::black_box(extract(name, &source));
                least_read = least_read.min(start.elapsed());
            }
            parse += least_parse;
            read += least_read;
            bytes += source.len();
            nodes += facts.len();
            memory += facts.memory_bytes();
        }
        println!(
            "{}: {bytes} bytes, parsed in {parse:?}, read in {read:?}: {:.2}x; {nodes} nodes, {} bytes a node",
            root.display(),
            read.as_secs_f64() / parse.as_secs_f64(),
            memory / nodes.max(1)
        );
    }
    Ok(())
}

fn grammar(language: CodeLanguage) -> Option<tree_sitter::Language> {
    Some(match language {
        CodeLanguage::Rust => tree_sitter_rust::LANGUAGE.into(),
        CodeLanguage::Python => tree_sitter_python::LANGUAGE.into(),
        CodeLanguage::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
        CodeLanguage::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        CodeLanguage::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
        _ => return None,
    })
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}
