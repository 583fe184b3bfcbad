//! `nudge doctor`: tries out the servers and hooks in the settings of coding agents, as the clients would.
//!
//! Without `--project` only the user's own settings are tried. A project's settings may be written by anybody:
//! of these, only commands that are plainly Nudge are started.
//!
//! Everything is started in a session of its own, in a temporary folder: no hint of the user's is read or changed. A
//! server with an entry that names another session is greeted, but no hint is stored in it.

mod child;
mod environment;
mod launch;
mod plain;
mod settings;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_client::RuntimeDir;
use nudge_os::process::Program;
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::child::{Hello, Running};
use self::launch::Launch;
use self::plain::NotStarted;
use self::settings::{ClientSettings, HookEntries, ServerEntry};
use super::clients::Client;
use super::here::InitPaths;
use super::{event, hook};
use crate::args::Doctor;

/// Time that a tried hook is given. It is generous, so that a correct hook does not fail on a busy machine; the
/// time it took is reported separately.
const HOOK_PATIENCE_MS: u64 = 5_000;
/// Time for starting and ending the hook, beside its own limit.
const START_MS: f64 = 5.0;
/// Largest `NUDGE_HOOK_MS` that is advised: the clients wait 2 seconds.
const MOST_HOOK_MS: f64 = 1_500.0;
/// Number of runs from which the median is reported.
const TIMED: usize = 3;

/// The result of one check.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    /// `None` for a check that was not made.
    ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// Advice: how to mend a failure, or a warning beside a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    fn good(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, ok: Some(true), ms: None, detail: Some(detail.into()), fix: None }
    }

    fn bad(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { ok: Some(false), fix: Some(fix.into()), ..Self::good(name, detail) }
    }

    fn none(name: &'static str, detail: impl Into<String>) -> Self {
        Self { ok: None, ..Self::good(name, detail) }
    }
}

/// Reports on each client: `{"client", "title", "checks": [{"name", "ok", "ms"?, "detail"?, "fix"?}]}`, with
/// the checks `configured`, `binary`, `handshake`, `allowed`, `hook` and `proof`.
///
/// # Errors
/// `E_INVALID` for a name that no client has; `E_NOT_FOUND` when none is there; `E_UNAVAILABLE` when there is no
/// room for a session to try things in.
pub fn clients(args: &Doctor) -> Result<Vec<Value>> {
    let here = InitPaths::find(args.project)?;
    let chosen = here.choose(&args.clients, false)?;
    let exe = std::env::current_exe().unwrap_or_default();
    let users = if args.project { Some(InitPaths::find(false)?.place) } else { None };
    let report = |client: &'static Client| {
        let settings = ClientSettings { client, place: &here.place, users: users.as_ref(), exe: &exe };
        let checks = Patient { settings, scratch: Scratch::new()? }.examine();
        Ok(json!({"client": client.name, "title": client.title, "checks": checks}))
    };
    chosen.into_iter().map(report).collect()
}

/// Splits an error's message into the problem and the advice.
pub fn advice(message: &str) -> (&str, &str) {
    let message = message.trim_end_matches('.');
    message.rsplit_once("; ").unwrap_or((message, "report it"))
}

/// Converts a duration to milliseconds, rounded to a tenth.
pub fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

/// The beginning of the names of folders in which something is tried.
const SCRATCH: &str = "nudge-doctor-";
/// The file in such a folder that is locked as long as its process lives.
const IN_USE: &str = "in-use.lock";

/// A folder for a session, removed when dropped.
struct Scratch {
    /// It is closed before the folder is removed, which some systems demand.
    _in_use: File,
    _folder: TempDir,
    runtime: PathBuf,
}

impl Scratch {
    fn new() -> Result<Self> {
        remove_forsaken(&std::env::temp_dir());
        let mut folder = tempfile::Builder::new();
        folder.prefix(SCRATCH);
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let unmade = |error| Error::unavailable(format!("No folder can be made to try things in: {error}; make room."));
        let folder = folder.tempdir().map_err(unmade)?;
        let in_use = mark_in_use(folder.path()).map_err(unmade)?;
        Ok(Self { runtime: folder.path().join("run"), _in_use: in_use, _folder: folder })
    }
}

/// Marks a folder as used by a living process. The file has its name only once it is locked.
fn mark_in_use(folder: &Path) -> std::io::Result<File> {
    let new = folder.join("in-use.new");
    let file = File::create_new(&new)?;
    file.lock()?;
    std::fs::rename(new, folder.join(IN_USE))?;
    Ok(file)
}

