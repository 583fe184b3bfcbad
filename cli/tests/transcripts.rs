//! Tests the whole output of the command line: runs the commands of `tests/cmd/*.md` and compares their output with the
//! files. `TRYCMD=overwrite cargo test -p nudge-cli --test transcripts` writes the present output into the files.

mod kit;

// The pages of the documentation show output, paths and tools of Linux.
#[cfg(target_os = "linux")]
#[path = "transcripts/docs.rs"]
mod docs;

use std::path::{Path, PathBuf};

use kit::{Serve, home};
use trycmd::TestCases;

/// Returns the test cases; their commands run in a new home.
fn cases(home: &Path) -> TestCases {
    let nudge = Path::new(env!("CARGO_BIN_EXE_nudge"));
    let path = std::env::join_paths(
        nudge.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let cases = TestCases::new();
    cases.env("PATH", path.unwrap().to_str().unwrap());
    cases.env("HOME", home.to_str().unwrap());
    cases.env("NUDGE_RUNTIME_DIR", home.join("run").to_str().unwrap());
    // Puts temporary files into the home, so that the drafts of `nudge edit` are removed with it.
    cases.env("TMPDIR", home.to_str().unwrap());
    for name in ["VISUAL", "NUDGE_TOKEN", "CLAUDE_PROJECT_DIR"] {
        cases.env(name, "");
    }
    cases.register_bin("sh", Path::new("/bin/sh"));
    cases
}

/// Runs one file against a server of its own.
fn typed(file: &str) {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let cases = cases(home.path());
    // The commands run in a repository, whose hints would otherwise apply only there.
    cases.env("NUDGE_DEFAULT_REACH", "everywhere");
    let word = |text: &str| text.to_owned();
    cases.insert_var("[PORT]", word(&serve.file.port.to_string())).unwrap();
    cases.insert_var("[PID]", word(&serve.file.pid.to_string())).unwrap();
    cases.insert_var("[RUN]", word(serve.runtime.to_str().unwrap())).unwrap();
    cases.case(file).run();
}

/// Promise (command line): A command that fails prints nothing to stdout and exits with the code of its error.
#[cfg(unix)]
#[test]
fn verbs() {
    typed("tests/cmd/verbs.md");
}

/// Stops the server that a file of commands may have started, even if the test panics.
struct Ending(PathBuf);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = kit::system::nudge(&self.0, &["stop"]).output();
    }
}

#[cfg(unix)]
#[test]
fn the_readme_from_nothing() {
    let home = home();
    let _ending = Ending(home.path().join("run"));
    cases(home.path()).case("../README.md").run();
}

#[cfg(unix)]
#[test]
fn scenarios() {
    typed("tests/cmd/scenarios.md");
}
