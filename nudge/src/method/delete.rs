//! `nudge.delete_hint`: deletes one variant or all variants of a key.

use std::sync::Arc;

use nudge_core::error::{Error, Result};
use nudge_core::once::RecordableResult;
use nudge_core::service::{Caller, MethodSpec};
use nudge_core::table::{TableRow, answer_typed, build_schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::report;
use crate::cache::{Nudge, WriteAct};
use crate::hint::{Hint, check_name};
use crate::missing::no_such_variant;
use crate::scoring;

const ABOUT: &str = "\
Forget a hint that is wrong or no longer needed. A key with several variants needs `variant` (one of them) or \
`all`.";

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.delete_hint", "Delete a hint", ABOUT, build_schema::<DeleteHint>)
        .tool()
        .destructive()
        .vital()
        .with_report(report::report_deleted),
    run: |nudge, caller, params| answer_typed(params, |params| nudge.delete_by(caller, &params)),
};

/// Params of [`Nudge::delete`].
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteHint {
    /// The component.
    #[schemars(description = "")]
    pub component: String,
    /// The key.
    #[schemars(description = "")]
    pub key: String,
    /// This variant only; `""` is the unscoped one.
    #[serde(default, deserialize_with = "wire::given")]
    pub variant: Option<String>,
    /// Every variant.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    #[schemars(description = "")]
    pub all: bool,
}

/// Result of [`Nudge::delete`].
#[derive(Debug, Clone, Serialize)]
pub struct DeleteResult {
    /// Always true, because a missing hint is refused with `E_NOT_FOUND`.
    pub deleted: bool,
    /// The best of the deleted variants, regardless of the context. A secret value is redacted in JSON.
    #[serde(serialize_with = "super::set::serialize_redacted")]
    pub previous: Arc<Hint>,
    /// The number of deleted variants.
    pub deleted_count: usize,
}

impl RecordableResult for DeleteResult {
    fn without_secrets(&self) -> serde_json::Result<Option<Box<RawValue>>> {
        if !self.previous.is_secret() {
            return to_raw_value(self).map(Some);
        }
        let Self { deleted, deleted_count, .. } = self;
        to_raw_value(&json!({"deleted": deleted, "previous": null, "deleted_count": deleted_count})).map(Some)
    }
}

impl Nudge {
    /// Deletes a hint, one of its variants, or all its variants (semantics section 1).
    ///
    /// # Errors
    /// `E_INVALID` when the key has several variants and the call has neither `variant` nor `all`, or when the call has
    /// both; `E_NOT_FOUND`.
    pub fn delete(&self, params: &DeleteHint) -> Result<DeleteResult> {
        self.delete_by(Caller::default(), params)
    }

    fn delete_by(&self, caller: Caller<'_>, params: &DeleteHint) -> Result<DeleteResult> {
        let DeleteHint { component, key, variant, all } = params;
        check_name("component", component)?;
        check_name("key", key)?;
        if variant.is_some() && *all {
            return Err(Error::invalid("Give `variant` for one variant or `all` for every one, not both.")
                .about("variant")
                .about("all"));
        }
        let mut unknown = false;
        let written = self.write(WriteAct::new("delete", caller), |plan| {
            let now = plan.now;
            let mut hints = plan.find_variants(component, key);
            if variant.is_none() && !all && hints.len() > 1 {
                return Err(Error::invalid(format!(
                    "The key has {} variants; name one with `variant` or pass `all`.",
                    hints.len()
                ))
                .about("variant")
                .about("all"));
            }
            hints.retain(|hint| variant.as_deref().is_none_or(|variant| hint.variant() == variant));
            let score = |hint: &Hint| scoring::score_hint(hint, false, now);
            let best = hints.iter().max_by(|a, b| scoring::compare_specific((a, score(a)), (b, score(b))));
            let Some(previous) = best.cloned() else {
                unknown = true;
                return Err(no_such_variant());
            };
            hints.iter().for_each(|hint| plan.delete_hint(hint));
            Ok(DeleteResult { deleted: true, previous, deleted_count: hints.len() })
        });
        // Similar keys are searched after the writer lock is released, because the search takes long.
        if unknown { Err(self.no_such_hint(component, key)) } else { written }
    }
}
