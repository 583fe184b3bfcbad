//! Offers Python a store of this process or the machine's running session, and views of both.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nudge::{Config, Context, Error, Nudge, Service, check_name};
use nudge_client::{FoundHint, RuntimeDir, Store};
use parking_lot::Mutex;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use serde_json::value::RawValue;

use crate::context::{PyContext, read};
use crate::environ::variables;
use crate::errors::{argument, raise};
use crate::fork;
use crate::found::PyMatch;
use crate::json;
use crate::waiting;

/// The store or session behind a `Store`.
#[pyclass(frozen, module = "nudge._nudge")]
pub struct Backend(Arc<SharedBackend>);

pub(crate) struct SharedBackend {
    closed: AtomicBool,
    kind: BackendKind,
}

enum BackendKind {
    Own(Store),
    Session(SessionRoute),
}

/// The data with which a process connects to a running session.
struct SessionRoute {
    dir: PathBuf,
    name: String,
    /// Locked only for moments, by threads that have the interpreter's lock. It is therefore never locked during a
    /// fork.
    link: Mutex<ProcessLink>,
}

/// A connection, and the process that opened it, because a child must not use its parent's connection.
struct ProcessLink {
    generation: u32,
    store: Option<Arc<Store>>,
}

impl Backend {
    pub fn own(config: Config) -> Self {
        Self::of(BackendKind::Own(Store::new(config)))
    }

    fn of(kind: BackendKind) -> Self {
        Self(Arc::new(SharedBackend { closed: AtomicBool::new(false), kind }))
    }
}

/// Connects to the session of a runtime directory as the client `name`.
#[pyfunction]
pub fn session(py: Python<'_>, runtime_dir: Option<PathBuf>, name: String) -> PyResult<Backend> {
    let named = || variables(py).map(|vars| vars.get(OsStr::new("NUDGE_RUNTIME_DIR")).map(PathBuf::from));
    let given = match runtime_dir {
        Some(given) => Some(given),
        None => named()?.filter(|named| !named.as_os_str().is_empty()),
    };
    let dir = RuntimeDir::open(given.as_deref()).map_err(|error| raise(py, &error))?;
    // Makes the folder absolute: when a child connects again, its working folder may be another one.
    let dir = std::path::absolute(dir.path()).unwrap_or_else(|_| dir.path().to_owned());
    let store = connected(py, &dir, &name)?;
    let link = Mutex::new(ProcessLink { generation: fork::generation(), store: Some(Arc::new(store)) });
    Ok(Backend::of(BackendKind::Session(SessionRoute { dir, name, link })))
}

/// Connects to the session of `dir`. No step of this function may read the environment.
fn connected(py: Python<'_>, dir: &Path, name: &str) -> PyResult<Store> {
    // Runs with the interpreter's lock, because Python changes its environment only under that lock.
    let store = Store::new_unconnected(Some(dir), name, Some(waiting::give_up())).map_err(|error| raise(py, &error))?;
    waiting::detached(py, || store.open())?.map_err(|error| raise(py, &error))?;
    Ok(store)
}

impl SessionRoute {
    /// Returns the connection of this process. After a fork, the child opens its own connection.
    fn store(&self, py: Python<'_>) -> PyResult<Arc<Store>> {
        let generation = fork::generation();
        {
            let link = self.link.lock();
            if let Some(store) = link.store.as_ref().filter(|_| link.generation == generation) {
                return Ok(Arc::clone(store));
            }
        }
        let fresh = Arc::new(connected(py, &self.dir, &self.name)?);
        let mut link = self.link.lock();
        // The old connection belongs to the parent, and only the parent closes it.
        std::mem::forget(link.store.replace(Arc::clone(&fresh)));
        link.generation = generation;
        Ok(fresh)
    }

    fn close(&self) {
        let mut link = self.link.lock();
        let store = link.store.take();
        if link.generation != fork::generation() {
            std::mem::forget(store);
        }
    }
}

impl Drop for SessionRoute {
    fn drop(&mut self) {
        self.close();
    }
}

