//! The answers over HTTP, and the callers that get them.

#[path = "../kit/mod.rs"]
mod kit;

mod api;
mod door;
mod mcp_http;
mod page;
