//! Measures a large project: the nodes that a prompt mentions, names that are very common, and a session without any
//! calls.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nudge_code::SOURCE;
use nudge_core::service::Service as _;
use nudge_core::source::{DataDir, SessionIdentity, SourceHost};
use serde_json::{Value, json};

use crate::measure::{Stopwatch, median, other_threads_ns, percentile};
use crate::process::program;
use crate::project::{Code, FUNCTIONS, Project, params};
use crate::table::{Line, Scale, time};

/// The standard library of Python, which is mostly tests.
pub const PROGRAMS: &[&str] = &["python-library"];
/// The prompts: the first names a definition, the second names none, the third has words that thousands of names have.
const PROMPTS: [&str; 3] = [
    "why does step_12_7() return the wrong amount? see module_40.py:9",
    "please write a README for this project and push it to a branch",
    "which step of the file takes the rate",
];
/// Words that many names have.
const COMMON: [&str; 6] = ["get", "close", "run", "read", "write", "init"];
/// The duration of the measurement without calls.
const REST: Duration = Duration::from_secs(10);

/// Measures all rows of the large project.
pub fn calls(scale: &Scale) -> Vec<Line> {
    vec![context(scale), library(scale), rest(scale)]
}

/// Measures `nudge.code.context` in a project of 100,000 nodes.
fn context(scale: &Scale) -> Line {
    let files = scale.large / FUNCTIONS;
    let root = tempfile::tempdir().expect("a folder for temporary files");
    let project = Project::new(root.path(), files);
    let (_caches, code) = whole(project.path());
    let took: Vec<_> = (0..scale.long_rounds * 10)
        .map(|round| {
            let prompt = project.params(&json!({"prompt": PROMPTS[round % PROMPTS.len()]}));
            let start = Stopwatch::start();
            code.ask("context", &prompt);
            start.ns()
        })
        .collect();
    Line {
        what: format!("code: context, {} nodes, p99", files * FUNCTIONS),
        limit: 10.0,
        unit: "ms",
        measured: Some(percentile(took.clone(), 99.0) / 1e6),
        peer: "-".into(),
        absolute: format!("{} p50", time(median(took))),
    }
}

/// Opens a source that has read a whole project.
fn whole(root: &Path) -> (tempfile::TempDir, Code) {
    let caches = tempfile::tempdir().expect("a folder for temporary files");
    loop {
        // A process for a single call stops reading after some seconds, and the next process continues. Repeats this
        // until all is read.
        let code = Code::open(caches.path());
        let told: Value = serde_json::from_str(code.ask("status", &params(root, &json!({}))).get()).expect("JSON");
        if told["as_of"]["complete"] == true {
            return (caches, code);
        }
        code.0.close();
    }
}

/// Measures `nudge.code.node` for names that hundreds of definitions have.
fn library(scale: &Scale) -> Line {
    let line = |measured, absolute| Line {
        what: "code: node of common names, p99".into(),
        limit: 50.0,
        unit: "ms",
        measured,
        peer: "Python's own library".into(),
        absolute,
    };
    let library = program("python-library").and_then(|file| fs::read_to_string(file).ok());
    let Some(root) = library.map(|path| PathBuf::from(path.trim())) else {
        return line(None, "no Python here".into());
    };
    let (_caches, code) = whole(&root);
    let ids = COMMON.iter().flat_map(|query| {
        let asked = params(&root, &json!({"query": query, "limit": 100}));
        let found: Value = serde_json::from_str(code.ask("search", &asked).get()).expect("it is JSON");
        found["nodes"].as_array().cloned().unwrap_or_default()
    });
    let asked: Vec<_> = ids.map(|node| params(&root, &json!({"id": node["id"]}))).collect();
    let took: Vec<_> = asked
        .iter()
        .cycle()
        .take(asked.len() * scale.long_rounds.min(3))
        .map(|node| {
            let start = Stopwatch::start();
            code.ask("node", node);
            start.ns()
        })
        .collect();
    let absolute = format!("{} p50, {} the longest", time(median(took.clone())), time(percentile(took.clone(), 100.0)));
    line(Some(percentile(took, 99.0) / 1e6), absolute)
}

/// Measures the processor time of a session without any calls: its worker thread and its watch of the files.
fn rest(scale: &Scale) -> Line {
    let root = tempfile::tempdir().expect("a folder for temporary files");
    let project = Project::new(root.path(), scale.small / FUNCTIONS);
    let caches = tempfile::tempdir().expect("a folder for temporary files");
    let host = SourceHost::new_alone(caches.path(), &SOURCE, &[]).expect("the defaults are allowed");
    let session = SessionIdentity { id: "bench".into(), created_at: 0 };
    let source =
        (SOURCE.open)(SourceHost { cache: DataDir::new(caches.path()), session, ..host }).expect("the folder is there");
    let status = project.params(&json!({}));
    loop {
        let told = source.call("nudge.code.status", &status).expect("the params are right");
        if told.get().contains("\"complete\":true") {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // Waits for the watch, which may still report the last write.
    std::thread::sleep(Duration::from_secs(1));
    let rest = if scale.long_rounds > 1 { REST } else { Duration::from_millis(50) };
    let before = other_threads_ns();
    std::thread::sleep(rest);
    let spent = other_threads_ns().zip(before).map(|(after, before)| (after - before) / 1e6);
    source.close();
    Line {
        what: format!("code: processor time in {} s of rest", rest.as_secs()),
        limit: 1.0,
        unit: "ms",
        measured: spent,
        peer: "-".into(),
        absolute: spent.map_or_else(|| "needs /proc".into(), |ms| time(ms * 1e6)),
    }
}
