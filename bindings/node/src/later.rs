//! Makes calls on a thread of Node's pool, so that the event loop continues while a session answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use napi::bindgen_prelude::AsyncTask;
use napi::{Env, Result, Task};
use napi_derive::napi;
use nudge::{Context, Error, ErrorKind, Service as _};
use nudge_client::Store;
use serde_json::value::RawValue;

use crate::handles::{self, StoreHandle, with_handle};
use crate::lookup;
use crate::refusal::refused;

/// A call of a method, with the context of a view if there is one.
pub struct LaterCall {
    store: Arc<Store>,
    context: Option<Context>,
    method: String,
    params: Box<RawValue>,
    /// True to answer as `find` does: with the hint and its text, or with null when no hint fits.
    is_lookup: bool,
}

/// The params for a connection to a session.
pub struct LaterConnection {
    runtime_dir: Option<PathBuf>,
    name: String,
}

impl LaterCall {
    fn make_call(&self) -> nudge::Result<Option<String>> {
        let answered = match &self.context {
            Some(context) => self.store.call_raw_in(context, &self.method, &self.params),
            None => self.store.call(&self.method, &self.params),
        };
        match answered {
            Ok(answer) if self.is_lookup => lookup::with_text(&answer).map(Some),
            Ok(answer) => Ok(Some(String::from(Box::<str>::from(answer)))),
            Err(error) if self.is_lookup && error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Task for LaterCall {
    type Output = Option<String>;
    type JsValue = Option<String>;

    fn compute(&mut self) -> Result<Self::Output> {
        catch_panic(|| self.make_call())
    }

    fn resolve(&mut self, _: Env, answer: Self::Output) -> Result<Self::JsValue> {
        Ok(answer)
    }
}

impl Task for LaterConnection {
    type Output = Store;
    type JsValue = u32;

    fn compute(&mut self) -> Result<Store> {
        catch_panic(|| Store::connect(self.runtime_dir.as_deref(), &self.name))
    }

    /// Runs on the JavaScript thread that gets the number.
    fn resolve(&mut self, _: Env, store: Store) -> Result<u32> {
        Ok(handles::open(store.into()))
    }
}

/// Turns a panic into a rejected promise, because a panic on a pool thread would end the process.
fn catch_panic<T>(work: impl FnOnce() -> nudge::Result<T>) -> Result<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err(Error::unavailable("The call failed by a mistake of Nudge; report it.")))
        .map_err(refused)
}

/// Does the same as `call` and `call_from`, but returns a promise.
#[napi(catch_unwind)]
pub fn call_later(store: u32, view: Option<u32>, method: String, params: String) -> Result<AsyncTask<LaterCall>> {
    make_later(store, view, method, params, false)
}

/// Does the same as `find`, but returns a promise.
#[napi(catch_unwind)]
pub fn find_later(store: u32, view: u32, params: String) -> Result<AsyncTask<LaterCall>> {
    make_later(store, Some(view), "nudge.get_hint".to_owned(), params, true)
}

/// Does the same as `connect`, but returns a promise.
#[napi(catch_unwind)]
pub fn connect_later(runtime_dir: Option<String>, name: String) -> AsyncTask<LaterConnection> {
    AsyncTask::new(LaterConnection { runtime_dir: runtime_dir.map(PathBuf::from), name })
}

fn make_later(
    store: u32,
    view: Option<u32>,
    method: String,
    params: String,
    is_lookup: bool,
) -> Result<AsyncTask<LaterCall>> {
    let params = crate::raw(params).map_err(refused)?;
    let read = |handle: &mut StoreHandle| {
        let context = view.map(|view| handle.view(view).map(|view| view.context().clone())).transpose()?;
        Ok((handle.store(), context))
    };
    let (store, context) = with_handle(store, read).and_then(|read| read).map_err(refused)?;
    Ok(AsyncTask::new(LaterCall { store, context, method, params, is_lookup }))
}
