//! Tests the command line as people and scripts use it.

#[path = "../kit/mod.rs"]
mod kit;

mod background;
mod edit;
mod people;
mod shells;
mod store;
mod terminal;
mod verbs;
mod watch;
