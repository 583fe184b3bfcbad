//! Defines a record and its fields.

use nudge_core::error::{Error, Result};
use nudge_core::safety::refusal;
use nudge_storage::rusqlite;
use nudge_storage::rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most characters of a record's title.
pub const MAX_TITLE_CHARS: usize = 300;
/// The most bytes of a record's body.
pub const MAX_BODY_BYTES: usize = 32 << 10;

/// Makes an enumeration whose variants are stored as words in one text column.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "lowercase")]
        pub enum $name {
            $($(#[$note])* $variant,)*
        }

        impl $name {
            /// Returns the word that the database stores.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.as_str().into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                match value.as_str()? {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(FromSqlError::InvalidType),
                }
            }
        }
    };
}

words! {
    /// A record's kind.
    Kind {
        /// A bug that was fixed.
        Issue = "issue",
        /// A specification or plan; resolved when it is done.
        Spec = "spec",
        /// A decision of architecture, a pattern, a reorganisation.
        Arch = "arch",
        /// A feature or an improvement.
        Update = "update",
    }
}

words! {
    /// A record's status.
    Status {
        /// Planned, or not yet done.
        Open = "open",
        /// Done.
        Resolved = "resolved",
        /// Out of use, but not forgotten; it comes last.
        Archived = "archived",
    }
}

words! {
    /// The way by which a record came.
    Origin {
        /// A tool that an agent called.
        Tool = "tool",
        /// A hook of an agent.
        Hook = "hook",
        /// The page.
        Web = "web",
        /// The command line, or a program.
        Cli = "cli",
        /// An import.
        Import = "import",
    }
}

/// A record in the form of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// The number of the record. No other record ever gets it, even after a deletion.
    pub id: i64,
    /// The name of the record's project.
    pub project: String,
    /// The kind.
    pub kind: Kind,
    /// A line that says what happened.
    pub title: String,
    /// The whole text, or its beginning where an answer says that it was cut.
    pub body: String,
    /// The status.
    pub status: Status,
    /// The version: 1 for a new record, and one more after each change.
    pub version: i64,
    /// The name of the client that made the last change; empty when unknown.
    pub by: String,
    /// The way by which the record was first saved.
    pub origin: Origin,
    /// The time when the record was created, RFC 3339.
    pub created_at: String,
    /// The time when the record was last changed, RFC 3339.
    pub updated_at: String,
}

impl Record {
    /// Cuts the body to `max_bytes`, after a word if possible. Returns true if the body was longer.
    pub(crate) fn cut_body(&mut self, max_bytes: usize) -> bool {
        let is_longer = self.body.len() > max_bytes;
        if is_longer {
            let begin = &self.body[..self.body.floor_char_boundary(max_bytes)];
            let end = begin.rfind(char::is_whitespace).filter(|end| *end > max_bytes / 2).unwrap_or(begin.len());
            self.body.truncate(end);
        }
        is_longer
    }
}

/// The content of a record before a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordRevision {
    /// The record's version before the change.
    pub version: i64,
    /// The time of the change, RFC 3339.
    pub at: String,
    /// The name of the client that made the change.
    pub by: String,
    /// The kind of change: `update`, `dedup`, `merge`, `delete`.
    pub why: String,
    /// The project before the change.
    pub project: String,
    /// The kind before the change.
    pub kind: Kind,
    /// The title before the change.
    pub title: String,
    /// The body before the change.
    pub body: String,
    /// The status before the change.
    pub status: Status,
}

/// Returns true when a text is a valid title: one line, not empty, of at most 300 characters.
pub fn is_title(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= MAX_TITLE_CHARS && !text.contains(['\n', '\r'])
}

/// Refuses a title or a body that is invalid, too long, or looks like a credential.
///
/// # Errors
/// `E_INVALID`, `E_SECRET_REJECTED`.
pub fn check_texts(title: &str, body: Option<&str>) -> Result<()> {
    if !is_title(title) {
        return Err(Error::invalid("`title` must be one line of 1 to 300 characters; put the rest into `body`.")
            .about("title")
            .about("body"));
    }
    if body.is_some_and(|body| body.len() > MAX_BODY_BYTES) {
        return Err(Error::invalid("`body` may have 32 KiB; shorten it, or make two records of it.").about("body"));
    }
    refuse_secret("title", title)?;
    body.map_or(Ok(()), |body| refuse_secret("body", body))
}

/// Refuses a text that looks like a credential.
///
/// # Errors
/// `E_SECRET_REJECTED`.
pub fn refuse_secret(field: &'static str, text: &str) -> Result<()> {
    refusal::check_text_with(text, field, || {
        format!("`{field}` looks like it holds a credential, which no record may; say where to find it instead.")
    })
}

#[cfg(test)]
mod tests {
    use nudge_core::error::ErrorKind;

    use super::*;

    #[test]
    fn what_no_record_may_say() {
        check_texts("Uploads are refused", None).unwrap();
        check_texts(&"ä".repeat(300), Some(&"x".repeat(32 << 10))).unwrap();
        for (title, body) in
            [("", ""), (" \t", ""), ("a\nb", ""), (&*"ä".repeat(301), ""), ("a", &*"x".repeat((32 << 10) + 1))]
        {
            assert_eq!(check_texts(title, Some(body)).unwrap_err().kind(), ErrorKind::Invalid);
        }
        let token = ["ghp", "_", &"aB3dE6gH9j".repeat(4)[..36]].concat();
        for (title, body, path) in [(&*token, "", "title"), ("a", &*format!("see {token}"), "body")] {
            let refused = check_texts(title, Some(body)).unwrap_err();
            assert_eq!((refused.kind(), &refused.data()["path"]), (ErrorKind::SecretRejected, &path.into()));
            assert!(!refused.message().contains(&token));
        }
    }
}
