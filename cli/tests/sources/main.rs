//! Tests the sources through the binary.

#[path = "../kit/mod.rs"]
mod kit;

mod brain;
mod brain_degraded;
mod code;
mod demo;
mod records;
mod signals;
mod transfer;
