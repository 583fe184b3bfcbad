//! The tools and resources of an MCP client, over stdio and HTTP.

#[path = "../kit/mod.rs"]
mod kit;

mod people;
mod profile;
mod resources;
mod server;
