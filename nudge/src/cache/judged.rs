//! Writes whose plan depends on which scopes fit a context.

use std::cell::Cell;
use std::sync::Arc;

use nudge_core::context::Context;
use nudge_core::error::{Error, Result};
use nudge_core::once::RecordableResult;
use nudge_core::steps::StepBudget;

use super::{Nudge, WriteAct, WritePlan};
use crate::hint::Hint;
use crate::store::ScopeVerdicts;

impl Nudge {
    /// Writes as [`Nudge::write`] does, for a plan that depends on which scopes fit `context`. The scopes of the
    /// `candidates` are judged before the writer lock is taken, so that no other writer waits for that. `plan` looks up
    /// the verdicts. If a verdict is missing because a hint was stored in between, the write starts again.
    pub(crate) fn write_judged<T: RecordableResult, C: IntoIterator<Item = Arc<Hint>>>(
        &self,
        act: WriteAct<'_>,
        context: &Context,
        steps: &mut StepBudget,
        candidates: impl Fn() -> C,
        mut plan: impl FnMut(&mut WritePlan<'_>, &dyn Fn(&Arc<Hint>) -> Result<bool>) -> Result<T>,
    ) -> Result<T> {
        let mut judged = ScopeVerdicts::default();
        loop {
            for hint in candidates() {
                judged.judge_scope(&hint.scope, context, steps)?;
            }
            let late = Cell::new(false);
            let verdict = |hint: &Arc<Hint>| {
                judged.get_verdict(&hint.scope).ok_or_else(|| {
                    late.set(true);
                    Error::conflict("A hint was stored meanwhile; make the call again.")
                })
            };
            let written = self.write(act, |open| plan(open, &verdict));
            if written.is_ok() || !late.get() {
                return written;
            }
        }
    }
}
