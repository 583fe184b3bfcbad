//! Tests sessions of many processes: their beginning and end, the data that they keep, and faults.

#[path = "../kit/mod.rs"]
mod kit;

mod anew;
mod counts;
mod disk;
mod endings;
mod faults;
mod keeping;
mod kills;
mod left_behind;
mod logged;
mod nolock;
mod older;
mod removed;
mod undone;
