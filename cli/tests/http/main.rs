//! What is answered over HTTP, and to whom.

#[path = "../kit/mod.rs"]
mod kit;

mod api;
mod door;
mod mcp_http;
mod page;
