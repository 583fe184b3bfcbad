//! `nudge.export`

use nudge_core::error::{Error, Result};
use nudge_core::service::Method;
use nudge_core::table::{Row, answer, schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cache::Nudge;
use crate::hint::check_name;
use crate::snapshot::Payload;

const ABOUT: &str = "The whole store, or one component, as JSON that nudge_import accepts. Secret hints are left out.";

pub(super) static ROW: Row<Nudge> = Row {
    method: Method::new("nudge.export", "Export hints", ABOUT, schema::<Export>).tool().reads(),
    run: |nudge, _, params| answer(params, |params| nudge.export(&params)),
};

/// Params of [`Nudge::export`].
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Export {
    /// `json`, the only one.
    #[serde(deserialize_with = "wire::given")]
    pub format: Option<String>,
    /// This component only.
    #[serde(deserialize_with = "wire::given")]
    #[schemars(description = "")]
    pub component: Option<String>,
    /// Secret hints too, in full.
    #[serde(deserialize_with = "wire::given_or_default")]
    pub include_secrets: bool,
    /// Also hints that have expired by a clock that is not plausible. For the server, which writes the file of kept
    /// hints.
    #[serde(deserialize_with = "wire::given_or_default")]
    #[schemars(skip)]
    pub with_waiting: bool,
}

/// Result of [`Nudge::export`].
#[derive(Debug, Clone, Serialize)]
pub struct Exported {
    /// The store, in the format of semantics section 13.
    pub payload: Payload,
    /// Number of secret hints that were left out.
    pub omitted_secrets: usize,
}

impl Nudge {
    /// Exports the store, or one component (semantics section 6). Components and keys are in byte order.
    ///
    /// # Errors
    /// `E_INVALID`, `E_NOT_FOUND` for an unknown component.
    pub fn export(&self, params: &Export) -> Result<Exported> {
        if params.format.as_deref().is_some_and(|format| format != "json") {
            return Err(Error::invalid("`format` must be `json`."));
        }
        let mut hints = match &params.component {
            None => self.store.all(),
            Some(component) => {
                check_name("component", component)?;
                self.store.component(component)
            }
        };
        let now = self.now();
        hints.retain(|hint| if params.with_waiting { !self.has_ended(hint) } else { !hint.is_expired(now) });
        if hints.is_empty() && params.component.is_some() {
            return Err(self.no_such_component(params.component.as_deref().unwrap_or_default()));
        }
        let all = hints.len();
        hints.retain(|hint| params.include_secrets || !hint.is_secret());
        let omitted_secrets = all - hints.len();
        let extra = if params.component.is_none() { self.extra() } else { None };
        Ok(Exported { payload: Payload::new(hints, &self.session_id, self.created_at, extra), omitted_secrets })
    }
}
