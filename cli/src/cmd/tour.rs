//! `nudge try`: runs real commands in a private session. At the end, the session and its folder are removed.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_client::{RemoteServer, RuntimeDir};

use super::CommandOutput;
use crate::output::quote_argument;

/// The time limit for the start and for the end of the server.
const START: Duration = Duration::from_secs(5);
/// The pause after each step on a terminal.
const PAUSE: Duration = Duration::from_millis(1800);

pub fn run() -> Result<CommandOutput> {
    let tour = TourSession::start()?;
    let folder = "/work/minerva/http-proxy";
    print_line("Two variants of one key: each system gets its own folder.")?;
    tour.run_step(&["set", "http-proxy", "directory", r"C:\code\http-proxy", "--scope-os", "windows"], 0)?;
    tour.run_step(&["set", "http-proxy", "directory", "/srv/code/http-proxy", "--scope-os", "linux,darwin"], 0)?;
    tour.run_step(&["get", "http-proxy", "directory", "--os", "windows"], 0)?;
    print_line("A command that holds in one place and on two branches.")?;
    let scope = ["--scope-cwd-glob", "**/http-proxy*", "--scope-branch", "dev,main"];
    let build =
        ["set", "http-proxy", "build", "docker compose build router", "--tags", "build,docker", "--priority", "8"];
    tour.run_step(&[&build[..], &scope].concat(), 0)?;
    tour.run_step(&["get", "http-proxy", "build", "--cwd", folder, "--branch", "dev"], 0)?;
    print_line("Where it does not fit, nothing comes back, and the message says why.")?;
    tour.run_step(&["get", "http-proxy", "build", "--cwd", "/work/billing", "--branch", "dev"], 1)?;
    print_line("A toggle that is gone in two hours.")?;
    tour.run_step(&["set", "api", "env.FEATURE_X", "1", "--ttl", "PT2H", "--scope-branch", "hotfix/*"], 0)?;
    print_line("A credential is refused (this one is made up).")?;
    // Joins the token from parts, so that this source contains no text that looks like a credential.
    let made_up = ["AK", "IA", "QW3RTYUIOP", "4SDFGH"].concat();
    tour.run_step(&["set", "api", "deploy", &format!("aws s3 ls --key {made_up}")], 4)?;
    print_line("What an agent finds, best first.")?;
    tour.run_step(&["query", "--cwd", folder, "--branch", "dev"], 0)?;
    drop(tour);
    Ok("\n# The server is stopped and its folder removed. Next: `nudge init` puts Nudge into your coding agents.\n"
        .to_owned()
        .into())
}

/// A private session. A drop ends the session and removes its folder.
struct TourSession {
    server: Child,
    folder: PathBuf,
    nudge: PathBuf,
}

impl TourSession {
    fn start() -> Result<Self> {
        let failed = |what: &str| Error::unavailable(format!("The tour cannot start: {what}."));
        let nudge = std::env::current_exe().map_err(|_| failed("the program cannot find itself"))?;
        let folder = std::env::temp_dir().join(format!("nudge-try-{}", std::process::id()));
        let mut serve = Command::new(&nudge);
        serve.args(["serve", "--port", "0"]).env("NUDGE_RUNTIME_DIR", &folder).env("NUDGE_KEEP", "0");
        // The server runs as long as its stdin is open.
        let server = serve.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let tour = Self { server: server.map_err(|_| failed("the server cannot be started"))?, folder, nudge };
        let begun = Instant::now();
        while RuntimeDir::open(Some(&tour.folder)).and_then(|dir| RemoteServer::connect(&dir)).is_err() {
            if begun.elapsed() > START {
                return Err(failed("the server does not answer"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(tour)
    }

    /// Shows a command and runs it. `expected` is the expected exit code, because some steps show a failure.
    fn run_step(&self, args: &[&str], expected: i32) -> Result<()> {
        print_text(&format!("$ nudge {}\n", args.iter().map(|arg| quote_argument(arg)).collect::<Vec<_>>().join(" ")))?;
        let mut command = Command::new(&self.nudge);
        command.args(args).env("NUDGE_RUNTIME_DIR", &self.folder).stdin(Stdio::null());
        let out = command.output().map_err(|_| Error::unavailable("A command of the tour cannot be started."))?;
        print_text(&String::from_utf8_lossy(&out.stdout))?;
        print_text(&String::from_utf8_lossy(&out.stderr))?;
        if out.status.code() != Some(expected) {
            return Err(Error::unavailable("The tour went wrong at this step; please report it."));
        }
        if std::io::stdout().is_terminal() {
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Drop for TourSession {
    fn drop(&mut self) {
        // The closed stdin ends the server. The tour kills the server only if it hangs.
        drop(self.server.stdin.take());
        let begun = Instant::now();
        while matches!(self.server.try_wait(), Ok(None)) && begun.elapsed() < START {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = std::fs::remove_dir_all(Path::new(&self.folder));
    }
}

fn print_line(text: &str) -> Result<()> {
    print_text(&format!("\n# {text}\n"))
}

fn print_text(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|_| Error::unavailable("The tour has nowhere to print to."))
}
