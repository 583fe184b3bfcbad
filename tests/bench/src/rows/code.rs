//! Code: indexing a project, beside what others make of the same files; one answer; one saved file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nudge::{Nudge, Service as _, SetHint};
use nudge_code::SOURCE;
use nudge_core::source::{DataDir, Host, Source};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::measure::{Turns, Work, interleave, interleave_processes, median, wall_ns, work};
use crate::process::program;
use crate::table::{Line, Scale, time, versus};

/// Ours, a project that nobody here has written, and what else indexes code.
pub const PROGRAMS: &[&str] = &["nudge", "code-tree", "ctags", "aider-map", "codegraph"];
/// Turns of the processes: some take seconds.
const ROUNDS: usize = 5;
/// Definitions of a made-up file.
const FUNCTIONS: usize = 20;

/// A cold index of a project as a whole process, beside other indexers; and with what was kept.
pub fn index(scale: &Scale) -> Vec<Line> {
    let temp = tempfile::tempdir().expect("a folder for temporary files");
    let tree =
        program("code-tree").and_then(|file| fs::read_to_string(file).ok()).map(|path| PathBuf::from(path.trim()));
    let kept = temp.path().join("kept");
    let status = |caches: &Path| {
        let mut command = Command::new(program("nudge")?);
        command.args(["code", "status", "--root"]).arg(tree.as_ref()?).env("NUDGE_CACHE_DIR", caches);
        command.env("NUDGE_RUNTIME_DIR", temp.path().join("run"));
        Some(command)
    };
    let peer = |name: &str| Some((program(name)?, tree.clone()?));
    let peers = ["ctags", "aider-map", "codegraph"].map(peer);
    let cold = |step: usize| status(&temp.path().join(format!("cold-{step}"))).map(run);
    let is_here = cold(usize::MAX).is_some();
    let mut turns: Vec<Work<'_>> = Vec::new();
    if is_here {
        // What it keeps is there from then on.
        status(&kept).map(run);
        turns.push(work(cold));
        turns.push(work(|_| status(&kept).map(run)));
        let home = temp.path();
        for (program, tree) in peers.iter().flatten() {
            turns.push(work(move |_| run(elsewhere(program, home).arg(tree))));
        }
    }
    let rounds = scale.turns.rounds.min(ROUNDS);
    let times = interleave_processes(Turns { rounds, slice: Duration::ZERO }, &mut turns);
    let mut at = 2..;
    let present = std::array::from_fn(|peer| peers[peer].as_ref().filter(|_| is_here).and_then(|_| at.next()));
    let line = |what: &str, limit: f64, pair: Option<(usize, usize)>, peer: &str| Line {
        what: what.to_owned(),
        limit,
        unit: "x",
        measured: pair.map(|(ours, theirs)| times.ratio(ours, theirs)),
        peer: peer.to_owned(),
        absolute: pair
            .map_or_else(|| "not built here".into(), |(ours, theirs)| versus(times.median(ours), times.median(theirs))),
    };
    let [ctags, aider, codegraph] = present;
    vec![
        line("code: cold index, process", 0.3, aider.map(|at| (0, at)), "aider's map, cold"),
        line("code: cold index, process", 0.15, codegraph.map(|at| (0, at)), "codegraph init"),
        line("code: cold index, process", 12.0, ctags.map(|at| (0, at)), "universal-ctags, names alone"),
        line("code: warm start, process", 0.1, is_here.then_some((1, 0)), "the cold index"),
    ]
}

fn run(mut command: impl std::borrow::BorrowMut<Command>) -> bool {
    let command = command.borrow_mut().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A program of others, which writes into its user's home.
fn elsewhere(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("HOME", home).env("DO_NOT_TRACK", "1");
    command
}

/// A made-up project: files of functions, each of which calls one of another file.
struct Project(TempDir);

impl Project {
    fn new(files: usize) -> Self {
        let project = Self(tempfile::tempdir().expect("a folder for temporary files"));
        fs::write(project.path().join("pyproject.toml"), "[project]\nname = \"made-up\"\n").expect("there is room");
        for file in 0..files {
            project.write(file, files, "amount");
        }
        project
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file whose functions have a parameter of this name.
    fn write(&self, file: usize, files: usize, param: &str) {
        let other = (file + 1) % files;
        let mut text = format!("import module_{other}\n\n");
        for function in 0..FUNCTIONS {
            let _ = write!(
                text,
                "\ndef step_{file}_{function}({param}, rate=2):\n    \"\"\"Takes a step of file {file}.\n\n    \
                 :param {param}: how much\n    \"\"\"\n    if {param} > rate:\n        \
                 return module_{other}.step_{other}_{function}({param} - rate)\n    return {param} * rate\n"
            );
        }
        fs::write(self.path().join(format!("module_{file}.py")), text).expect("there is room");
    }

    fn params(&self, own: &Value) -> Box<RawValue> {
        let mut params = own.clone();
        params["root"] = json!(self.path());
        to_raw_value(&params).expect("it is JSON")
    }
}

/// The code, as the session calls it.
struct Code(Arc<dyn Source>);

impl Code {
    /// The source, as a process that answers one call has it: everything is read when this returns.
    fn open(caches: &Path) -> Self {
        let host = Host::alone(caches, &SOURCE, &[]).expect("the defaults are allowed");
        let opened = (SOURCE.open)(Host { cache: DataDir::new(caches), ..host });
        Self(opened.expect("the folder is there"))
    }

    fn ask(&self, verb: &str, params: &RawValue) -> Box<RawValue> {
        self.0.call(&format!("nudge.code.{verb}"), params).expect("the params are right")
    }
}

/// One answer, beside a hint and a look at a file; one saved file; memory.
pub fn node(scale: &Scale) -> Vec<Line> {
    let files = scale.large / 500;
    let project = Project::new(files);
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
    let first: Value = serde_json::from_str(code.ask("node", &asked[0]).get()).expect("it is JSON");
    assert_eq!((first["callers"].as_array().map(Vec::len), &first["as_of"]["complete"]), (Some(1), &json!(true)));
    let store = Nudge::default();
    store.set(SetHint::new("http-proxy", "build", "docker compose build router")).expect("it is a hint");
    let get = to_raw_value(&json!({"component": "http-proxy", "key": "build"})).expect("it is JSON");
    let looked = project.path().join("module_0.py");
    let times = interleave(
        scale.turns,
        &mut [
            work(|step| code.ask("node", &asked[step % files])),
            work(|_| (store.call("nudge.get_hint", &get), fs::metadata(&looked))),
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
    vec![
        Line {
            what: "code: node, with callers and tests".into(),
            limit: 3.0,
            unit: "x",
            measured: Some(times.ratio(0, 1)),
            peer: "nudge.get_hint and one look at a file".into(),
            absolute: versus(times.median(0), times.median(1)),
        },
        Line {
            what: format!("code: a saved file of {files}, to the right answer"),
            limit: 0.01,
            unit: "x",
            measured: Some(saved / cold),
            peer: "the cold index of all".into(),
            absolute: versus(saved, cold),
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
