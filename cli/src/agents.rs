//! What reaches an agent without being asked: the hooks of coding agents.

mod digest;
mod event;
pub mod hook;
