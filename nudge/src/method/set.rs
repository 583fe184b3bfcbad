//! `nudge.set_hint`: stores a hint.

use std::sync::Arc;

use nudge_core::context::ContextSpec;
use nudge_core::error::{Error, Result};
use nudge_core::once::RecordableResult;
use nudge_core::scope::ScopeSpec;
use nudge_core::service::{Caller, EarlierCall, MethodSpec};
use nudge_core::table::{TableRow, answer_typed, build_schema};
use nudge_core::text::before_mark;
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::report;
use crate::cache::{Nudge, WriteAct};
use crate::hint::{Hint, HintMeta, HintOrigin, HintUsage, HintValue};
use crate::method::suggest::explain_weak;
use crate::missing::no_such_variant;

const ABOUT: &str = "\
Remember one small fact that took effort to find: a command that works, a path, toggle. Scope it if it \
holds only somewhere: each scope is a variant. meta.tags: 3-6 words to find it, in the user's language too, `fix` \
for a mend (see nudge://examples). No secrets.";

/// The longest author's name that Nudge writes into a hint, in bytes.
const MAX_SIGNATURE: usize = 64;

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.set_hint", "Store a hint", ABOUT, build_schema::<SetHint>)
        .frequent()
        .takes_repository()
        .vital()
        .with_report(report::report_stored),
    run: |nudge, caller, params| answer_typed(params, |params| nudge.set_by(caller, params)),
};

/// Params of [`Nudge::set`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetHint {
    /// A service, module or folder.
    pub component: String,
    /// The subject, such as `build`.
    pub key: String,
    /// A string, or {type:command, cmd, shell?}, {type:path, abs, os?}, {type:template, format, body, defaults?}, {type:json, data}.
    pub value: HintValue,
    /// More about it.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub meta: HintMeta,
    /// Refuse unless this is the stored version; 0: none.
    #[serde(default, deserialize_with = "wire::given")]
    pub if_match_version: Option<u64>,
    /// Update this one, keep its scope; `""`: unscoped.
    #[serde(default, deserialize_with = "wire::given")]
    pub variant: Option<String>,
    /// The secret guard's finding is a false alarm.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub allow_secret: bool,
    /// Beyond this repository.
    #[serde(default, deserialize_with = "wire::given")]
    pub reach: Option<HintReach>,
    /// The caller's place: its `repo` limits a hint without a scope, a variant and a reach.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    #[schemars(extend("x-not-for-models" = true))]
    pub context: ContextSpec,
}

/// The reach of a hint without a scope. Without a reach, such a hint is limited to the repository of the `context`, if
/// the context names one. Front ends fill in the repository of their caller (semantics section 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HintReach {
    /// Everywhere.
    Everywhere,
}

impl SetHint {
    /// Makes params with defaults for all other fields.
    pub fn new(component: impl Into<String>, key: impl Into<String>, value: impl Into<HintValue>) -> Self {
        Self {
            component: component.into(),
            key: key.into(),
            value: value.into(),
            meta: HintMeta::default(),
            if_match_version: None,
            variant: None,
            allow_secret: false,
            reach: None,
            context: ContextSpec::default(),
        }
    }
}

/// Result of [`Nudge::set`].
#[derive(Debug, Clone, Serialize)]
pub struct SetResult {
    /// The stored hint. A secret value is redacted in JSON.
    #[serde(serialize_with = "serialize_redacted")]
    pub hint: Arc<Hint>,
    /// The number of variants that the key has now.
    pub variants: usize,
    /// True when the stored hint had the same content before. Only its version and its time have changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
    /// The hint that this one replaces. Present if the old hint had another value, or if it was a person's and the
    /// caller is an agent. `undo` restores it. A secret value is redacted in JSON.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "redacted_if_any")]
    pub previous: Option<Arc<Hint>>,
    /// For an agent that has replaced a person's hint: a sentence that says so and tells how to undo it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// A sentence that says that the hint was limited to the repository of the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<String>,
    /// For a hint with a duration that is not secret: true when the hint will be kept for the next session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
    /// The reason why the hint will not be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeping: Option<String>,
    /// A sentence that says that the start of a session will not suggest the hint, and how to change that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telling: Option<String>,
}

/// The result for a secret is never recorded. A repeated call computes it again.
impl RecordableResult for SetResult {
    fn without_secrets(&self) -> serde_json::Result<Option<Box<RawValue>>> {
        Ok(None)
    }
}

pub(super) fn serialize_redacted<S: Serializer>(hint: &Arc<Hint>, serializer: S) -> Result<S::Ok, S::Error> {
    hint.as_redacted().serialize(serializer)
}

// serde requires this signature.
#[allow(clippy::ref_option)]
fn redacted_if_any<S: Serializer>(hint: &Option<Arc<Hint>>, serializer: S) -> Result<S::Ok, S::Error> {
    hint.as_ref().map(|hint| hint.as_redacted()).serialize(serializer)
}

/// Makes the author's name for an agent's hint without one, because a reader of an agent's hint needs to know the
/// author.
fn make_signature(caller: Caller<'_>) -> Option<String> {
    // The client's version is left out.
    let name = before_mark(caller.name, &['/']);
    let plain = |c: char| c.is_ascii_alphanumeric() || " ._-".contains(c);
    let is_one = caller.agent && !name.is_empty() && name.len() <= MAX_SIGNATURE && name.chars().all(plain);
    is_one.then(|| format!("agent:{name}"))
}

