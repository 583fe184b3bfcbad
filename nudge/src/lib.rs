//! Nudge is a memory for coding agents. It stores small hints (build and run commands, folders, environment toggles,
//! templates). It returns each hint in the contexts to which the hint's scope applies, and says why.
//!
//! A hint is identified by component, key and scope. [`Nudge::set`] stores a hint. [`Nudge::get`] returns the best
//! variant that fits a [`Context`], with the reasons:
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
//! // Elsewhere no hint fits, and `get` returns `None`.
//! let elsewhere = Context::builder().cwd("/home/me").build()?;
//! assert!(store.get("http-proxy", "build", &elsewhere).is_none());
//! # Ok::<(), nudge::Error>(())
//! ```
//!
//! Every method can also be called by name with JSON through [`Service::call`], as the server, the command line and the
//! bindings do. [`docs`] has the rules. The library starts no threads and processes, opens no sockets, and reads no
//! files, except git's files in [`context::detect`].

pub mod docs;
pub mod method;
pub mod value;

mod cache;
mod choice;
mod config;
mod explain;
mod guard;
mod hint;
mod log;
mod missing;
mod ran;
mod scoring;
mod session_rows;
mod snapshot;
mod source;
mod store;
mod trash;
mod ttl;
mod view;

pub use nudge_core::{context, near, safety};

pub use cache::Nudge;
pub use choice::Match;
pub use config::Config;
pub use hint::{DOUBTFUL_FAILURES, Hint, HintMeta, HintValue, NAME as HINTS, RedactedHint, check_name};
pub use log::{AppliedWrite, ChangeLog, LogEntry};
pub use nudge_core::clock::{Clock, ManualClock, Millis, SystemClock, parse_time};
pub use nudge_core::context::{Context, ContextSpec, EnvNames};
pub use nudge_core::error::{Error, ErrorKind, Result};
pub use nudge_core::explain::{MatchExplain, ScoreParts};
pub use nudge_core::limit::{BoundedNumber, Limit};
pub use nudge_core::place::Os;
pub use nudge_core::scope::{Scope, ScopeSpec};
pub use nudge_core::service::{
    Caller, ContextUse, JoinedServices, METHODS, MethodInfo, MethodInfos, MethodSpec, Service, unknown_method,
};
pub use nudge_core::source::{RowChange, RowFeed, RowTaker, SessionRow};
pub use nudge_secrets::{Finding, SecretGuard};
pub use session_rows::{DELETION_ROW, filter_deletion};
pub use snapshot::ExportPayload;
pub use source::SOURCE;
pub use store::StoreChange;
pub use ttl::Ttl;
pub use view::View;

// These are short names for the params and results of the verbs. The module `method` documents them.
#[doc(no_inline)]
pub use method::{
    BumpHint, BumpResult, ComponentCount, ComponentList, ConditionMet, DeleteHint, DeleteResult, Deletion,
    DeletionKind, DeletionList, DigestText, EnvNamesAsked, ExportHints, ExportResult, GetHint, GotHint, HintReach,
    HintStats, ImportError, ImportHints, ImportMode, ImportResult, MatchedHint, NoParams, OutcomeMatches,
    OutcomeParams, QueryHints, QueryRow, QueryRows, RecallAnswer, RecallParams, SessionStats, SetHint, SetResult,
    StoreLimits, StoreStatus, SuggestCounts, SuggestEvent, SuggestParams, SuggestedHint, Suggestion, Suggestions,
    ToldAnswer, ToldParams, UndoDeletion, UndoResult, WhyQuestion, WhyResult, WhyVariant, methods,
};
#[doc(no_inline)]
pub use value::{CommandShell, CommandValue, HintOrigin, PathValue, Sensitivity, TemplateFormat, TemplateValue};

/// Runs the README's example as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeExample;
