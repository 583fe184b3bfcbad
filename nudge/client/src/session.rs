//! The session file: the state that passes from one PRIMARY of a session to the next.

use std::fmt;
use std::io;

use nudge::{Error, Result};
use nudge_os::dir::FileKind;
use serde::{Deserialize, Serialize};

use crate::runtime::{MAX_SMALL_FILE_BYTES, PrimaryLock, RuntimeDir};

pub(crate) const NAME: &str = "session";

/// The version of the protocol: of the journal, of the session file and of the calls between the processes of a
/// session. It grows with every change that an older build would misunderstand. Builds with one protocol share a
/// session, even if their own versions differ. A process with another protocol reports that and ends.
pub const PROTOCOL: u32 = 1;

/// Makes the error of a program that finds a session of another protocol.
pub fn other_protocol_error(session: u32, program: u32) -> Error {
    Error::unavailable(format!(
        "The running session is of another version of Nudge (it speaks protocol {session}, this program {program}); \
         update the older of the two, or end the session with `nudge stop`."
    ))
}

/// The contents of the session file, which a PROXY takes over when it becomes PRIMARY. Unknown keys are accepted, so
/// that builds can differ.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFile {
    /// The random id of the session.
    pub id: String,
    /// The [`PROTOCOL`] of the session's members; 0 when the file names none.
    #[serde(default)]
    pub protocol: u32,
    /// The start of the session, in Unix milliseconds.
    pub created_at: i64,
    /// The port of the session's PRIMARY, which the next PRIMARY uses if it is free; 0 when there is none yet.
    #[serde(default)]
    pub port: u16,
    /// The bearer token that callers must send; `None` when the servers ask for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// True when the session's hints are kept for the next session; the first PRIMARY sets it from its configuration.
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

/// The state of the session according to its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionState {
    /// There is no session file, or no server of this user could have written it.
    Unknown,
    /// The system could not read the file just now (too many open files, an error of the disk).
    Unreadable,
    /// A user ended the session on purpose (`nudge stop`).
    Stopped,
    /// No user has ended the session; the locks show whether it still has members.
    Lives(SessionFile),
}

impl SessionState {
    /// Returns true for a session that was not ended.
    pub fn is_alive(&self) -> bool {
        matches!(self, Self::Lives(_))
    }
}

impl RuntimeDir {
    /// Returns the state of the session according to its file.
    pub fn read_session(&self) -> SessionState {
        match (self.read_small(NAME), self.dir().look_up(NAME)) {
            (Some(text), _) if text.is_empty() => SessionState::Stopped,
            (Some(text), _) => serde_json::from_slice(&text).map_or(SessionState::Unknown, SessionState::Lives),
            // The system failed to read a small file of this user.
            (None, Ok(FileKind::Ours { bytes, .. })) if bytes <= MAX_SMALL_FILE_BYTES => SessionState::Unreadable,
            (None, Err(_)) => SessionState::Unreadable,
            (None, Ok(_)) => SessionState::Unknown,
        }
    }

    /// Refuses a session of another protocol, for a process that is going to join it.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`.
    pub fn check_protocol(&self) -> Result<()> {
        match self.read_session() {
            SessionState::Lives(session) if session.protocol != PROTOCOL => {
                Err(other_protocol_error(session.protocol, PROTOCOL))
            }
            _ => Ok(()),
        }
    }

    /// Returns true when the session with this id was stopped, or another session has begun. Returns false when the
    /// file cannot be read.
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
    /// `E_UNAVAILABLE`, for instance when a directory has that name.
    pub fn write_session(&self, _lock: &PrimaryLock, session: &SessionFile) -> Result<()> {
        self.write_small(NAME, session)
    }

    /// Marks the session as ended on purpose, for the next server that wins the lock. Only the PRIMARY may do so. The
    /// file is cut to length 0, because that works on a full disk too.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file can be neither cut nor replaced by an empty one.
    pub fn stop_session(&self) -> Result<()> {
        let cut = self.dir().open_write(NAME).and_then(|file| file.set_len(0));
        let replace = |_| {
            let _ = self.dir().remove(NAME);
            self.dir().create_new(NAME).map(drop)
        };
        cut.or_else(replace).map_err(|error| self.io_error("empty", NAME, &error))
    }

    /// Removes the files of a session: the log of its hooks, the journal, then the session file. The caller must be PRIMARY and must have
    /// found that the session is over. A directory with either name stays.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when a file cannot be removed. The session file stays as long as the journal does, because only
    /// the session file may show that the session was ended.
    pub fn remove_session(&self, lock: &PrimaryLock) -> Result<()> {
        // The log has counts alone; one that stays is the next session's.
        let _ = self.dir().remove(crate::hook_log::NAME);
        self.remove_journal(lock)?;
        match self.dir().remove(NAME) {
            Err(error) if error.kind() != io::ErrorKind::NotFound && !self.dir().is_dir(NAME) => {
                Err(self.io_error("remove", NAME, &error))
            }
            _ => Ok(()),
        }
    }
}
