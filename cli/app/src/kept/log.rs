//! The change log of the kept hints: the objects are variants of hints, the fields are the value and the members of
//! `meta`. Counts and times of use are no fields, because nobody writes them.

use std::collections::{BTreeMap, HashMap};

use nudge::{Millis, Result};
use nudge_core::source::LoggedChange;
use nudge_core::wire::raw_json;
use nudge_storage::rusqlite::Transaction;
use nudge_storage::{ObjectChange, TransactionFailure, log_change};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::VariantName;

/// The client that made the last change of each hint, for the hints that changed since the last write.
pub type HintAuthors = HashMap<VariantName, String>;

/// The authors and the time of a write.
#[derive(Debug, Clone, Copy)]
pub struct WriteAuthors<'a> {
    /// The authors. A hint that is missing here has an unknown author.
    pub authors: &'a HintAuthors,
    /// The time of the write.
    pub now: Millis,
}

/// The last change of a kept hint.
#[derive(Debug)]
pub struct HintChange {
    /// The names.
    pub name: VariantName,
    /// The row of the log.
    pub logged: LoggedChange,
}

impl HintChange {
    pub(super) fn from_logged(logged: LoggedChange) -> Option<Self> {
        let (component, key, variant) = serde_json::from_str(&logged.name).ok()?;
        Some(Self { name: VariantName { component, key, variant }, logged })
    }
}

/// The written parts of a hint in an export.
#[derive(Deserialize)]
struct WrittenFields<'a> {
    #[serde(borrow)]
    value: &'a RawValue,
    #[serde(borrow, default)]
    meta: BTreeMap<&'a str, &'a RawValue>,
}

impl<'a> WrittenFields<'a> {
    /// Reads an exported hint. A hint of another form has no fields.
    fn read(body: &'a str) -> BTreeMap<&'a str, &'a str> {
        let Ok(Self { value, meta }) = serde_json::from_str(body) else { return BTreeMap::new() };
        meta.into_iter().chain([("value", value)]).map(|(name, text)| (name, text.get())).collect()
    }
}

/// Logs that a hint got another body. Logs nothing when only its counts or times have changed.
pub(super) fn log_put(
    tx: &Transaction<'_>,
    name: &VariantName,
    old: Option<&str>,
    new: &str,
    by: WriteAuthors<'_>,
) -> Result<(), TransactionFailure> {
    let (before, after) = (old.map_or_else(BTreeMap::new, WrittenFields::read), WrittenFields::read(new));
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let fields: Vec<&str> = names.filter(|name| before.get(*name) != after.get(*name)).copied().collect();
    if fields.is_empty() && old.is_some() {
        return Ok(());
    }
    log(tx, name, &fields, false, by)
}

/// Logs that a hint is no longer kept.
pub(super) fn log_delete(
    tx: &Transaction<'_>,
    name: &VariantName,
    by: WriteAuthors<'_>,
) -> Result<(), TransactionFailure> {
    log(tx, name, &[], true, by)
}

fn log(
    tx: &Transaction<'_>,
    name: &VariantName,
    fields: &[&str],
    is_gone: bool,
    WriteAuthors { authors, now }: WriteAuthors<'_>,
) -> Result<(), TransactionFailure> {
    let author = authors.get(name).map_or("", String::as_str);
    let name = raw_json(&(&name.component, &name.key, &name.variant));
    log_change(tx, &ObjectChange { name: name.get(), author, now, fields, is_gone })
}
