//! One session of many processes: how it begins and ends, what it keeps, what becomes of it when something fails.

#[path = "../kit/mod.rs"]
mod kit;

mod anew;
mod disk;
mod endings;
mod faults;
mod keeping;
mod kills;
mod left_behind;
mod nolock;
mod older;
mod removed;
