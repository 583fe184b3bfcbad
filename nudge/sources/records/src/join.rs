//! Joins two projects: one gets all records of the other.

use nudge_core::clock::Clock;
use nudge_core::context::ContextSpec;
use nudge_core::error::Error;
use nudge_core::wire;
use nudge_storage::TransactionFailure;
use nudge_storage::rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::project::{self, ProjectLocation};
use crate::rows;
use crate::write::MAX_RECORDS;

/// Params of `nudge.records.join_projects`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectJoinParams {
    /// The name of the project whose records move.
    pub from: String,
    /// The project that they move to; the context's project may have no record yet.
    pub into: String,
    /// Your context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.records.join_projects`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProjectJoin {
    /// The name of the joined project.
    pub project: String,
    /// The number of moved records.
    pub moved: usize,
}

impl ProjectJoinParams {
    /// Moves all records of `from` to `into`.
    pub fn write(
        &self,
        tx: &Transaction<'_>,
        here: Option<&ProjectLocation>,
        clock: &dyn Clock,
    ) -> Result<ProjectJoin, TransactionFailure> {
        let Some(from) = project::by_name(tx, &self.from)? else {
            let like = project::find_similar_names(tx, &self.from)?;
            let message = "No project has the name `from`; `nudge records projects` lists them.";
            return Err(Error::not_found(message).about("from").with_data("projects_like", like).into());
        };
        let (into, _) = project::for_write(tx, Some(&self.into), false, here, clock)?;
        if from == into {
            return Err(Error::invalid("`from` and `into` are one project already.")
                .about("from")
                .about("into")
                .into());
        }
        if rows::count_in_project(tx, from)? + rows::count_in_project(tx, into)? > MAX_RECORDS {
            let message = "Together they have more than 10,000 records, which is the most; merge or delete some.";
            return Err(Error::quota("records", 10_000, message).into());
        }
        let moved = project::join_projects(tx, from, into)?;
        Ok(ProjectJoin { project: project::name(tx, into)?, moved })
    }
}
