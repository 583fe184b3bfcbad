//! What reaches an agent without being asked: the hooks of coding agents, and how they are put there.

mod agents_md;
mod alone;
mod capture;
mod checkout;
mod clients;
pub mod config;
pub mod doctor;
mod event;
mod here;
pub mod hook;
pub mod init;
mod keep;
mod login;
mod permission;
mod plan;
pub mod record;
mod within;
