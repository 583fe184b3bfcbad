//! Writes as records: what a journal keeps, and how a store comes back from it.
//!
//! A record is one JSON object. Secret hints are never in it: where one was stored, changed or deleted
//! it says only that whatever stood there is gone, and the version it had.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::clock::Millis;
use crate::error::{Error, Result};
use crate::hint::{Exported, Hint};
use crate::log::Applied;
use crate::store::Change;
use crate::trash::Trash;

/// Keys of calls remembered, so that a call that is sent again is not made again.
const MAX_KEYS: usize = 1_024;
/// Bytes of their results; the last is remembered whatever its size.
const MAX_KEY_BYTES: usize = 4 << 20;

/// A write that is about to be made, as a [`Log`](crate::Log) records it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// What will be told afterwards.
    pub applied: Applied<'a>,
    /// The call's result as JSON, when the caller gave a key.
    pub result: Option<&'a RawValue>,
}

impl Entry<'_> {
    /// The version of a secret among the changes, if there is one.
    pub(crate) fn version_of_secret(&self) -> Option<u64> {
        self.applied.changes.iter().find_map(|change| match change {
            Change::Put(hint) | Change::Delete(hint) if hint.is_secret() => Some(hint.version()),
            _ => None,
        })
    }

    /// The record, for [`Nudge::restore`](crate::Nudge::restore).
    pub fn to_json(&self) -> Vec<u8> {
        let Self { applied, result } = *self;
        let version = self.version_of_secret();
        let result = result.filter(|_| version.is_none());
        let done = applied.by.key.map(|key| Done { key: key.into(), result, version });
        let mut record =
            Record { verb: applied.verb.into(), by: applied.by.name.into(), at: applied.at, ..Record::default() };
        record.done.extend(done);
        for change in applied.changes {
            match change {
                Change::Put(hint) if !hint.is_secret() => record.put.push(Named(hint)),
                Change::Put(hint) | Change::Delete(hint) => {
                    record.gone.push((hint.component(), hint.key(), hint.variant()));
                }
                Change::Extra(extra) => record.extra = Some(extra),
            }
        }
        record.to_json()
    }
}

/// The shape of a record as it is written.
#[derive(Serialize, Default)]
pub(crate) struct Record<'a> {
    pub verb: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub by: Box<str>,
    pub at: Millis,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub put: Vec<Named<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<(&'a str, &'a str, &'a str)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<Done<'a>>,
    /// A deletion that can be undone, in a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<u64>,
    /// The number of the last deletion, in a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
}

impl Record<'_> {
    pub fn to_json(&self) -> Vec<u8> {
        // Strings and numbers alone: it cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// A hint with its component and key.
pub(crate) struct Named<'a>(pub &'a Hint);

impl Serialize for Named<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0.component(), self.0.key(), Exported(self.0)).serialize(serializer)
    }
}

/// A call that was made on behalf of a key.
#[derive(Serialize, Deserialize)]
pub(crate) struct Done<'a> {
    #[serde(borrow)]
    pub key: std::borrow::Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

impl<'a> Done<'a> {
    fn new(key: &'a str, known: &'a Known) -> Self {
        let result = known.result.as_deref().filter(|_| known.version.is_none());
        Self { key: key.into(), result, version: known.version }
    }
}

/// The shape of a record as it is read.
#[derive(Deserialize)]
pub(crate) struct Read<'a> {
    pub verb: String,
    #[serde(default)]
    pub by: String,
    pub at: Millis,
    #[serde(borrow, default)]
    pub put: Vec<(String, String, &'a RawValue)>,
    #[serde(default)]
    pub gone: Vec<(String, String, String)>,
    #[serde(borrow, default)]
    pub extra: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub done: Vec<Done<'a>>,
    #[serde(default)]
    pub deleted: Option<u64>,
    #[serde(default)]
    pub deletions: u64,
}

impl<'a> Read<'a> {
    pub fn parse(record: &'a [u8]) -> Result<Self> {
        serde_json::from_slice(record)
            .map_err(|_| Error::invalid("A record of the journal is not of this version; it is passed over."))
    }
}

/// What is known of a call that was made with a key.
#[derive(Clone)]
pub(crate) struct Known {
    /// Its result; not known any more of one about a secret that a journal has outlived.
    pub result: Option<Arc<RawValue>>,
    /// Of one about a secret: the version it led to, which is all that is written of it.
    pub version: Option<u64>,
}

/// The last calls that were made with a key, oldest first.
#[derive(Default)]
pub(crate) struct Keys {
    calls: VecDeque<(Box<str>, Known)>,
    bytes: usize,
}

impl Keys {
    pub fn get(&self, key: &str) -> Option<&Known> {
        self.calls.iter().rev().find(|(known, _)| **known == *key).map(|(_, known)| known)
    }

    pub fn insert(&mut self, key: &str, known: Known) {
        self.bytes += size(key, &known);
        self.calls.push_back((key.into(), known));
        while self.calls.len() > MAX_KEYS || (self.bytes > MAX_KEY_BYTES && self.calls.len() > 1) {
            let Some((key, known)) = self.calls.pop_front() else { return };
            self.bytes -= size(&key, &known);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Done<'_>> {
        self.calls.iter().map(|(key, known)| Done::new(key, known))
    }
}

fn size(key: &str, known: &Known) -> usize {
    key.len() + known.result.as_ref().map_or(0, |result| result.get().len())
}

/// Hints of one record of a snapshot: enough to be few, little enough to be small.
const HINTS_OF_A_RECORD: usize = 256;

/// A whole store as records.
pub(crate) fn snapshot<'a>(
    hints: &'a [Arc<Hint>],
    extra: Option<&'a RawValue>,
    trash: &'a Trash,
    keys: &'a Keys,
    now: Millis,
) -> Vec<Vec<u8>> {
    let open: Vec<_> = hints.iter().filter(|hint| !hint.is_secret()).collect();
    let mut out = Vec::new();
    for hints in open.chunks(HINTS_OF_A_RECORD) {
        let put = hints.iter().map(|hint| Named(hint)).collect();
        out.push(Record { verb: "snapshot".into(), at: now, put, ..Record::default() }.to_json());
    }
    for deleted in trash.iter().collect::<Vec<_>>().into_iter().rev() {
        let put: Vec<_> = deleted.hints.iter().filter(|hint| !hint.is_secret()).map(|hint| Named(hint)).collect();
        if !put.is_empty() {
            let by = deleted.by.clone();
            let deleted = (deleted.id, deleted.at);
            out.push(
                Record {
                    verb: "deleted".into(),
                    by,
                    at: deleted.1,
                    put,
                    deleted: Some(deleted.0),
                    ..Record::default()
                }
                .to_json(),
            );
        }
    }
    out.push(
        Record {
            verb: "snapshot".into(),
            at: now,
            extra,
            done: keys.iter().collect(),
            deletions: Some(trash.last_id()),
            ..Record::default()
        }
        .to_json(),
    );
    out
}
