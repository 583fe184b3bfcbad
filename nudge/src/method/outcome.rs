//! `nudge.outcome`

use std::fmt;
use std::sync::Arc;

use nudge_core::context::ContextSpec;
use nudge_core::error::{Error, Result};
use nudge_core::once::Recordable;
use nudge_core::service::{Caller, Method};
use nudge_core::table::{Row, answer, schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::bump::used;
use super::set::redacted;
use crate::cache::{Act, Nudge};
use crate::hint::{Hint, Use};
use crate::scoring;

const MAX_COMMAND_BYTES: usize = 64 << 10;
/// What a command that is not found, or not executable, counts for.
const CANNOT_RUN: u32 = 3;

const ABOUT: &str = "How a command ended: success raises the hints that say it, repeated failure puts them last.";

pub(super) static ROW: Row<Nudge> = Row {
    method: Method::new("nudge.outcome", "Report an outcome", ABOUT, schema::<Outcome>).inferred().quick(),
    run: |nudge, by, params| answer(params, |params| nudge.outcome_by(by, params)),
};

/// Params of [`Nudge::outcome`].
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The command that ran.
    pub command: String,
    /// Whether it worked.
    pub ok: bool,
    /// Its exit code, if known.
    #[serde(default, deserialize_with = "wire::given")]
    pub exit_code: Option<i64>,
    /// Where it ran.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
    /// The agent's session, as it calls itself for `nudge.suggest`.
    #[serde(default, deserialize_with = "wire::given")]
    pub client_session: Option<String>,
}

/// Without the command, which may hold a secret.
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outcome(ok {}, exit code {:?})", self.ok, self.exit_code)
    }
}

/// Result of [`Nudge::outcome`].
#[derive(Debug, Clone, Serialize)]
pub struct Matched {
    /// The hints it changed, in order of component, key and variant.
    pub matched: Vec<MatchedHint>,
}

/// A changed hint; a secret value is redacted on the wire.
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
    /// Counts how a command ended, for the eligible hints that say it (semantics section 10).
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn outcome(&self, params: Outcome) -> Result<Matched> {
        self.outcome_by(Caller::default(), params)
    }

    fn outcome_by(&self, by: Caller<'_>, params: Outcome) -> Result<Matched> {
        if params.command.len() > MAX_COMMAND_BYTES {
            return Err(Error::invalid("command may have 64 KiB at most."));
        }
        let context = params.context.build()?;
        let ran: Vec<_> = params.command.split_whitespace().collect();
        let failures = if matches!(params.exit_code, Some(126 | 127)) { CANNOT_RUN } else { 1 };
        let says_it = |hint: &Arc<Hint>| {
            hint.value().command_line().is_some_and(|line| line.split_whitespace().eq(ran.iter().copied()))
                && hint.scope.matches(&context)
        };
        let done = self.write(Act::new("outcome", by), |plan| {
            let mut hints: Vec<_> = plan.all().into_iter().filter(|hint| !ran.is_empty() && says_it(hint)).collect();
            hints.sort_by(|a, b| scoring::compare_names(b, a));
            let changed = hints.iter().map(|hint| {
                let mut hint = if params.ok { used(hint, 1, plan.now) } else { Hint::clone(hint) };
                let usage = hint.usage();
                hint.set_usage(if params.ok {
                    Use { failures: 0, ..usage }
                } else {
                    Use { failures: usage.failures.saturating_add(failures), last_failed: Some(plan.now), ..usage }
                });
                MatchedHint(plan.put(hint))
            });
            Ok(Matched { matched: changed.collect() })
        })?;
        if let Some(name) = &params.client_session {
            let hints: Vec<_> = done.matched.iter().map(|hint| &*hint.0).collect();
            self.shown.lock().ended(name, &hints, params.ok, self.now());
        }
        Ok(done)
    }
}
