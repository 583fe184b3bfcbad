//! `nudge.env_names`: lists the environment variables on which an answer can depend.

use std::sync::Arc;

use nudge_core::context::{Context, ContextSpec, EnvNames, ask_env};
use nudge_core::error::{Error, Result};
use nudge_core::service::{ContextUse, MethodSpec};
use nudge_core::table::{TableRow, answer_typed, build_schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::query::MAX_FILTERS;
use crate::cache::Nudge;
use crate::hint::{Hint, check_name};
use crate::store::HintFilter;

const ABOUT: &str = "\
Which environment variables the scopes of the candidates of a get or query mention, so that a client sends no \
others.";

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.env_names", "Environment names", ABOUT, build_schema::<EnvNamesAsked>)
        .read_only()
        .vital(),
    run: |nudge, _, params| answer_typed(params, |params| nudge.env_names(&params)),
};

/// Params of [`Nudge::env_names`]: those of `get_hint` or of `query`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EnvNamesAsked {
    /// As in `get_hint` and `query`.
    #[serde(deserialize_with = "wire::given")]
    pub component: Option<String>,
    /// As in `get_hint`.
    #[serde(deserialize_with = "wire::given")]
    pub key: Option<String>,
    /// As in `get_hint`.
    #[serde(deserialize_with = "wire::given")]
    pub variant: Option<String>,
    /// As in `query`.
    #[serde(deserialize_with = "wire::given_or_default")]
    pub keys: Vec<String>,
    /// As in `query`.
    #[serde(deserialize_with = "wire::given_or_default")]
    pub tags: Vec<String>,
    /// Accepted and ignored: the names do not depend on it.
    #[serde(deserialize_with = "wire::given")]
    pub regex: Option<String>,
    /// Accepted and ignored: the names do not depend on it.
    #[serde(deserialize_with = "wire::given")]
    pub text: Option<String>,
    /// Accepted and ignored: the names do not depend on it.
    #[serde(deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
    /// Accepted and ignored.
    #[serde(deserialize_with = "wire::given")]
    pub limit: Option<u64>,
    /// Accepted and ignored.
    #[serde(deserialize_with = "wire::given_or_default")]
    pub include_ineligible: bool,
}

impl Nudge {
    /// Lists the environment variables that the scopes of the matching hints mention (semantics section 9).
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn env_names(&self, params: &EnvNamesAsked) -> Result<EnvNames> {
        if let Some(component) = &params.component {
            check_name("component", component)?;
        }
        if params.keys.len() > MAX_FILTERS || params.tags.len() > MAX_FILTERS {
            return Err(Error::invalid("`keys` and `tags` may have 256 entries each.").about("keys").about("tags"));
        }
        let keys = params.key.iter().chain(&params.keys).cloned().collect::<Vec<_>>();
        Ok(self.find_mentioned(params.component.as_deref(), &keys, &params.tags, params.variant.as_deref()))
    }

    /// Returns the names of variables in the scopes of the hints that pass the filters.
    fn find_mentioned(
        &self,
        component: Option<&str>,
        keys: &[String],
        tags: &[String],
        variant: Option<&str>,
    ) -> EnvNames {
        let mut out = EnvNames::default();
        if !self.looks_at_env() {
            return out;
        }
        let (now, context) = (self.now(), Context::default());
        let only = |hint: &Hint| !hint.is_expired(now) && variant.is_none_or(|variant| hint.variant() == variant);
        let scopes = match (component, keys, tags) {
            (Some(component), [key], []) => {
                let hints = self.store.find_variants(component, key).1;
                hints.iter().filter(|hint| only(hint)).map(|hint| Arc::clone(&hint.scope)).collect()
            }
            _ => self.store.list_scopes(&HintFilter {
                component,
                keys,
                tags,
                include_ineligible: true,
                only: Some(&|_, hint| only(hint)),
                ..HintFilter::for_context(&context, now)
            }),
        };
        for (name, by_value) in scopes.iter().flat_map(|scope| scope.env_names()) {
            out.names.insert(name.to_owned());
            if by_value {
                out.values.insert(name.to_owned());
            }
        }
        out
    }

    /// Refuses a call whose `context.env` lacks names that the scopes of the matching hints mention, or values that
    /// these scopes compare (semantics section 9). Accepts malformed params, which the method refuses itself.
    pub(crate) fn check_env_names(&self, context: ContextUse, params: &RawValue) -> Result<()> {
        if matches!(context, ContextUse::None | ContextUse::Repository)
            || !self.looks_at_env()
            || !params.get().starts_with('{')
        {
            return Ok(());
        }
        let Ok(asked) = serde_json::from_str::<ScopeParams>(params.get()) else { return Ok(()) };
        if asked.keys.len() > MAX_FILTERS || asked.tags.len() > MAX_FILTERS {
            return Ok(());
        }
        ask_env(&asked.context, context == ContextUse::InferredIfGiven, || {
            let keys = asked.key.iter().chain(&asked.keys).cloned().collect::<Vec<_>>();
            self.find_mentioned(asked.component.as_deref(), &keys, &asked.tags, asked.variant.as_deref())
        })
    }
}

/// The params that select the matching hints. The method itself checks the other params.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ScopeParams {
    #[serde(deserialize_with = "wire::given")]
    component: Option<String>,
    #[serde(deserialize_with = "wire::given")]
    key: Option<String>,
    #[serde(deserialize_with = "wire::given")]
    variant: Option<String>,
    #[serde(deserialize_with = "wire::given_or_default")]
    keys: Vec<String>,
    #[serde(deserialize_with = "wire::given_or_default")]
    tags: Vec<String>,
    context: Value,
}
