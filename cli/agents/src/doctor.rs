//! `nudge doctor`: runs the servers and hooks from the settings of coding agents, as the clients would run them.
//!
//! Without `--project`, the doctor tries only the user's own settings. With `--project`, it starts only commands that
//! are plainly Nudge, because anyone may have written a project's settings.
//!
//! The doctor starts everything in a new session in a temporary folder, so it neither reads nor changes the user's
//! hints. If a server's entry names another session, the doctor makes the MCP handshake but stores no hint.

mod child;
mod environment;
mod launch;
mod plain;
mod settings;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nudge::{Error, Result};
use nudge_client::{MAX_LIMIT_MS, RecentHooks, RuntimeDir};
use nudge_core::number::unix_ns;
use nudge_os::lock::{FileLock, LockKind, LockPatience};
use nudge_os::process::ChildProgram;
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::child::{ChildProcess, ServerHello};
use self::launch::LaunchCommand;
use self::plain::NotStarted;
use self::settings::{ClientSettings, HookEntries, ServerEntry};
use super::clients::ClientSpec;
use super::here::{InitPaths, find_binary};
use super::{event, hook};
use crate::args::DoctorArgs;

/// The time limit for a hook that the doctor runs. It is long, so that a correct hook does not fail on a busy machine.
/// The report names the time that the hook took separately.
const HOOK_PATIENCE_MS: u64 = 5_000;
/// The time to start and end the hook's process, in addition to the hook's own limit.
const START_MS: f64 = 5.0;
/// The number of runs; the report contains their median.
const TIMED: usize = 3;

/// The result of one check.
#[derive(Debug, Serialize)]
struct DoctorCheck {
    name: &'static str,
    /// The result; `None` for a check that did not run.
    ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// Advice: how to repair a failure, or a warning after a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl DoctorCheck {
    fn new_passed(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, ok: Some(true), ms: None, detail: Some(detail.into()), fix: None }
    }

    fn new_failed(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { ok: Some(false), fix: Some(fix.into()), ..Self::new_passed(name, detail) }
    }

    fn new_skipped(name: &'static str, detail: impl Into<String>) -> Self {
        Self { ok: None, ..Self::new_passed(name, detail) }
    }
}

/// Reports on each client: `{"client", "title", "checks": [{"name", "ok", "ms"?, "detail"?, "fix"?}]}`, with
/// the checks `configured`, `binary`, `handshake`, `allowed`, `hook` and `proof`.
///
/// # Errors
/// `E_INVALID` for a name that no client has; `E_NOT_FOUND` when no client is installed; `E_UNAVAILABLE` when the
/// temporary session cannot be made.
pub fn check_clients(args: &DoctorArgs) -> Result<Vec<Value>> {
    let here = InitPaths::find(args.project)?;
    let chosen = here.choose_clients(&args.clients, false)?;
    let exe = find_binary()?;
    let users = if args.project { Some(InitPaths::find(false)?.place) } else { None };
    let report = |client: &'static ClientSpec| {
        let settings = ClientSettings { client, place: &here.place, users: users.as_ref(), exe: &exe };
        let checks = ExaminedClient { settings, scratch: ScratchSession::new()? }.examine();
        Ok(json!({"client": client.name, "title": client.title, "checks": checks}))
    };
    chosen.into_iter().map(report).collect()
}

/// Splits an error's message into the problem and the advice.
pub fn split_advice(message: &str) -> (&str, &str) {
    let message = message.trim_end_matches('.');
    message.rsplit_once("; ").unwrap_or((message, "report it"))
}

/// Converts a duration to milliseconds, rounded to tenths.
pub fn to_millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

/// The prefix of the names of the doctor's temporary folders.
const SCRATCH: &str = "nudge-doctor-";
/// The file in such a folder that stays locked while the doctor's process lives.
const IN_USE: &str = "in-use.lock";

/// A session in a temporary folder. A drop removes the folder.
struct ScratchSession {
    /// The lock is the first field: its file must be closed before the folder is removed, as some systems require.
    _in_use: FileLock,
    _folder: TempDir,
    runtime: PathBuf,
}

