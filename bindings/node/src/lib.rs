//! The native half of the npm package `nudge-hints`: a few functions that take numbers and strings.
//!
//! `index.js` makes classes from these functions. Here, stores and views are numbers; a view is a store seen from one
//! context. To pass an object between JavaScript and Rust would cost many times as much as a lookup. Params and results
//! are JSON text, as for [`nudge::Service`]. An error is thrown; its message is the error's JSON. Every function
//! catches panics, and Node gets an error in place of a panic.

// A test build exports no functions, because it cannot link Node's symbols. The functions then look unused.
#![cfg_attr(test, allow(dead_code))]

mod handles;
mod later;
mod lookup;
mod named;
mod refusal;
mod tools;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

// `#[napi]` recognises a function that throws by the name `Result` in its return type.
use napi::Result;
use napi_derive::napi;
use nudge::{Context, ContextSpec, Error, ErrorKind, Nudge, Os, Service, check_name};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use handles::{StoreHandle, with_handle};
use refusal::refused;

/// Opens a new store with the settings in `config`. If `name` is given, opens the store with this name in the process,
/// and makes it if there is none.
#[napi(catch_unwind)]
pub fn open(config: String, name: Option<String>) -> Result<u32> {
    let config = named::StoreSettings::read(&config).map_err(refused)?;
    let store = match name {
        None => config.create(),
        Some(name) => named::open(&name, &config).map_err(refused)?,
    };
    Ok(handles::open(store))
}

/// Forgets a named store. Returns true when the name existed. Threads that have the store open keep it.
#[napi(catch_unwind)]
pub fn forget(name: String) -> bool {
    named::forget(&name)
}

/// Opens the running session of a runtime directory. `name` is the name of the client.
#[napi(catch_unwind)]
pub fn connect(runtime_dir: Option<String>, name: String) -> Result<u32> {
    let store = nudge_client::Store::connect(runtime_dir.as_deref().map(Path::new), &name).map_err(refused)?;
    Ok(handles::open(store.into()))
}

/// Closes a store and its views. Does nothing when the store is already closed.
#[napi(catch_unwind)]
pub fn close(store: u32) {
    handles::close(store);
}

/// Calls a method of the table. Params and result are JSON.
#[napi(catch_unwind)]
pub fn call(store: u32, method: String, params: String) -> Result<String> {
    let store = with_handle(store, StoreHandle::store).map_err(refused)?;
    let params = raw(params).map_err(refused)?;
    store.call(&method, &params).map(text).map_err(refused)
}

/// Calls a method with the context of a view, otherwise as [`call`] does. Sends only the environment variables that the
/// session asks for.
#[napi(catch_unwind)]
pub fn call_from(store: u32, view: u32, method: String, params: String) -> Result<String> {
    call_in(store, view, &method, params).map(text).map_err(refused)
}

/// Makes a view of a store from a context in JSON, and from the environment `env`, if that is given.
#[napi(catch_unwind)]
pub fn view(store: u32, context: String, env: Option<String>) -> Result<u32> {
    let context = read_context(context, env).map_err(refused)?;
    with_handle(store, |handle| handle.add_view(context)).map_err(refused)
}

/// Forgets the views of a store. If `pairs` is true, also forgets the keys that were looked up.
#[napi(catch_unwind)]
pub fn reset(store: u32, pairs: bool) -> Result<()> {
    with_handle(store, |handle| handle.reset(pairs)).map_err(refused)
}

/// Returns a number for a component and key, with which a view can look the key up.
#[napi(catch_unwind)]
pub fn pair(store: u32, component: String, key: String) -> Result<u32> {
    check_name("component", &component).and_then(|()| check_name("key", &key)).map_err(refused)?;
    with_handle(store, |handle| handle.add_pair(component, key)).map_err(refused)
}

/// Returns the hint that `get` last found for this pair: `{text, hint, match_explain}`.
#[napi(catch_unwind)]
pub fn render(store: u32, view: u32, pair: u32) -> Result<String> {
    let rendered = with_handle(store, |handle| handle.view(view).and_then(|view| view.rendered(pair)));
    rendered.and_then(|rendered| rendered).map_err(refused)
}

/// Calls `nudge.get_hint` and returns the hint in the form of [`render`]. Returns undefined when no hint fits.
#[napi(catch_unwind)]
pub fn find(store: u32, view: u32, params: String) -> Result<Option<String>> {
    match call_in(store, view, "nudge.get_hint", params) {
        Ok(result) => lookup::with_text(&result).map(Some).map_err(refused),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

/// Checks a context. Returns it in normal form, without its environment.
#[napi(catch_unwind)]
pub fn check_context(context: String, env: Option<String>) -> Result<String> {
    Ok(context_to_json(&read_context(context, env).map_err(refused)?).to_string())
}

/// Detects the context of this process, or of `cwd`. Returns it without the environment. The environment to use is
/// `env`: other threads of Node change the environment of the process without Rust's lock, so this function must not
/// read that one.
#[napi(catch_unwind)]
pub fn detect(cwd: Option<String>, env: String) -> Result<String> {
    let vars = variables(&env).map_err(refused)?;
    let vars: HashMap<OsString, OsString> = vars.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let found = nudge_client::detect_from(cwd.as_deref().map(Path::new), &vars);
    Ok(context_to_json(&found.map_err(refused)?).to_string())
}

/// Returns the name of the operating system. Returns undefined when scopes have no name for it.
#[napi(catch_unwind)]
pub fn system() -> Option<&'static str> {
    Os::current().map(Os::as_str)
}

/// Returns the names of the table's methods.
#[napi(catch_unwind)]
pub fn methods() -> Vec<&'static str> {
    nudge::methods().iter().map(|method| method.name).collect()
}

