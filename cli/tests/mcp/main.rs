//! What a client of MCP is offered over stdio.

#[path = "../kit/mod.rs"]
mod kit;

mod people;
mod profile;
mod resources;
mod server;
