//! Where calls run: on the event loop's own thread, which is quickest, unless they may take long.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::HeaderValue;
use nudge::{Caller, Error, ErrorKind, Result, Service};
use serde_json::value::RawValue;
use tokio::task::spawn_blocking;

use super::history::CHANGES;
use super::rpc;

/// Calls with more than this to read go to a thread of their own.
pub(super) const MAX_INLINE_BYTES: usize = 64 << 10;
/// Answers with everything, and answers when there is something to tell.
const LONG: [&str; 2] = ["nudge.export", CHANGES];
/// Besides them: a search through every text, and names written with escapes, which could be any.
const PERHAPS_LONG: [&str; 2] = ["\"regex\"", "\\u00"];

/// Answers an HTTP body; `None` when it holds notifications only.
///
/// `by` is the caller's own name for itself.
pub async fn answer(service: Arc<dyn Service>, by: Option<HeaderValue>, body: Bytes) -> Option<Bytes> {
    if body.len() <= MAX_INLINE_BYTES && is_short(&body) {
        return rpc::answer(&*service, caller(by.as_ref()), &body);
    }
    let answered = spawn_blocking(move || rpc::answer(&*service, caller(by.as_ref()), &body)).await;
    answered.unwrap_or_else(|_| Some(rpc::failure(&broken())))
}

/// Makes one call that is already taken apart. `prepare` may change the params first, and may itself
/// call the service; it says `None` when it would have to wait and may not.
pub async fn call<P>(
    service: Arc<dyn Service>,
    by: String,
    method: &'static str,
    params: Box<RawValue>,
    prepare: P,
) -> Reply
where
    P: Fn(&dyn Service, &RawValue, bool) -> Option<Box<RawValue>> + Send + 'static,
{
    let short = params.get().len() <= MAX_INLINE_BYTES && !LONG.contains(&method) && is_short(params.get().as_bytes());
    if short && let Some(params) = prepare(&*service, &params, false) {
        return service.call_by(Caller::named(&by), method, &params);
    }
    let run = move || {
        let params = prepare(&*service, &params, true).unwrap_or(params);
        service.call_by(Caller::named(&by), method, &params)
    };
    spawn_blocking(run).await.unwrap_or_else(|_| Err(broken()))
}

/// For calls whose params are complete.
pub fn as_they_are(_: &dyn Service, params: &RawValue, _: bool) -> Option<Box<RawValue>> {
    Some(params.to_owned())
}

/// What is kept of a caller's name.
const MAX_NAME_BYTES: usize = 128;

fn caller(user_agent: Option<&HeaderValue>) -> Caller<'_> {
    // Visible ASCII or nothing, so it can be cut anywhere.
    let name = user_agent.and_then(|value| value.to_str().ok()).unwrap_or_default();
    Caller::named(&name[..name.len().min(MAX_NAME_BYTES)])
}

type Reply = Result<Box<RawValue>>;

/// Whether a body surely holds one call that takes no time. Looking for words errs on the safe side.
fn is_short(body: &[u8]) -> bool {
    let Ok(body) = std::str::from_utf8(body) else { return true };
    // A batch may hold a thousand calls.
    !body.trim_start().starts_with('[') && !LONG.iter().chain(&PERHAPS_LONG).any(|word| body.contains(word))
}

fn broken() -> Error {
    Error::new(ErrorKind::Unavailable, "The call broke off inside the server; report this, then try again.")
}
