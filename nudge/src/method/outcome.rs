//! `nudge.outcome`

use std::sync::Arc;

use nudge_core::error::Result;
use nudge_core::once::Recordable;
use nudge_core::service::Caller;
use nudge_core::suggest::{CommandOutcome, OUTCOME, Outcome};
use nudge_core::table::{Row, answer};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::bump::used;
use super::set::redacted;
use super::suggest::id;
use crate::cache::{Act, Nudge};
use crate::hint::{Hint, NAME, Use};
use crate::scoring;

/// Number of failures that count for a command that is not found or not executable.
const CANNOT_RUN: u32 = 3;

pub(super) static ROW: Row<Nudge> =
    Row { method: OUTCOME.quick(), run: |nudge, by, params| answer(params, |params| nudge.outcome_by(by, params)) };

/// Result of [`Nudge::outcome`].
#[derive(Debug, Clone, Serialize)]
pub struct Matched {
    /// The changed hints, in order of component, key and variant.
    pub matched: Vec<MatchedHint>,
}

/// A changed hint; a secret value is redacted in JSON.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct MatchedHint(#[serde(serialize_with = "redacted")] pub Arc<Hint>);

impl Recordable for Matched {
    fn without_secrets(&self) -> serde_json::Result<Option<Box<RawValue>>> {
        let open = self.matched.iter().filter(|hint| !hint.0.is_secret()).cloned().collect();
        to_raw_value(&Self { matched: open }).map(Some)
    }
}

impl Nudge {
    /// Counts the outcome of a command for the eligible hints that hold it (semantics section 10).
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn outcome(&self, params: Outcome) -> Result<Matched> {
        self.outcome_by(Caller::default(), params)
    }

    fn outcome_by(&self, by: Caller<'_>, params: Outcome) -> Result<Matched> {
        let (context, params) = params.checked()?;
        let ran = params.ran(&context);
        let done = self.count_outcome(by, &ran)?;
        if let Some(session) = &params.client_session {
            self.suggester.ended(session, NAME, &done.ids(), params.ok, self.now());
        }
        Ok(done)
    }

    /// Counts an outcome for the eligible hints whose command line is the same.
    pub(crate) fn count_outcome(&self, by: Caller<'_>, outcome: &CommandOutcome<'_>) -> Result<Matched> {
        let ran: Vec<_> = outcome.command.split_whitespace().collect();
        let failures = if matches!(outcome.exit_code, Some(126 | 127)) { CANNOT_RUN } else { 1 };
        let says_it = |hint: &Arc<Hint>| {
            !ran.is_empty()
                && hint.value().command_line().is_some_and(|line| line.split_whitespace().eq(ran.iter().copied()))
        };
        let candidates = || self.store.all().into_iter().filter(says_it);
        self.write_judged(Act::new("outcome", by), outcome.context, &mut by.steps(), candidates, |plan, judged| {
            let mut hints = Vec::new();
            for hint in plan.all().into_iter().filter(says_it) {
                if judged(&hint)? {
                    hints.push(hint);
                }
            }
            hints.sort_by(|a, b| scoring::compare_names(b, a));
            let changed = hints.iter().map(|hint| {
                let mut hint = if outcome.ok { used(hint, 1, plan.now) } else { Hint::clone(hint) };
                let usage = hint.usage();
                hint.set_usage(if outcome.ok {
                    Use { failures: 0, ..usage }
                } else {
                    Use { failures: usage.failures.saturating_add(failures), last_failed: Some(plan.now), ..usage }
                });
                MatchedHint(plan.put(hint))
            });
            Ok(Matched { matched: changed.collect() })
        })
    }
}

impl Matched {
    /// Returns the ids by which suggestions name the hints.
    pub(crate) fn ids(&self) -> Vec<Box<str>> {
        self.matched.iter().map(|hint| id(&hint.0)).collect()
    }
}
