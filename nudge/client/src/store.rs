//! Defines one type for a store in this process and for the machine's running session. The language bindings use it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use nudge::{Caller, Config, Context, Error, ErrorKind, Match, MethodSpec, Nudge, Result, Service, check_name};
use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::env::AskedEnv;
use crate::found::FoundHint;
use crate::params::CallParams;
use crate::remote::{GiveUp, RemoteServer};
use crate::runtime::RuntimeDir;

/// A [`Nudge`] in this process, or the running session that the machine's `nudge serve` processes share. Callers use
/// the same methods for both, by name through [`Service`].
///
/// ```
/// use nudge::{Context, Service};
/// use nudge_client::Store;
///
/// let store = Store::new(nudge::Config::default());
/// let hint = r#"{"component":"api","key":"build","value":"make api"}"#.to_owned();
/// store.call("nudge.set_hint", &serde_json::value::RawValue::from_string(hint)?)?;
/// let found = store.get("api", "build", &Context::default())?.expect("it applies everywhere");
/// assert_eq!((found.text(), found.reasons()), ("make api", vec!["no scope: applies everywhere".to_owned()]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store(StoreKind);

enum StoreKind {
    Own {
        nudge: Arc<Nudge>,
        #[cfg(feature = "test-clock")]
        clock: Arc<Clock>,
    },
    Session(Box<SessionLink>),
}

struct SessionLink {
    dir: RuntimeDir,
    /// The caller's name, which `nudge.deletions` shows.
    name: String,
    give_up: Option<GiveUp>,
    /// The connection, and the id of the process that opened it. A forked child must open its own connection.
    remote: Mutex<(u32, Arc<RemoteServer>)>,
    /// The names of the environment variables that the session asked for last.
    env: AskedEnv,
}

/// The clock of a store in this process: the system's clock, or in tests a clock that the test moves.
#[cfg(not(feature = "test-clock"))]
type Clock = nudge::SystemClock;
#[cfg(feature = "test-clock")]
type Clock = nudge::ManualClock;

impl Store {
    /// Makes an empty store in this process.
    pub fn new(config: Config) -> Self {
        let clock = Arc::new(make_clock());
        let nudge = Nudge::with_clock(config, Arc::clone(&clock) as Arc<dyn nudge::Clock>);
        Self(StoreKind::Own {
            nudge: Arc::new(nudge),
            #[cfg(feature = "test-clock")]
            clock,
        })
    }

    /// Connects to the session in `runtime_dir`, or else in `NUDGE_RUNTIME_DIR`, or else in the default directory.
    /// `name` is the caller's name, which `nudge.deletions` shows.
    ///
    /// When a PRIMARY dies, calls continue with the next one. Calls block, so they must not be made on a thread that
    /// drives a tokio runtime. After a fork, the child opens its own connections.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when no `nudge serve` runs for that directory.
    pub fn connect(runtime_dir: Option<&Path>, name: &str) -> Result<Self> {
        let store = Self::new_unconnected(runtime_dir, name, None)?;
        store.open()?;
        Ok(store)
    }

    /// Makes a store as [`connect`](Self::connect) does, but does not connect yet. `give_up` can end the wait of any
    /// call. Only this function reads the environment (tokio reads a variable), so code in other languages must not
    /// change the environment meanwhile.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the runtime directory is missing.
    pub fn new_unconnected(runtime_dir: Option<&Path>, name: &str, give_up: Option<GiveUp>) -> Result<Self> {
        let dir = RuntimeDir::open(runtime_dir)?;
        let remote = RemoteServer::from_dir(&dir, give_up.clone())?.with_name(name);
        let remote = Mutex::new((std::process::id(), Arc::new(remote)));
        let link = SessionLink { dir, name: name.into(), give_up, remote, env: AskedEnv::default() };
        Ok(Self(StoreKind::Session(Box::new(link))))
    }

    /// Opens the first connection to a session before the first call needs it. Does nothing for a store in this
    /// process.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect); `E_UNAVAILABLE` after [`GiveUp`] has returned true.
    pub fn open(&self) -> Result<()> {
        match &self.0 {
            StoreKind::Own { .. } => Ok(()),
            StoreKind::Session(session) => session.get_remote()?.open_connection(),
        }
    }

