//! Where changes are recorded before they are visible, and told of afterwards.

use std::collections::HashSet;
use std::sync::Arc;

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::error::Result;
use nudge_core::service::Caller;

use crate::hint::Hint;
use crate::record::Entry;
use crate::store::Change;

/// Where changes go before anyone can see them.
///
/// `append` is called by one writer at a time, before the change is applied. When it fails the call
/// is refused and nothing changes.
pub trait Log: Send + Sync {
    /// Records a write.
    ///
    /// # Errors
    /// Whatever keeps the record from being made.
    fn append(&self, entry: &Entry<'_>) -> Result<()>;

    /// Tells of changes that everybody can see now, in their order; must be quick, and must not call
    /// the store.
    fn applied(&self, _: &Applied<'_>) {}

    /// Whether the log should begin anew: it has grown long, or somebody has shortened it. Asked after a
    /// write, and when `append` has failed, which is tried once more then.
    fn is_long(&self) -> bool {
        false
    }

    /// Begins anew with records that hold the whole store. Failing leaves the old log in use.
    fn begin_anew(&self, _: &[Vec<u8>]) {}
}

impl<L: Log + ?Sized> Log for Arc<L> {
    fn append(&self, entry: &Entry<'_>) -> Result<()> {
        (**self).append(entry)
    }

    fn applied(&self, applied: &Applied<'_>) {
        (**self).applied(applied);
    }

    fn is_long(&self) -> bool {
        (**self).is_long()
    }

    fn begin_anew(&self, records: &[Vec<u8>]) {
        (**self).begin_anew(records);
    }
}

/// A write that was made.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Applied<'a> {
    /// `set`, `bump`, `delete`, `import`, `outcome`, `undo`, or `expire` for what the sweep dropped.
    pub verb: &'static str,
    /// On whose behalf.
    pub by: Caller<'a>,
    /// When.
    pub at: Millis,
    /// Post-images.
    pub changes: &'a [Change],
}

impl Applied<'_> {
    /// The hints that are gone: deleted, and not put back by the same call.
    pub fn gone(&self) -> impl Iterator<Item = &Arc<Hint>> {
        fn name(hint: &Hint) -> (&str, &str, &str) {
            (hint.component(), hint.key(), hint.variant())
        }
        // Most writes delete nothing, and an import may put very many.
        let deletes = self.changes.iter().any(|change| matches!(change, Change::Delete(_)));
        let kept: HashSet<_> = self.put().filter(|_| deletes).map(|hint| name(hint)).collect();
        self.changes.iter().filter_map(move |change| match change {
            Change::Delete(hint) if !kept.contains(&name(hint)) => Some(hint),
            _ => None,
        })
    }

    /// The hints as they stand now.
    pub fn put(&self) -> impl Iterator<Item = &Arc<Hint>> {
        self.changes.iter().filter_map(|change| if let Change::Put(hint) = change { Some(hint) } else { None })
    }

    /// [`Applied::at`] as RFC 3339.
    pub fn time(&self) -> String {
        rfc3339::text(self.at)
    }
}

/// The log of a store that lives in this process alone.
pub(crate) struct NoLog;

impl Log for NoLog {
    fn append(&self, _: &Entry<'_>) -> Result<()> {
        Ok(())
    }
}
