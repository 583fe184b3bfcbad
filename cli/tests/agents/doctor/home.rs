//! Makes a home for tests, and runs `nudge doctor` in it.

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
    /// Makes a home in which `nudge init` has set up these clients.
    pub fn with(clients: &[&str]) -> Self {
        let home = Self::at(None);
        if !clients.is_empty() {
            let init = home.command(&[&["init", "--yes"], clients].concat()).output().unwrap();
            assert!(init.status.success(), "{init:?}");
        }
        if clients.contains(&"codex") {
            // Passes the runtime directory in the entry: Codex does not pass the environment to servers.
            let line = format!("[mcp_servers.nudge]\nenv = {{ NUDGE_RUNTIME_DIR = \"{}\" }}\n", home.runtime.display());
            let config = home.read(".codex/config.toml");
            home.write(".codex/config.toml", &config.replace("[mcp_servers.nudge]\n", &line));
        }
        home
    }

    /// Makes a home without clients. Its session uses `runtime`, or a new directory.
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

    /// Runs the doctor. Asserts that it leaves no file and no process behind.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        let output = self.command(&[&["doctor"], args].concat()).output().unwrap();
        let none: [String; 0] = [];
        assert_eq!(names(&self.path("tmp")), none, "something is left in the folder for temporary files");
        self.assert_no_process();
        output
    }

    /// Asserts that no process of the doctor still runs. The variable `TMPDIR` identifies these processes. Waits,
    /// because a killed process may need a moment to end.
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

    /// Returns the doctor's report as JSON. Asserts that the exit code agrees with it.
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

    /// Changes the JSON in a file of the home.
    pub fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value = serde_json::from_str(&self.read(name)).unwrap();
        change(&mut value);
        self.write(name, &value.to_string());
    }

    /// Lets another process write a program. The system runs no file that is open for writing, and a child of a
    /// parallel test could inherit such a descriptor from this process.
    pub fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path("bin").join(name);
        let make = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\"";
        assert!(Command::new("sh").args(["-c", make]).arg(&path).arg(script).status().unwrap().success());
        path
    }

    /// Links the binary into a folder of PATH.
    pub fn link(&self) {
        symlink(BINARY, self.path("bin/nudge")).unwrap();
    }

    /// Replaces the program in Claude Code's server entry.
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

    /// Asserts that a check has failed; returns its detail and its fix.
    #[track_caller]
    pub fn fails(&self, client: &str, name: &str) -> (String, String) {
        let detail = self.says(client, name, Some(false));
        (detail, self.check(client, name)["fix"].as_str().expect("a fix").to_owned())
    }
}
