//! `nudge.outcome`

use std::sync::Arc;

use nudge_core::clock::Millis;
use nudge_core::error::Result;
use nudge_core::once::Recordable;
use nudge_core::service::Caller;
use nudge_core::steps::Steps;
use nudge_core::suggest::{CommandOutcome, OUTCOME, Outcome};
use nudge_core::table::{Row, answer};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::bump::used;
use super::set::redacted;
use super::suggest::id;
use crate::cache::{Act, Nudge};
use crate::hint::{Hint, NAME, Use};
use crate::ran::{Ended, Ran};
use crate::scoring;
use crate::store::Judged;

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
    /// Counts how a command ended, for the hints that say it (semantics section 10).
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

    /// Counts an outcome for the eligible hints of which it says something. Lines are read and scopes judged before it
    /// is this writer's turn, so that no other waits meanwhile.
    pub(crate) fn count_outcome(&self, by: Caller<'_>, outcome: &CommandOutcome<'_>) -> Result<Matched> {
        let found = self.concerned(outcome, &mut by.steps())?;
        self.write(Act::new("outcome", by), |plan| {
            let mut matched = Vec::with_capacity(found.len());
            for (hint, ended) in &found {
                // It may have been changed meanwhile. With another value it is another command, or not yet tried.
                let stored = plan.variants(hint.component(), hint.key());
                let same = |stored: &Arc<Hint>| stored.variant() == hint.variant() && stored.value() == hint.value();
                if let Some(hint) = stored.into_iter().find(same) {
                    matched.push(MatchedHint(plan.put(after(&hint, *ended, plan.now))));
                }
            }
            Ok(Matched { matched })
        })
    }

    /// Returns the eligible hints that an outcome says something of, in order of component, key and variant.
    fn concerned(&self, outcome: &CommandOutcome<'_>, steps: &mut Steps) -> Result<Vec<(Arc<Hint>, Ended)>> {
        let ran = Ran::new(outcome, steps)?;
        let mut judged: Vec<_> = ran.places().iter().map(|place| (place, Judged::default())).collect();
        let mut found = Vec::new();
        for hint in self.store.all() {
            let Some(line) = hint.value().command_line() else { continue };
            let Some(ended) = ran.says_of(line, steps)? else { continue };
            let (place, judged) = &mut judged[ended.place];
            if judged.judge(&hint.scope, place, steps)? {
                found.push((hint, ended));
            }
        }
        found.sort_by(|(a, _), (b, _)| scoring::compare_names(b, a));
        Ok(found)
    }
}

/// The hint after its command has ended.
fn after(hint: &Hint, ended: Ended, now: Millis) -> Hint {
    let mut hint = if ended.ok { used(hint, 1, now) } else { hint.clone() };
    let usage = hint.usage();
    hint.set_usage(if ended.ok {
        Use { failures: 0, ..usage }
    } else {
        let failures = if matches!(ended.exit_code, Some(126 | 127)) { CANNOT_RUN } else { 1 };
        Use { failures: usage.failures.saturating_add(failures), last_failed: Some(now), ..usage }
    });
    hint
}

impl Matched {
    /// Returns the ids by which suggestions name the hints.
    pub(crate) fn ids(&self) -> Vec<Box<str>> {
        self.matched.iter().map(|hint| id(&hint.0)).collect()
    }
}
