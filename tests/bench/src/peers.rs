//! Contains the peers: the other side of each comparison, written in the usual way without Nudge's optimisations.

pub mod bare_http;
pub mod echo_tool;
pub mod lookup;
pub mod plain;
pub mod scan;
pub mod sqlite_vec;