impl SharedBackend {
    fn open(&self, py: Python<'_>) -> PyResult<&BackendKind> {
        if self.closed.load(Ordering::Acquire) {
            let closed = Error::unavailable("The store is closed; open a new one.");
            return Err(raise(py, &closed));
        }
        Ok(&self.kind)
    }

    /// Calls the store without the interpreter's lock.
    pub(crate) fn detached<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Store) -> T + Send) -> PyResult<T> {
        match self.open(py)? {
            BackendKind::Own(store) => Ok(fork::detached(py, || work(store))),
            BackendKind::Session(session) => {
                let store = session.store(py)?;
                waiting::detached(py, || work(&store))
            }
        }
    }
}

fn found(py: Python<'_>, found: Result<Option<FoundHint>, Error>) -> PyResult<Option<PyMatch>> {
    found.map(|found| found.map(PyMatch)).map_err(|error| raise(py, &error))
}

/// Splits the params into their `context` and the other params. Returns `None` when the `context` is missing or no
/// `Context`.
fn apart<'py>(params: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let name = intern!(params.py(), "context");
    let Ok(mapping) = params.cast::<PyMapping>() else { return Ok(None) };
    if !mapping.contains(name)? {
        return Ok(None);
    }
    let context = mapping.get_item(name)?;
    if !context.is_instance_of::<PyContext>() {
        return Ok(None);
    }
    let rest = PyDict::new(params.py());
    rest.update(mapping)?;
    rest.del_item(name)?;
    Ok(Some((context, rest.into_any())))
}

/// The base class of `Store`: `call`, and the calls that must be fast.
#[pyclass(frozen, subclass, module = "nudge._nudge")]
pub struct NativeStore(pub(crate) Arc<SharedBackend>);

#[pymethods]
impl NativeStore {
    #[new]
    fn new(backend: &Backend) -> Self {
        Self(Arc::clone(&backend.0))
    }

    /// Finds the best hint of a key that fits the context. Returns None if no hint fits.
    ///
    /// `context` is None, a `Context`, a dict or other mapping (a TypedDict such as `ContextDict`), or any object with
    /// the attributes of a context (a dataclass). For repeated calls, keep a `Context` or a `view`. With `variant`,
    /// only this variant is returned, if it fits.
    ///
    /// Raises `InvalidError`. Raises `UnavailableError` when a session cannot be reached or the store is closed.
    ///
    /// >>> with nudge.Store() as store:
    /// ...     _ = store.set("api", "build", "make dev", scope={"branch": "dev"})
    /// ...     print(store.get("api", "build", {"branch": "dev"}).text)
    /// ...     print(store.get("api", "build", {"branch": "main"}))
    /// make dev
    /// None
    #[pyo3(signature = (component, key, context=None, *, variant=None))]
    fn get(
        &self,
        py: Python<'_>,
        component: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        context: Option<&Bound<'_, PyAny>>,
        variant: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<PyMatch>> {
        let context = read(py, context)?;
        let (component, key) = (argument(component, "component")?, argument(key, "key")?);
        let variant =
            variant.filter(|variant| !variant.is_none()).map(|variant| argument(variant, "variant")).transpose()?;
        let context = &*context;
        match (self.0.open(py)?, variant) {
            // The lookup is so short that a release of the interpreter's lock would cost more than the lookup.
            (BackendKind::Own(store), None) => found(py, store.get(component, key, context)),
            (_, None) => found(py, self.0.detached(py, |store| store.get(component, key, context))?),
            (_, Some(variant)) => {
                found(py, self.0.detached(py, |store| store.get_variant(component, key, variant, context))?)
            }
        }
    }

    /// Calls a method by its name, such as `nudge.query`. `nudge.methods()` lists the names. `params` is JSON text, or
    /// a dict whose `context` may be a `Context`. JSON text is passed on unchanged. Returns the method's answer as
    /// Python objects.
    ///
    /// Raises the method's own errors, `UnknownMethodError` and `ParamsNotObjectError`.
    ///
    /// >>> nudge.Store().call("nudge.list_components")
    /// {'components': []}
    #[pyo3(signature = (method, params=None))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        method: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let params = params.filter(|params| !params.is_none());
        if let Some((context, rest)) = params.map(apart).transpose()?.flatten() {
            return self.call_from(py, Some(&context), method, &rest);
        }
        let method = argument(method, "method")?;
        let params = json::params(py, params)?;
        let result = self.0.detached(py, |store| store.call(method, &params))?;
        json::answer(py, result)
    }

