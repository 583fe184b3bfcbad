//! Reads and writes the session file, which passes state from one PRIMARY of a session to the next.

use std::fmt;
use std::io;

use nudge::{Error, Result};
use nudge_os::dir::FileKind;
use serde::{Deserialize, Serialize};

use crate::runtime::{MAX_SMALL_FILE_BYTES, PrimaryLock, RuntimeDir};

pub(crate) const NAME: &str = "session";

/// The version of the protocol. It covers the rows, the session file, and the calls between the processes of a
/// session. It grows with every change that an older build would misunderstand. Builds with the same protocol share a
/// session, even if their own versions differ. A process with another protocol reports the difference and ends.
pub const PROTOCOL: u32 = 1;

/// Makes the error of a program that finds a session with another protocol.
pub fn other_protocol_error(session: u32, program: u32) -> Error {
    Error::unavailable(format!(
        "The running session is of another version of Nudge (it speaks protocol {session}, this program {program}); \
         update the older of the two, or end the session with `nudge stop`."
    ))
}

/// The contents of the session file, which a PROXY takes over when it becomes PRIMARY. Unknown keys are ignored, so
/// that different builds can read the file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFile {
    /// The random id of the session.
    pub id: String,
    /// The [`PROTOCOL`] of the session's members; 0 when the file has none.
    #[serde(default)]
    pub protocol: u32,
    /// The start of the session, in Unix milliseconds.
    pub created_at: i64,
    /// The port of the session's PRIMARY; 0 when there is none yet. The next PRIMARY uses the same port if it is free.
    #[serde(default)]
    pub port: u16,
    /// The bearer token that callers must send; `None` when the servers need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// True when Nudge keeps the session's hints for the next session. The first PRIMARY sets the field from its
    /// configuration.
    #[serde(default)]
    pub keep: bool,
}

impl fmt::Debug for SessionFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionFile")
            .field("id", &self.id)
            .field("protocol", &self.protocol)
            .field("created_at", &self.created_at)
            .field("port", &self.port)
            .field("token", &self.token.as_ref().map(|_| "[secret]"))
            .field("keep", &self.keep)
            .finish()
    }
}

/// The state of the session, as its file shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionState {
    /// The session file is missing, or is not one that a server of this user can have written.
    Unknown,
    /// The system could not read the file at this time (too many open files, an error of the disk).
    Unreadable,
    /// A user ended the session on purpose (`nudge stop`).
    Stopped,
    /// No user has ended the session. Only the locks show whether it still has members.
    Lives(SessionFile),
}

impl SessionState {
    /// Returns true when the file says that no user has ended the session.
    pub fn is_alive(&self) -> bool {
        matches!(self, Self::Lives(_))
    }
}

impl RuntimeDir {
    /// Reads the session file and returns the state of the session.
    pub fn read_session(&self) -> SessionState {
        match (self.read_small(NAME), self.dir().look_up(NAME)) {
            (Some(text), _) if text.is_empty() => SessionState::Stopped,
            (Some(text), _) => serde_json::from_slice(&text).map_or(SessionState::Unknown, SessionState::Lives),
            // The file is a small file of this user, but the system failed to read it.
            (None, Ok(FileKind::Ours { bytes, .. })) if bytes <= MAX_SMALL_FILE_BYTES => SessionState::Unreadable,
            (None, Err(_)) => SessionState::Unreadable,
            (None, Ok(_)) => SessionState::Unknown,
        }
    }

    /// Refuses a session with another protocol. A process calls this before it joins the session.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the protocols differ.
    pub fn check_protocol(&self) -> Result<()> {
        match self.read_session() {
            SessionState::Lives(session) if session.protocol != PROTOCOL => {
                Err(other_protocol_error(session.protocol, PROTOCOL))
            }
            _ => Ok(()),
        }
    }

    /// Returns true when the session with this id was stopped, or when another session has begun. Returns false when
    /// the file cannot be read.
    pub fn is_over(&self, id: &str) -> bool {
        match self.read_session() {
            SessionState::Stopped => true,
            SessionState::Lives(session) => session.id != id,
            SessionState::Unknown | SessionState::Unreadable => false,
        }
    }

    /// Replaces the session file atomically.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`, for instance when a directory has the name of the file.
    pub fn write_session(&self, _lock: &PrimaryLock, session: &SessionFile) -> Result<()> {
        self.write_small(NAME, session)
    }

    /// Marks the session as ended on purpose. The mark is an empty session file, which the next server that wins the
    /// lock sees. Only the PRIMARY may call this. The function cuts the file to length 0, which works on a full disk
    /// too.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file can be neither cut nor replaced by an empty file.
    pub fn stop_session(&self) -> Result<()> {
        let cut = self.dir().open_write(NAME).and_then(|file| file.set_len(0));
        let replace = |_| {
            let _ = self.dir().remove(NAME);
            self.dir().create_new(NAME).map(drop)
        };
        cut.or_else(replace).map_err(|error| self.io_error("empty", NAME, &error))
    }

    /// Removes the files of a session: the log of its hooks, the rows, and then the session file. The caller must be
    /// PRIMARY and must have found that the session is over. A directory with the name of one of these files stays.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when a file cannot be removed. The session file stays as long as the rows do, because only
    /// the session file may show that a user ended the session.
    pub fn remove_session(&self, lock: &PrimaryLock) -> Result<()> {
        // A failure is ignored: the log has only times, and the next session may continue it.
        let _ = self.dir().remove(crate::hook_log::NAME);
        self.remove_rows(lock)?;
        match self.dir().remove(NAME) {
            Err(error) if error.kind() != io::ErrorKind::NotFound && !self.dir().is_dir(NAME) => {
                Err(self.io_error("remove", NAME, &error))
            }
            _ => Ok(()),
        }
    }
}
