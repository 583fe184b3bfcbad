//! `nudge.list_components`: lists the components.

use nudge_core::service::MethodSpec;
use nudge_core::table::{NoParams, TableRow, answer_typed, build_schema};
use serde::Serialize;

use super::report;
use crate::cache::Nudge;

const ABOUT: &str = "Every component with how many hints it has.";

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.list_components", "List components", ABOUT, build_schema::<NoParams>)
        .tool()
        .read_only()
        .vital()
        .with_report(report::report_components),
    run: |nudge, _, params| answer_typed(params, |_: NoParams| Ok(nudge.components())),
};

/// Result of [`Nudge::components`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComponentList {
    /// The components, in byte order of their names.
    pub components: Vec<ComponentCount>,
}

/// A component and its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComponentCount {
    /// The component's name.
    pub name: String,
    /// The number of the component's live hints; each variant counts.
    pub hint_count: usize,
}

impl Nudge {
    /// Lists the components, each with the number of its hints. Expired hints do not count.
    pub fn components(&self) -> ComponentList {
        let counts = self.store.count_live(self.now()).into_iter();
        let mut components: Vec<_> =
            counts.map(|(name, hint_count)| ComponentCount { name: String::from(&*name), hint_count }).collect();
        components.sort_by(|a, b| a.name.cmp(&b.name));
        ComponentList { components }
    }
}
