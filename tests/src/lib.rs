//! Runs the language-neutral vectors of `tests/vectors/` through any surface of Nudge.
//!
//! The format is documented in `tests/README.md`; this crate is its reference runner:
//!
//! - [`mod@format`]: what a case file may hold,
//! - [`resolve`]: the builders (`$join`, `$repeat`, ...), applied before a call,
//! - [`matcher`]: the subset match of expectations,
//! - [`run`]: one case against one [`Driver`],
//! - [`drivers`]: the library in process, HTTP JSON-RPC, and MCP over stdio,
//! - [`trials`]: all of it as a program of tests.

pub mod drivers;
pub mod format;
pub mod json;
pub mod matcher;
pub mod resolve;
pub mod run;
pub mod trials;

pub use drivers::Driver;
pub use format::{Case, Config, Step};
pub use json::Json;
