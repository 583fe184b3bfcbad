//! Extracts the facts of a file from its path and bytes.

mod anew;
mod frame;
mod lower;
#[cfg(test)]
mod snapshot_tests;
mod takes;
pub(crate) mod text;
mod unasked;
mod walk;

use std::cell::RefCell;
use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tree_sitter::{ParseOptions, ParseState, Parser, Point, Tree};

use crate::facts::FileFacts;
use crate::language::{CodeLanguage, Grammar};
use nudge_os::cpu::thread_cpu_time;

pub(crate) use frame::FrameKind;
pub(crate) use walk::{NodeDraft, TreeWalk, end_byte, start_byte};

const FILE_MAX: usize = 512 * 1024;
/// Largest time for parsing a file. It is CPU time, so that a busy machine reads the same files as an idle one.
const PARSE_MAX: Duration = Duration::from_millis(250);
const LINE_MEAN_MAX: usize = 500;
/// Size in bytes below which a file is never skipped as minified, even if it is one long line.
const MINIFIED_MIN: usize = 5_000;

/// The version of the facts. Raise it when a change makes the same bytes yield other facts.
pub const EXTRACTOR: u32 = 7;

/// The reason why a file has no facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// This build does not know the language of the file.
    UnknownLanguage,
    /// The file is larger than 512 KiB.
    TooLarge,
    /// The first bytes of the file contain a NUL.
    Binary,
    /// The bytes are not UTF-8.
    NotText,
    /// The lines of the file have more than 500 bytes on average.
    Minified,
    /// The file says that a program has generated it.
    Generated,
    /// The syntax tree is more than 1,000 levels deep.
    TooDeep,
    /// The file has more than 20,000 nodes.
    TooManyNodes,
    /// Parsing took more than 250 ms of CPU time.
    TimedOut,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownLanguage => "a language that is not read here",
            Self::TooLarge => "larger than 512 KiB",
            Self::Binary => "not a text",
            Self::NotText => "not UTF-8",
            Self::Minified => "minified",
            Self::Generated => "written by a program",
            Self::TooDeep => "nested more than 1,000 deep",
            Self::TooManyNodes => "more than 20,000 definitions",
            Self::TimedOut => "not parsed within 250 ms",
        })
    }
}

/// Extracts the facts of a file. `path` is relative to the root, with `/` between folders. The path decides the
/// language, and whether the file contains tests.
pub fn extract(path: &str, bytes: &[u8]) -> Result<FileFacts, Skip> {
    let language = CodeLanguage::from_path(path).ok_or(Skip::UnknownLanguage)?;
    let grammar = language.grammar().ok_or(Skip::UnknownLanguage)?;
    let src = text_of(bytes)?;
    let tree = parse(grammar, src)?;
    let facts = FileFacts::new(language, crate::facts::hash(bytes), tree.root_node().has_error());
    let mut walk = TreeWalk::new(path, src, grammar, facts);
    walk.walk_tree(tree.root_node())?;
    Ok(walk.into_facts())
}

/// Returns the text of the file, or the reason why the file is skipped.
fn text_of(bytes: &[u8]) -> Result<&str, Skip> {
    if bytes.len() > FILE_MAX {
        return Err(Skip::TooLarge);
    }
    if memchr::memchr(0, &bytes[..bytes.len().min(8 * 1024)]).is_some() {
        return Err(Skip::Binary);
    }
    let head = &bytes[..bytes.len().min(2 * 1024)];
    if [&b"@generated"[..], b"DO NOT EDIT"].iter().any(|mark| memchr::memmem::find(head, mark).is_some()) {
        return Err(Skip::Generated);
    }
    let lines = memchr::memchr_iter(b'\n', bytes).count() + 1;
    if bytes.len() > MINIFIED_MIN && bytes.len() / lines > LINE_MEAN_MAX {
        return Err(Skip::Minified);
    }
    std::str::from_utf8(bytes).map_err(|_| Skip::NotText)
}

fn parse(grammar: &Grammar, src: &str) -> Result<Tree, Skip> {
    thread_local! {
        // Each thread has one parser, which reuses its memory for the next file.
        static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
    }
    PARSER.with_borrow_mut(|parser| {
        parser.set_language(&grammar.parser).map_err(|_| Skip::UnknownLanguage)?;
        let tree = parse_with(parser, src);
        if tree.is_none() {
            parser.reset();
        }
        tree.ok_or(Skip::TimedOut)
    })
}

fn parse_with(parser: &mut Parser, src: &str) -> Option<Tree> {
    let (start, begun) = (Instant::now(), thread_cpu_time());
    // Checks the elapsed time first, because reading it needs no system call.
    let is_late = || start.elapsed() > PARSE_MAX && thread_cpu_time().saturating_sub(begun) > PARSE_MAX;
    let mut late = |_: &ParseState| if is_late() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let options = ParseOptions::new().progress_callback(&mut late);
    let bytes = src.as_bytes();
    let mut rest = |offset: usize, _: Point| bytes.get(offset..).unwrap_or_default();
    parser.parse_with_options(&mut rest, None, Some(options))
}

/// Returns true if the path is that of a test file.
pub fn is_test_path(path: &str) -> bool {
    let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.split('.').next().unwrap_or(file);
    folders.split('/').any(|folder| matches!(folder, "tests" | "test" | "__tests__" | "spec" | "testing"))
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_spec")
        || matches!(stem, "test" | "tests" | "conftest")
        || file.contains(".test.")
        || file.contains(".spec.")
}
