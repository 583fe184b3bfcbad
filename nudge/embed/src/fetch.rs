//! Downloads a file from a model's publisher with the system's `curl`. curl uses the proxy and the certificates of the
//! user, shows progress, and resumes an interrupted download.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nudge_core::error::{Error, Result};
use nudge_os::process::{ChildProgram, RunFailure, RunLimits, StderrUse};
use nudge_os::programs;

use crate::KnownModel;

/// The exit code of curl when the server can send a file only from its beginning.
const CANNOT_RESUME: i32 = 33;
/// The exit code of curl when a server refuses to send the file.
const REFUSED: i32 = 22;

/// Time limit for one file. curl itself ends a connection that stalls.
const MAX_TIME: Duration = Duration::from_hours(6);
/// Largest number of bytes that curl may print. It prints only messages, because it writes the downloaded file itself.
const MAX_SAID_BYTES: usize = 1 << 20;

/// The protocol for curl when the address uses http. Nudge allows http only for this machine.
const LOCAL: &str = "=http";

/// The settings for the download of a known model.
///
/// ```
/// use nudge_embed::{ModelDownload, KNOWN};
///
/// let download = ModelDownload::from(&KNOWN[0]);
/// assert!(download.address.starts_with("https://"));
/// ```
#[derive(Debug, Clone)]
pub struct ModelDownload {
    /// The address of the folder with the files. Nudge appends `/` and the name of a file. A mirror is as safe as the
    /// publisher, because Nudge checks every file.
    pub address: String,
    /// The curl program: a name that Nudge looks up in PATH, or an absolute path.
    pub curl: OsString,
    /// True when curl shows its progress on standard error.
    pub progress: bool,
}

impl From<&KnownModel> for ModelDownload {
    fn from(known: &KnownModel) -> Self {
        Self { address: known.address.to_owned(), curl: "curl".into(), progress: true }
    }
}

impl ModelDownload {
    /// Returns the protocol that curl may use. It applies to redirects too.
    ///
    /// # Errors
    /// `E_INVALID` for an address without https. Only an address of this machine may use http.
    pub(crate) fn check_protocol(&self) -> Result<&'static str> {
        let host = self.address.strip_prefix("http://").and_then(|rest| rest.split(['/', '?', '#']).next());
        // In `127.0.0.1:1@elsewhere` the host is `elsewhere`.
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

    /// Returns the path of the curl program, and looks up a plain name in PATH.
    fn find_program(&self) -> Option<PathBuf> {
        let path = Path::new(&self.curl);
        if path.is_absolute() { Some(path.to_owned()) } else { programs::find_program(self.curl.to_str()?) }
    }

    /// Downloads a file of at most `max_bytes` bytes, and appends it to the existing file `to`.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the download fails. The part that has arrived stays for the next attempt.
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
            // curl must not use a proxy here, because a proxy cannot reach a server on this machine.
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
    /// The download has reached the end of the server's file.
    Complete,
    /// The server has sent nothing, because it can send a file only from its beginning.
    CannotResume,
}
