//! Where calls run: on the event loop's own thread, which is quickest, unless they may take long.

use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderValue, USER_AGENT};
use nudge::{Caller, Cost, Error, ErrorKind, Result, Service};
use nudge_client::{ENV_HEADER, KEY_HEADER};
use serde_json::value::RawValue;
use tokio::task::spawn_blocking;

use super::history::{CHANGES, History};
use super::rpc::{self, Request};

/// Calls with more than this to read go to a thread of their own, and so do batches, which may hold a thousand.
pub(super) const MAX_INLINE_BYTES: usize = 64 << 10;
/// What is kept of a caller's name.
const MAX_NAME_BYTES: usize = 128;
const MAX_KEY_BYTES: usize = 255;

/// What the head of a request says of its caller.
pub struct By {
    name: Option<HeaderValue>,
    key: Option<HeaderValue>,
    asks_env: bool,
}

impl By {
    /// Reads the head.
    pub fn head(headers: &HeaderMap) -> Self {
        Self {
            name: headers.get(USER_AGENT).cloned(),
            key: headers.get(KEY_HEADER).cloned(),
            asks_env: headers.contains_key(ENV_HEADER),
        }
    }

    fn caller(&self) -> Result<Caller<'_>> {
        // Visible ASCII or nothing, so it can be cut anywhere.
        let name = self.name.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
        let caller = Caller::named(&name[..name.len().min(MAX_NAME_BYTES)]);
        let caller = if self.asks_env { caller.asking_env() } else { caller };
        let Some(key) = &self.key else { return Ok(caller) };
        let key = key.to_str().ok().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()));
        let message = "An Idempotency-Key is 1 to 255 visible ASCII characters; send another one.";
        Ok(caller.with_key(Some(key.ok_or_else(|| Error::new(ErrorKind::Invalid, message))?)))
    }
}

/// Answers an HTTP body; `None` when it holds notifications only.
pub async fn answer(service: Arc<dyn Service>, history: &History, by: By, body: Bytes) -> Option<Bytes> {
    let is_large = body.len() > MAX_INLINE_BYTES || body.trim_ascii_start().starts_with(b"[");
    let Some(request) = (!is_large).then(|| Request::read(&body)).flatten() else {
        return on_a_thread(move || match by.caller() {
            Ok(caller) => rpc::answer(&*service, caller, &body),
            Err(error) => Request::read(&body).map_or_else(|| Some(rpc::failure(&error)), |one| one.refusal(&error)),
        })
        .await;
    };
    let caller = match by.caller() {
        Ok(caller) => caller,
        Err(error) => return request.refusal(&error),
    };
    if request.method == CHANGES
        && let Err(error) = history.wait(request.params()).await
    {
        return request.refusal(&error);
    }
    if Cost::is_quick(service.method(&request.method), request.params().get()) {
        return request.answer(&*service, caller);
    }
    let request = request.to_owned();
    on_a_thread(move || request.borrowed().answer(&*service, by.caller().unwrap_or_default())).await
}

async fn on_a_thread(answer: impl FnOnce() -> Option<Bytes> + Send + 'static) -> Option<Bytes> {
    spawn_blocking(answer).await.unwrap_or_else(|_| Some(rpc::failure(&broken())))
}

/// Makes one call that is already taken apart.
///
/// # Errors
/// What the method says.
pub async fn call(
    service: Arc<dyn Service>,
    caller: Caller<'_>,
    method: &str,
    params: &RawValue,
) -> Result<Box<RawValue>> {
    if params.get().len() <= MAX_INLINE_BYTES && Cost::is_quick(service.method(method), params.get()) {
        return service.call_by(caller, method, params);
    }
    let (caller, method, params) = (OwnedCaller::from(caller), method.to_owned(), params.to_owned());
    let run = move || service.call_by(caller.borrowed(), &method, &params);
    spawn_blocking(run).await.unwrap_or_else(|_| Err(broken()))
}

/// A caller that can go to another thread.
struct OwnedCaller {
    name: String,
    key: Option<String>,
    asks_env: bool,
}

impl From<Caller<'_>> for OwnedCaller {
    fn from(caller: Caller<'_>) -> Self {
        Self { name: caller.name.into(), key: caller.key.map(Into::into), asks_env: caller.env }
    }
}

impl OwnedCaller {
    fn borrowed(&self) -> Caller<'_> {
        let caller = Caller::named(&self.name).with_key(self.key.as_deref());
        if self.asks_env { caller.asking_env() } else { caller }
    }
}

fn broken() -> Error {
    Error::new(ErrorKind::Unavailable, "The call broke off inside the server; report this, then try again.")
}