/// Removes the folders of earlier ones that were killed.
fn remove_forsaken(temporary: &Path) {
    let entries = std::fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(SCRATCH)) {
        let folder = entry.path();
        let is_free =
            || File::options().write(true).open(folder.join(IN_USE)).is_ok_and(|file| file.try_lock().is_ok());
        // Another user's stays, and so does whatever is no folder.
        if is_own_folder(&folder) && is_free() {
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

#[cfg(unix)]
fn is_own_folder(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let user = rustix::process::geteuid().as_raw();
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == user)
}

#[cfg(not(unix))]
fn is_own_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

/// A client under examination.
struct Patient<'a> {
    settings: ClientSettings<'a>,
    // The folder outlives the server in it, which is a local variable of `examine`.
    scratch: Scratch,
}

/// A started server that answers, with its entry.
struct RunningEntry {
    running: Running,
    launch: Launch,
    entry: ServerEntry,
}

impl Patient<'_> {
    fn examine(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        let mut served = self.server(&mut checks);
        checks.push(self.settings.allowed());
        let hint = TestHint::new();
        let put = served.as_mut().map(|served| self.put(&hint, served));
        match self.settings.hooked() {
            Ok(Some(hooked)) => self.hook(&hooked, &hint, put, &mut checks),
            Ok(None) => {
                let told = format!(
                    "{} has no hooks; its model reads what the server says of itself, and AGENTS.md \
                     (`nudge init --agents-md`)",
                    self.settings.client.title
                );
                checks.push(Check::none("hook", told));
                checks.push(match (put, served) {
                    (Some(Ok(_)), Some(mut served)) => over_mcp(&hint, &mut served),
                    (Some(Err(check)), _) => check,
                    _ => Check::none("proof", "not tried: no server"),
                });
            }
            Err(check) => {
                checks.push(check);
                checks.push(Check::none("proof", "not tried: no hook"));
            }
        }
        checks
    }

    /// Checks the entry, the program and the handshake; returns the server when all of them work.
    fn server(&self, checks: &mut Vec<Check>) -> Option<RunningEntry> {
        let entry = match self.settings.entry() {
            Ok(entry) => entry,
            Err(check) => {
                checks.push(check);
                checks.extend(["binary", "handshake"].map(|name| Check::none(name, "not tried: no entry")));
                return None;
            }
        };
        checks.push(Check::good("configured", entry.stands.clone()));
        let install = entry.install.clone();
        let launch = Launch::of(&entry.value);
        if launch.is_none() && launch::is_remote(&entry.value) {
            let init = self.settings.init();
            let told =
                format!("it is reached over HTTP, which is not tried; `{init}` registers `nudge serve` over stdio");
            checks.push(Check::none("binary", told));
            checks.push(Check::none("handshake", "not tried: over HTTP"));
            return None;
        }
        let Some(launch) = launch else {
            checks.push(Check::bad("binary", "its entry names no command", install));
            checks.push(Check::none("handshake", "not tried: no command"));
            return None;
        };
        let found = if self.settings.is_foreign() {
            plain::server(&launch, self.settings.exe)
        } else {
            launch.program().ok_or_else(|| NotStarted::Missing(launch.command.clone()))
        };
        let program = match found {
            Ok(program) => program,
            Err(held) => {
                let told = launch.shown(&held.told());
                checks.push(Check::bad("binary", told, self.settings.held(&held, &entry.file, &install)));
                checks.push(Check::none("handshake", "not tried: no program"));
                return None;
            }
        };
        let begun = Instant::now();
        let mut running = Running::start(launch.server(&program, &self.scratch.runtime));
        let hello = running.as_mut().map_err(|error| error.clone()).and_then(Running::hello);
        let took = begun.elapsed();
        let path = launch::shown(&program.to_string_lossy());
        let (hello, running) = match (hello, running) {
            (Ok(hello), Ok(running)) => (hello, running),
            (Err(why), _) | (_, Err(why)) => {
                // Only an absolute path is sure to be the right program; a name may find another one in PATH.
                let by_path = Path::new(&launch.command).is_absolute();
                let fix = if entry.is_ours && by_path { ClientSettings::correct(&entry) } else { install };
                checks.push(Check::good("binary", path));
                checks.push(Check::bad("handshake", launch.shown(&why), fix));
                return None;
            }
        };
        checks.push(binary(&hello, &path, &install));
        let lacks = tools().filter(|tool| !hello.tools.iter().any(|known| known == tool)).collect::<Vec<_>>();
        if !lacks.is_empty() {
            checks.push(Check::bad("handshake", format!("it lacks {}", lacks.join(", ")), install));
            return None;
        }
        let count = hello.tools.len();
        checks.push(Check { ms: Some(ms(took)), ..Check::good("handshake", format!("{count} tools")) });
        Some(RunningEntry { running, launch, entry })
    }

    /// Stores the test hint, unless the server runs in another session, where it might change the user's hints.
    /// Returns advice about the entry, for the case that the hook does not show the hint.
    fn put(&self, hint: &TestHint, served: &mut RunningEntry) -> Result<String, Check> {
        let here = RuntimeDir::open(Some(&self.scratch.runtime)).is_ok_and(|dir| dir.is_held());
        if self.settings.client.hooks.is_none() && !here {
            return Err(Check::none("proof", "not tried: its server belongs to a session that the entry names"));
        }
        if self.settings.client.hooks.is_some() && (!here || served.launch.is_elsewhere()) {
            let told = format!(
                "{} sends the server to a session of its own, where no hook looks",
                served.entry.file.display()
            );
            let everywhere = || {
                "take --runtime-dir and NUDGE_RUNTIME_DIR out of it, and set NUDGE_RUNTIME_DIR for all programs".into()
            };
            let by_env = environment::correct(self.settings.client, &served.entry).filter(|_| here);
            return Err(Check::bad("proof", told, by_env.unwrap_or_else(everywhere)));
        }
        if environment::keeps_session(self.settings.client, &served.entry.value) {
            let told = format!(
                "{} keeps NUDGE_RUNTIME_DIR from the server, so that the hooks look in another session",
                self.settings.client.title
            );
            let fix = environment::correct(self.settings.client, &served.entry).unwrap_or_default();
            return Err(Check::bad("proof", told, fix));
        }
        let RunningEntry { running, launch, entry } = served;
        let stored = running.tool("nudge_set_hint", &hint.params());
        stored.map_err(|why| Check::bad("proof", launch.shown(&why), ClientSettings::correct(entry)))?;
        Ok(if entry.is_ours { ClientSettings::correct(entry) } else { entry.install.clone() })
    }

    /// Runs the hook, which should show the test hint when that could be stored.
    fn hook(&self, hooked: &HookEntries, hint: &TestHint, put: Option<Result<String, Check>>, checks: &mut Vec<Check>) {
        let (file, init) = (hooked.file.display(), hooked.init.as_str());
        let Some(handler) = &hooked.handler else {
            checks.push(Check::bad("hook", format!("{file} has no hook for {}", hooked.missing.join(", ")), init));
            checks.push(Check::none("proof", "not tried: no hook"));
            return;
        };
        let program = self.settings.is_foreign().then(|| plain::hook(handler, self.settings.exe)).transpose();
        let program = match program {
            Ok(program) => program,
            Err(held) => {
                let fix = self.settings.held(&held, &hooked.file, &hooked.install);
                checks.push(Check::bad("hook", held.told(), fix));
                checks.push(Check::none("proof", "not tried: no hook"));
                return;
            }
        };
        let run = |session: &str| {
            let program = match &program {
                Some(path) => {
                    let mut program = Program::new(path);
                    program.arg("hook");
                    program
                }
                None => launch::handler(handler)?,
            };
            self.run_hook(hooked, program, session)
        };
        let (said, _) = match run("first") {
            Ok(said) => said,
            Err(why) => {
                checks.push(Check::bad("hook", launch::shown(&why), hooked.install.as_str()));
                checks.push(Check::none("proof", "not tried: the hook fails"));
                return;
            }
        };
        let told = hint.is_told(hooked.events[0].0, &said);
        let mut check = if hooked.switched_off {
            Check::bad("hook", format!("{file} switches all hooks off"), "take disableAllHooks out of it")
        } else if hooked.missing.is_empty() {
            let count = hooked.events.len();
            let events = if count == 1 { "1 event".to_owned() } else { format!("{count} events") };
            let asks = if hooked.asks {
                format!("; {} asks once whether it may run the hooks", self.settings.client.title)
            } else {
                String::new()
            };
            Check::good("hook", format!("{events} in {file}{asks}"))
        } else {
            Check::bad("hook", format!("{file} lacks such a hook for {}", hooked.missing.join(", ")), init)
        };
        // Only runs that show a hint are timed: a hook without hints does less work.
        let mut times = Vec::new();
        while told && times.len() < TIMED {
            match run(&times.len().to_string()) {
                Ok((_, took)) => times.push(took),
                Err(_) => break,
            }
        }
        times.sort_unstable();
        check.ms = times.get(times.len() / 2).copied().map(ms);
        if check.ok == Some(true) {
            check.fix = hooked.twice.clone().or_else(|| slow(check.ms?, hook::patience_ms(&hook::values())));
        }
        checks.push(check);
        checks.push(match put {
            None => Check::none("proof", "not tried: no server"),
            Some(Err(check)) => check,
            Some(Ok(_)) if told => Check::good("proof", "a test hint came out of the hook"),
            Some(Ok(entry)) => {
                let told = match said.trim() {
                    "" => "the hook says nothing of a test hint".into(),
                    said => format!("the hook says something else than the test hint: {}", launch::shown(said)),
                };
                Check::bad("proof", told, if hooked.is_ours { entry } else { init.to_owned() })
            }
        });
    }

    fn run_hook(&self, hooked: &HookEntries, program: Program, session: &str) -> Result<(String, Duration), String> {
        let program = launch::hook(program, &self.scratch.runtime, HOOK_PATIENCE_MS);
        let cwd = nudge_client::process_cwd().unwrap_or_else(|| self.scratch.runtime.clone());
        let event = event::start(hooked.events[0].0, session, &cwd);
        let begun = Instant::now();
        Running::start(program)?.answer(begun, &event)
    }
}

