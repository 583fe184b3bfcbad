//! `nudge serve --detach`: starts a server in the background, and waits until it answers.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nudge::{Error, Result, Service as _};
use nudge_app::background::set_apart;
use nudge_client::{RemoteServer, RuntimeDir, ServerFile};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::print_note;
use super::{CommandOutput, ServeArgs};
use crate::args::GlobalFlags;

const PRIMARY: &str = "PRIMARY";
const PROXY: &str = "PROXY";
/// The time limit of the start. It is longer than the five seconds after which the server itself fails when another
/// process holds `primary.lock` and does not answer.
const START_TIMEOUT: Duration = Duration::from_secs(15);
const START_POLL: Duration = Duration::from_millis(5);

/// Starts the server with the arguments of this process, which are already checked.
pub(super) fn run(args: ServeArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let dir = args.settings.dir;
    let program = std::env::current_exe().map_err(|_| detach_error("the program cannot find itself"))?;
    let words = std::env::args_os().skip(1).filter(|word| word != "--json");
    let words = words.map(|word| if word == "--detach" { "--detached".into() } else { word });
    if let Err(error) = dir.open_log() {
        // The server also reports this error, but the user does not see the server's stderr.
        print_note(&format!("there will be no log: {}", error.message()));
    }
    let mut command = Command::new(program);
    // The flag `--json` makes the last line of stderr a JSON error.
    command.arg("--json").args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    set_apart(&mut command);
    let mut server = command.spawn().map_err(|error| detach_error(&format!("it cannot be run ({error})")))?;
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        if let Some((file, role)) = find_role(&dir, server.id()) {
            let (pid, port) = (server.id(), file.port);
            let text = match role {
                _ if global.json => json!({"pid": pid, "port": port, "role": role}).to_string(),
                PRIMARY => {
                    format!("serving http://127.0.0.1:{port} in the background (pid {pid}); `nudge stop` ends it")
                }
                _ => {
                    let ignored = global.port.filter(|given| *given != port && *given != 0);
                    let stays = |given| format!("; the session stays on port {port}, not {given}");
                    format!(
                        "standing by in the background (pid {pid}) behind http://127.0.0.1:{port} (pid {}); `nudge stop` ends both{}",
                        file.pid,
                        ignored.map_or_else(String::new, stays)
                    )
                }
            };
            return Ok(format!("{text}\n").into());
        }
        if server.try_wait().is_ok_and(|ended| ended.is_some()) {
            return Err(last_words(&mut server));
        }
        if Instant::now() > deadline {
            let _ = server.kill();
            return Err(detach_error("it does not answer"));
        }
        std::thread::sleep(START_POLL);
    }
}

/// Returns the server file and the role of the process. Returns `None` while the process is still starting.
fn find_role(dir: &RuntimeDir, process: u32) -> Option<(ServerFile, &'static str)> {
    let file = dir.read_server_file().filter(|file| RemoteServer::is_alive(dir, file))?;
    if file.pid == process {
        return Some((file, PRIMARY));
    }
    let params = RawValue::from_string("{}".into()).ok()?;
    let status = RemoteServer::connect(dir).and_then(|primary| primary.call("nudge.status", &params)).ok()?;
    let status: Value = serde_json::from_str(status.get()).ok()?;
    status["proxies"].as_array()?.contains(&process.into()).then_some((file, PROXY))
}

/// Reads the error that the server printed at its end.
fn last_words(server: &mut Child) -> Error {
    let mut said = String::new();
    if let Some(stderr) = &mut server.stderr {
        let _ = stderr.read_to_string(&mut said);
    }
    let last = said.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
    last.map_or_else(|| detach_error("it ends at once"), |error| Error::from_json(&error))
}

fn detach_error(what: &str) -> Error {
    let message = format!("The server cannot be started in the background: {what}; try `nudge serve` to see why.");
    Error::unavailable(message)
}
