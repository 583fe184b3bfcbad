//! Measures an answer about a node, compared with a hint and with a check of files. Also measures one saved file, and
//! memory.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use nudge::{Nudge, Service as _, SetHint};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tree_sitter::Parser;

use crate::measure::{Stopwatch, interleave, median, wall_ns, work};
use crate::project::{Code, FUNCTIONS, Project};
use crate::table::{Line, Scale, time, versus};

/// Returns the processor time of this thread for `work`, in nanoseconds.
fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Stopwatch::start();
    black_box(work());
    start.ns()
}

/// Measures an answer about a node, compared with a hint and with a check of files. Also measures one saved file, and
/// memory.
pub fn answer(scale: &Scale) -> Vec<Line> {
    let files = scale.large / 500;
    let root = tempfile::tempdir().expect("a folder for temporary files");
    let project = Project::new(root.path(), files);
    let caches = tempfile::tempdir().expect("a folder for temporary files");
    let status = project.params(&json!({}));
    let cold: Vec<_> = (0..scale.long_rounds)
        .map(|round| {
            let start = wall_ns();
            Code::open(&caches.path().join(round.to_string())).ask("status", &status);
            wall_ns() - start
        })
        .collect();
    let cold = median(cold);
    let code = Code::open(&caches.path().join("0"));
    let told: Value = serde_json::from_str(code.ask("status", &status).get()).expect("it is JSON");
    assert_eq!(told["nodes"], files * FUNCTIONS, "{told}");
    let per_node = told["memory"].as_f64().unwrap_or(f64::NAN) / (files * FUNCTIONS) as f64;
    let asked: Vec<_> =
        (0..files).map(|file| project.params(&json!({"id": format!("module_{file}.py:step_{file}_7")}))).collect();
    let told: Value = serde_json::from_str(code.ask("node", &asked[0]).get()).expect("it is JSON");
    assert_eq!((told["callers"].as_array().map(Vec::len), &told["as_of"]["complete"]), (Some(1), &json!(true)));
    let store = Nudge::default();
    store.set(SetHint::new("http-proxy", "build", "docker compose build router")).expect("it is a hint");
    let get = to_raw_value(&json!({"component": "http-proxy", "key": "build"})).expect("it is JSON");
    let looked: Vec<_> = (0..files).map(|file| project.path().join(format!("module_{file}.py"))).collect();
    project.settle();
    // The first question about a node finds its links. They stay cached until a file changes.
    let first = median(asked.iter().map(|node| timed(|| code.ask("node", node))).collect());
    let times = interleave(
        scale.turns,
        &mut [
            work(|step| code.ask("node", &asked[step % files])),
            work(|step| (store.call("nudge.get_hint", &get), fs::metadata(&looked[step % files]))),
            // The peer checks three files: that of the node, that of its caller and that of its callee.
            work(|step| {
                let three = [0, 1, files - 1].map(|beside| fs::metadata(&looked[(step + beside) % files]));
                (store.call("nudge.get_hint", &get), three)
            }),
        ],
    );
    let took: Vec<_> = (0..scale.long_rounds * 10)
        .map(|round| {
            let file = round % files;
            project.write(file, files, &format!("amount_{round}"));
            let start = wall_ns();
            let told = code.ask("node", &asked[file]);
            let ns = wall_ns() - start;
            assert!(told.get().contains(&format!("amount_{round}")), "it is what was saved");
            ns
        })
        .collect();
    let saved = median(took);
    let bare = parse_alone(&project.path().join("module_0.py"), scale);
    let node = |limit, peer: &str, contender| Line {
        what: "code: node, with callers and tests".into(),
        limit,
        unit: "x",
        measured: Some(times.ratio(0, contender)),
        peer: peer.into(),
        absolute: format!("{}; {} the first time", versus(times.median(0), times.median(contender)), time(first)),
    };
    vec![
        node(3.0, "nudge.get_hint and one look at a file", 1),
        node(2.0, "the same, a look at each file it names", 2),
        Line {
            what: format!("code: a saved file of {files}, to the right answer"),
            limit: 0.01,
            unit: "x",
            measured: Some(saved / cold),
            peer: "the cold index of all".into(),
            absolute: versus(saved, cold),
        },
        Line {
            what: "code: the same, beyond 2 ms".into(),
            limit: 1.5,
            unit: "x",
            measured: Some((saved - 2e6).max(0.0) / bare),
            peer: "tree-sitter's parse of the file".into(),
            absolute: versus(saved, bare),
        },
        Line {
            what: "code: memory a node, with its calls".into(),
            limit: 800.0,
            unit: "B",
            measured: Some(per_node),
            peer: "-".into(),
            absolute: format!("{} nodes, read in {}", files * FUNCTIONS, time(cold)),
        },
    ]
}

/// Returns the time that tree-sitter needs to parse a file, in nanoseconds.
fn parse_alone(file: &Path, scale: &Scale) -> f64 {
    let text = fs::read(file).expect("it was written");
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_python::LANGUAGE.into()).expect("the versions fit");
    let mut parse = || {
        let start = wall_ns();
        black_box(parser.parse(&text, None));
        wall_ns() - start
    };
    median((0..scale.long_rounds * 10).map(|_| parse()).collect())
}