impl ScratchSession {
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

/// Marks a folder as used by a living process. The lock file gets its final name only after it is locked, so no other
/// doctor sees it unlocked.
fn mark_in_use(folder: &Path) -> std::io::Result<FileLock> {
    let new = folder.join("in-use.new");
    let lock = FileLock::take(&new, LockKind::Exclusive, LockPatience::AtOnce)?;
    std::fs::rename(new, folder.join(IN_USE))?;
    Ok(lock)
}

/// Removes the temporary folders of earlier doctors that were killed.
fn remove_forsaken(temporary: &Path) {
    let entries = std::fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(SCRATCH)) {
        let folder = entry.path();
        let in_use = File::options().write(true).open(folder.join(IN_USE));
        let is_free = || in_use.is_ok_and(|file| matches!(FileLock::is_held(&file, LockKind::Exclusive), Ok(false)));
        // Keeps the folder of another user, and a file that is no folder.
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

/// A client that the doctor examines.
struct ExaminedClient<'a> {
    settings: ClientSettings<'a>,
    // The server in the folder is a local variable of `examine`, so it is dropped before this folder.
    scratch: ScratchSession,
}

/// A running server that answers, with its command and entry.
struct RunningEntry {
    running: ChildProcess,
    launch: LaunchCommand,
    entry: ServerEntry,
}

impl ExaminedClient<'_> {
    fn examine(&self) -> Vec<DoctorCheck> {
        let mut checks = Vec::new();
        let mut served = self.check_server(&mut checks);
        checks.push(self.settings.check_permission());
        let hint = TestHint::new();
        let put = served.as_mut().map(|served| self.store_hint(&hint, served));
        match self.settings.find_hooks() {
            Ok(Some(hooked)) => self.check_hook(&hooked, &hint, put, &mut checks),
            Ok(None) => {
                let told = format!(
                    "{} has no hooks; its model reads what the server says of itself, and AGENTS.md \
                     (`nudge init --agents-md`)",
                    self.settings.client.title
                );
                checks.push(DoctorCheck::new_skipped("hook", told));
                checks.push(match (put, served) {
                    (Some(Ok(_)), Some(mut served)) => over_mcp(&hint, &mut served),
                    (Some(Err(check)), _) => check,
                    _ => DoctorCheck::new_skipped("proof", "not tried: no server"),
                });
            }
            Err(check) => {
                checks.push(check);
                checks.push(DoctorCheck::new_skipped("proof", "not tried: no hook"));
            }
        }
        checks
    }

