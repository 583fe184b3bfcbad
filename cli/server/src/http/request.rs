//! An HTTP request: its caller, and the calls in its body.

use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderValue, USER_AGENT};
use nudge::{Caller, Error, Result, Service};
use nudge_client::{AGENT_HEADER, ENV_HEADER, KEY_HEADER, PROTOCOL, PROTOCOL_HEADER, other_protocol_error};
use nudge_core::service::CallLane;

use super::rpc::{self, RpcRequest};
use crate::page;
use crate::session::calls::{self, MAX_INLINE_BYTES};
use crate::session::changes::CHANGES;
use crate::session::history::ChangeHistory;
use crate::work::WorkDesk;

/// The most bytes of a caller's name; a longer name is cut.
const MAX_NAME_BYTES: usize = 128;
const MAX_KEY_BYTES: usize = 255;

/// The headers that describe the caller.
pub struct CallerHeaders {
    name: Option<HeaderValue>,
    key: Option<HeaderValue>,
    asks_env: bool,
    agent: bool,
    /// The version of the caller's protocol; `None` for a program that does not use Nudge's client.
    protocol: Option<HeaderValue>,
}

impl CallerHeaders {
    /// Reads the headers.
    pub fn read(headers: &HeaderMap) -> Self {
        Self {
            name: headers.get(USER_AGENT).cloned(),
            key: headers.get(KEY_HEADER).cloned(),
            asks_env: headers.contains_key(ENV_HEADER),
            agent: headers.contains_key(AGENT_HEADER),
            protocol: headers.get(PROTOCOL_HEADER).cloned(),
        }
    }

    /// Reads the headers of a request from the page that `nudge ui` opens. The page is no agent and needs no
    /// environment variables.
    pub fn of_page(headers: &HeaderMap) -> Self {
        let name = Some(HeaderValue::from_static(page::NAME));
        Self { name, key: headers.get(KEY_HEADER).cloned(), asks_env: false, agent: false, protocol: None }
    }

    /// Reads the caller from the headers.
    ///
    /// # Errors
    /// `E_INVALID` for an invalid key; `E_UNAVAILABLE` for a caller with another version of the protocol.
    pub fn read_caller(&self) -> Result<Caller<'_>> {
        if let Some(protocol) = &self.protocol {
            let number = protocol.to_str().ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            if number != PROTOCOL {
                return Err(other_protocol_error(PROTOCOL, number));
            }
        }
        // `to_str` returns only ASCII, so any byte is a character's end.
        let name = self.name.as_ref().and_then(|value| value.to_str().ok()).unwrap_or("");
        let caller = Caller::with_name(&name[..name.len().min(MAX_NAME_BYTES)]);
        let caller = if self.asks_env { caller.asking_env() } else { caller };
        let caller = if self.agent { caller.by_agent() } else { caller };
        let Some(key) = &self.key else { return Ok(caller) };
        let key = key.to_str().ok().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()));
        let message = "An Idempotency-Key is 1 to 255 visible ASCII characters; send another one.";
        Ok(caller.with_key(Some(key.ok_or_else(|| Error::invalid(message))?)))
    }
}

/// The service for a call, and the places of its caller.
pub struct CallTarget<'a> {
    /// The service that answers calls.
    pub service: Arc<dyn Service>,
    /// The last changes, for `nudge.changes`.
    pub history: &'a ChangeHistory,
    /// The caller's access to the pool of threads.
    pub desk: WorkDesk,
}

/// Answers an HTTP body. Returns `None` when the body has only notifications.
pub async fn answer_http_body(asked: CallTarget<'_>, head: CallerHeaders, body: Bytes) -> Option<Bytes> {
    let CallTarget { service, history, desk } = asked;
    let is_large = body.len() > MAX_INLINE_BYTES || body.trim_ascii_start().starts_with(b"[");
    let Some(request) = (!is_large).then(|| RpcRequest::read(&body)).flatten() else {
        let answered = desk.run(CallLane::Work, move || match head.read_caller() {
            Ok(caller) => rpc::answer_rpc_body(&*service, caller, &body),
            Err(error) => RpcRequest::read(&body)
                .map_or_else(|| Some(rpc::to_failure_body(&error)), |request| request.refuse(&error)),
        });
        return answered.await.unwrap_or_else(|error| Some(rpc::to_failure_body(&error)));
    };
    let caller = match head.read_caller() {
        Ok(caller) => caller,
        Err(error) => return request.refuse(&error),
    };
    if request.method == CHANGES
        && let Err(error) = history.wait_for_change(request.params()).await
    {
        return request.refuse(&error);
    }
    if !request.is_legal() {
        return request.answer(&*service, caller);
    }
    let result = calls::call(&desk, service, caller, &request.method, request.params()).await;
    request.write_answer(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_of_another_protocol_is_refused() {
        let read = |protocol: Option<&'static str>| {
            let header =
                |text| (hyper::header::HeaderName::from_static(PROTOCOL_HEADER), HeaderValue::from_static(text));
            let head = CallerHeaders::read(&protocol.map(header).into_iter().collect());
            head.read_caller().map(drop).map_err(|error| error.message().to_owned())
        };
        assert_eq!(read(None), Ok(()), "a program that writes its own requests");
        assert_eq!(read(Some("1")), Ok(()));
        for (protocol, number) in [("2", 2), ("", 0), ("one", 0)] {
            assert_eq!(read(Some(protocol)), Err(other_protocol_error(PROTOCOL, number).message().to_owned()));
        }
    }
}
