//! The running session that commands and hooks call.

use std::path::Path;

use nudge::{Caller, ContextUse, EnvNames, Error, Result, Service as _};
use nudge_client::{RemoteServer, RuntimeDir, process_cwd};
use nudge_core::table::TableService as _;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::args::{ContextFlags, GlobalFlags};
use crate::context::ContextInference;
use crate::server::session::event::EventService;
use crate::sources;

/// The caller name of the command line, for `nudge undo --list` and `nudge watch`.
const NAME: &str = concat!("nudge-cli/", env!("CARGO_PKG_VERSION"));

/// Connects to the running session of the folder that the flags name.
///
/// # Errors
/// `E_UNAVAILABLE` when no server runs there, or not on the port that the flags name.
pub fn connect_session(global: &GlobalFlags) -> Result<RemoteServer> {
    let dir = RuntimeDir::open(global.runtime_dir.as_deref())?;
    let Some(asked) = global.port else { return Ok(RemoteServer::connect(&dir)?.with_name(NAME)) };
    let remote = RemoteServer::connect_by_port(&dir)?.with_name(NAME);
    // The port cannot be chosen: the token is sent only to the port in server.pid.
    match dir.read_server_file() {
        Some(file) if file.port != asked => Err(Error::unavailable(format!(
            "No Nudge server of yours listens on port {asked}; leave -p out for the one on {}, or start one there.",
            file.port
        ))),
        _ => Ok(remote),
    }
}

/// A connection to the running session.
pub struct RunningSession {
    /// The connection.
    pub remote: RemoteServer,
    /// Set when results are wanted as JSON.
    pub json: bool,
    inference: ContextInference,
}

impl RunningSession {
    /// Connects.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when no server runs.
    pub fn open(global: &GlobalFlags) -> Result<Self> {
        Ok(Self { remote: connect_session(global)?, json: global.json, inference: ContextInference::default() })
    }

    /// The same, which never starts git: for a caller that ends soon and must leave nothing behind.
    #[must_use]
    pub fn without_git(self) -> Self {
        Self { inference: ContextInference::of_files_alone(), ..self }
    }

    /// Has later calls send these environment variables.
    pub fn set_env_names(&self, names: EnvNames) {
        self.inference.env().set_names(names);
    }

    /// The repository that a folder lies in, if any.
    pub fn find_repository(&self, cwd: &Path) -> Option<String> {
        self.inference.find_repository(cwd)
    }

    /// Calls a method that takes no context.
    ///
    /// # Errors
    /// The method's own error; `E_UNAVAILABLE`.
    pub fn call(&self, name: &str, params: &Map<String, Value>) -> Result<Box<RawValue>> {
        self.remote.call(name, &to_raw(params)?)
    }

    /// Calls a method, filling in the context that `here` leaves out.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn call_here(&self, name: &str, mut params: Map<String, Value>, here: &ContextFlags) -> Result<Box<RawValue>> {
        params.insert("context".into(), Value::Object(to_context(here)));
        self.call_in(name, context_use(name), &params, process_cwd().as_deref(), None)
    }

    /// Calls a method as from `cwd`; `key` is the idempotency key.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn call_from<T: DeserializeOwned>(
        &self,
        cwd: Option<&Path>,
        name: &str,
        params: &Map<String, Value>,
        key: Option<&str>,
    ) -> Result<T> {
        parsed_as(&self.call_in(name, context_use(name), params, cwd, key)?)
    }

    /// Calls a method with a context filled in, and a second time when the answer depends on variables that it lacks.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn call_in(
        &self,
        name: &str,
        usage: ContextUse,
        params: &Map<String, Value>,
        cwd: Option<&Path>,
        key: Option<&str>,
    ) -> Result<Box<RawValue>> {
        self.inference.env().call(Caller::default().with_key(key), |caller| {
            let mut params = params.clone();
            self.inference.fill_in(usage, &mut params, cwd);
            self.remote.call_by(caller, name, &to_raw(&params)?)
        })
    }
}

/// Writes params as JSON.
///
/// # Errors
/// `E_INVALID` when they have no form in JSON.
pub fn to_raw(params: &impl serde::Serialize) -> Result<Box<RawValue>> {
    to_raw_value(params).map_err(|_| Error::invalid("The params cannot be written as JSON."))
}

/// Reads a result.
///
/// # Errors
/// `E_UNAVAILABLE` for something else than was expected.
pub fn parsed_as<T: DeserializeOwned>(result: &RawValue) -> Result<T> {
    serde_json::from_str(result.get())
        .map_err(|_| Error::unavailable("The server answered something else than was asked; start it again."))
}

/// Returns how the context of a method is filled in; for a method unknown here, only when one is given.
fn context_use(name: &str) -> ContextUse {
    let row = sources::find_method(name).or_else(|| EventService::TABLE.find_method(name));
    row.map_or(ContextUse::InferredIfGiven, |row| row.context)
}

/// Converts the flags to a context; an empty flag means unknown.
pub fn to_context(here: &ContextFlags) -> Map<String, Value> {
    let fields = [("cwd", &here.cwd), ("repo", &here.repo), ("branch", &here.branch), ("os", &here.os)];
    let value = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    let mut out: Map<_, _> =
        fields.into_iter().filter_map(|(name, text)| Some((name.to_owned(), value(text.as_deref()?)))).collect();
    let env: Map<_, _> = here.env.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    if env.contains_key("") {
        out.insert("env".into(), Value::Null);
    } else {
        add_field(&mut out, "env", env);
    }
    add_field(&mut out, "files_open", here.files_open.clone());
    out
}

/// Adds a field unless it is empty.
pub fn add_field(params: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let value = value.into();
    let empty = match &value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    if !empty {
        params.insert(name.into(), value);
    }
}
