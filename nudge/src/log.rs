//! Where changes are recorded before they are visible, and told of afterwards.

use std::sync::Arc;

use crate::clock::{Millis, rfc3339};
use crate::error::Result;
use crate::service::Caller;
use crate::store::Change;

/// Where changes go before anyone can see them.
///
/// `append` is called by one writer at a time, before the change is applied. When it fails the call
/// is refused and nothing changes.
pub trait Log: Send + Sync {
    /// Records post-images.
    ///
    /// # Errors
    /// Whatever keeps the record from being made.
    fn append(&self, changes: &[Change]) -> Result<()>;

    /// Tells of changes that everybody can see now, in their order; must be quick, and must not call
    /// the store.
    fn applied(&self, _: &Applied<'_>) {}
}

impl<L: Log + ?Sized> Log for Arc<L> {
    fn append(&self, changes: &[Change]) -> Result<()> {
        (**self).append(changes)
    }

    fn applied(&self, applied: &Applied<'_>) {
        (**self).applied(applied);
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
    /// [`Applied::at`] as RFC 3339.
    pub fn time(&self) -> String {
        rfc3339::text(self.at)
    }
}

/// The log of a store that lives in this process alone.
pub(crate) struct NoLog;

impl Log for NoLog {
    fn append(&self, _: &[Change]) -> Result<()> {
        Ok(())
    }
}