/// Makes the `proof` check of a client without hooks: reads the test hint back.
fn over_mcp(hint: &TestHint, served: &mut RunningEntry) -> Check {
    match served.running.tool("nudge_get_hint", &json!({"component": hint.component, "key": hint.key})) {
        Ok(text) if text.contains(&hint.value) => Check::good("proof", "a test hint came back over MCP"),
        Ok(_) => {
            Check::bad("proof", "another hint than the test hint came back over MCP", served.entry.install.as_str())
        }
        Err(why) => Check::bad("proof", served.launch.shown(&why), served.entry.install.as_str()),
    }
}

/// Checks that the server is this version of Nudge. Others work too, but not as this one's help says.
fn binary(hello: &Hello, path: &str, install: &str) -> Check {
    let Hello { name, version, .. } = hello;
    if name != "nudge" {
        return Check::bad("binary", format!("{path} says that it is {}", launch::shown(name)), install);
    }
    let check = Check::good("binary", format!("{path} ({})", launch::shown(version)));
    let same = version == env!("CARGO_PKG_VERSION");
    Check { fix: (!same).then(|| format!("{install} (this is {})", env!("CARGO_PKG_VERSION"))), ..check }
}

fn tools() -> impl Iterator<Item = String> {
    // The first source is always in use; the tools of the others are listed only when they are in use.
    let first = crate::sources::all().first().map(|first| (first.methods)()).unwrap_or_default();
    first.into_iter().filter(|method| method.tool).map(nudge::Method::tool_name)
}

