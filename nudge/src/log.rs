//! Defines the log of changes. The log records a change before readers can see it, and is notified when they can.

use std::collections::HashSet;
use std::sync::Arc;

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::error::Result;
use nudge_core::once::CallRecord;
use nudge_core::service::Caller;
use nudge_core::source::{RowChange, RowFeed, RowTaker};

use crate::hint::Hint;
use crate::session_rows;
use crate::store::StoreChange;
use crate::trash::TrashPlan;

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

    /// Stores all rows again if another program has removed them. `all` gives every row. The store calls this every
    /// few seconds.
    fn mend(&self, _all: &RowFeed<'_>) {}
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

    fn mend(&self, all: &RowFeed<'_>) {
        (**self).mend(all);
    }
}

/// A planned write, as a [`ChangeLog`](crate::ChangeLog) records it before the store applies it.
pub struct LogEntry<'a> {
    /// The write. [`ChangeLog::on_applied`](crate::ChangeLog::on_applied) later receives the same write.
    pub applied: AppliedWrite<'a>,
    /// The call, if the caller gave an idempotency key: its number, and its record without secrets.
    pub(crate) call: Option<(u64, CallRecord<'a>)>,
    pub(crate) trash: &'a TrashPlan,
    /// The changes of rows that earlier writes have left to this one.
    pub(crate) waiting: &'a [RowChange],
    pub(crate) all: &'a RowFeed<'a>,
}

impl LogEntry<'_> {
    /// Gives the changes of rows that record the write, without secrets. [`Nudge::restore`](crate::Nudge::restore) reads
    /// the rows.
    ///
    /// # Errors
    /// The errors of `take`.
    pub fn feed_rows(&self, take: &mut RowTaker<'_>) -> Result<()> {
        self.waiting.iter().try_for_each(&mut *take)?;
        self.applied.changes.iter().filter_map(session_rows::write_change).try_for_each(|row| take(&row))?;
        session_rows::write_plan(self.trash).try_for_each(|row| take(&row))?;
        self.call.iter().try_for_each(|(number, record)| take(&session_rows::write_call(*number, record)))
    }

    /// Gives the rows of the whole store before the write, without secrets.
    ///
    /// # Errors
    /// The errors of `take`.
    pub fn feed_all(&self, take: &mut RowTaker<'_>) -> Result<()> {
        (self.all)(take)
    }
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
