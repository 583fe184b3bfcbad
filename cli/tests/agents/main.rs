//! Tests Nudge with coding agents: `nudge init` and `nudge doctor` on their settings, the texts of hooks, and the
//! inferred context.

#[path = "../kit/mod.rs"]
mod kit;

mod capture;
mod doctor;
mod hook;
mod inference;
mod init;
mod learn;
mod reach;
mod seed;
mod team;
mod trust;
