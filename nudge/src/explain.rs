//! Lists the reasons for a match, in the words of semantics section 3.

use nudge_core::clock::Millis;
use nudge_core::context::Context;
use nudge_core::steps::{StepBudget, TooMany};

use crate::hint::Hint;

/// Returns the reasons for a hint that fits.
pub(crate) fn collect_reasons(
    hint: &Hint,
    context: &Context,
    now: Millis,
    steps: &mut StepBudget,
) -> Result<Vec<String>, TooMany> {
    let conditions = hint.scope().evaluate_conditions(context, steps)?;
    // The capacity is enough for all reasons, so that the list is allocated only once.
    let mut out = Vec::with_capacity(conditions.len() + 6);
    out.extend(conditions.into_iter().map(|condition| condition.reason));
    if hint.scope().is_empty() {
        out.push("no scope: applies everywhere".into());
    }
    if let (Some(used), true) = (hint.last_used_at(), hint.use_count() > 0) {
        let minutes = now.saturating_sub(used).max(0) / 60_000;
        out.push(if minutes < 60 {
            format!("recently used ({minutes}m ago)")
        } else {
            format!("used {}h ago", minutes / 60)
        });
    }
    match hint.use_count() {
        0 => {}
        1 => out.push("used once".into()),
        count => out.push(format!("used {count} times")),
    }
    if let Some(priority) = hint.priority().filter(|&priority| priority >= 8) {
        out.push(format!("priority {priority}/10"));
    }
    if let Some(confidence) = hint.confidence().filter(|&confidence| confidence >= 0.8) {
        out.push(format!("confidence {}", (confidence * 1e4).round() / 1e4));
    }
    if let Some(path) = context.open_file_in(hint.component()) {
        out.push(["open file ", path, " is in ", hint.component()].concat());
    }
    match hint.failure_count() {
        0 => {}
        1 => out.push("failed once since it last worked".into()),
        count => out.push(format!("failed {count} times since it last worked")),
    }
    Ok(out)
}

/// Returns the only reason why a hint does not fit: the first condition that is not met.
pub(crate) fn failed_reason(hint: &Hint, context: &Context, steps: &mut StepBudget) -> Result<Vec<String>, TooMany> {
    let failed = hint.scope().evaluate_conditions(context, steps)?.into_iter().find(|condition| !condition.met);
    Ok(failed.map(|condition| condition.reason).into_iter().collect())
}
