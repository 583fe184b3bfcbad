//! Makes a desk: a checkout of a repository and a runtime directory, in which the test may start a session.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{Serve, command, home, system};

pub struct Desk {
    pub home: TempDir,
    pub runtime: PathBuf,
    pub checkout: PathBuf,
}

impl Desk {
    /// Makes a desk with a checkout of `acme/shop` and without a session.
    pub fn new() -> Self {
        let home = home();
        let (runtime, checkout) = (home.path().join("run"), home.path().join("checkout"));
        for sub in [".git/objects", ".git/refs/heads"] {
            fs::create_dir_all(checkout.join(sub)).unwrap();
        }
        fs::write(checkout.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let config = "[remote \"origin\"]\n\turl = git@github.com:acme/shop.git\n";
        fs::write(checkout.join(".git/config"), config).unwrap();
        Self { home, runtime, checkout }
    }

    /// Sets the environment variables and the current folder, so that the command uses only files of the test.
    fn place(&self, command: &mut Command) {
        command.env("NUDGE_DATA_DIR", self.home.path().join("data"));
        command.env("NUDGE_CACHE_DIR", self.home.path().join("caches"));
        command.env("XDG_STATE_HOME", self.home.path().join("state"));
        command.current_dir(&self.checkout).env("PWD", &self.checkout).env_remove("CLAUDE_PROJECT_DIR");
    }

    /// Returns a command that runs in the checkout.
    pub fn nudge(&self, args: &[&str]) -> Command {
        let mut nudge = system::nudge(&self.runtime, args);
        self.place(&mut nudge);
        nudge
    }

    /// Returns the command that starts a session in the checkout.
    pub fn server(&self) -> Command {
        let mut serve = command(&self.runtime);
        serve.args(["--port", "0"]);
        self.place(&mut serve);
        serve
    }

    /// Starts a session in the checkout.
    pub fn serve(&self) -> Serve {
        Serve::spawn(self.server(), &self.runtime)
    }

    /// Runs a command that must succeed; returns its result.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Value {
        let output = self.nudge(&[args, &["--json"]].concat()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a command that must fail; returns its exit code and its message.
    #[track_caller]
    pub fn refused(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.nudge(args).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    /// Runs a hook with these environment variables; returns its text for the model.
    pub fn hook(&self, env: &[(&str, &str)], event: &Value) -> String {
        Self::told_by(self.spawn_hook(env, event))
    }

    /// Starts a hook and writes the event to its stdin.
    pub fn spawn_hook(&self, env: &[(&str, &str)], event: &Value) -> Child {
        let mut hook = self.nudge(&["hook"]);
        // The time limit is long, because a hook prints nothing after its limit, and the machine may be busy.
        hook.env("NUDGE_HOOK_MS", "5000").envs(env.iter().copied());
        let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        child
    }

    /// Waits for the end of a hook; returns its text for the model.
    pub fn told_by(hook: Child) -> String {
        let output = hook.wait_with_output().unwrap();
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        said["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
    }
}