/// Returns advice about a hook that takes longer than its own limit.
fn slow(took: f64, patience_ms: u64) -> Option<String> {
    let most = f64::from(u32::try_from(patience_ms).unwrap_or(u32::MAX));
    if took <= most + START_MS {
        return None;
    }
    let more = ((took * 2.0 / 50.0).ceil() * 50.0).min(MOST_HOOK_MS);
    Some(format!("set NUDGE_HOOK_MS={more} for this client: after {most} ms the hook says nothing"))
}

/// A hint with a unique value.
struct TestHint {
    component: &'static str,
    key: &'static str,
    value: String,
}

impl TestHint {
    fn new() -> Self {
        let nanos = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().subsec_nanos();
        Self { component: "nudge", key: "doctor", value: format!("test hint {} of {}", nanos, std::process::id()) }
    }

    fn params(&self) -> Value {
        // So important that a start tells it wherever the client is.
        json!({"component": self.component, "key": self.key, "value": self.value, "meta": {"priority": 10}})
    }

    /// Returns true when a client that has sent `event` finds the hint in the hook's output.
    fn is_told(&self, event: &str, said: &str) -> bool {
        let answer = event::answer(event);
        let said = serde_json::from_str(said).unwrap_or(Value::Null);
        answer.text(&said).is_some_and(|text| text.contains(&self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_slow_when_it_would_say_nothing() {
        assert_eq!((slow(6.0, 45), slow(50.0, 45), slow(180.0, 200)), (None, None, None));
        assert!(slow(50.1, 45).unwrap().starts_with("set NUDGE_HOOK_MS=150 for"));
        assert!(slow(1_900.0, 45).unwrap().starts_with("set NUDGE_HOOK_MS=1500 for"), "the clients wait 2 s");
    }

    #[test]
    fn what_an_error_says_to_do_stands_apart() {
        let error = Error::unavailable("Cannot read /x: it is a folder; move it away.");
        assert_eq!(advice(error.message()), ("Cannot read /x: it is a folder", "move it away"));
    }

    #[test]
    fn the_folder_of_one_that_was_killed_is_removed_and_that_of_one_that_lives_stays() {
        let place = tempfile::tempdir().unwrap();
        let [lives, killed, foreign] = ["a", "b", "c"].map(|name| place.path().join(format!("{SCRATCH}{name}")));
        for folder in [&lives, &killed, &foreign] {
            std::fs::create_dir(folder).unwrap();
        }
        let _in_use = mark_in_use(&lives).unwrap();
        drop(mark_in_use(&killed).unwrap());
        std::fs::create_dir(killed.join("run")).unwrap();
        remove_forsaken(place.path());
        assert!(lives.exists() && !killed.exists() && foreign.exists());
    }
}
