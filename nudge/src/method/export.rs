//! `nudge.export`: returns the store as one JSON document.

use std::collections::BTreeMap;
use std::sync::Arc;

use nudge_core::error::{Error, Result};
use nudge_core::service::MethodSpec;
use nudge_core::table::{TableRow, answer_typed, build_schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cache::Nudge;
use crate::hint::{Hint, check_name};
use crate::snapshot::ExportPayload;

const ABOUT: &str = "The whole store, or one component, as JSON that nudge_import accepts. Secret hints are left out.";

/// The bytes of hints after which a page of an export ends.
const PAGE_BYTES: usize = 8 << 20;

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.export", "Export hints", ABOUT, build_schema::<ExportHints>)
        .tool()
        .read_only()
        .file(),
    run: |nudge, _, params| answer_typed(params, |params| nudge.export(&params)),
};

/// Params of [`Nudge::export`].
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExportHints {
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
    /// Is true to include hints that have expired by a clock that is not plausible. The server uses this when it writes
    /// the file of kept hints.
    #[serde(deserialize_with = "wire::given_or_default")]
    #[schemars(skip)]
    pub with_waiting: bool,
    /// The component after which a page begins; empty for the first page. A page has whole components and ends after
    /// about 8 MiB. The first page also has the payload's other members. The command line uses pages to print a store
    /// of any size.
    #[serde(deserialize_with = "wire::given")]
    #[schemars(skip)]
    pub after: Option<String>,
}

/// Result of [`Nudge::export`].
#[derive(Debug, Clone, Serialize)]
pub struct ExportResult {
    /// The store, in the format of semantics section 13.
    pub payload: ExportPayload,
    /// The number of secret hints that were left out.
    pub omitted_secrets: usize,
    /// The `after` for the next page. Absent if the call did not ask for a page, or if there is no further page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Nudge {
    /// Exports the store, or one component (semantics section 6). Components and keys are in byte order.
    ///
    /// # Errors
    /// `E_INVALID`, `E_NOT_FOUND` for an unknown component.
    pub fn export(&self, params: &ExportHints) -> Result<ExportResult> {
        if params.format.as_deref().is_some_and(|format| format != "json") {
            return Err(Error::invalid("`format` must be `json`.").about("format"));
        }
        let mut hints = match &params.component {
            None => self.store.list_all(),
            Some(component) => {
                check_name("component", component)?;
                self.store.list_component(component)
            }
        };
        let now = self.now();
        hints.retain(|hint| if params.with_waiting { !self.has_ended(hint) } else { !hint.is_expired(now) });
        if let (true, Some(component)) = (hints.is_empty(), &params.component) {
            return Err(self.no_such_component(component));
        }
        let next = params.after.as_deref().and_then(|after| retain_page(&mut hints, after));
        let all = hints.len();
        hints.retain(|hint| params.include_secrets || !hint.is_secret());
        let omitted_secrets = all - hints.len();
        let is_first = params.after.as_ref().is_none_or(String::is_empty);
        let extra = if params.component.is_none() && is_first { self.extra() } else { None };
        Ok(ExportResult {
            payload: ExportPayload::new(hints, &self.session_id, self.created_at, extra),
            omitted_secrets,
            next,
        })
    }
}

/// Keeps only the hints of the page that begins after the component `after`. Returns the `after` of the next page, if
/// there is one.
fn retain_page(hints: &mut Vec<Arc<Hint>>, after: &str) -> Option<String> {
    hints.retain(|hint| *hint.component > *after);
    let mut components: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for hint in hints.iter() {
        *components.entry(Arc::clone(&hint.component)).or_default() += hint.bytes as usize;
    }
    let mut bytes = 0;
    let is_last = |(_, of_component): &(&Arc<str>, &usize)| {
        bytes += **of_component;
        bytes >= PAGE_BYTES
    };
    let (last, _) = components.iter().find(is_last)?;
    hints.retain(|hint| hint.component <= *last);
    (components.last_key_value()?.0 != last).then(|| last.to_string())
}
