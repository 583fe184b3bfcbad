//! The session: the roles, the sources, their rows, change notifications, and the threads for calls.

pub mod backend;
pub mod calls;
pub mod changes;
pub mod control;
pub mod counts;
pub mod dead;
pub mod event;
pub mod history;

pub mod end_summary;
pub mod keeper;
mod kept_rows;
pub mod learn;
mod lesson;
pub mod open;
pub mod proxies;
pub mod refill;
pub mod role;
pub mod rows;
pub mod status;
#[cfg(feature = "test-clock")]
pub mod test_clock;
pub mod time;
