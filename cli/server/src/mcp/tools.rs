//! The tools that a client is offered: the rows of `nudge.methods`, from any server that answers. So a PROXY offers the
//! methods of its PRIMARY, also those unknown to itself, and after a promotion those of the next PRIMARY.

use std::sync::Arc;

use nudge::{ContextUse, Error, Result};
use nudge_app::sources;
use nudge_core::service::{METHODS, MethodInfo, MethodInfos, tool_name};
use nudge_core::table::NOT_FOR_MODELS;
use rmcp::model::{MetaObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::session::backend::CallBackend;
use crate::session::status::to_methods_params;

/// The tools that one server offers.
#[derive(Debug, Default)]
pub struct OfferedTools {
    /// The method behind each.
    methods: Vec<ToolMethod>,
    /// The lines that the sources in use add to the instructions.
    pub guides: Vec<String>,
    /// Is true when hints are kept for next time, if the server says so.
    pub keeps: Option<bool>,
}

/// The method behind a tool.
#[derive(Debug, Clone)]
pub struct ToolMethod {
    /// The method that it calls.
    pub method: String,
    /// How its context is filled in.
    pub context: ContextUse,
}

impl OfferedTools {
    /// Asks for the tools that are offered now.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when no server answers.
    pub async fn ask_backend(backend: &CallBackend) -> Result<Self> {
        /// The part of each row that is kept.
        #[derive(Deserialize)]
        struct MethodsAnswer {
            methods: Vec<MethodRow>,
            guides: Vec<String>,
            keeps: Option<bool>,
        }
        #[derive(Deserialize)]
        struct MethodRow {
            name: String,
            tool: bool,
            context: ContextUse,
        }
        let MethodsAnswer { methods, guides, keeps } = ask_methods(backend, false).await?;
        let rows = methods.into_iter().filter(|row| row.tool);
        let methods = rows.map(|MethodRow { name: method, context, .. }| ToolMethod { method, context }).collect();
        Ok(Self { methods, guides, keeps })
    }

    /// Asks the same with the list of tools: their schemas are large, and are not kept.
    ///
    /// # Errors
    /// As [`ask_backend`](Self::ask_backend).
    pub async fn ask_with_list(backend: &CallBackend) -> Result<(Self, Vec<Tool>)> {
        let told: MethodInfos = ask_methods(backend, true).await?;
        Ok((Self::from_infos(&told), told.methods.into_iter().filter(|row| row.tool).map(to_tool).collect()))
    }

    fn from_infos(told: &MethodInfos) -> Self {
        let rows = told.methods.iter().filter(|row| row.tool);
        let methods = rows.map(|row| ToolMethod { method: row.name.clone(), context: row.context }).collect();
        Self { methods, guides: told.guides.clone(), keeps: told.keeps }
    }

    /// Returns the method behind a name: that of the tool, or that of the method itself, for clients that know it.
    pub fn find_method(&self, name: &str) -> Option<&ToolMethod> {
        let is_named = |tool: &&ToolMethod| {
            tool.method == name || tool.method.len() == name.len() && tool_name(&tool.method) == name
        };
        self.methods.iter().find(is_named)
    }
}

/// Asks the server for its methods.
async fn ask_methods<T: DeserializeOwned>(backend: &CallBackend, schemas: bool) -> Result<T> {
    let told = backend.call(METHODS, &to_methods_params(schemas)).await?;
    serde_json::from_str(told.get()).map_err(|_| {
        Error::unavailable("The server lists its methods in a form that is not known here; start it again.")
    })
}

fn to_tool(row: MethodInfo) -> Tool {
    let name = row.tool_name();
    let annotations = ToolAnnotations::new()
        .read_only(row.read_only)
        .destructive(row.destructive)
        .idempotent(row.idempotent)
        .open_world(false);
    let is_further = sources::list_sources().first().is_none_or(|hints| row.source.as_deref() != Some(hints.name));
    let schema = for_models(row.params, is_further);
    let tool = Tool::new(name, row.description, Arc::new(schema)).with_title(row.title).with_annotations(annotations);
    if row.frequent { at_once(tool) } else { tool }
}

/// Returns the params as a model reads them, without those for people and programs: a model pays for each of them at
/// every start. Only the first source's tools describe the context.
fn for_models(mut params: Map<String, Value>, is_further: bool) -> Map<String, Value> {
    if let Some(Value::Object(properties)) = params.get_mut("properties") {
        properties.retain(|_, schema| schema[NOT_FOR_MODELS] != true);
        if let Some(Value::Object(context)) = properties.get_mut("context").filter(|_| is_further) {
            context.remove("description");
        }
    }
    params
}

/// A tool that is loaded at once: otherwise Claude Code hides tools until they are searched for.
pub fn at_once(tool: Tool) -> Tool {
    tool.with_meta(MetaObject(Map::from_iter([("anthropic/alwaysLoad".to_owned(), Value::Bool(true))])))
}
