//! The login service: a server that starts at the user's login, so that the session outlives the agents.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nudge::{Error, Result};
use nudge_app::config::text_of;
use nudge_os::process::{ChildProgram, RunLimits};
use nudge_os::programs;

use super::clients::ClientFolders;
use super::plan::FileChange;

/// The time limit of a command of the service manager.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of the service manager's output that are read. The output is not shown.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// Returns true when the system has a known service manager.
pub fn is_possible() -> bool {
    cfg!(target_os = "macos") || (cfg!(target_os = "linux") && programs::find_program("systemctl").is_some())
}

/// Plans the unit file of the user's service manager. Returns `None` when the file is up to date.
///
/// # Errors
/// `E_INVALID` on a system that has neither systemd nor launchd.
pub fn plan_unit(place: &ClientFolders) -> Result<Option<FileChange>> {
    let path = find_unit(place).ok_or_else(|| {
        let message = "Only systemd and launchd are known here; start `nudge serve --detach` from your login script.";
        Error::invalid(message)
    })?;
    let after =
        if cfg!(target_os = "macos") { build_launchd_unit(&place.binary) } else { build_systemd_unit(&place.binary) };
    let before = text_of(&path)?;
    Ok((before.as_deref() != Some(&after)).then_some(FileChange { path, before, after }))
}

/// Returns true when `path` is the path of the unit.
pub fn is_unit(place: &ClientFolders, path: &Path) -> bool {
    find_unit(place).is_some_and(|unit| unit == path)
}

fn find_unit(place: &ClientFolders) -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        Some(place.home.join(PLIST))
    } else {
        cfg!(target_os = "linux").then(|| systemd_folder(place).join(UNIT))
    }
}

fn systemd_folder(place: &ClientFolders) -> PathBuf {
    let given = (place.env)("XDG_CONFIG_HOME").map(PathBuf::from);
    given.unwrap_or_else(|| place.home.join(".config")).join("systemd/user")
}

/// Returns the unit for systemd. systemd stops the service with SIGTERM, which ends only this server: if an agent's
/// server runs, the session continues there.
fn build_systemd_unit(binary: &str) -> String {
    let quoted = binary.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!(
        "[Unit]\nDescription=Nudge, hints for coding agents\n\n[Service]\nType=forking\nExecStart=\"{quoted}\" serve --detach\n\
         Restart=on-failure\n\n[Install]\nWantedBy=default.target\n"
    )
}

fn build_launchd_unit(binary: &str) -> String {
    let escaped = binary.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\"><dict>\n  <key>Label</key><string>dev.nudge.serve</string>\n  <key>ProgramArguments</key>\n  \
         <array><string>{escaped}</string><string>serve</string><string>--detach</string></array>\n  \
         <key>RunAtLoad</key><true/>\n  <key>AbandonProcessGroup</key><true/>\n</dict></plist>\n"
    )
}

/// Starts the service now. Returns a line about the outcome for the user.
pub fn start_service() -> String {
    let words: &[&str] =
        if cfg!(target_os = "macos") { &["load", "-w", PLIST] } else { &["--user", "enable", "--now", UNIT] };
    match run_manager(words) {
        Ok(()) => format!("A server runs now, and starts at your login. {UNTIL}\n"),
        Err(line) => format!("One command is left: `{line}`. Then a server runs, and starts at your login. {UNTIL}\n"),
    }
}

/// Tells the user when the service manager ends the server.
const UNTIL: &str = if cfg!(target_os = "macos") {
    "It ends when you log out, or by `nudge stop`."
} else {
    "It ends when you log out, unless `loginctl enable-linger` lets it stay, or by `nudge stop`."
};

/// Stops the service before its unit is removed. Ignores an error, because the service may not be running.
pub fn stop_service() {
    let words: &[&str] =
        if cfg!(target_os = "macos") { &["unload", "-w", PLIST] } else { &["--user", "disable", "--now", UNIT] };
    let _ = run_manager(words);
}

const UNIT: &str = "nudge.service";
/// The path of the unit, relative to the user's home. The service manager runs in the home.
const PLIST: &str = "Library/LaunchAgents/dev.nudge.serve.plist";

/// Runs the service manager. Returns the command line as the error when it fails.
fn run_manager(words: &[&str]) -> Result<(), String> {
    let manager = if cfg!(target_os = "macos") { "launchctl" } else { "systemctl" };
    let failed = || format!("{manager} {}", words.join(" "));
    let mut program = ChildProgram::new(&programs::find_program(manager).ok_or_else(failed)?);
    program.args(words);
    if let Some(home) = std::env::home_dir() {
        program.current_dir(&home);
    }
    let output = program.run(RunLimits { time: PATIENCE, output_bytes: MAX_OUTPUT_BYTES, is_given_up: &|| false });
    if output.is_ok_and(|output| output.status.success()) { Ok(()) } else { Err(failed()) }
}
