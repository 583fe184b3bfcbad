//! Runs the language-neutral vectors of `tests/vectors/` through any surface of Nudge.
//!
//! The format is documented in `tests/README.md`; this crate is its reference runner:
//!
//! - [`mod@format`]: the content of a case file,
//! - [`resolve`]: the builders (`$join`, `$repeat`, ...), applied before a call,
//! - [`matcher`]: the subset match of expectations,
//! - [`run`]: runs one case with one [`Driver`],
//! - [`drivers`]: the surfaces: the library, C, HTTP, MCP, the command line,
//! - [`trials`]: the program that runs all cases as tests.

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
