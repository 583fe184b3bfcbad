//! Makes a project of files, and a source that answers questions about it. The source has a worker, as in a session, or
//! answers one call, as in a command.

#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_code::SOURCE;
use nudge_core::error::{Error, Result};
use nudge_core::source::{DataDir, SessionIdentity, Source, SourceHost};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The longest time that a test waits for anything. It is long because the machine may have other work.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A project and a folder for caches.
pub struct Lab {
    folder: TempDir,
}

impl Lab {
    /// Makes a project with a git repository.
    pub fn new() -> Self {
        let lab = Self { folder: TempDir::with_prefix("nudge-code-").unwrap() };
        fs::create_dir(lab.root()).unwrap();
        lab.git(&["init", "-q", "-b", "main"]);
        lab
    }

    /// Returns the folder of the project.
    pub fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("project")
    }

    /// Returns the folder of the caches.
    pub fn caches(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("caches")
    }

    /// Returns the path of the database that caches the project's index.
    pub fn cache(&self) -> PathBuf {
        let of_roots = fs::read_dir(self.caches().join("code")).unwrap();
        of_roots.flatten().next().unwrap().path().join("index.db")
    }

    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs git in the project.
    pub fn git(&self, args: &[&str]) {
        let settings = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"];
        let done = Command::new("git").args(settings).args(args).current_dir(self.root()).output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Commits everything.
    pub fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    /// Opens the source with its worker, as in a session.
    pub fn session(&self) -> Session {
        Session::new(self.open("session", &self.caches(), true), &self.root())
    }

    /// Opens the source for one call, with its usual cache.
    pub fn alone(&self) -> Asked {
        Asked { source: self.open("", &self.caches(), true), root: self.root() }
    }

    /// Opens the source for one call, with a new and empty cache.
    pub fn cold(&self) -> (TempDir, Asked) {
        let caches = TempDir::new().unwrap();
        let source = self.open("", caches.path(), true);
        (caches, Asked { source, root: self.root() })
    }

    /// Opens the source for one call, with code switched off.
    pub fn off(&self) -> Asked {
        Asked { source: self.open("", &self.caches(), false), root: self.root() }
    }

    fn open(&self, session: &str, caches: &Path, is_on: bool) -> Arc<dyn Source> {
        let host =
            SourceHost::new_alone(self.folder.path(), &SOURCE, &[("code.on", if is_on { "1" } else { "0" })]).unwrap();
        let session = SessionIdentity { id: session.into(), created_at: 0 };
        (SOURCE.open)(SourceHost { session, cache: DataDir::new(caches), ..host }).unwrap()
    }
}

/// An open source, and the project that its calls are about.
pub struct Asked {
    pub source: Arc<dyn Source>,
    pub root: PathBuf,
}

impl Asked {
    /// Calls `nudge.code.VERB` from the top of the project.
    pub fn ask(&self, verb: &str, mut params: Value) -> Result<Value> {
        params["context"] = json!({"cwd": self.root});
        let said = self.source.call(&format!("nudge.code.{verb}"), &to_raw_value(&params).unwrap())?;
        Ok(serde_json::from_str(said.get()).unwrap())
    }

    /// Calls `nudge.code.VERB`, and panics if the call is refused.
    #[allow(clippy::needless_pass_by_value, reason = "it is made where it is given")]
    pub fn tell(&self, verb: &str, params: Value) -> Value {
        self.ask(verb, params.clone()).unwrap_or_else(|error| panic!("{verb} {params}: {error:?}"))
    }

    /// Returns everything that the index holds, without times.
    pub fn everything(&self) -> Value {
        let found = self.tell("status", json!({}));
        let mut all = json!({"files": found["files"], "nodes": found["nodes"], "skipped": found["skipped"]});
        for path in files(&self.root) {
            let Ok(file) = self.ask("file", json!({"path": path})) else { continue };
            for node in file["nodes"].as_array().unwrap() {
                all[node["id"].as_str().unwrap()] = timeless(self.tell("node", json!({"id": node["id"]})));
            }
            all[&path] = timeless(file);
        }
        all
    }
}

/// Closes the source, as a command does when it ends.
impl Drop for Asked {
    fn drop(&mut self) {
        self.source.close();
    }
}

/// Removes the fields of an answer that depend on the time.
pub fn timeless(mut answer: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                for of_now in ["fresh", "as_of", "first_seen", "last_changed"] {
                    map.remove(of_now);
                }
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut answer);
    answer
}

/// Lists the paths of all files below a folder, relative to this folder, without the files of `.git`.
pub fn files(root: &Path) -> Vec<String> {
    let (mut ahead, mut files) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && entry.file_name() != ".git" => ahead.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    files.push(entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned());
                }
                _ => {}
            }
        }
    }
    files.sort();
    files
}

/// The source of a session; the worker of the source runs in the background.
pub struct Session {
    asked: Asked,
}

impl std::ops::Deref for Session {
    type Target = Asked;

    fn deref(&self) -> &Asked {
        &self.asked
    }
}

impl Session {
    fn new(source: Arc<dyn Source>, root: &Path) -> Self {
        Self { asked: Asked { source, root: root.to_owned() } }
    }

    /// Waits until every file has been read. Returns the status.
    pub fn settled(&self) -> Value {
        until("everything to be read", || {
            let status = self.tell("status", json!({}));
            (status["as_of"]["complete"] == true && status["as_of"]["pending"] == 0).then_some(status)
        })
    }

    /// Closes the session and returns how long that took.
    pub fn end(mut self) -> Duration {
        let begun = Instant::now();
        self.stop();
        begun.elapsed()
    }

    fn stop(&mut self) {
        self.asked.source.close();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

/// Waits until `look` returns something.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the error of a refused call.
pub fn refused(answer: Result<Value>) -> Error {
    answer.expect_err("it should be refused")
}
