//! Coding agents: what `nudge init` and `nudge doctor` do to their settings, what hooks tell them, what is found out of where they are.

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
