//! `nudge.env_names`

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::query::MAX_FILTERS;
use super::{Row, answer, schema};
use crate::cache::Nudge;
use crate::context::{Context, ContextSpec};
use crate::error::{Error, Result};
use crate::hint::check_name;
use crate::service::{ContextUse, Method};
use crate::store::Filter;
use crate::wire;

pub(super) static ROW: Row = Row {
    method: Method {
        name: "nudge.env_names",
        title: "Environment names",
        description: "Which environment variables the scopes of the candidates of a get or query mention, so that a client sends no others.",
        tool: false,
        frequent: false,
        read_only: true,
        destructive: false,
        idempotent: true,
        context: ContextUse::None,
        params: schema::<EnvNamesAsked>,
    },
    run: |nudge, _, params| answer(params, |params| nudge.env_names(&params)),
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
    #[serde(deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
    /// Accepted and ignored.
    #[serde(deserialize_with = "wire::given")]
    pub limit: Option<u64>,
    /// Accepted and ignored.
    #[serde(deserialize_with = "wire::given_or_default")]
    pub include_ineligible: bool,
}

/// Result of [`Nudge::env_names`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EnvNames {
    /// Every name, in byte order.
    pub names: BTreeSet<String>,
    /// Those whose value matters (`env_match`); of the others it is enough that they are set.
    pub values: BTreeSet<String>,
}

impl Nudge {
    /// Names the environment variables that a call could depend on (contract section 9).
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn env_names(&self, params: &EnvNamesAsked) -> Result<EnvNames> {
        if let Some(component) = &params.component {
            check_name("component", component)?;
        }
        if params.keys.len() > MAX_FILTERS || params.tags.len() > MAX_FILTERS {
            return Err(Error::invalid("keys and tags may have 256 entries each."));
        }
        let keys = params.key.iter().chain(&params.keys).cloned().collect::<Vec<_>>();
        let filter = Filter {
            component: params.component.as_deref(),
            keys: &keys,
            tags: &params.tags,
            context: &Context::default(),
            include_ineligible: true,
            now: self.now(),
        };
        let mut out = EnvNames::default();
        for hint in self.store.matching(&filter) {
            if params.variant.as_deref().is_none_or(|variant| hint.variant() == variant) {
                for (name, by_value) in hint.scope.env_names() {
                    out.names.insert(name.to_owned());
                    if by_value {
                        out.values.insert(name.to_owned());
                    }
                }
            }
        }
        Ok(out)
    }
}