    /// Checks the entry, the program and the handshake. Returns the server when all three checks pass.
    fn check_server(&self, checks: &mut Vec<DoctorCheck>) -> Option<RunningEntry> {
        let entry = match self.settings.find_entry() {
            Ok(entry) => entry,
            Err(check) => {
                checks.push(check);
                checks
                    .extend(["binary", "handshake"].map(|name| DoctorCheck::new_skipped(name, "not tried: no entry")));
                return None;
            }
        };
        checks.push(DoctorCheck::new_passed("configured", entry.stands.clone()));
        let install = entry.install.clone();
        let launch = LaunchCommand::from_entry(&entry.value);
        if launch.is_none() && launch::is_remote(&entry.value) {
            let init = self.settings.init_command();
            let told =
                format!("it is reached over HTTP, which is not tried; `{init}` registers `nudge serve` over stdio");
            checks.push(DoctorCheck::new_skipped("binary", told));
            checks.push(DoctorCheck::new_skipped("handshake", "not tried: over HTTP"));
            return None;
        }
        let Some(launch) = launch else {
            checks.push(DoctorCheck::new_failed("binary", "its entry names no command", install));
            checks.push(DoctorCheck::new_skipped("handshake", "not tried: no command"));
            return None;
        };
        let found = if self.settings.is_foreign() {
            plain::find_server_program(&launch, self.settings.exe)
        } else {
            launch.find_program().ok_or_else(|| NotStarted::Missing(launch.command.clone()))
        };
        let program = match found {
            Ok(program) => program,
            Err(held) => {
                let told = launch.redact(&held.to_words());
                checks.push(DoctorCheck::new_failed(
                    "binary",
                    told,
                    self.settings.advise_on_held(&held, &entry.file, &install),
                ));
                checks.push(DoctorCheck::new_skipped("handshake", "not tried: no program"));
                return None;
            }
        };
        let begun = Instant::now();
        let mut running = ChildProcess::start(launch.to_server(&program, &self.scratch.runtime));
        let hello = running.as_mut().map_err(|error| error.clone()).and_then(ChildProcess::shake_hands);
        let took = begun.elapsed();
        let path = launch::shorten_foreign(&program.to_string_lossy());
        let (hello, running) = match (hello, running) {
            (Ok(hello), Ok(running)) => (hello, running),
            (Err(why), _) | (_, Err(why)) => {
                // Only an absolute path surely names the right program: a bare name may find another program in PATH.
                let by_path = Path::new(&launch.command).is_absolute();
                let fix = if entry.is_ours && by_path { ClientSettings::advise_correction(&entry) } else { install };
                checks.push(DoctorCheck::new_passed("binary", path));
                checks.push(DoctorCheck::new_failed("handshake", launch.redact(&why), fix));
                return None;
            }
        };
        checks.push(check_binary(&hello, &path, &install));
        let lacks = list_tools().filter(|tool| !hello.tools.iter().any(|known| known == tool)).collect::<Vec<_>>();
        if !lacks.is_empty() {
            checks.push(DoctorCheck::new_failed("handshake", format!("it lacks {}", lacks.join(", ")), install));
            return None;
        }
        let count = hello.tools.len();
        checks.push(DoctorCheck {
            ms: Some(to_millis(took)),
            ..DoctorCheck::new_passed("handshake", format!("{count} tools"))
        });
        Some(RunningEntry { running, launch, entry })
    }

    /// Stores the test hint. Refuses if the server runs in another session, because this could change the user's hints
    /// there. Returns advice about the entry, in case the hook does not show the hint.
    fn store_hint(&self, hint: &TestHint, served: &mut RunningEntry) -> Result<String, DoctorCheck> {
        let here = RuntimeDir::open(Some(&self.scratch.runtime)).is_ok_and(|dir| dir.is_held());
        if self.settings.client.hooks.is_none() && !here {
            return Err(DoctorCheck::new_skipped(
                "proof",
                "not tried: its server belongs to a session that the entry names",
            ));
        }
        if self.settings.client.hooks.is_some() && (!here || served.launch.is_elsewhere()) {
            let told = format!(
                "{} sends the server to a session of its own, where no hook looks",
                served.entry.file.display()
            );
            let everywhere = || {
                "take --runtime-dir and NUDGE_RUNTIME_DIR out of it, and set NUDGE_RUNTIME_DIR for all programs".into()
            };
            let by_env = environment::advise_on_session(self.settings.client, &served.entry).filter(|_| here);
            return Err(DoctorCheck::new_failed("proof", told, by_env.unwrap_or_else(everywhere)));
        }
        if environment::withholds_session(self.settings.client, &served.entry.value) {
            let told = format!(
                "{} keeps NUDGE_RUNTIME_DIR from the server, so that the hooks look in another session",
                self.settings.client.title
            );
            let fix = environment::advise_on_session(self.settings.client, &served.entry).unwrap_or_default();
            return Err(DoctorCheck::new_failed("proof", told, fix));
        }
        let RunningEntry { running, launch, entry } = served;
        let stored = running.call_tool("nudge_set_hint", &hint.to_params());
        stored.map_err(|why| {
            DoctorCheck::new_failed("proof", launch.redact(&why), ClientSettings::advise_correction(entry))
        })?;
        Ok(if entry.is_ours { ClientSettings::advise_correction(entry) } else { entry.install.clone() })
    }

