//! Coding agents: the changes of `nudge init` and `nudge doctor` in their settings, the texts of hooks, and the
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
