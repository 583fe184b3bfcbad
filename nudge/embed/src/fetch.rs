//! Downloads a file from a model's publisher with the system's `curl`. curl has the user's proxy and certificates,
//! shows its progress, and resumes an interrupted download.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nudge_core::error::{Error, Result};
use nudge_os::process::{ChildProgram, RunFailure, RunLimits, StderrUse};
use nudge_os::programs;

use crate::KnownModel;

/// The exit code of curl when a server cannot resume in the middle of a file.
const CANNOT_RESUME: i32 = 33;
/// The exit code of curl when a server refuses to send the file.
const REFUSED: i32 = 22;

/// The most time that one file may take. curl itself gives up a stalled connection.
const MAX_TIME: Duration = Duration::from_hours(6);
/// The most bytes that curl may print. curl writes the file itself, so these are messages only.
const MAX_SAID_BYTES: usize = 1 << 20;

/// The argument that limits curl to http, which is allowed for this machine only.
const LOCAL: &str = "=http";

/// Says how a known model is fetched.
///
/// ```
/// use nudge_embed::{ModelDownload, KNOWN};
///
/// let download = ModelDownload::from(&KNOWN[0]);
/// assert!(download.address.starts_with("https://"));
/// ```
#[derive(Debug, Clone)]
pub struct ModelDownload {
    /// The publisher's folder of the files; `/` and the name of a file follow. A mirror is as safe, because Nudge
    /// checks every file.
    pub address: String,
    /// The program: a name to find in PATH, or an absolute path.
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
    /// Returns the protocol to which curl is limited, including for redirects.
    ///
    /// # Errors
    /// `E_INVALID` for an address without https; http is allowed for this machine only.
    pub(crate) fn check_protocol(&self) -> Result<&'static str> {
        let host = self.address.strip_prefix("http://").and_then(|rest| rest.split(['/', '?', '#']).next());
        // `127.0.0.1:1@elsewhere` is the host `elsewhere`.
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

    /// Returns the path of the program; finds a name in PATH.
    fn find_program(&self) -> Option<PathBuf> {
        let path = Path::new(&self.curl);
        if path.is_absolute() { Some(path.to_owned()) } else { programs::find_program(self.curl.to_str()?) }
    }

    /// Downloads a file of at most `max_bytes` and appends it to `to`, which exists.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`; the downloaded part stays for the next try.
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
            // A proxy cannot reach a server on this machine.
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
    /// The file is complete: its end is the end of the server's file.
    Complete,
    /// The server has sent nothing, because it cannot resume in the middle of a file.
    CannotResume,
}
