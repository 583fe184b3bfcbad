//! Offers the tools of MCP to programs that call a model themselves.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use napi::Result;
use napi_derive::napi;
use nudge::{Context, Error};
use nudge_client::{Store, ToolAnswer, Tools};
use serde_json::json;

use crate::handles::{StoreHandle, with_handle};
use crate::refusal::refused;

thread_local! {
    static TOOLS: RefCell<NumberedTools> = RefCell::default();
}

#[derive(Default)]
struct NumberedTools {
    by_number: HashMap<u32, Arc<Tools>>,
    last: u32,
}

/// Reads the tools of a store and returns a new number for them.
#[napi(catch_unwind)]
pub fn tools(store: u32) -> Result<u32> {
    let store = with_handle(store, StoreHandle::store).map_err(refused)?;
    let tools = Tools::of(&store).map_err(refused)?;
    Ok(TOOLS.with_borrow_mut(|all| {
        all.last = all.last.wrapping_add(1);
        let number = all.last;
        all.by_number.insert(number, tools.into());
        number
    }))
}

/// Forgets the tools that have this number.
#[napi(catch_unwind)]
pub fn forget_tools(tools: u32) {
    TOOLS.with_borrow_mut(|all| all.by_number.remove(&tools));
}

/// Returns the names of the tools and their definitions for each provider, as JSON.
#[napi(catch_unwind)]
pub fn tool_forms(tools: u32) -> Result<String> {
    let tools = numbered(tools).map_err(refused)?;
    let forms = json!({
        "names": tools.names(),
        "anthropic": tools.anthropic(),
        "openai": tools.openai(),
        "responses": tools.responses(),
    });
    Ok(forms.to_string())
}

/// Calls a tool with the context of a view. Returns `{text, isError}`.
#[napi(catch_unwind)]
pub fn call_tool(store: u32, view: u32, tools: u32, name: String, arguments: String) -> Result<String> {
    let (store, context, tools) = parts(store, view, tools).map_err(refused)?;
    let ToolAnswer { text, is_error } = tools.call(&store, &context, &name, &arguments);
    Ok(json!({"text": text, "isError": is_error}).to_string())
}

/// Answers a model's tool call in the form of the model's provider. Returns undefined when the model uses none of these
/// tools.
#[napi(catch_unwind)]
pub fn answer_tool(store: u32, view: u32, tools: u32, said: String) -> Result<Option<String>> {
    let (store, context, tools) = parts(store, view, tools).map_err(refused)?;
    Ok(tools.answer(&store, &context, &said).map(|answer| answer.to_string()))
}

fn parts(store: u32, view: u32, tools: u32) -> nudge::Result<(Arc<Store>, Context, Arc<Tools>)> {
    let (store, context) =
        with_handle(store, |handle| (handle.store(), handle.view(view).map(|view| view.context().clone())))?;
    Ok((store, context?, numbered(tools)?))
}

fn numbered(tools: u32) -> nudge::Result<Arc<Tools>> {
    TOOLS.with_borrow(|all| all.by_number.get(&tools).cloned()).ok_or_else(|| Error::invalid("Ask for the tools anew."))
}
