//! Lists the rows of the table. A new row is a function in its own file, and an entry here.

pub mod brain;
pub mod c;
pub mod cli;
pub mod code;
pub mod contention;
pub mod get;
pub mod git;
pub mod growth;
pub mod guard;
pub mod http;
pub mod mcp;
pub mod memory;
pub mod node;
pub mod proxy;
pub mod python;
pub mod query;
pub mod records;
pub mod set;
pub mod start;
pub mod transfer;

use crate::table::{Cpus, Row};

/// The programs of a row that only needs this binary.
const NONE: &[&str] = &[];
/// The programs of a row that starts the `nudge` binary.
const OURS: &[&str] = &["nudge"];

/// Every row, in the order of the table.
pub const ALL: &[Row] = &[
    Row { name: "get-warm", cpus: Cpus::One, programs: NONE, run: get::warm },
    Row { name: "get-cold", cpus: Cpus::One, programs: NONE, run: get::cold },
    Row { name: "get-contended", cpus: Cpus::Two, programs: NONE, run: contention::get },
    Row { name: "query", cpus: Cpus::One, programs: NONE, run: query::top },
    Row { name: "query-growth", cpus: Cpus::One, programs: NONE, run: growth::query },
    Row { name: "query-tag", cpus: Cpus::One, programs: NONE, run: query::tag },
    Row { name: "memory", cpus: Cpus::One, programs: NONE, run: memory::per_hint },
    Row { name: "import", cpus: Cpus::One, programs: NONE, run: transfer::import },
    Row { name: "export", cpus: Cpus::One, programs: NONE, run: transfer::export },
    Row { name: "set", cpus: Cpus::One, programs: NONE, run: set::typed },
    Row { name: "guard", cpus: Cpus::One, programs: NONE, run: guard::check },
    Row { name: "cli", cpus: Cpus::One, programs: cli::PROGRAMS, run: cli::get },
    Row { name: "hook", cpus: Cpus::One, programs: cli::HOOK_PROGRAMS, run: cli::hook },
    Row { name: "git-context", cpus: Cpus::One, programs: NONE, run: git::context },
    Row { name: "mcp", cpus: Cpus::One, programs: OURS, run: mcp::call },
    Row { name: "proxy", cpus: Cpus::One, programs: OURS, run: proxy::call },
    Row { name: "http", cpus: Cpus::Two, programs: OURS, run: http::load },
    Row { name: "http-size", cpus: Cpus::Two, programs: OURS, run: http::sizes },
    Row { name: "start", cpus: Cpus::One, programs: OURS, run: start::first_reply },
    Row { name: "rss", cpus: Cpus::One, programs: OURS, run: start::resident },
    Row { name: "records-search", cpus: Cpus::One, programs: NONE, run: records::search },
    Row { name: "records-write", cpus: Cpus::One, programs: NONE, run: records::write },
    Row { name: "brain-cut", cpus: Cpus::One, programs: NONE, run: brain::cutting },
    Row { name: "brain-index", cpus: Cpus::One, programs: NONE, run: brain::index },
    Row { name: "brain-memory", cpus: Cpus::One, programs: OURS, run: brain::memory },
    Row { name: "brain-question", cpus: Cpus::Two, programs: NONE, run: brain::question },
    Row { name: "code-index", cpus: Cpus::One, programs: code::PROGRAMS, run: code::index },
    Row { name: "code-read", cpus: Cpus::One, programs: code::read::PROGRAMS, run: code::read::extraction },
    Row { name: "code-node", cpus: Cpus::One, programs: NONE, run: code::node::answer },
    Row { name: "code-large", cpus: Cpus::One, programs: code::large::PROGRAMS, run: code::large::calls },
    Row { name: "code-idle", cpus: Cpus::One, programs: code::idle::PROGRAMS, run: code::idle::session },
    Row { name: "c", cpus: Cpus::One, programs: c::PROGRAMS, run: c::typed },
    Row { name: "python", cpus: Cpus::One, programs: python::PROGRAMS, run: python::get },
    Row { name: "node", cpus: Cpus::One, programs: node::PROGRAMS, run: node::get },
];
