//! `nudge.outcome`: counts the end of a command for the hints that name the command.

use std::sync::Arc;

use nudge_core::clock::Millis;
use nudge_core::error::Result;
use nudge_core::once::RecordableResult;
use nudge_core::service::Caller;
use nudge_core::steps::StepBudget;
use nudge_core::suggest::{CommandOutcome, OUTCOME, OutcomeParams};
use nudge_core::table::{TableRow, answer_typed};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::bump::add_uses;
use super::set::serialize_redacted;
use super::suggest::make_told_id;
use crate::cache::{Nudge, WriteAct};
use crate::hint::{Hint, HintUsage, NAME};
use crate::ran::{CommandEnd, RanCommand};
use crate::scoring;
use crate::store::ScopeVerdicts;

/// The number of failures that are counted at once when a command was not found or not executable.
const CANNOT_RUN: u32 = 3;

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: OUTCOME.vital(),
    run: |nudge, caller, params| answer_typed(params, |params| nudge.outcome_by(caller, params)),
};

/// Result of [`Nudge::outcome`].
#[derive(Debug, Clone, Serialize)]
pub struct OutcomeMatches {
    /// The changed hints, in order of component, key and variant.
    pub matched: Vec<MatchedHint>,
}

/// A changed hint; a secret value is redacted in JSON.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct MatchedHint(#[serde(serialize_with = "serialize_redacted")] pub Arc<Hint>);

impl RecordableResult for OutcomeMatches {
    fn without_secrets(&self) -> serde_json::Result<Option<Box<RawValue>>> {
        let open = self.matched.iter().filter(|hint| !hint.0.is_secret()).cloned().collect();
        to_raw_value(&Self { matched: open }).map(Some)
    }
}

impl Nudge {
    /// Counts the outcome of a command for the hints that name it (semantics section 10).
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn outcome(&self, params: OutcomeParams) -> Result<OutcomeMatches> {
        self.outcome_by(Caller::default(), params)
    }

    fn outcome_by(&self, caller: Caller<'_>, params: OutcomeParams) -> Result<OutcomeMatches> {
        let (context, params) = params.into_checked()?;
        let ran = params.to_outcome(&context);
        let done = self.count_outcome(caller, &ran)?;
        if let Some(session) = &params.client_session {
            self.suggester.count_ended(session, NAME, &done.to_ids(), params.ok, self.now());
        }
        Ok(done)
    }

    /// Counts an outcome for the hints that fit and that name the command. Lines are parsed and scopes are judged
    /// before the writer lock is taken, so that no other writer waits for that.
    pub(crate) fn count_outcome(&self, caller: Caller<'_>, outcome: &CommandOutcome<'_>) -> Result<OutcomeMatches> {
        let found = self.find_concerned(outcome, &mut StepBudget::of_a_call())?;
        self.write(WriteAct::new("outcome", caller), |plan| {
            let mut matched = Vec::with_capacity(found.len());
            for (hint, ended) in &found {
                // Another call may have changed the hint since then. A hint with another value has another command,
                // which did not run.
                let stored = plan.find_variants(hint.component(), hint.key());
                let same = |stored: &Arc<Hint>| stored.variant() == hint.variant() && stored.value() == hint.value();
                if let Some(hint) = stored.into_iter().find(same) {
                    matched.push(MatchedHint(plan.put_hint(count_end(&hint, *ended, plan.now))));
                }
            }
            Ok(OutcomeMatches { matched })
        })
    }

    /// Returns the hints that fit and that name the command, in order of component, key and variant.
    fn find_concerned(
        &self,
        outcome: &CommandOutcome<'_>,
        steps: &mut StepBudget,
    ) -> Result<Vec<(Arc<Hint>, CommandEnd)>> {
        let ran = RanCommand::new(outcome, steps)?;
        let mut judged: Vec<_> = ran.places().iter().map(|place| (place, ScopeVerdicts::default())).collect();
        let mut found = Vec::new();
        for hint in self.store.list_all() {
            let Some(line) = hint.value().command_line() else { continue };
            let Some(ended) = ran.says_of(line, steps)? else { continue };
            let (place, judged) = &mut judged[ended.place];
            if judged.judge_scope(&hint.scope, place, steps)? {
                found.push((hint, ended));
            }
        }
        found.sort_by(|(a, _), (b, _)| scoring::compare_names(b, a));
        Ok(found)
    }
}

/// Returns the hint with its new counts after the end of its command.
fn count_end(hint: &Hint, ended: CommandEnd, now: Millis) -> Hint {
    let mut hint = if ended.ok { add_uses(hint, 1, now) } else { hint.clone() };
    let usage = hint.usage();
    hint.set_usage(if ended.ok {
        HintUsage { failures: 0, ..usage }
    } else {
        let failures = if matches!(ended.exit_code, Some(126 | 127)) { CANNOT_RUN } else { 1 };
        HintUsage { failures: usage.failures.saturating_add(failures), last_failed: Some(now), ..usage }
    });
    hint
}

impl OutcomeMatches {
    /// Returns the ids that these hints have in suggestions.
    pub(crate) fn to_ids(&self) -> Vec<Box<str>> {
        self.matched.iter().map(|hint| make_told_id(&hint.0)).collect()
    }
}
