//! A server that starts with the user's login, so that the session outlives the agents.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use nudge::{Error, ErrorKind, Result};

use super::clients::Place;
use super::plan::File;

/// The unit of the user's service manager, if it is not there yet.
///
/// # Errors
/// `E_INVALID` on a system that has neither systemd nor launchd.
pub fn plan(place: &Place) -> Result<Option<File>> {
    let (path, after) = if cfg!(target_os = "macos") {
        (place.home.join("Library/LaunchAgents/dev.nudge.serve.plist"), launchd(&place.binary))
    } else if cfg!(target_os = "linux") {
        (systemd_folder(place).join("nudge.service"), systemd(&place.binary))
    } else {
        let message = "Only systemd and launchd are known here; start `nudge serve --detach` from your login script.";
        return Err(Error::new(ErrorKind::Invalid, message));
    };
    let before = std::fs::read_to_string(&path).ok();
    Ok((before.as_deref() != Some(&after)).then_some(File { path, before, after }))
}

fn systemd_folder(place: &Place) -> PathBuf {
    let given = (place.env)("XDG_CONFIG_HOME").map(PathBuf::from);
    given.unwrap_or_else(|| place.home.join(".config")).join("systemd/user")
}

/// Without a terminal or an MCP client it serves HTTP until it is stopped; systemd keeps stdin at the null device,
/// so it is told so.
fn systemd(binary: &str) -> String {
    let quoted = binary.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!(
        "[Unit]\nDescription=Nudge, hints for coding agents\n\n[Service]\nType=forking\nExecStart=\"{quoted}\" serve --detach\n\
         ExecStop=\"{quoted}\" stop\nRestart=on-failure\n\n[Install]\nWantedBy=default.target\n"
    )
}

fn launchd(binary: &str) -> String {
    let escaped = binary.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\"><dict>\n  <key>Label</key><string>dev.nudge.serve</string>\n  <key>ProgramArguments</key>\n  \
         <array><string>{escaped}</string><string>serve</string><string>--detach</string></array>\n  \
         <key>RunAtLoad</key><true/>\n  <key>AbandonProcessGroup</key><true/>\n</dict></plist>\n"
    )
}

/// Starts it now; says what happened.
pub fn start() -> String {
    let (manager, words): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("launchctl", &["load", "-w", "Library/LaunchAgents/dev.nudge.serve.plist"])
    } else {
        ("systemctl", &["--user", "enable", "--now", "nudge.service"])
    };
    let mut command = Command::new(manager);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(home) = std::env::home_dir() {
        command.current_dir(home);
    }
    match command.status() {
        Ok(status) if status.success() => "A server starts at your login, and runs now.\n".into(),
        _ => format!("The unit is written; start it by `{manager} {}`.\n", words.join(" ")),
    }
}
