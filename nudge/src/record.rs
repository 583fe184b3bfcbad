//! Converts writes to journal records, from which a store is restored.
//!
//! A record is one JSON object. It never holds a secret. When a secret hint was stored, changed or deleted, the record
//! says only that the hint with that name is gone, and which version it had.

use std::sync::Arc;

use nudge_core::clock::Millis;
use nudge_core::error::{Error, Result};
use nudge_core::once::CallRecord;
use nudge_core::wire::json_text;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::hint::{Hint, HintInExport};
use crate::log::LogEntry;
use crate::store::StoreChange;
use crate::trash::HintTrash;

impl LogEntry<'_> {
    /// Returns the record, for [`Nudge::restore`](crate::Nudge::restore).
    pub fn to_json(&self) -> Vec<u8> {
        let Self { applied, result, version, call } = *self;
        let done =
            applied.caller.key.map(|key| CallRecord { key: key.into(), result, version, call: call.map(Into::into) });
        let mut record = WrittenRecord {
            verb: applied.verb.into(),
            by: applied.caller.name.into(),
            at: applied.time,
            ..WrittenRecord::default()
        };
        record.done.extend(done);
        for change in applied.changes {
            match change {
                StoreChange::Put(hint) if !hint.is_secret() => record.put.push(NamedHint(hint)),
                StoreChange::Put(hint) | StoreChange::Delete(hint) => {
                    record.gone.push((hint.component(), hint.key(), hint.variant()));
                }
                StoreChange::Replaced(hint) => record.replaced.push((hint.component(), hint.key(), hint.variant())),
                StoreChange::Extra(extra) => record.extra = Some(extra),
            }
        }
        record.to_json()
    }
}

/// The format of a record, for writing.
#[derive(Serialize, Default)]
pub(crate) struct WrittenRecord<'a> {
    pub verb: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub by: Box<str>,
    pub at: Millis,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub put: Vec<NamedHint<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<(&'a str, &'a str, &'a str)>,
    /// The names of the hints whose earlier value `undo` can restore. The hints are in `put`, or are secret now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<(&'a str, &'a str, &'a str)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<CallRecord<'a>>,
    /// In a snapshot, the id of a deletion that can be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<u64>,
    /// In a snapshot, the id of the last deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
}

impl WrittenRecord<'_> {
    pub fn to_json(&self) -> Vec<u8> {
        // Strings and numbers can always be serialized.
        json_text(self).into_bytes()
    }
}

/// A hint with its component and key.
pub(crate) struct NamedHint<'a>(pub &'a Hint);

impl Serialize for NamedHint<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0.component(), self.0.key(), HintInExport(self.0)).serialize(serializer)
    }
}

/// The format of a record, for reading.
#[derive(Deserialize)]
pub(crate) struct ReadRecord<'a> {
    pub verb: String,
    #[serde(default)]
    pub by: String,
    pub at: Millis,
    #[serde(borrow, default)]
    pub put: Vec<(String, String, &'a RawValue)>,
    #[serde(default)]
    pub gone: Vec<(String, String, String)>,
    #[serde(default)]
    pub replaced: Vec<(String, String, String)>,
    #[serde(borrow, default)]
    pub extra: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub done: Vec<CallRecord<'a>>,
    #[serde(default)]
    pub deleted: Option<u64>,
    #[serde(default)]
    pub deletions: u64,
}

impl<'a> ReadRecord<'a> {
    pub fn parse(record: &'a [u8]) -> Result<Self> {
        serde_json::from_slice(record)
            .map_err(|_| Error::invalid("A record of the journal is not of this version; it is passed over."))
    }
}

/// The number of hints in one record of a snapshot. It limits both the number and the size of the records.
const HINTS_OF_A_RECORD: usize = 256;

/// Converts a whole store to records.
pub(crate) fn write_snapshot<'a>(
    hints: &'a [Arc<Hint>],
    extra: Option<&'a RawValue>,
    trash: &'a HintTrash,
    done: Vec<CallRecord<'a>>,
    now: Millis,
) -> Vec<Vec<u8>> {
    let open: Vec<_> = hints.iter().filter(|hint| !hint.is_secret()).collect();
    let mut out = Vec::new();
    for hints in open.chunks(HINTS_OF_A_RECORD) {
        let put = hints.iter().map(|hint| NamedHint(hint)).collect();
        out.push(WrittenRecord { verb: "snapshot".into(), at: now, put, ..WrittenRecord::default() }.to_json());
    }
    for deleted in trash.iter().collect::<Vec<_>>().into_iter().rev() {
        let put: Vec<_> = deleted.hints.iter().filter(|hint| !hint.is_secret()).map(|hint| NamedHint(hint)).collect();
        if !put.is_empty() {
            let author = deleted.by.clone();
            let (deleted_as, deleted) = (deleted.what, (deleted.id, deleted.at));
            out.push(
                WrittenRecord {
                    verb: deleted_as.as_str().into(),
                    by: author,
                    at: deleted.1,
                    put,
                    deleted: Some(deleted.0),
                    ..WrittenRecord::default()
                }
                .to_json(),
            );
        }
    }
    out.push(
        WrittenRecord {
            verb: "snapshot".into(),
            at: now,
            extra,
            done,
            deletions: Some(trash.last_id()),
            ..WrittenRecord::default()
        }
        .to_json(),
    );
    out
}
