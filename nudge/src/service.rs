//! What answers method calls: the seam between the core and everything around it.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::cache::{Call, Made};
use crate::error::{Error, ErrorKind, Result};

/// How a front end that can infer a context treats a method's `context` (semantics section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextUse {
    /// The method takes none.
    None,
    /// Missing fields are filled in.
    Inferred,
    /// Missing fields are filled in only when the caller gave a context (`bump`).
    InferredIfGiven,
}

/// One row of a method table: all that a surface needs to offer the method.
// Four independent facts, named after MCP's annotations.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug)]
pub struct Method {
    /// The JSON-RPC name, for example `nudge.get_hint`. As an MCP tool the dot becomes `_`.
    pub name: &'static str,
    /// A few words for people.
    pub title: &'static str,
    /// What it does and when to call it, for agents.
    pub description: &'static str,
    /// Offered as an MCP tool (the others are for JSON-RPC and the command line).
    pub tool: bool,
    /// Wanted so often that hosts should load it at once.
    pub frequent: bool,
    /// Changes nothing.
    pub read_only: bool,
    /// May remove or overwrite what is stored.
    pub destructive: bool,
    /// The same call twice leaves what once leaves.
    pub idempotent: bool,
    /// How `params.context` is filled in.
    pub context: ContextUse,
    /// JSON Schema (2020-12) of `params`.
    pub params: fn() -> serde_json::Value,
}

impl Method {
    /// The name as an MCP tool: hosts reject dots, so `nudge.get_hint` becomes `nudge_get_hint`.
    pub fn tool_name(&self) -> String {
        self.name.replace('.', "_")
    }
}

/// Who makes a call, as far as is known; for people who ask later, never for a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller<'a> {
    /// A client's own name such as `claude-code/2.1`; empty when unknown.
    pub name: &'a str,
    /// Names this one call, so that it is made once however often it is sent.
    pub key: Option<&'a str>,
    /// Wants to be told, instead of an answer, when `context.env` lacks a name that it depends on.
    pub env: bool,
    /// What the key is used for.
    pub(crate) call: Option<Call>,
    /// What is left of a call with this key that was made before.
    pub(crate) made: Option<Made>,
}

impl<'a> Caller<'a> {
    /// A caller by its name.
    pub const fn named(name: &'a str) -> Self {
        Self { name, key: None, env: false, call: None, made: None }
    }

    /// The same, for a call that may be sent more than once.
    #[must_use]
    pub const fn with_key(self, key: Option<&'a str>) -> Self {
        Self { key, ..self }
    }

    /// The same, for a call whose `context.env` may lack names: then it is refused with
    /// [`Error::env_names`], and made again with those.
    #[must_use]
    pub const fn asking_env(self) -> Self {
        Self { env: true, ..self }
    }
}

/// Something that answers the methods of its table: the store in this process
/// ([`Nudge`](crate::Nudge)), a remote PRIMARY, or another source beside the hints.
pub trait Service: Send + Sync {
    /// The rows this service answers, in the order surfaces list them.
    fn methods(&self) -> Vec<&'static Method>;

    /// Calls a method by its JSON-RPC name. `params` must be a JSON object.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownMethod`], [`ErrorKind::ParamsNotObject`], or what the method says.
    fn call(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        self.call_by(Caller::default(), method, params)
    }

    /// As [`call`](Self::call), on behalf of somebody.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>>;
}

impl<S: Service + ?Sized> Service for Arc<S> {
    fn methods(&self) -> Vec<&'static Method> {
        (**self).methods()
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        (**self).call_by(caller, method, params)
    }
}

/// Several services as one: each call goes to the first whose table has the method.
pub struct Services {
    all: Vec<Arc<dyn Service>>,
    /// Which of them answers a name.
    by_name: HashMap<&'static str, usize>,
}

impl Services {
    /// Joins `services`; the first one that knows a name answers it.
    pub fn new(services: Vec<Arc<dyn Service>>) -> Self {
        let mut by_name = HashMap::new();
        for (at, service) in services.iter().enumerate() {
            for row in service.methods() {
                by_name.entry(row.name).or_insert(at);
            }
        }
        Self { all: services, by_name }
    }
}

impl Service for Services {
    fn methods(&self) -> Vec<&'static Method> {
        self.all.iter().flat_map(Service::methods).collect()
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let at = *self.by_name.get(method).ok_or_else(unknown_method)?;
        self.all[at].call_by(caller, method, params)
    }
}

/// The error for a name that no table has. It does not repeat the name, which may be anything.
pub fn unknown_method() -> Error {
    Error::new(ErrorKind::UnknownMethod, "There is no such method; nudge/docs/methods.md lists the methods.")
}
