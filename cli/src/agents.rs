//! What reaches an agent without being asked: the hooks of coding agents, and how they are put there.

mod agents_md;
mod clients;
mod config;
mod digest;
pub mod doctor;
mod event;
mod here;
pub mod hook;
pub mod init;
mod login;
mod plan;
mod record;

/// The names of the clients, in the order in which they are told.
pub fn names() -> Vec<&'static str> {
    clients::ALL.iter().map(|client| client.name).collect()
}
