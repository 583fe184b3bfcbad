//! Tests the answers over HTTP, and which callers get them.

#[path = "../kit/mod.rs"]
mod kit;

mod api;
mod door;
mod mcp_http;
mod page;
