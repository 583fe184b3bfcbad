//! Tests the tools and resources of MCP clients, over stdio and HTTP.

#[path = "../kit/mod.rs"]
mod kit;

mod people;
mod profile;
mod resources;
mod server;
