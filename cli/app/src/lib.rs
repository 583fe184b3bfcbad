//! The parts that the server, the hooks and the commands of Nudge share: the only list of sources, the settings, the
//! caller's context, the files of the user and of Nudge, and the seeds and hints from a repository's files.

pub mod alone;
pub mod background;
pub mod checkout;
pub mod committed;
pub mod config;
pub mod context;
pub mod evidence;
pub mod files;
pub mod followed;
pub mod kept;
pub mod reach;
pub mod seed;
pub mod settings;
pub mod sources;
pub mod unserved;
pub mod wire;
