//! Calls that are made once: the record of a change holds the call's idempotency key and result.

use nudge_core::error::Result;
use nudge_core::once::Once;
use nudge_core::service::Method;
use nudge_core::service::{Call, Made};
use serde_json::value::RawValue;

use super::Nudge;
use crate::store::Change;

/// Returns the version of a secret among the changes, if there is one.
pub(super) fn version_of_secret(changes: &[Change]) -> Option<u64> {
    changes.iter().find_map(|change| match change {
        Change::Put(hint) | Change::Delete(hint) if hint.is_secret() => Some(hint.version()),
        _ => None,
    })
}

impl Once for Nudge {
    fn once(
        &self,
        key: &str,
        call: Call,
        make: &mut dyn FnMut(Option<Made>) -> Result<Box<RawValue>>,
    ) -> Result<Box<RawValue>> {
        self.calls.once(key, call, make)
    }

    fn ask_env(&self, method: &Method, params: &RawValue) -> Result<()> {
        self.ask_env(method.context, params)
    }
}