/// Returns every hint of a store as a JSON array.
#[napi(catch_unwind)]
pub fn hints(store: u32) -> Result<String> {
    let store = with_handle(store, StoreHandle::store).map_err(refused)?;
    let hints = store.list_hints().map_err(refused)?;
    let all: Vec<_> = hints.iter().map(|hint| hint.get()).collect();
    Ok(format!("[{}]", all.join(",")))
}

/// Returns the names of the params of each method, and the names of the fields of a context, a scope and a hint's
/// `meta`.
#[napi(catch_unwind)]
pub fn fields() -> String {
    let names = |schema: &Value| -> Value {
        schema["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect()
    };
    let mut all = Map::new();
    for method in nudge::methods() {
        let schema = (method.params)();
        if method.name == "nudge.set_hint" {
            all.insert("meta".into(), names(&schema["properties"]["meta"]));
            all.insert("scope".into(), names(&schema["properties"]["meta"]["properties"]["scope"]));
        }
        all.insert(method.name.into(), names(&schema));
    }
    all.insert("context".into(), ContextSpec::FIELDS.into_iter().collect());
    Value::Object(all).to_string()
}

/// Returns the message for an unknown name. `known` are the names that exist.
#[napi(catch_unwind)]
pub fn unknown(what: String, name: String, known: Vec<String>) -> String {
    let known: Vec<_> = known.iter().map(String::as_str).collect();
    nudge::near::refuse_unknown(&what, &name, &known).message().to_owned()
}

/// Returns every kind of error, as `[[reason, code], ...]`.
#[napi(catch_unwind)]
pub fn errors() -> String {
    let all = ErrorKind::ALL.map(|kind| json!([kind.reason(), kind.code()]));
    Value::from_iter(all).to_string()
}

/// Panics, so that a test can see that the panic is caught.
///
/// # Panics
///
/// Always.
#[cfg(feature = "test-clock")]
#[napi(catch_unwind)]
pub fn test_panic() {
    panic!("as the test asked");
}

/// Returns the schema of each method's params. The tests compare `index.d.ts` with these schemas.
#[cfg(feature = "test-clock")]
#[napi(catch_unwind)]
pub fn test_schemas() -> String {
    let all = nudge::methods().into_iter().map(|method| (method.name.to_owned(), (method.params)()));
    // The schema of a context only says "object", so this list has its fields.
    let context = json!({"fields": ContextSpec::FIELDS, "os": Os::ALL.map(Os::as_str)});
    Value::Object(all.chain([("context".to_owned(), context)]).collect()).to_string()
}

fn call_in(store: u32, view: u32, method: &str, params: String) -> nudge::Result<Box<RawValue>> {
    let (store, context) =
        with_handle(store, |handle| (handle.store(), handle.view(view).map(|view| view.context().clone())))?;
    store.call_raw_in(&context?, method, &raw(params)?)
}

fn text(result: Box<RawValue>) -> String {
    String::from(Box::<str>::from(result))
}

fn raw(json: String) -> nudge::Result<Box<RawValue>> {
    RawValue::from_string(json).map_err(|_| no_json())
}

fn no_json() -> Error {
    Error::invalid("The params are not valid JSON.")
}

/// Reads a context as the methods of the table do. First calls `why` on an empty store, so that a wrong context gets
/// the same error as in those methods.
fn read_context(context: String, env: Option<String>) -> nudge::Result<Context> {
    #[derive(serde::Serialize)]
    struct ContextProbe<'a> {
        component: &'a str,
        key: &'a str,
        context: &'a RawValue,
    }
    static EMPTY: LazyLock<Nudge> = LazyLock::new(Nudge::default);
    let context = raw(context)?;
    let asked = to_raw_value(&ContextProbe { component: "x", key: "x", context: &context });
    EMPTY.call("nudge.why", &asked.map_err(|_| no_json())?)?;
    let spec: Option<ContextSpec> = serde_json::from_str(context.get()).map_err(|_| no_json())?;
    let context = spec.unwrap_or_default().build()?;
    let Some(env) = env else { return Ok(context) };
    Ok(context.with_env(variables(&env)?))
}

/// Parses an environment from a JSON object of strings.
fn variables(env: &str) -> nudge::Result<HashMap<String, String>> {
    serde_json::from_str(env).map_err(|_| Error::invalid("The environment must be an object of strings."))
}

/// Writes a context as JSON, without its environment.
fn context_to_json(context: &Context) -> Value {
    let os = context.os().map(nudge::Os::as_str);
    let fields =
        [("cwd", context.cwd()), ("repo", context.repo().as_deref()), ("branch", context.branch()), ("os", os)]
            .map(|(name, value)| (name, value.map(str::to_owned)));
    let mut out: Map<_, _> =
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect();
    if !context.files_open().is_empty() {
        out.insert("files_open".into(), context.files_open().into());
    }
    out.into()
}
