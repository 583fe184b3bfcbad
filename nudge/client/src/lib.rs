//! Finds the running Nudge server (the PRIMARY) and calls it.
//!
//! A server holds the [`PrimaryLock`] in a [`RuntimeDir`], and writes its address into a [`ServerFile`], which is valid
//! only while a process holds the lock. [`RemoteServer`] and [`Client`] find the server by this file.
//!
//! [`RemoteServer`] answers the same methods as a [`nudge::Nudge`] in this process: both are a [`nudge::Service`].
//! [`Client`] does the same for asynchronous callers. When the PRIMARY dies, both continue with the next one. A
//! [`Store`] is either a `Nudge` or a `RemoteServer`, and the language bindings use it.
//!
//! ```no_run
//! use nudge::Service;
//! use nudge_client::{RemoteServer, RuntimeDir};
//!
//! let remote = RemoteServer::connect(&RuntimeDir::open(None)?)?;
//! let params = serde_json::value::to_raw_value(&serde_json::json!({})).unwrap();
//! println!("{}", remote.call("nudge.status", &params)?);
//! # Ok::<(), nudge::Error>(())
//! ```

mod client;
mod connection;
mod env;
mod found;
mod here;
mod hints;
mod hook_log;
mod life;
mod local;
mod members;
mod params;
mod remote;
mod runtime;
mod session;
mod store;
mod tools;

pub use client::{AGENT_HEADER, Client, ENV_HEADER, KEY_HEADER, PROTOCOL_HEADER, is_displaced, new_key};
pub use env::AskedEnv;
pub use found::FoundHint;
pub use here::{detect, detect_from, process_cwd};
pub use hook_log::{HookLog, HookReport, LateHookCounter, MAX_LIMIT_MS, MIN_LIMIT_MS, RecentHooks};
pub use life::LifeSign;
pub use local::{DuplexStream, LocalListener};
pub use members::{MemberWatch, SessionMember};
pub use params::CallParams;
pub use remote::{GiveUp, RemoteServer};
pub use runtime::{LockWatch, LogFile, PrimaryLock, PrimarySeat, ROWS, RuntimeDir, ServerFile};
pub use session::{PROTOCOL, SessionFile, SessionState, other_protocol_error};
pub use store::Store;
pub use tools::{ToolAnswer, Tools};
