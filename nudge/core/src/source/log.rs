//! The last change of a stored object, as the change log of a source has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::clock::Millis;

/// The number of clock values in a millisecond. The clock of a change log is a hybrid logical clock: the time of the
/// change, and below it a count that keeps the values in order when the system's clock stands still or is set back.
pub const TICKS_PER_MS: i64 = 1 << 11;

/// The last change of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedChange {
    /// The identity of the object on every machine, a ULID.
    pub object: String,
    /// The source's name of the object.
    pub name: String,
    /// The client that made the change; empty when unknown.
    pub author: String,
    /// The database in which the change was made: 16 hexadecimal digits.
    pub origin: String,
    /// The value of the log's clock. Later changes have higher values.
    pub clock: i64,
    /// The last change of each field.
    pub fields: BTreeMap<String, FieldChange>,
    /// True when the object was removed.
    pub is_gone: bool,
}

/// The last change of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    /// The value of the log's clock.
    #[serde(rename = "c")]
    pub clock: i64,
    /// The client that made the change.
    #[serde(rename = "a", default, skip_serializing_if = "String::is_empty")]
    pub author: String,
}

impl LoggedChange {
    /// Returns the time of the change.
    pub const fn time(&self) -> Millis {
        self.clock / TICKS_PER_MS
    }

    /// Returns the names of the fields that the last change has changed.
    pub fn list_changed(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(|(_, last)| last.clock == self.clock).map(|(name, _)| name.as_str())
    }
}