    /// Makes a `call` with `context`, for methods that take one.
    fn _call_in<'py>(
        &self,
        py: Python<'py>,
        context: Option<&Bound<'py, PyAny>>,
        method: &Bound<'py, PyAny>,
        params: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call_from(py, context, method, params)
    }

    /// Returns every hint as JSON, for `__iter__`.
    fn _hints<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let hints = self.0.detached(py, Store::list_hints)?.map_err(|error| raise(py, &error))?;
        let all: Vec<_> = hints.iter().map(|hint| hint.get()).collect();
        json::parse(py, &format!("[{}]", all.join(",")))
    }

    /// Closes the store: later calls raise `UnavailableError`, and a connection ends. Closing twice does nothing.
    fn close(&self) {
        if !self.0.closed.swap(true, Ordering::AcqRel)
            && let BackendKind::Session(session) = &self.0.kind
        {
            session.close();
        }
    }

    /// Is true when the store is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    fn __repr__(&self) -> String {
        let kind = match self.0.kind {
            BackendKind::Own(_) => "in process",
            BackendKind::Session(_) => "of the session",
        };
        format!("<nudge.Store {kind}{}>", if self.closed() { ", closed" } else { "" })
    }
}

impl NativeStore {
    fn call_from<'py>(
        &self,
        py: Python<'py>,
        context: Option<&Bound<'py, PyAny>>,
        method: &Bound<'py, PyAny>,
        params: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = context.filter(|context| !context.is_none());
        let context = read(py, given)?;
        let method = argument(method, "method")?;
        let params = json::params(py, Some(params))?;
        let (anywhere, context) = (given.is_none(), &*context);
        let call = |store: &Store| -> Result<Box<RawValue>, Error> {
            if anywhere {
                return store.call(method, &params);
            }
            store.call_raw_in(context, method, &params)
        };
        let result = self.0.detached(py, call)?;
        json::answer(py, result)
    }
}

/// The base class of `View`.
#[pyclass(frozen, subclass, module = "nudge._nudge")]
pub struct NativeView {
    shared: Arc<SharedBackend>,
    context: Context,
    /// The view of a store of this process; it remembers for each scope whether it fits. `None` for a session.
    own: Option<nudge::View<Arc<Nudge>>>,
}

#[pymethods]
impl NativeView {
    #[new]
    #[pyo3(signature = (store, context=None))]
    fn new(py: Python<'_>, store: &NativeStore, context: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let context = read(py, context)?.into_owned();
        let own = match store.0.open(py)? {
            BackendKind::Own(store) => {
                store.as_nudge().map(|nudge| nudge::View::new(Arc::clone(nudge), context.clone()))
            }
            BackendKind::Session(_) => None,
        };
        Ok(Self { shared: Arc::clone(&store.0), context, own })
    }

    /// Does what `Store.get` does, with this view's context.
    fn get(&self, py: Python<'_>, component: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>) -> PyResult<Option<PyMatch>> {
        let (component, key) = (argument(component, "component")?, argument(key, "key")?);
        match &self.own {
            Some(view) => {
                self.shared.open(py)?;
                if let Some(match_) = view.get(component, key) {
                    return Ok(Some(PyMatch(match_.into())));
                }
                // A hint that was found needs no check of its name, because stored names are valid.
                let checked = check_name("component", component).and_then(|()| check_name("key", key));
                found(py, checked.map(|()| None))
            }
            None => found(py, self.shared.detached(py, |store| store.get(component, key, &self.context))?),
        }
    }

    /// Returns the view's context.
    #[getter]
    fn context(&self) -> PyContext {
        PyContext(self.context.clone())
    }
}
