//! A file from a model's publisher, by the system's `curl`: it has the user's proxy and certificates, shows how far it
//! is, and goes on where it stopped.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nudge_core::error::{Error, Result};
use nudge_os::process::{ChildProgram, RunFailure, RunLimits, StderrUse};
use nudge_os::programs;

use crate::KnownModel;

/// The exit code of curl when a server cannot go on in the middle of a file.
const CANNOT_RESUME: i32 = 33;
/// The exit code of curl when a server refuses to send the file.
const REFUSED: i32 = 22;

/// Longest time that one file takes; curl itself gives up a connection that stands still.
const MAX_TIME: Duration = Duration::from_hours(6);
/// Most bytes that curl may print beside the file, which it writes itself.
const MAX_SAID_BYTES: usize = 1 << 20;

/// How curl is held to http, which is for this machine alone.
const LOCAL: &str = "=http";

/// How a known model is fetched.
///
/// ```
/// use nudge_embed::{ModelDownload, KNOWN};
///
/// let download = ModelDownload::from(&KNOWN[0]);
/// assert!(download.address.starts_with("https://"));
/// ```
#[derive(Debug, Clone)]
pub struct ModelDownload {
    /// The publisher's folder of the files; `/` and the name of a file follow. Another address, such as a mirror, is as
    /// good: every file is checked.
    pub address: String,
    /// The program: its name, which is looked for in PATH, or its whole path.
    pub curl: OsString,
    /// Is true when curl shows its progress on standard error.
    pub progress: bool,
}

impl From<&KnownModel> for ModelDownload {
    fn from(known: &KnownModel) -> Self {
        Self { address: known.address.to_owned(), curl: "curl".into(), progress: true }
    }
}

impl ModelDownload {
    /// The protocol to which curl is held, also where the server sends it on.
    ///
    /// # Errors
    /// `E_INVALID` for anything but https; http is for this machine alone.
    pub(crate) fn check_protocol(&self) -> Result<&'static str> {
        let host = self.address.strip_prefix("http://").and_then(|rest| rest.split(['/', '?', '#']).next());
        // `127.0.0.1:1@elsewhere` is elsewhere.
        let local = |host: &str| {
            let name = if host.ends_with(']') { host } else { host.rsplit_once(':').map_or(host, |(name, _)| name) };
            ["127.0.0.1", "localhost", "[::1]"].contains(&name) && !host.contains('@')
        };
        match host {
            _ if self.address.starts_with("https://") => Ok("=https"),
            Some(host) if local(host) => Ok(LOCAL),
            _ => Err(Error::invalid("A model is fetched by https only; begin the address with https://.")),
        }
    }

    /// The program by its path: a name is looked for in PATH.
    fn find_program(&self) -> Option<PathBuf> {
        let path = Path::new(&self.curl);
        if path.is_absolute() { Some(path.to_owned()) } else { programs::find_program(self.curl.to_str()?) }
    }

    /// Fetches a file to the end of `to`, which exists. It has at most `max_bytes`.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`; the part that has come stays for the next try.
    pub(crate) fn fetch_file(&self, name: &str, to: &Path, max_bytes: u64) -> Result<DownloadOutcome> {
        let protocol = self.check_protocol()?;
        let url = format!("{}/{name}", self.address.trim_end_matches('/'));
        let cannot_be_run = |why: &dyn std::fmt::Display| {
            let curl = self.curl.display();
            Error::unavailable(format!(
                "{curl} cannot be run ({why}); install it, or add the model from a folder, a wheel or a tar."
            ))
        };
        let mut curl = ChildProgram::new(&self.find_program().ok_or_else(|| cannot_be_run(&"it is not in PATH"))?);
        curl.args(["--fail", "--location", "--max-redirs", "10", "--globoff"])
            .args(["--proto", protocol, "--proto-redir", protocol])
            .args(["--connect-timeout", "30", "--speed-limit", "1", "--speed-time", "60"])
            .args(["--max-filesize", &max_bytes.to_string(), "--continue-at", "-"])
            .args(if self.progress { ["--progress-bar"].as_slice() } else { &["--silent", "--show-error"] })
            // A proxy is of no use for this machine itself.
            .args(if protocol == LOCAL { ["--noproxy", "*"].as_slice() } else { &[] })
            .arg("--output")
            .arg(to)
            .args(["--url", &url])
            .errors(StderrUse::Shown);
        let limits = RunLimits { time: MAX_TIME, output_bytes: MAX_SAID_BYTES, is_given_up: &|| false };
        let status = match curl.run(limits) {
            Ok(output) => output.status,
            Err(RunFailure::Start(error)) => return Err(cannot_be_run(&error)),
            Err(failure) => {
                return Err(Error::unavailable(format!(
                    "{url} could not be fetched (curl {failure}); the same again goes on where it stopped."
                )));
            }
        };
        match status.code() {
            Some(0) => Ok(DownloadOutcome::Complete),
            Some(CANNOT_RESUME) => Ok(DownloadOutcome::CannotResume),
            Some(REFUSED) => Err(Error::unavailable(format!(
                "{url} was refused by its server; try later, or add the model from a folder, a wheel or a tar."
            ))),
            _ => Err(Error::unavailable(format!(
                "{url} could not be fetched (curl: {status}); the same again goes on where it stopped."
            ))),
        }
    }
}

/// The outcome of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DownloadOutcome {
    /// The file ends where the server's ends.
    Complete,
    /// The server has sent nothing, because it cannot begin in the middle.
    CannotResume,
}