    /// Runs the hook. The hook should show the test hint, if the hint was stored.
    fn check_hook(
        &self,
        hooked: &HookEntries,
        hint: &TestHint,
        put: Option<Result<String, DoctorCheck>>,
        checks: &mut Vec<DoctorCheck>,
    ) {
        let (file, init) = (hooked.file.display(), hooked.init.as_str());
        let Some(handler) = &hooked.handler else {
            checks.push(DoctorCheck::new_failed(
                "hook",
                format!("{file} has no hook for {}", hooked.missing.join(", ")),
                init,
            ));
            checks.push(DoctorCheck::new_skipped("proof", "not tried: no hook"));
            return;
        };
        let program =
            self.settings.is_foreign().then(|| plain::find_hook_program(handler, self.settings.exe)).transpose();
        let program = match program {
            Ok(program) => program,
            Err(held) => {
                let fix = self.settings.advise_on_held(&held, &hooked.file, &hooked.install);
                checks.push(DoctorCheck::new_failed("hook", held.to_words(), fix));
                checks.push(DoctorCheck::new_skipped("proof", "not tried: no hook"));
                return;
            }
        };
        let run = |session: &str| {
            let program = match &program {
                Some(path) => {
                    let mut program = ChildProgram::new(path);
                    program.arg("hook");
                    program
                }
                None => launch::to_program(handler)?,
            };
            self.run_hook(hooked, program, session)
        };
        let (said, _) = match run("first") {
            Ok(said) => said,
            Err(why) => {
                checks.push(DoctorCheck::new_failed("hook", launch::shorten_foreign(&why), hooked.install.as_str()));
                checks.push(DoctorCheck::new_skipped("proof", "not tried: the hook fails"));
                return;
            }
        };
        let told = hint.is_told(hooked.events[0].0, &said);
        let mut check = if hooked.switched_off {
            DoctorCheck::new_failed("hook", format!("{file} switches all hooks off"), "take disableAllHooks out of it")
        } else if hooked.missing.is_empty() {
            let count = hooked.events.len();
            let events = if count == 1 { "1 event".to_owned() } else { format!("{count} events") };
            let asks = if hooked.asks {
                format!("; {} asks once whether it may run the hooks", self.settings.client.title)
            } else {
                String::new()
            };
            DoctorCheck::new_passed("hook", format!("{events} in {file}{asks}"))
        } else {
            DoctorCheck::new_failed("hook", format!("{file} lacks such a hook for {}", hooked.missing.join(", ")), init)
        };
        // Measures only runs that show a hint, because a hook without hints does less work.
        let mut times = Vec::new();
        while told && times.len() < TIMED {
            match run(&times.len().to_string()) {
                Ok((_, took)) => times.push(took),
                Err(_) => break,
            }
        }
        times.sort_unstable();
        check.ms = times.get(times.len() / 2).copied().map(to_millis);
        if check.ok == Some(true) {
            let advise = || advise_on_time(check.ms?, hook::max_patience_ms(&hook::read_values()));
            check.fix = hooked.twice.clone().or_else(advise_on_late).or_else(advise);
        }
        checks.push(check);
        checks.push(match put {
            None => DoctorCheck::new_skipped("proof", "not tried: no server"),
            Some(Err(check)) => check,
            Some(Ok(_)) if told => DoctorCheck::new_passed("proof", "a test hint came out of the hook"),
            Some(Ok(entry)) => {
                let told = match said.trim() {
                    "" => "the hook says nothing of a test hint".into(),
                    said => {
                        format!("the hook says something else than the test hint: {}", launch::shorten_foreign(said))
                    }
                };
                DoctorCheck::new_failed("proof", told, if hooked.is_ours { entry } else { init.to_owned() })
            }
        });
    }

    fn run_hook(
        &self,
        hooked: &HookEntries,
        program: ChildProgram,
        session: &str,
    ) -> Result<(String, Duration), String> {
        let program = launch::adapt_hook(program, &self.scratch.runtime, HOOK_PATIENCE_MS);
        let cwd = nudge_client::process_cwd().unwrap_or_else(|| self.scratch.runtime.clone());
        let event = event::make_start_event(hooked.events[0].0, session, &cwd);
        let begun = Instant::now();
        ChildProcess::start(program)?.read_answer(begun, &event)
    }
}

