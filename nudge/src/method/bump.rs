//! `nudge.bump`: counts uses of a hint.

use std::sync::Arc;

use nudge_core::context::ContextSpec;
use nudge_core::error::{Error, Result};
use nudge_core::limit::Limit;
use nudge_core::once::RecordableResult;
use nudge_core::service::{Caller, EarlierCall, MethodSpec};
use nudge_core::steps::StepBudget;
use nudge_core::table::{TableRow, answer_typed, build_schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::get::none_fits;
use super::report;
use crate::cache::{Nudge, WriteAct};
use crate::choice::pick_variant;
use crate::hint::{Hint, HintUsage, check_name};
use crate::missing::no_such_variant;
use crate::store::Variants;

const ABOUT: &str = "\
Call after a hint worked, with the context you used for nudge_get_hint: it raises the hint for next time.";

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.bump", "Report success", ABOUT, build_schema::<BumpHint>)
        .frequent()
        .inferred_if_given()
        .vital()
        .with_report(report::report_bumped),
    run: |nudge, caller, params| answer_typed(params, |params| nudge.bump_by(caller, params)),
};

/// Params of [`Nudge::bump`].
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BumpHint {
    /// The component.
    #[schemars(description = "")]
    pub component: String,
    /// The key.
    #[schemars(description = "")]
    pub key: String,
    /// Uses to add.
    #[serde(default)]
    pub delta: Limit<1, 1_000>,
    /// The one used for `nudge_get_hint`.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
    /// This variant, whatever the context.
    #[serde(default, deserialize_with = "wire::given")]
    pub variant: Option<String>,
}

/// Result of [`Nudge::bump`].
#[derive(Debug, Clone, Serialize)]
pub struct BumpResult {
    /// The hint with its new counts. A secret value is redacted in JSON.
    #[serde(serialize_with = "super::set::serialize_redacted")]
    pub hint: Arc<Hint>,
}

/// The result for a secret is never recorded. A repeated call computes it again.
impl RecordableResult for BumpResult {
    fn without_secrets(&self) -> serde_json::Result<Option<Box<RawValue>>> {
        Ok(None)
    }
}

impl Nudge {
    /// Counts a use of a hint, so that the hint ranks higher later (semantics section 1).
    ///
    /// # Errors
    /// `E_INVALID` when the key has several variants and the call has no context; `E_NOT_FOUND`.
    pub fn bump(&self, params: BumpHint) -> Result<BumpResult> {
        self.bump_by(Caller::default(), params)
    }

    fn bump_by(&self, caller: Caller<'_>, params: BumpHint) -> Result<BumpResult> {
        let BumpHint { component, key, delta, context, variant } = params;
        check_name("component", &component)?;
        check_name("key", &key)?;
        let delta = delta.get() as u64;
        let context = context.build()?;
        let chooses = variant.is_none() && !context.is_empty();
        let candidates = || if chooses { self.store.find_variants(&component, &key).1 } else { Variants::new() };
        let (mut steps, mut unfit, mut unknown) = (StepBudget::of_a_call(), None, false);
        let written =
            self.write_judged(WriteAct::new("bump", caller), &context, &mut steps, candidates, |plan, judged| {
                let hints = plan.find_variants(&component, &key);
                let chosen = match variant.as_deref() {
                    Some(variant) => hints.iter().find(|hint| hint.variant() == variant).cloned(),
                    None if context.is_empty() && hints.len() > 1 => {
                        return Err(Error::invalid(
                            "The key has several variants; pass the context used for get, or `variant`.",
                        )
                        .about("variant"));
                    }
                    None if context.is_empty() => hints.first().cloned(),
                    None => {
                        let found = pick_variant(&hints, &context, plan.now, judged)?;
                        if found.is_none() {
                            unfit = Some((hints.clone(), plan.now));
                        }
                        found.map(|found| Arc::clone(found.hint()))
                    }
                };
                // A repeated call about a secret that the journal does not have must not count a use of another hint.
                let counts = |hint: &Arc<Hint>| match caller.made {
                    Some(EarlierCall::Lost(version)) => hint.is_secret() && hint.version() == version,
                    Some(EarlierCall::Dropped) | None => true,
                };
                let chosen = chosen.filter(counts).ok_or_else(|| {
                    unknown = unfit.is_none();
                    no_such_variant()
                })?;
                if caller.made == Some(EarlierCall::Dropped) {
                    return Ok(BumpResult { hint: chosen });
                }
                Ok(BumpResult { hint: plan.put_hint(add_uses(&chosen, delta, plan.now)) })
            });
        match unfit {
            // The error is made after the writer lock is released, because making it takes long.
            Some((hints, now)) if !hints.is_empty() => Err(none_fits(&hints, &context, now, &mut steps)?),
            Some(_) => Err(self.nothing_found(&component, &key)),
            None if unknown => Err(self.no_such_hint(&component, &key)),
            None => written,
        }
    }
}

/// Returns the hint after `delta` more uses at `now`.
pub(super) fn add_uses(hint: &Hint, delta: u64, now: i64) -> Hint {
    let mut hint = hint.clone();
    let usage = hint.usage();
    hint.set_usage(HintUsage { count: usage.count.saturating_add(delta), last: Some(now), ..usage });
    hint
}
