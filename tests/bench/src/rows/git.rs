//! Where a caller is, read from git's files.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nudge::context::detect::{Detector, Git};
use tempfile::TempDir;

use crate::measure::{interleave_processes, work};
use crate::table::{Line, Scale, versus};

/// What a tool without a reader of its own would run.
const QUESTIONS: [&[&str]; 2] = [&["rev-parse", "--abbrev-ref", "HEAD"], &["remote", "get-url", "origin"]];

/// The branch and the remote, by our reader and by asking git twice.
pub fn context(scale: &Scale) -> Vec<Line> {
    let temp = tempfile::tempdir().expect("a folder for temporary files");
    let Ok(here) = repository(&temp) else {
        return vec![line("no git here", None, String::new())];
    };
    let Git::Inside(info) = Detector::new().git(&here) else {
        panic!("our reader does not know an ordinary repository")
    };
    let told = QUESTIONS.map(|question| git(&here, question).expect("git answers"));
    assert_eq!([info.branch, info.remote].map(Option::unwrap_or_default), told.map(|text| text.trim().to_owned()));

    let mut kept = Detector::new();
    let times = interleave_processes(
        scale.turns,
        &mut [
            work(|_| Detector::new().git(&here)),
            work(|_| kept.git(&here)),
            work(|_| QUESTIONS.map(|question| git(&here, question).expect("git answers"))),
        ],
    );
    [("git context, first look", 0), ("git context, again", 1)]
        .map(|(what, ours)| line(what, Some(times.ratio(ours, 2)), versus(times.median(ours), times.median(2))))
        .into()
}

fn line(what: &str, measured: Option<f64>, absolute: String) -> Line {
    Line { what: what.into(), limit: 0.02, unit: "x", measured, peer: "two git spawns".into(), absolute }
}

/// A folder two levels deep in a repository with a commit and an `origin`.
pub fn repository(temp: &TempDir) -> io::Result<PathBuf> {
    let top = temp.path().join("repository");
    let here = top.join("services").join("http-proxy");
    std::fs::create_dir_all(&here)?;
    let name = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"];
    git(&top, &["init", "--quiet", "--initial-branch=feature/login"])?;
    git(&top, &[&name[..], &["commit", "--quiet", "--allow-empty", "--message=x"]].concat())?;
    git(&top, &["remote", "add", "origin", "https://github.com/acme/mono.git"])?;
    Ok(here)
}

fn git(folder: &Path, args: &[&str]) -> io::Result<String> {
    let output = Command::new("git").args(args).current_dir(folder).stdin(Stdio::null()).output()?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr)))
    }
}
