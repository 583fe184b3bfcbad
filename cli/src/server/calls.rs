//! Where calls run: on the event loop's own thread, which is quickest, unless they may take long.

use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderValue, USER_AGENT};
use nudge::{Caller, Error, ErrorKind, Result, Service};
use nudge_client::{ENV_HEADER, KEY_HEADER};
use serde_json::value::RawValue;
use tokio::task::spawn_blocking;

use super::history::{CHANGES, History};
use super::rpc;

/// Calls with more than this to read go to a thread of their own.
pub(super) const MAX_INLINE_BYTES: usize = 64 << 10;
/// Answers with everything.
const LONG: &str = "nudge.export";
/// Besides it: a search through every text, and names written with escapes, which could be any.
const PERHAPS_LONG: [&str; 2] = ["\"regex\"", "\\u00"];
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
    let caller = match by.caller() {
        Ok(caller) => caller,
        Err(error) => return rpc::refusal(&body, &error),
    };
    if let Some(params) = rpc::params_of(&body, CHANGES)
        && let Err(error) = history.wait(params).await
    {
        return rpc::refusal(&body, &error);
    }
    if body.len() <= MAX_INLINE_BYTES && is_short(&body) {
        return rpc::answer(&*service, caller, &body);
    }
    let answered = spawn_blocking(move || {
        let caller = by.caller().unwrap_or_default();
        rpc::answer(&*service, caller, &body)
    });
    answered.await.unwrap_or_else(|_| Some(rpc::failure(&broken())))
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
    if params.get().len() <= MAX_INLINE_BYTES && method != LONG && is_short(params.get().as_bytes()) {
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

/// Whether a body surely holds one call that takes no time. Looking for words errs on the safe side.
fn is_short(body: &[u8]) -> bool {
    let Ok(body) = std::str::from_utf8(body) else { return true };
    // A batch may hold a thousand calls.
    !body.trim_start().starts_with('[') && !body.contains(LONG) && !PERHAPS_LONG.iter().any(|word| body.contains(word))
}

fn broken() -> Error {
    Error::new(ErrorKind::Unavailable, "The call broke off inside the server; report this, then try again.")
}
