//! The parts that reach an agent without a call by the agent: the hooks of coding agents, and their installation.

mod agents_md;
pub mod args;
pub mod ask;
mod capture;
mod clients;
mod commands;
pub mod doctor;
pub mod event;
mod here;
pub mod hook;
pub mod init;
mod keep;
mod login;
mod permission;
mod plan;
pub mod record;
pub mod running;
mod within;

pub use here::find_binary;
