//! The rows of the table. A new row is a function in a file of its own and an entry here.

pub mod contention;
pub mod get;
pub mod growth;
pub mod guard;
pub mod memory;
pub mod query;
pub mod set;
pub mod transfer;

use crate::table::{Cpus, Row};

/// Every row, in the order of the table.
pub const ALL: &[Row] = &[
    Row { name: "get-warm", cpus: Cpus::One, run: get::warm },
    Row { name: "get-cold", cpus: Cpus::One, run: get::cold },
    Row { name: "get-contended", cpus: Cpus::Two, run: contention::get },
    Row { name: "query", cpus: Cpus::One, run: query::top },
    Row { name: "query-growth", cpus: Cpus::One, run: growth::query },
    Row { name: "query-tag", cpus: Cpus::One, run: query::tag },
    Row { name: "memory", cpus: Cpus::One, run: memory::per_hint },
    Row { name: "import", cpus: Cpus::One, run: transfer::import },
    Row { name: "export", cpus: Cpus::One, run: transfer::export },
    Row { name: "set", cpus: Cpus::One, run: set::typed },
    Row { name: "guard", cpus: Cpus::One, run: guard::check },
];