    /// Returns the store of this process; `None` for a session.
    pub fn as_nudge(&self) -> Option<&Arc<Nudge>> {
        match &self.0 {
            StoreKind::Own { nudge, .. } => Some(nudge),
            StoreKind::Session(_) => None,
        }
    }

    /// Returns the variant of a key that fits `context` best; `None` when no variant fits.
    ///
    /// # Errors
    /// `E_INVALID` for a text that cannot be the name of a component or key; `E_UNAVAILABLE` when the session does not
    /// answer.
    pub fn get(&self, component: &str, key: &str, context: &Context) -> Result<Option<FoundHint>> {
        match &self.0 {
            StoreKind::Own { nudge, .. } => convert_match(nudge.get(component, key, context), component, key),
            StoreKind::Session(_) => {
                found_or_none(self.ask_for_hint(context, [("component", component), ("key", key)]))
            }
        }
    }

    /// Returns a hint as [`get`](Self::get) does, but considers only the given variant. The variant `""` has no scope.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub fn get_variant(
        &self,
        component: &str,
        key: &str,
        variant: &str,
        context: &Context,
    ) -> Result<Option<FoundHint>> {
        match &self.0 {
            StoreKind::Own { nudge, .. } => {
                convert_match(nudge.get_variant(component, key, variant, context), component, key)
            }
            StoreKind::Session(_) => found_or_none(
                self.ask_for_hint(context, [("component", component), ("key", key), ("variant", variant)]),
            ),
        }
    }

    /// Returns the variant of a key that fits `context` best, or an error that says why none fits.
    ///
    /// # Errors
    /// The errors of `nudge.get_hint`: `E_NOT_FOUND` with `near_misses` and `missing_context`; `E_INVALID` for a text
    /// that cannot be a name; `E_UNAVAILABLE` when the session does not answer.
    pub fn find(&self, component: &str, key: &str, context: &Context) -> Result<FoundHint> {
        match &self.0 {
            StoreKind::Own { nudge, .. } => match nudge.get(component, key, context) {
                Some(found) => Ok(found.into()),
                None => nudge.find(component, key, context).map(FoundHint::from),
            },
            StoreKind::Session(_) => self.ask_for_hint(context, [("component", component), ("key", key)]),
        }
    }

    fn ask_for_hint<const N: usize>(&self, context: &Context, params: [(&str, &str); N]) -> Result<FoundHint> {
        let params = params.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        FoundHint::parse(&self.call_in(context, "nudge.get_hint", &params)?)
    }

    /// Calls a method that takes a `context`, and inserts `context` into the params. It sends only the environment
    /// variables that the scopes of the candidates mention.
    ///
    /// # Errors
    /// The method's own errors; `E_INVALID` when the params already have a `context`; `E_UNAVAILABLE` when the session
    /// does not answer.
    pub fn call_in(&self, context: &Context, method: &str, params: &Map<String, Value>) -> Result<Box<RawValue>> {
        self.call_raw_in(context, method, &to_raw(params)?)
    }

    /// Calls a method as [`call_in`](Self::call_in) does. The params are JSON text.
    ///
    /// # Errors
    /// The errors of [`call_in`](Self::call_in).
    pub fn call_raw_in(&self, context: &Context, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let params = CallParams::read(params.to_owned());
        if params.given_context().is_some() {
            return Err(Error::invalid("`params` have a `context` already; give it in one of the two places."));
        }
        self.call_from(Caller::default(), context, method, |told| params.with_context(&told))
    }

    /// Makes a call with the params that `fill` makes from the context. If the session names missing variables, makes
    /// the call again with them.
    pub(crate) fn call_from(
        &self,
        caller: Caller<'_>,
        context: &Context,
        method: &str,
        fill: impl Fn(Map<String, Value>) -> Result<Box<RawValue>>,
    ) -> Result<Box<RawValue>> {
        let none = AskedEnv::default();
        let env = match &self.0 {
            StoreKind::Own { .. } => &none,
            StoreKind::Session(session) => &session.env,
        };
        let try_call = |caller: Caller<'_>| self.call_by(caller, method, &fill(build_context_params(context, env))?);
        // A context without an environment must not claim that a variable is unset. So this call does not ask the
        // session for names.
        if context.has_env() { env.call(caller, try_call) } else { try_call(caller) }
    }
}

