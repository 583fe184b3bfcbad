//! Measures the index of a project and compares it with other indexers. The files in `code/` have the rows about one
//! answer.

pub mod idle;
pub mod large;
pub mod node;
pub mod read;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::measure::{Turns, Work, interleave_processes, work};
use crate::process::program;
use crate::table::{Line, Scale, versus};

/// Nudge, a project of other authors, and other indexers.
pub const PROGRAMS: &[&str] = &["nudge", "code-tree", "ctags", "aider-map", "codegraph"];
/// The number of turns. It is small, because some processes take seconds.
const ROUNDS: usize = 5;

/// Measures the first index of a project as a whole process, compared with other indexers. Also measures a start with a
/// cache.
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
        // The first run writes the cache, and later runs use it.
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
    let mut positions = 2..;
    let present = std::array::from_fn(|peer| peers[peer].as_ref().filter(|_| is_here).and_then(|_| positions.next()));
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
        line("code: cold index, process", 0.3, aider.map(|program| (0, program)), "aider's map, cold"),
        line("code: cold index, process", 0.15, codegraph.map(|program| (0, program)), "codegraph init"),
        line("code: cold index, process", 12.0, ctags.map(|program| (0, program)), "universal-ctags, names alone"),
        line("code: warm start, process", 0.1, is_here.then_some((1, 0)), "the cold index"),
    ]
}

fn run(mut command: impl std::borrow::BorrowMut<Command>) -> bool {
    let command = command.borrow_mut().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the command of another indexer, which writes into the given home.
fn elsewhere(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("HOME", home).env("DO_NOT_TRACK", "1");
    command
}
