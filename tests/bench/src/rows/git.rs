//! Measures reading the repository and the branch from git's files.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use nudge::context::detect::{GitAnswer, GitDetector};
use tempfile::TempDir;

use crate::measure::{interleave_processes, work};
use crate::table::{Line, Scale, versus};

const FIRST: &str = "git context, first look";
/// The git commands that a tool without its own reader would run.
const QUESTIONS: [&[&str]; 2] = [&["rev-parse", "--abbrev-ref", "HEAD"], &["remote", "get-url", "origin"]];

/// Measures reading branch and remote; the peer runs two git commands.
pub fn context(scale: &Scale) -> Vec<Line> {
    let temp = tempfile::tempdir().expect("a folder for temporary files");
    let Ok(here) = repository(&temp) else {
        return vec![line("no git here", (None, String::new()))];
    };
    let GitAnswer::Inside(info) = GitDetector::new().detect(&here) else {
        panic!("our reader does not know an ordinary repository")
    };
    let told = QUESTIONS.map(|question| git(&here, question).expect("git answers"));
    assert_eq!([info.branch, info.remote].map(Option::unwrap_or_default), told.map(|text| text.trim().to_owned()));

    let (mut kept, mut looking) = (GitDetector::new(), GitDetector::new());
    let files = files(&here);
    let times = interleave_processes(
        scale.turns,
        &mut [
            work(|_| GitDetector::new().detect(&here)),
            work(|_| kept.detect(&here)),
            work(|_| QUESTIONS.map(|question| git(&here, question).expect("git answers"))),
            work(|_| {
                let read: Vec<_> = files.iter().map(|file| fs::read(file).expect("it is there")).collect();
                (looking.detect(&here), read)
            }),
        ],
    );
    let measured = |ours, peer| (Some(times.ratio(ours, peer)), versus(times.median(ours), times.median(peer)));
    let floor = Line { limit: 2.0, peer: "looking again, and reading the files".into(), ..line(FIRST, measured(0, 3)) };
    vec![line(FIRST, measured(0, 2)), floor, line("git context, again", measured(1, 2))]
}

/// Returns the files that the first read needs: the configuration files, `HEAD`, and the file of the branch.
fn files(here: &Path) -> Vec<PathBuf> {
    let asked = git(here, &["config", "--list", "--show-origin", "-z"]).expect("git answers");
    let named = asked.split('\0').filter_map(|entry| entry.strip_prefix("file:")).map(PathBuf::from);
    let mut files: Vec<_> = named.filter(|file| file.is_absolute()).collect();
    for name in ["config", "HEAD", "refs/heads/feature/login"] {
        let path = git(here, &["rev-parse", "--git-path", name]).expect("git answers");
        files.push(here.join(path.trim()));
    }
    files.sort_unstable();
    files.dedup();
    files
}

fn line(what: &str, (measured, absolute): (Option<f64>, String)) -> Line {
    Line { what: what.into(), limit: 0.02, unit: "x", measured, peer: "two git spawns".into(), absolute }
}

/// Makes a repository with a commit and an `origin`; returns a folder two levels below its top.
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
