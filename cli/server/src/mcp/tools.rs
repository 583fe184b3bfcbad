//! The tools for a client: the rows of `nudge.methods` from the server that answers. A PROXY therefore offers all
//! methods of its PRIMARY, even methods that it does not have itself. After a promotion it offers the methods of the
//! new PRIMARY.

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

/// The tools that a server offers.
#[derive(Debug, Default)]
pub struct OfferedTools {
    /// The method behind each tool.
    methods: Vec<ToolMethod>,
    /// The lines that the sources in use add to the instructions.
    pub guides: Vec<String>,
    /// True when the server keeps hints for later sessions; `None` when the server does not say.
    pub keeps: Option<bool>,
}

/// The method behind a tool.
#[derive(Debug, Clone)]
pub struct ToolMethod {
    /// The method that the tool calls.
    pub method: String,
    /// Says how to fill in the method's context.
    pub context: ContextUse,
}

impl OfferedTools {
    /// Reads the backend's current tools.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when no server answers.
    pub async fn ask_backend(backend: &CallBackend) -> Result<Self> {
        /// The fields that are needed from the answer.
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

    /// Reads the tools, and also returns them for `tools/list`. The list is not stored, because its schemas are large.
    ///
    /// # Errors
    /// The errors of [`ask_backend`](Self::ask_backend).
    pub async fn ask_with_list(backend: &CallBackend) -> Result<(Self, Vec<Tool>)> {
        let told: MethodInfos = ask_methods(backend, true).await?;
        Ok((Self::from_infos(&told), told.methods.into_iter().filter(|row| row.tool).map(to_tool).collect()))
    }

    fn from_infos(told: &MethodInfos) -> Self {
        let rows = told.methods.iter().filter(|row| row.tool);
        let methods = rows.map(|row| ToolMethod { method: row.name.clone(), context: row.context }).collect();
        Self { methods, guides: told.guides.clone(), keeps: told.keeps }
    }

    /// Finds a method by its tool's name, or by its own name for clients that send that.
    pub fn find_method(&self, name: &str) -> Option<&ToolMethod> {
        let is_named = |tool: &&ToolMethod| {
            tool.method == name || tool.method.len() == name.len() && tool_name(&tool.method) == name
        };
        self.methods.iter().find(is_named)
    }
}

/// Asks the server for its list of methods.
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

/// Returns the params that a model sees, without the params for users and programs, because a model pays for each param
/// at every start. Only the tools of the first source describe the context.
fn for_models(mut params: Map<String, Value>, is_further: bool) -> Map<String, Value> {
    if let Some(Value::Object(properties)) = params.get_mut("properties") {
        properties.retain(|_, schema| schema[NOT_FOR_MODELS] != true);
        if let Some(Value::Object(context)) = properties.get_mut("context").filter(|_| is_further) {
            context.remove("description");
        }
    }
    params
}

/// Marks a tool so that clients load it at the start. Without the mark, Claude Code hides a tool until the model
/// searches for it.
pub fn at_once(tool: Tool) -> Tool {
    tool.with_meta(MetaObject(Map::from_iter([("anthropic/alwaysLoad".to_owned(), Value::Bool(true))])))
}
