//! Nudge is the memory that makes a coding agent feel prepared: small, high-value hints (build and
//! run commands, folders, environment toggles, templates), stored once and given back at the right
//! moment, in the right place, with the reason why.
//!
//! A hint is identified by component, key and scope. [`Nudge::set`] stores one, [`Nudge::get`]
//! returns the best variant that fits a [`Context`], and says why:
//!
//! ```
//! use nudge::{Context, Nudge, Os, ScopeSpec, SetHint};
//!
//! let store = Nudge::default();
//! let mut hint = SetHint::new("http-proxy", "build", "docker compose build router");
//! hint.meta.scope = ScopeSpec { cwd_glob: vec!["**/http-proxy*".into()], ..ScopeSpec::default() };
//! store.set(hint)?;
//!
//! let here = Context::builder().cwd("/work/http-proxy").os(Os::Linux).build()?;
//! let found = store.get("http-proxy", "build", &here).expect("it fits");
//! assert_eq!(found.hint().text(), "docker compose build router");
//! assert_eq!(found.reasons(), ["cwd matched **/http-proxy*"]);
//!
//! // Elsewhere nothing fits, and nothing is returned.
//! let elsewhere = Context::builder().cwd("/home/me").build()?;
//! assert!(store.get("http-proxy", "build", &elsewhere).is_none());
//! # Ok::<(), nudge::Error>(())
//! ```
//!
//! Every method is also reachable by name and JSON through [`Service::call`], which is what the
//! server, the command line and the bindings use. [`docs`] has the rules. The library starts no threads
//! and processes, opens no sockets, and reads no files, except git's when [`context::detect`] is asked to.

pub mod context;
pub mod docs;
pub mod safety;

mod cache;
mod clock;
mod config;
mod error;
mod explain;
mod hint;
mod log;
mod method;
mod record;
mod scope;
mod scoring;
mod service;
mod snapshot;
mod store;
mod trash;
mod ttl;
mod view;
mod wire;

pub use cache::Nudge;
pub use clock::{Clock, ManualClock, Millis, SystemClock, parse_time};
pub use config::Config;
pub use context::{Context, ContextSpec};
pub use error::{Error, ErrorKind, Result};
pub use explain::MatchExplain;
pub use hint::{
    Command, Format, Hint, HintMeta, HintValue, PathValue, Redacted, Sensitivity, Shell, Source, Template, check_name,
};
pub use log::{Applied, Log};
pub use method::*;
pub use record::Entry;
pub use safety::secrets::{Finding, SecretGuard};
pub use scope::{Os, Scope, ScopeSpec};
pub use scoring::Parts;
pub use service::{Caller, ContextUse, Method, Service, Services, unknown_method};
pub use snapshot::Payload;
pub use store::Change;
pub use ttl::Ttl;
pub use view::{Match, View};

/// The README's example is run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
