//! The tools that a client is offered: the rows of `nudge.methods`, whoever answers it. So a PROXY offers what its
//! PRIMARY has, also what it does not know itself, and what the next PRIMARY has after a promotion.

use std::collections::HashMap;
use std::sync::Arc;

use nudge::{ContextUse, ErrorKind};
use rmcp::model::{MetaObject, Tool, ToolAnnotations};
use serde_json::{Map, Value};

use crate::server::session::backend::Backend;
use crate::server::session::changes::no_params;
use crate::server::session::status::{METHODS, MethodInfo, MethodInfos};
use crate::sources;

/// What one server offers.
#[derive(Default)]
pub struct OfferedTools {
    /// As they are listed.
    pub list: Vec<Tool>,
    /// By the name of the tool, and by that of the method for clients that know it.
    pub by_name: HashMap<String, ToolMethod>,
    /// What each source in use adds to the instructions.
    pub guides: Vec<String>,
}

/// What is behind a tool.
#[derive(Debug, Clone)]
pub struct ToolMethod {
    /// The method that it calls.
    pub method: String,
    /// How its context is filled in.
    pub context: ContextUse,
}

impl OfferedTools {
    /// Asks what is offered now.
    pub async fn ask(backend: &Backend) -> Self {
        match backend.call(METHODS, &no_params()).await {
            Ok(told) => serde_json::from_str::<MethodInfos>(told.get())
                .map(|told| Self::new(told.methods, told.guides))
                .unwrap_or_default(),
            // An older PRIMARY, of before there were sources, has hints alone.
            Err(error) if error.kind() == ErrorKind::UnknownMethod => {
                let hints = sources::all().first();
                let rows = hints.map(|hints| (hints.methods)()).unwrap_or_default();
                Self::new(rows.into_iter().map(|row| MethodInfo::new(row, None, true)).collect(), Vec::new())
            }
            Err(error) => {
                tracing::warn!(error = error.message(), "nobody says which tools there are");
                Self::default()
            }
        }
    }

    fn new(methods: Vec<MethodInfo>, guides: Vec<String>) -> Self {
        let mut offered = Self { guides, ..Self::default() };
        for row in methods.into_iter().filter(|row| row.tool) {
            // Hosts reject dots in names.
            let tool_name = row.name.replace('.', "_");
            let behind = ToolMethod { method: row.name.clone(), context: row.context };
            offered.by_name.insert(row.name.clone(), behind.clone());
            offered.by_name.insert(tool_name.clone(), behind);
            offered.list.push(tool(tool_name, row));
        }
        offered
    }
}

fn tool(name: String, row: MethodInfo) -> Tool {
    let annotations = ToolAnnotations::new()
        .read_only(row.read_only)
        .destructive(row.destructive)
        .idempotent(row.idempotent)
        .open_world(false);
    let tool =
        Tool::new(name, row.description, Arc::new(row.params)).with_title(row.title).with_annotations(annotations);
    if row.frequent {
        // Otherwise Claude Code hides tools until they are searched for.
        tool.with_meta(MetaObject(Map::from_iter([("anthropic/alwaysLoad".to_owned(), Value::Bool(true))])))
    } else {
        tool
    }
}
