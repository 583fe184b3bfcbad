//! The verbs of the hints. Each file has one verb with its params, its result and its row of the method table.
//! JSON-RPC, MCP tools, the command line and every binding are built from the table.

mod bump;
mod delete;
mod env_names;
mod export;
mod get;
mod import;
mod list;
mod outcome;
mod query;
mod report;
mod set;
mod stats;
mod status;
pub(crate) mod suggest;
mod undo;
mod why;

use nudge_core::error::Result;
use nudge_core::once::OnceByKey;
use nudge_core::service::MethodSpec;
use nudge_core::table::{MethodTable, TableService};

use serde_json::value::RawValue;

use crate::cache::Nudge;

pub use crate::trash::DeletionKind;
pub use bump::{BumpHint, BumpResult};
pub use delete::{DeleteHint, DeleteResult};
pub use env_names::EnvNamesAsked;
pub use export::{ExportHints, ExportResult};
pub use get::{GetHint, GotHint};
pub use import::{ImportError, ImportHints, ImportMode, ImportResult};
pub use list::{ComponentCount, ComponentList};
pub use nudge_core::suggest::{
    DigestText, HourStats, OutcomeParams, RecallAnswer, RecallParams, SessionStats, SuggestCounts, SuggestEvent,
    SuggestParams, ToldAnswer, ToldParams,
};
pub use nudge_core::table::{NoParams, build_schema};
pub use outcome::{MatchedHint, OutcomeMatches};
pub use query::{QueryHints, QueryRow, QueryRows};
pub use set::{HintReach, SetHint, SetResult};
pub use stats::HintStats;
pub use status::{StoreLimits, StoreStatus};
pub use suggest::{SuggestedHint, Suggestion, Suggestions};
pub use undo::{Deletion, DeletionList, UndoDeletion, UndoResult};
pub use why::{ConditionMet, WhyQuestion, WhyResult, WhyVariant};

static TABLE: MethodTable<Nudge> = MethodTable(&[
    &get::ROW,
    &query::ROW,
    &set::ROW,
    &bump::ROW,
    &delete::ROW,
    &list::ROW,
    &export::ROW,
    &import::ROW,
    &suggest::ROW,
    &suggest::DIGEST_ROW,
    &suggest::TOLD_ROW,
    &suggest::RECALL_ROW,
    &outcome::ROW,
    &env_names::ROW,
    &why::ROW,
    &undo::DELETIONS,
    &undo::ROW,
    &status::ROW,
    &stats::ROW,
]);

impl TableService for Nudge {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        Some(&self.calls)
    }

    fn ask_env(&self, method: &MethodSpec, params: &RawValue) -> Result<()> {
        self.check_env_names(method.context, params)
    }
}

/// Returns the methods of the hints.
pub fn methods() -> Vec<&'static MethodSpec> {
    TABLE.methods()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_plain_and_short() {
        for method in methods() {
            let schema = (method.params)();
            let text = schema.to_string();
            assert_eq!(schema["type"], "object", "{}", method.name);
            assert_eq!(schema["additionalProperties"], false, "{}", method.name);
            for word in ["$ref", "$defs", "$schema", "title", "\"null\"", "oneOf"] {
                assert!(!text.contains(word), "{} holds {word}: {text}", method.name);
            }
        }
        // `cli/tests/mcp/server.rs` limits the size of the whole answer to `tools/list`.
        let bytes = |tool: &MethodSpec| (tool.params)().to_string().len() + tool.description.len();
        let (recall, hints): (Vec<_>, Vec<_>) =
            methods().into_iter().filter(|method| method.tool).partition(|method| method.name == "nudge.recall");
        let hints: usize = hints.into_iter().map(bytes).sum();
        assert!(hints < 6_300, "{hints} bytes");
        assert!(bytes(recall[0]) < 450, "{} bytes", bytes(recall[0]));
    }
}
