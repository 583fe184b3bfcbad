//! The running session that commands and hooks call.

use std::path::Path;
use std::sync::Arc;

use nudge::{Caller, ContextUse, EnvNames, Error, ErrorKind, Result, Service};
use nudge_app::context::ContextInference;
use nudge_app::sources;
use nudge_app::unserved::{ReadSources, open_kept};
use nudge_app::wire::{parsed_as, to_raw};
use nudge_client::{RemoteServer, RuntimeDir, process_cwd};
use nudge_core::table::TableService as _;
use nudge_server::session::event::EventService;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::args::GlobalFlags;

/// The name of the command line as a caller, in `nudge undo --list` and `nudge watch`.
const NAME: &str = concat!("nudge-cli/", env!("CARGO_PKG_VERSION"));

/// Connects to the running session of the runtime directory that the flags name.
///
/// # Errors
/// `E_UNAVAILABLE` when no server runs in it, or when it does not use the port that the flags name.
pub fn connect_session(global: &GlobalFlags) -> Result<RemoteServer> {
    let dir = RuntimeDir::open(global.runtime_dir.as_deref())?;
    let Some(asked) = global.port else { return Ok(RemoteServer::connect(&dir)?.with_name(NAME)) };
    let remote = RemoteServer::connect_by_port(&dir)?.with_name(NAME);
    // The flag cannot choose another port, because the token must go only to the port in `server.pid`.
    match dir.read_server_file() {
        Some(file) if file.port != asked => Err(Error::unavailable(format!(
            "No Nudge server of yours listens on port {asked}; leave -p out for the one on {}, or start one there.",
            file.port
        ))),
        _ => Ok(remote),
    }
}

/// Returns true when a refused connection means that no server runs: no process has the lock, and the flags name no
/// port.
pub fn is_unserved(global: &GlobalFlags, refused: &Error) -> bool {
    let is_held = || match RuntimeDir::find(global.runtime_dir.as_deref()) {
        Ok(dir) => dir.is_some_and(|dir| dir.look_at_lock().unwrap_or(true)),
        // An error means that no server can use the folder.
        Err(_) => true,
    };
    refused.kind() == ErrorKind::Unavailable && global.port.is_none() && !is_held()
}

/// A connection to the running session, or to the kept data while no server runs.
pub struct RunningSession {
    /// The server, or the services for the kept data.
    pub remote: Arc<dyn Service>,
    /// True when no server runs.
    pub is_unserved: bool,
    /// True when the user wants results as JSON.
    pub json: bool,
    inference: ContextInference,
}

impl RunningSession {
    /// Connects to the running session.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when no server runs.
    pub fn open(global: &GlobalFlags) -> Result<Self> {
        connect_session(global).map(|remote| Self::new(Arc::new(remote), global))
    }

    /// Connects to the running session. If no server runs, opens the kept data, for a caller that only reads.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when no server runs and nothing is kept, when the server does not answer, and when the kept file
    /// cannot be parsed.
    pub fn open_to_read(global: &GlobalFlags, wanted: ReadSources) -> Result<Self> {
        let refused = match connect_session(global) {
            Ok(remote) => return Ok(Self::new(Arc::new(remote), global)),
            Err(error) => error,
        };
        if !is_unserved(global, &refused) {
            return Err(refused);
        }
        let kept = open_kept(wanted)?.ok_or(refused)?;
        Ok(Self { is_unserved: true, ..Self::new(kept, global) })
    }

    fn new(remote: Arc<dyn Service>, global: &GlobalFlags) -> Self {
        Self { remote, is_unserved: false, json: global.json, inference: ContextInference::default() }
    }

    /// Makes later calls start no git. For a caller that ends soon and must leave no process behind.
    #[must_use]
    pub fn without_git(self) -> Self {
        Self { inference: ContextInference::of_files_alone(), ..self }
    }

    /// Sets the environment variables that later calls send.
    pub fn set_env_names(&self, names: EnvNames) {
        self.inference.env().set_names(names);
    }

    /// Returns the name of a folder's repository, if there is one.
    pub fn find_repository(&self, cwd: &Path) -> Option<String> {
        self.inference.find_repository(cwd)
    }

    /// Calls a method that takes no context.
    ///
    /// # Errors
    /// The method's own error; `E_UNAVAILABLE` when the server does not answer.
    pub fn call(&self, name: &str, params: &Map<String, Value>) -> Result<Box<RawValue>> {
        self.remote.call(name, &to_raw(params)?)
    }

    /// Calls a method in the context of this process. Fills in the missing fields of `context`.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    pub fn call_here(
        &self,
        name: &str,
        mut params: Map<String, Value>,
        context: Map<String, Value>,
    ) -> Result<Box<RawValue>> {
        params.insert("context".into(), Value::Object(context));
        self.call_in(name, context_use(name), &params, process_cwd().as_deref(), None)
    }

    /// Calls a method in the context of `cwd`; `key` is the idempotency key.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    pub fn call_from<T: DeserializeOwned>(
        &self,
        cwd: Option<&Path>,
        name: &str,
        params: &Map<String, Value>,
        key: Option<&str>,
    ) -> Result<T> {
        parsed_as(&self.call_in(name, context_use(name), params, cwd, key)?)
    }

    /// Calls a method, and fills in its context. Calls the method again if the answer depends on variables that the
    /// context lacks.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
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

/// Returns how to fill in the context of a method. For an unknown method, only a given context is filled in.
fn context_use(name: &str) -> ContextUse {
    let row = sources::find_method(name).or_else(|| EventService::TABLE.find_method(name));
    row.map_or(ContextUse::InferredIfGiven, |row| row.context)
}
