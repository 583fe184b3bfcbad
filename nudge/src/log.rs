//! Defines the log of changes. The log records a change before readers can see it, and is notified when they can.

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
/// Only one writer at a time calls `append`, before the store applies the change. If `append` fails, the call is
/// refused and the store does not change.
pub trait ChangeLog: Send + Sync {
    /// Records a write.
    ///
    /// # Errors
    /// The reason why the change cannot be recorded.
    fn append(&self, entry: &LogEntry<'_>) -> Result<()>;

    /// Receives changes after they have become visible, in their order. Must be quick, and must not call the store.
    fn on_applied(&self, _: &AppliedWrite<'_>) {}

    /// Checks whether a hint with a duration will be kept for the next session. Must be quick, and must not call the
    /// store.
    ///
    /// # Errors
    /// The reason why the hint will not be kept, for the caller: a clause without a full stop.
    fn check_keeping(&self) -> std::result::Result<(), String> {
        Err("it ends with this store at the latest: only a session keeps hints".into())
    }

    /// Returns true when the log should begin anew, because it has grown long or because another process has shortened
    /// it. The store calls this after each write. It also calls this after a failed `append`: if the answer is true,
    /// the log begins anew and the store repeats `append` once.
    fn is_long(&self) -> bool {
        false
    }

    /// Replaces the log by records of the whole store. On an error, the old log stays in use.
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

/// A planned write, in the form in which a [`ChangeLog`](crate::ChangeLog) records it before the store applies it.
#[derive(Debug, Clone, Copy)]
pub struct LogEntry<'a> {
    /// The write. [`ChangeLog::on_applied`](crate::ChangeLog::on_applied) later receives the same write.
    pub applied: AppliedWrite<'a>,
    /// The call's result as JSON without secrets, if the caller gave an idempotency key. `None` when the result
    /// consists only of secrets.
    pub result: Option<&'a RawValue>,
    /// The version of the secret that the call was about, if `result` is `None`.
    pub(crate) version: Option<u64>,
    /// The identity of the call, if the caller gave an idempotency key.
    pub(crate) call: Option<&'a str>,
}

/// A write that the store has applied.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AppliedWrite<'a> {
    /// The verb: `set`, `bump`, `delete`, `import`, `outcome`, `undo`, or `expire` for dropping expired hints.
    pub verb: &'static str,
    /// The caller.
    pub caller: Caller<'a>,
    /// The time of the write.
    pub time: Millis,
    /// The changes. A changed hint is in its state after the write, a deleted hint in its state before the write.
    pub changes: &'a [StoreChange],
}

impl AppliedWrite<'_> {
    /// Returns the hints that the write removed for good: they were deleted, and not restored by the same call.
    pub fn list_gone(&self) -> impl Iterator<Item = &Arc<Hint>> {
        fn name(hint: &Hint) -> (&str, &str, &str) {
            (hint.component(), hint.key(), hint.variant())
        }
        // The names are collected only when they are needed. Most writes delete nothing, and an import may store very
        // many hints.
        let deletes = self.changes.iter().any(|change| matches!(change, StoreChange::Delete(_)));
        // When a secret has replaced a hint, a record has two changes for the hint: a deletion and a replacement. Such
        // a hint does not count as gone.
        let kept: HashSet<_> =
            self.list_put().chain(self.list_replaced()).filter(|_| deletes).map(|hint| name(hint)).collect();
        self.changes.iter().filter_map(move |change| match change {
            StoreChange::Delete(hint) if !kept.contains(&name(hint)) => Some(hint),
            _ => None,
        })
    }

    /// Returns the hints that other hints have replaced, in their state before the write. `undo` can restore them.
    pub fn list_replaced(&self) -> impl Iterator<Item = &Arc<Hint>> {
        self.changes
            .iter()
            .filter_map(|change| if let StoreChange::Replaced(hint) = change { Some(hint) } else { None })
    }

    /// Returns the hints that were stored, in their state after the write.
    pub fn list_put(&self) -> impl Iterator<Item = &Arc<Hint>> {
        self.changes.iter().filter_map(|change| if let StoreChange::Put(hint) = change { Some(hint) } else { None })
    }

    /// Returns [`AppliedWrite::time`] in RFC 3339.
    pub fn to_rfc3339(&self) -> String {
        rfc3339::format_time(self.time)
    }
}

/// The log of a store that does not record its changes.
pub(crate) struct NoLog;

impl ChangeLog for NoLog {
    fn append(&self, _: &LogEntry<'_>) -> Result<()> {
        Ok(())
    }
}