impl Service for Store {
    fn methods(&self) -> Vec<&'static MethodSpec> {
        nudge::methods()
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        match &self.0 {
            #[cfg(feature = "test-clock")]
            StoreKind::Own { clock, .. } if method == "nudge.test_advance" => advance_clock(clock, params),
            StoreKind::Own { nudge, .. } => nudge.call_by(caller, method, params),
            // Refuses params that are no object here, because JSON-RPC would read null as missing params.
            StoreKind::Session(_) if !params.get().starts_with('{') => {
                Err(Error::new(ErrorKind::ParamsNotObject, "`params` must be a JSON object."))
            }
            StoreKind::Session(session) => session.get_remote()?.call_by(caller, method, params),
        }
    }
}

impl SessionLink {
    fn get_remote(&self) -> Result<Arc<RemoteServer>> {
        let (pid, remote) = &mut *self.remote.lock();
        if *pid != std::process::id() {
            let mine = Arc::new(
                RemoteServer::connect_giving_up(&self.dir, self.give_up.clone())?.with_name(self.name.as_str()),
            );
            // Leaks the old connection on purpose. A forked child shares the event queue with its parent, and only the
            // parent may close it.
            std::mem::forget(std::mem::replace(remote, mine));
            *pid = std::process::id();
        }
        Ok(Arc::clone(remote))
    }
}

/// Turns `E_NOT_FOUND` into `None`.
fn found_or_none(found: Result<FoundHint>) -> Result<Option<FoundHint>> {
    match found {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Converts the result of a store in this process. Returns an error if nothing was found and a text cannot be a name.
fn convert_match(found: Option<Match>, component: &str, key: &str) -> Result<Option<FoundHint>> {
    if found.is_none() {
        // Only an empty result needs the check: stored hints have valid names.
        check_name("component", component)?;
        check_name("key", key)?;
    }
    Ok(found.map(FoundHint::from))
}

#[cfg(not(feature = "test-clock"))]
fn make_clock() -> Clock {
    nudge::SystemClock
}

/// Makes a clock that starts at 2026-01-01T00:00:00Z, the time at which the test vectors begin.
#[cfg(feature = "test-clock")]
fn make_clock() -> Clock {
    nudge::ManualClock::new(1_767_225_600_000)
}

/// Moves the clock of a test forward by `ms`.
#[cfg(feature = "test-clock")]
fn advance_clock(clock: &nudge::ManualClock, params: &RawValue) -> Result<Box<RawValue>> {
    let params: Option<Value> = serde_json::from_str(params.get()).ok();
    let ms =
        params.and_then(|params| params["ms"].as_i64()).ok_or_else(|| Error::invalid("Give `ms`, a whole number."))?;
    to_raw(&serde_json::json!({"now_ms": clock.advance_by(ms)}))
}

/// Builds the `context` to send. It has only the environment variables that the session asked for.
fn build_context_params(context: &Context, asked: &AskedEnv) -> Map<String, Value> {
    let mut told = Map::new();
    let os = context.os().map(nudge::Os::as_str);
    let fields =
        [("cwd", context.cwd()), ("repo", context.repo().as_deref()), ("branch", context.branch()), ("os", os)]
            .map(|(name, value)| (name, value.map(str::to_owned)));
    for (name, value) in fields {
        if let Some(value) = value {
            told.insert(name.into(), value.into());
        }
    }
    if !context.files_open().is_empty() {
        told.insert("files_open".into(), context.files_open().into());
    }
    if context.has_env() {
        let mut env = asked.build_env(|name| context.env(name).map(str::to_owned));
        if env.is_empty() && told.is_empty() {
            // Adds an empty entry, so that `bump` sees a given context even before the session has asked for names.
            env.insert(String::new(), Value::Null);
        }
        if !env.is_empty() {
            told.insert("env".into(), env.into());
        }
    }
    told
}

/// Makes the error for an answer whose form this version does not support.
// Takes the argument by value, because `map_err` passes it so.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn unknown_form(_: serde_json::Error) -> Error {
    Error::unavailable("The session answers in a form unknown here; upgrade this client.")
}

pub(crate) fn to_raw(value: &impl serde::Serialize) -> Result<Box<RawValue>> {
    to_raw_value(value).map_err(|_| Error::invalid("The params cannot be written as JSON."))
}

impl fmt::Debug for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own { .. } => "own",
            Self::Session(_) => "session",
        })
    }
}
