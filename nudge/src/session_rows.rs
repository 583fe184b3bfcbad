//! Converts the store to rows, from which it is restored: a row for each hint, each deletion that can be undone, and each
//! call with a key.
//!
//! A row never holds a secret. A secret hint has no row; only the row of the call that stored it has its version.

use std::borrow::Cow;
use std::sync::Arc;

use nudge_core::clock::Millis;
use nudge_core::error::{Error, Result};
use nudge_core::once::{CallRecord, ForgottenCall};
use nudge_core::source::RowChange;
use nudge_core::wire::json_text;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::hint::{Hint, HintInExport};
use crate::store::StoreChange;
use crate::trash::{DeletionKind, HintTrash, TrashEntry, TrashPlan};

/// A hint, by its component, key and variant.
pub(crate) const HINT_ROW: &str = "hint";
/// The kind of a row with a deletion that can be undone. Its name is the id.
pub const DELETION_ROW: &str = "deletion";
/// The id of the last deletion, if that deletion has no row.
pub(crate) const LAST_DELETION_ROW: &str = "last_deletion";
/// A call with a key, by its number.
pub(crate) const CALL_ROW: &str = "call";
/// The unknown top-level keys of imports.
pub(crate) const EXTRA_ROW: &str = "extra";

/// A hint with its component and key.
struct NamedHint<'a>(&'a Hint);

impl Serialize for NamedHint<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0.component(), self.0.key(), HintInExport(self.0)).serialize(serializer)
    }
}

/// The component, the key and the exported form of a hint, as a row holds them.
pub(crate) type HintParts<'a> = (Cow<'a, str>, Cow<'a, str>, &'a RawValue);

#[derive(Serialize)]
struct WrittenDeletion<'a> {
    at: Millis,
    #[serde(skip_serializing_if = "str::is_empty")]
    by: &'a str,
    what: DeletionKind,
    hints: Vec<NamedHint<'a>>,
}

/// The body of a row of a deletion.
#[derive(Serialize, Deserialize)]
pub(crate) struct ReadDeletion<'a> {
    pub at: Millis,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    pub what: DeletionKind,
    #[serde(borrow)]
    pub hints: Vec<HintParts<'a>>,
}

/// Returns the body of a [`DELETION_ROW`] with only those of its hints for which `is_kept` returns true. The argument
/// is the hint as an export has it. Returns `None` when no hint is left, or the body is not of this version.
pub fn filter_deletion(body: &str, is_kept: impl Fn(&RawValue) -> bool) -> Option<String> {
    let mut deletion: ReadDeletion<'_> = read_body(body).ok()?;
    deletion.hints.retain(|(_, _, hint)| is_kept(hint));
    (!deletion.hints.is_empty()).then(|| json_text(&deletion))
}

/// Reads the body of a row.
///
/// # Errors
/// `E_INVALID` when the body is not of this version.
pub(crate) fn read_body<'a, T: Deserialize<'a>>(body: &'a str) -> Result<T> {
    serde_json::from_str(body).map_err(|_| Error::invalid("A row of the session is not of this version."))
}

/// Returns the row of a hint. A secret hint has none, so its row is deleted.
pub(crate) fn write_hint(hint: &Hint) -> RowChange {
    if hint.is_secret() {
        delete_hint(hint)
    } else {
        RowChange::put(HINT_ROW, name_of(hint), json_text(&NamedHint(hint)))
    }
}

/// Deletes the row of a hint.
pub(crate) fn delete_hint(hint: &Hint) -> RowChange {
    RowChange::delete(HINT_ROW, name_of(hint))
}

/// Returns the name of a hint's row. Components and keys have no control characters.
fn name_of(hint: &Hint) -> String {
    [hint.component(), hint.key(), hint.variant()].join("\n")
}

/// Returns the rows of a change to the store.
pub(crate) fn write_change(change: &StoreChange) -> Option<RowChange> {
    match change {
        StoreChange::Put(hint) => Some(write_hint(hint)),
        StoreChange::Delete(hint) => Some(delete_hint(hint)),
        StoreChange::Extra(extra) => Some(RowChange::put(EXTRA_ROW, "", extra.get().to_owned())),
        // The plan for the trash has the replaced value.
        StoreChange::Replaced(_) => None,
    }
}

/// Returns the row of a call with a key.
pub(crate) fn write_call(number: u64, record: &CallRecord<'_>) -> RowChange {
    RowChange::put(CALL_ROW, number.to_string(), json_text(record))
}

/// Returns the change to the row of a call that was forgotten, wholly or in part.
pub(crate) fn forget_call(call: ForgottenCall) -> RowChange {
    RowChange { kind: CALL_ROW, name: call.number.to_string(), body: call.rest }
}

/// Returns the rows of all deletions that can be undone.
pub(crate) fn write_trash(trash: &HintTrash) -> impl Iterator<Item = RowChange> {
    trash.iter().filter_map(write_deletion).chain([write_last_deletion(trash.last_id())])
}

/// Returns the changes to the rows of deletions that a plan makes.
pub(crate) fn write_plan(plan: &TrashPlan) -> impl Iterator<Item = RowChange> {
    let entries = plan.added.iter().chain(plan.undone.iter().map(|(_, rest)| rest));
    entries.flat_map(|entry| {
        let row = write_deletion(entry);
        let gone = row.is_none().then(|| forget_deletion(entry.id, plan.last_id)).into_iter().flatten();
        row.into_iter().chain(gone)
    })
}

/// Deletes the row of a deletion. If it is the last deletion, its id needs a row of its own then.
pub(crate) fn forget_deletion(id: u64, last_id: u64) -> impl Iterator<Item = RowChange> {
    let last = (id == last_id).then(|| write_last_deletion(last_id));
    [RowChange::delete(DELETION_ROW, id.to_string())].into_iter().chain(last)
}

fn write_last_deletion(last_id: u64) -> RowChange {
    RowChange::put(LAST_DELETION_ROW, "", last_id.to_string())
}

/// Returns the row of a deletion. Returns `None` when all of its hints are secret.
fn write_deletion(entry: &TrashEntry) -> Option<RowChange> {
    let hints: Vec<_> = entry.hints.iter().filter(|hint| !hint.is_secret()).map(|hint| NamedHint(hint)).collect();
    let TrashEntry { id, at, ref by, what, .. } = *entry;
    (!hints.is_empty())
        .then(|| RowChange::put(DELETION_ROW, id.to_string(), json_text(&WrittenDeletion { at, by, what, hints })))
}

/// Returns the rows of hints, without secrets.
pub(crate) fn write_hints(hints: &[Arc<Hint>]) -> impl Iterator<Item = RowChange> {
    hints.iter().filter(|hint| !hint.is_secret()).map(|hint| write_hint(hint))
}
