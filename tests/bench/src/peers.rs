//! The other side of each comparison, written as one would without Nudge's tricks.

pub mod bare_http;
pub mod echo_tool;
pub mod lookup;
pub mod plain;
pub mod scan;
pub mod sqlite_vec;