/// Makes the `proof` check of a client without hooks: reads the test hint back over MCP.
fn over_mcp(hint: &TestHint, served: &mut RunningEntry) -> DoctorCheck {
    match served.running.call_tool("nudge_get_hint", &json!({"component": hint.component, "key": hint.key})) {
        Ok(text) if text.contains(&hint.value) => DoctorCheck::new_passed("proof", "a test hint came back over MCP"),
        Ok(_) => DoctorCheck::new_failed(
            "proof",
            "another hint than the test hint came back over MCP",
            served.entry.install.as_str(),
        ),
        Err(why) => DoctorCheck::new_failed("proof", served.launch.redact(&why), served.entry.install.as_str()),
    }
}

/// Checks that the server is this version of Nudge. Another version works too, but its help may differ.
fn check_binary(hello: &ServerHello, path: &str, install: &str) -> DoctorCheck {
    let ServerHello { name, version, .. } = hello;
    if name != "nudge" {
        return DoctorCheck::new_failed(
            "binary",
            format!("{path} says that it is {}", launch::shorten_foreign(name)),
            install,
        );
    }
    let check = DoctorCheck::new_passed("binary", format!("{path} ({})", launch::shorten_foreign(version)));
    let same = version == env!("CARGO_PKG_VERSION");
    DoctorCheck { fix: (!same).then(|| format!("{install} (this is {})", env!("CARGO_PKG_VERSION"))), ..check }
}

fn list_tools() -> impl Iterator<Item = String> {
    // The first source is always in use. The list contains tools of another source only while that source is in use.
    let first = nudge_app::sources::list_sources().first();
    first.into_iter().flat_map(|first| (first.methods)()).filter(|method| method.tool).map(nudge::MethodSpec::tool_name)
}

/// Returns advice if hooks of the user's own session were late recently.
fn advise_on_late() -> Option<String> {
    let runtime = RuntimeDir::find(None).ok()??;
    let report = RecentHooks::read(&runtime).count_late()?;
    report.to_sentence().filter(|_| report.late_lately > 0)
}

/// Returns advice about a hook that takes longer than its own limit.
fn advise_on_time(took: f64, patience_ms: u64) -> Option<String> {
    let most = Duration::from_millis(patience_ms).as_secs_f64() * 1e3;
    if took <= most + START_MS {
        return None;
    }
    let most_ms = Duration::from_millis(MAX_LIMIT_MS).as_secs_f64() * 1e3;
    let more = ((took * 2.0 / 50.0).ceil() * 50.0).min(most_ms);
    Some(format!("set hook.ms = {more} in the settings file: after {most} ms the hook says nothing"))
}

/// A test hint with a unique value.
struct TestHint {
    component: &'static str,
    key: &'static str,
    value: String,
}

impl TestHint {
    fn new() -> Self {
        let nanos = unix_ns(SystemTime::now());
        Self { component: "nudge", key: "doctor", value: format!("test hint {} of {}", nanos, std::process::id()) }
    }

    fn to_params(&self) -> Value {
        // Priority 10 is so high that the start of a session tells the hint in every folder.
        json!({"component": self.component, "key": self.key, "value": self.value, "meta": {"priority": 10}})
    }

    /// Returns true when the hook's output contains the hint in the form that a client expects after `event`.
    fn is_told(&self, event: &str, said: &str) -> bool {
        let answer = event::find_reply_form(event);
        let said = serde_json::from_str(said).unwrap_or(Value::Null);
        answer.find_text(&said).is_some_and(|text| text.contains(&self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_slow_when_it_would_say_nothing() {
        assert_eq!((advise_on_time(6.0, 45), advise_on_time(50.0, 45), advise_on_time(180.0, 200)), (None, None, None));
        assert!(advise_on_time(50.1, 45).unwrap().starts_with("set hook.ms = 150 in"));
        assert!(advise_on_time(1_900.0, 45).unwrap().starts_with("set hook.ms = 1500 in"), "the clients wait 2 s");
    }

    #[test]
    fn what_an_error_says_to_do_stands_apart() {
        let error = Error::unavailable("Cannot read /x: it is a folder; move it away.");
        assert_eq!(split_advice(error.message()), ("Cannot read /x: it is a folder", "move it away"));
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
