//! The log of changes: it records a change before the change is visible, and hears of the change afterwards.

use std::collections::HashSet;
use std::sync::Arc;

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::error::Result;
use nudge_core::service::Caller;
use serde_json::value::RawValue;

use crate::hint::Hint;
use crate::store::StoreChange;

/// Records changes before any reader can see them.
///
/// A single writer at a time calls `append`, before the change is applied. When `append` fails, the call is refused and
/// nothing changes.
pub trait ChangeLog: Send + Sync {
    /// Records a write.
    ///
    /// # Errors
    /// The reason why the change cannot be recorded.
    fn append(&self, entry: &LogEntry<'_>) -> Result<()>;

    /// Is called with changes after they have become visible, in their order. It must be quick, and must not call the
    /// store.
    fn on_applied(&self, _: &AppliedWrite<'_>) {}

    /// Checks whether a hint with a duration is kept for the next session. It must be quick, and must not call the
    /// store.
    ///
    /// # Errors
    /// The reason for the caller why the hint is not kept, as a clause without a full stop.
    fn check_keeping(&self) -> std::result::Result<(), String> {
        Err("it ends with this store at the latest: only a session keeps hints".into())
    }

    /// Returns true when the log should begin anew: it has grown long, or another process has shortened it. The store
    /// calls this after a write, and after a failed `append`, which it then tries once more.
    fn is_long(&self) -> bool {
        false
    }

    /// Replaces the log by records that hold the whole store. On an error the old log stays in use.
    fn begin_anew(&self, _: &[Vec<u8>]) {}
}

impl<L: ChangeLog + ?Sized> ChangeLog for Arc<L> {
    fn append(&self, entry: &LogEntry<'_>) -> Result<()> {
        (**self).append(entry)
    }

    fn on_applied(&self, applied: &AppliedWrite<'_>) {
        (**self).on_applied(applied);
    }

    fn check_keeping(&self) -> std::result::Result<(), String> {
        (**self).check_keeping()
    }

    fn is_long(&self) -> bool {
        (**self).is_long()
    }

    fn begin_anew(&self, records: &[Vec<u8>]) {
        (**self).begin_anew(records);
    }
}

/// A planned write in the form in which a [`ChangeLog`](crate::ChangeLog) records it before it is applied.
#[derive(Debug, Clone, Copy)]
pub struct LogEntry<'a> {
    /// The write, as [`ChangeLog::on_applied`](crate::ChangeLog::on_applied) gets it later.
    pub applied: AppliedWrite<'a>,
    /// The call's result as JSON, without secrets, when the caller gave an idempotency key; `None` when nothing is left
    /// without secrets.
    pub result: Option<&'a RawValue>,
    /// The version of the secret that the call was about, when `result` is `None`.
    pub(crate) version: Option<u64>,
    /// The call itself, when the caller gave an idempotency key.
    pub(crate) call: Option<&'a str>,
}

/// A write that was carried out.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AppliedWrite<'a> {
    /// `set`, `bump`, `delete`, `import`, `outcome`, `undo`, or `expire` for dropped expired hints.
    pub verb: &'static str,
    /// The caller.
    pub caller: Caller<'a>,
    /// The time of the write.
    pub time: Millis,
    /// The changes. A changed hint is as it is after the write, a deleted hint as it was before.
    pub changes: &'a [StoreChange],
}

impl AppliedWrite<'_> {
    /// Returns the hints that are gone: deleted, and not restored by the same call.
    pub fn list_gone(&self) -> impl Iterator<Item = &Arc<Hint>> {
        fn name(hint: &Hint) -> (&str, &str, &str) {
            (hint.component(), hint.key(), hint.variant())
        }
        // The names are collected only when needed: most writes delete nothing, and an import may store very many
        // hints.
        let deletes = self.changes.iter().any(|change| matches!(change, StoreChange::Delete(_)));
        // A hint that a secret has replaced is restored as both gone and replaced.
        let kept: HashSet<_> =
            self.list_put().chain(self.list_replaced()).filter(|_| deletes).map(|hint| name(hint)).collect();
        self.changes.iter().filter_map(move |change| match change {
            StoreChange::Delete(hint) if !kept.contains(&name(hint)) => Some(hint),
            _ => None,
        })
    }

    /// Returns the hints that other hints have replaced and that `undo` can restore, as they were.
    pub fn list_replaced(&self) -> impl Iterator<Item = &Arc<Hint>> {
        self.changes
            .iter()
            .filter_map(|change| if let StoreChange::Replaced(hint) = change { Some(hint) } else { None })
    }

    /// Returns the hints that were stored, as they are after the write.
    pub fn list_put(&self) -> impl Iterator<Item = &Arc<Hint>> {
        self.changes.iter().filter_map(|change| if let StoreChange::Put(hint) = change { Some(hint) } else { None })
    }

    /// Returns [`AppliedWrite::time`] as RFC 3339.
    pub fn to_rfc3339(&self) -> String {
        rfc3339::format_time(self.time)
    }
}

/// The log of a store whose changes are not recorded.
pub(crate) struct NoLog;

impl ChangeLog for NoLog {
    fn append(&self, _: &LogEntry<'_>) -> Result<()> {
        Ok(())
    }
}