/// Refuses an agent's hint that names a person as its source (semantics section 7).
pub(super) fn check_source(by_agent: bool, meta: &HintMeta) -> Result<()> {
    if by_agent && meta.source == Some(HintOrigin::User) {
        return Err(Error::invalid(
            "`meta.source` may not be `user`, which is for what a person stores; leave it out, or say `agent`.",
        )
        .about("meta.source"));
    }
    Ok(())
}

fn explain_limit(repo: &str) -> String {
    format!(
        "it applies in {repo} alone, as it was stored there without a scope; `reach: everywhere` (--everywhere) stores it \
         for everywhere"
    )
}

fn undo_note(id: u64) -> String {
    format!("This replaced what a person had stored, see `previous`; the command `nudge undo {id}` brings it back.")
}

impl Nudge {
    /// Stores a hint, or updates the variant with an equal scope (semantics section 1).
    ///
    /// # Errors
    /// In this order: `E_INVALID`, `E_SCOPE_INVALID`, `E_SECRET_REJECTED`, `E_NOT_FOUND` (unknown `variant`),
    /// `E_CONFLICT`, `E_QUOTA`.
    pub fn set(&self, params: SetHint) -> Result<SetResult> {
        self.set_by(Caller::default(), params)
    }

    fn set_by(&self, caller: Caller<'_>, mut params: SetHint) -> Result<SetResult> {
        if params.variant.is_some() && params.meta.scope != ScopeSpec::default() {
            return Err(Error::invalid("Give `variant` to keep a scope or `meta.scope` to name one, not both.")
                .about("variant")
                .about("meta.scope"));
        }
        if params.reach.is_some() && (params.variant.is_some() || params.meta.scope != ScopeSpec::default()) {
            return Err(
                Error::invalid("Give `reach` for a hint without a scope, not beside one or a variant.").about("reach")
            );
        }
        let spec = std::mem::take(&mut params.context);
        let repo = if spec.is_empty() { None } else { spec.build()?.repo() };
        check_source(caller.agent, &params.meta)?;
        let is_open = params.variant.is_none() && params.reach.is_none() && params.meta.scope == ScopeSpec::default();
        let reach = repo.filter(|_| is_open).map(|repo| {
            let told = explain_limit(&repo);
            params.meta.scope.repo.push(repo);
            told
        });
        if params.meta.added_by.is_none() {
            params.meta.added_by = make_signature(caller);
        }
        let scope =
            self.check_input(&params.component, &params.key, &mut params.value, &mut params.meta, params.allow_secret)?;
        let SetHint { component, key, value, meta, if_match_version, variant, .. } = params;
        self.write(WriteAct::new_adding("set", caller), |plan| {
            let variants = plan.find_variants(&component, &key);
            let wanted = variant.as_deref().unwrap_or(scope.variant());
            let old = variants.iter().find(|hint| hint.variant() == wanted);
            if let (Some(_), Some(stands)) = (caller.made, old) {
                // A repeated call finds the hint that the first call stored, or a later one.
                let (variants, hint) = (variants.len(), Arc::clone(stands));
                let kept = plan.trash().replaced_by(&hint);
                let note = kept.as_ref().filter(|(_, old)| plan.must_keep(old)).map(|(id, _)| undo_note(*id));
                let previous = kept.map(|(_, old)| old);
                return Ok(SetResult { previous, note, reach, ..self.to_set_result(hint, variants) });
            }
            let lost = match caller.made {
                Some(EarlierCall::Lost(version)) => Some(version),
                Some(EarlierCall::Dropped) => {
                    return Err(Error::not_found("This call stored it before; it is gone since."));
                }
                None => None,
            };
            // The scope of a lost secret is unknown, except the empty scope of the unscoped variant.
            let again = lost.is_some() && wanted == scope.variant();
            if variant.is_some() && old.is_none() && !again {
                return Err(no_such_variant());
            }
            let current = old.map_or(0, |hint| hint.version);
            if lost.is_none() && if_match_version.is_some_and(|version| version != current) {
                return Err(Error::conflict(
                    "The hint has another version; read it again, then set it with its current version.",
                )
                .with_data("current_version", current));
            }
            let scope = old.map_or(scope, |hint| Arc::clone(&hint.scope));
            let mut hint = Hint::new(component.into(), &key, value, meta, scope, plan.now);
            hint.version = lost.unwrap_or(hint.version);
            let mut kept = None;
            if let Some(old) = old {
                let same = old.value() == hint.value();
                hint.version = old.version.saturating_add(1);
                hint.created_at = old.created_at;
                // The counts of the old value do not apply to a new value.
                hint.set_usage(if same { old.usage() } else { HintUsage::default() });
                kept = (!same || plan.must_keep(old)).then(|| plan.keep_replaced(old));
            }
            let note = kept.zip(old).filter(|(_, old)| plan.must_keep(old)).map(|(id, _)| undo_note(id));
            let previous = old.filter(|_| kept.is_some()).cloned();
            let unchanged = old.is_some_and(|old| old.says_the_same(&hint));
            let variants = variants.len() + usize::from(old.is_none());
            Ok(SetResult { unchanged, previous, note, reach, ..self.to_set_result(plan.put_hint(hint), variants) })
        })
    }

    /// Makes the result for a stored hint. The result says whether the hint will be kept.
    fn to_set_result(&self, hint: Arc<Hint>, variants: usize) -> SetResult {
        let checked = (hint.has_expiry() && !hint.is_secret()).then(|| self.check_keeping());
        let kept = checked.as_ref().map(Result::is_ok);
        let keeping = checked.and_then(Result::err);
        let telling = explain_weak(&hint);
        SetResult { hint, variants, unchanged: false, previous: None, note: None, reach: None, kept, keeping, telling }
    }
}
