//! Makes a project of code, and opens the source `code` on it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nudge_code::SOURCE;
use nudge_core::service::Service as _;
use nudge_core::source::{DataDir, Source, SourceHost};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// The time after which a file no longer counts as just changed, and some more.
const JUST_CHANGED: Duration = Duration::from_millis(2_100);
/// The number of functions in a file.
pub const FUNCTIONS: usize = 20;

/// A generated project. Each function calls a function of another file.
pub struct Project(PathBuf);

impl Project {
    /// Uses the project in this folder.
    pub fn at(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// Makes a project of this many files in an empty folder.
    pub fn new(root: &Path, files: usize) -> Self {
        let project = Self::at(root);
        fs::write(project.path().join("pyproject.toml"), "[project]\nname = \"made-up\"\n").expect("there is room");
        for file in 0..files {
            project.write(file, files, "amount");
        }
        project
    }

    /// Returns the folder of the project.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file. Its functions have a parameter with the name `param`.
    pub fn write(&self, file: usize, files: usize, param: &str) {
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

    /// Waits until no file counts as just changed. Before that, each answer reads a changed file again: a second change
    /// within one tick of the file system's clock would not change the file's time.
    pub fn settle(&self) {
        let marks = |entry: std::io::Result<fs::DirEntry>| entry.and_then(|entry| entry.metadata()?.modified());
        let all = fs::read_dir(self.path()).expect("it was made").map(|entry| marks(entry).expect("it is there"));
        let newest = all.max().expect("there are files");
        while newest.elapsed().is_ok_and(|since| since < JUST_CHANGED) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns params for a call about this project.
    pub fn params(&self, own: &Value) -> Box<RawValue> {
        params(self.path(), own)
    }
}

/// The source `code` as a session calls it.
pub struct Code(pub Arc<dyn Source>);

impl Code {
    /// Opens the source as a process for a single call does. All files are read when this returns.
    pub fn open(caches: &Path) -> Self {
        let host = SourceHost::new_alone(caches, &SOURCE, &[]).expect("the defaults are allowed");
        let opened = (SOURCE.open)(SourceHost { cache: DataDir::new(caches), ..host });
        Self(opened.expect("the folder is there"))
    }

    /// Calls `nudge.code.VERB`; returns the answer as JSON text.
    pub fn ask(&self, verb: &str, params: &RawValue) -> Box<RawValue> {
        self.0.call(&format!("nudge.code.{verb}"), params).expect("the params are right")
    }
}

/// Returns params for a call about a project.
pub fn params(root: &Path, own: &Value) -> Box<RawValue> {
    let mut params = own.clone();
    params["root"] = json!(root);
    to_raw_value(&params).expect("it is JSON")
}
