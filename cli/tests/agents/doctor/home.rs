//! A test home, and the report of `nudge doctor` on it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::BINARY;
use crate::kit;
use crate::kit::session::names;

pub struct Home {
    dir: TempDir,
    pub runtime: PathBuf,
}

impl Home {
    /// Makes a home with Nudge in these clients.
    pub fn with(clients: &[&str]) -> Self {
        let home = Self::at(None);
        if !clients.is_empty() {
            let init = home.command(&[&["init", "--yes"], clients].concat()).output().unwrap();
            assert!(init.status.success(), "{init:?}");
        }
        if clients.contains(&"codex") {
            // Codex does not pass the environment to servers.
            let line = format!("[mcp_servers.nudge]\nenv = {{ NUDGE_RUNTIME_DIR = \"{}\" }}\n", home.runtime.display());
            let config = home.read(".codex/config.toml");
            home.write(".codex/config.toml", &config.replace("[mcp_servers.nudge]\n", &line));
        }
        home
    }

    /// Makes a home whose session is in `runtime`, or in a folder of its own.
    pub fn at(runtime: Option<&Path>) -> Self {
        let dir = kit::home();
        let runtime = runtime.map_or_else(|| dir.path().join("run"), Path::to_owned);
        for folder in ["bin", "tmp", "work"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir, runtime }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        command.args(args).env_clear().env("HOME", self.dir.path()).env("PATH", path);
        command.env("TMPDIR", self.path("tmp")).env("NUDGE_RUNTIME_DIR", &self.runtime);
        command.current_dir(self.path("work")).stdin(Stdio::null());
        command
    }

    /// Runs the doctor, and asserts that it leaves nothing behind.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        let output = self.command(&[&["doctor"], args].concat()).output().unwrap();
        let none: [String; 0] = [];
        assert_eq!(names(&self.path("tmp")), none, "something is left in the folder for temporary files");
        self.assert_no_process();
        output
    }

    /// Asserts that no process of the doctor still runs. The variable with the folder for temporary files identifies
    /// them. A killed process may need a moment to end.
    #[track_caller]
    fn assert_no_process(&self) {
        let mark = format!("TMPDIR={}", self.path("tmp").display());
        let is_ours = |process: fs::DirEntry| {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        kit::wait_for("the end of every process", kit::PATIENCE, || {
            let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
            (!processes.into_iter().any(is_ours)).then_some(())
        });
    }

    /// Returns the report, and checks that its exit code agrees with it.
    #[track_caller]
    pub fn report(&self, args: &[&str]) -> Report {
        let output = self.run(&[args, &["--json"]].concat());
        assert!(output.stderr.is_empty(), "{output:?}");
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"));
        let checks =
            value["clients"].as_array().unwrap().iter().flat_map(|client| client["checks"].as_array().unwrap());
        let failed = checks.chain([&value["session"]]).any(|check| check["ok"] == false);
        assert_eq!(output.status.code(), Some(i32::from(failed)), "{value:#}");
        Report(value)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Changes the JSON of a file.
    pub fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value = serde_json::from_str(&self.read(name)).unwrap();
        change(&mut value);
        self.write(name, &value.to_string());
    }

    /// Lets another process write a program. A file that this process has written could still be open in a child, and
    /// the system does not run such a file.
    pub fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path("bin").join(name);
        let make = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\"";
        assert!(Command::new("sh").args(["-c", make]).arg(&path).arg(script).status().unwrap().success());
        path
    }

    /// Puts a link to the binary into a folder of PATH.
    pub fn link(&self) {
        symlink(BINARY, self.path("bin/nudge")).unwrap();
    }

    /// Sets the program that a client's server entry starts.
    pub fn serve_by(&self, program: &Path) {
        self.change(".claude.json", |settings| settings["mcpServers"]["nudge"]["command"] = json!(program));
    }
}

pub struct Report(pub Value);

impl Report {
    #[track_caller]
    pub fn check(&self, client: &str, name: &str) -> &Value {
        let clients = self.0["clients"].as_array().unwrap();
        let client = clients.iter().find(|found| found["client"] == client).unwrap_or_else(|| panic!("no {client}"));
        let checks = client["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {client:#}"))
    }

    #[track_caller]
    pub fn says(&self, client: &str, name: &str, ok: Option<bool>) -> String {
        let check = self.check(client, name);
        assert_eq!(check["ok"], json!(ok), "{:#}", self.0);
        check["detail"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the detail of a failed check and its fix.
    #[track_caller]
    pub fn fails(&self, client: &str, name: &str) -> (String, String) {
        let detail = self.says(client, name, Some(false));
        (detail, self.check(client, name)["fix"].as_str().expect("a fix").to_owned())
    }
}
