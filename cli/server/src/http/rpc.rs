//! JSON-RPC 2.0: turns a request body into a response body. Copies ids, params and results as raw JSON text.

use std::borrow::Cow;

use bytes::Bytes;
use nudge::{Caller, Error, Service};
use nudge_core::patience;
use nudge_core::wire::json_text;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::session::changes::CHANGES;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// The most calls in one batch.
const MAX_BATCH: usize = 1000;
/// The bytes of answers after which the rest of a batch is refused. No single answer is nearly as large.
const MAX_BATCH_ANSWER_BYTES: usize = 64 << 20;

/// A request, with its parts as raw JSON text.
#[derive(Deserialize)]
pub struct RpcRequest<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    /// The id; `None` in a notification. An id that is `null` counts as an id.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    /// The name of the method.
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> RpcRequest<'a> {
    /// Parses a body. Returns `None` when the body is not a single request.
    pub fn read(body: &'a [u8]) -> Option<Self> {
        // Checks the encoding first, because the JSON parser does not check the text that it skips.
        serde_json::from_str(str::from_utf8(body).ok()?).ok()
    }

    /// Returns the id for an answer, or `null` in place of an illegal id.
    fn answer_id(&self) -> &'a str {
        self.id.map(RawValue::get).filter(|id| is_id(id)).unwrap_or("null")
    }

    /// Returns the params; absent and null params count as empty.
    pub fn params(&self) -> &'a RawValue {
        self.params.unwrap_or_else(|| serde_json::from_str("{}").unwrap_or(RawValue::NULL))
    }

    /// Makes the call and returns the answer. Returns `None` for a notification.
    pub fn answer(&self, service: &dyn Service, caller: Caller<'_>) -> Option<Bytes> {
        let mut out = Vec::with_capacity(512);
        answer_request(service, caller, self, &mut out).then(|| out.into())
    }

    /// Returns true when the request is legal in JSON-RPC.
    pub fn is_legal(&self) -> bool {
        self.jsonrpc == "2.0" && self.id.is_none_or(|id| is_id(id.get()))
    }

    /// Returns the answer with an error. Returns `None` for a notification.
    pub fn refuse(&self, error: &impl Serialize) -> Option<Bytes> {
        self.id?;
        let mut out = Vec::new();
        write_error(&mut out, self.answer_id(), error);
        Some(out.into())
    }

    /// Returns the answer with the result of the call. Returns `None` for a notification.
    pub fn write_answer(&self, result: Result<Box<RawValue>, Error>) -> Option<Bytes> {
        let mut out = Vec::with_capacity(512);
        write_result(&mut out, self, result).then(|| out.into())
    }
}

/// Answers a body that has a request, a batch or neither. Returns `None` when the body has only notifications.
pub fn answer_rpc_body(service: &dyn Service, caller: Caller<'_>, body: &[u8]) -> Option<Bytes> {
    if let Some(request) = RpcRequest::read(body) {
        return request.answer(service, caller);
    }
    let mut out = Vec::with_capacity(512);
    let json = str::from_utf8(body).ok().and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    let answered = match json {
        None => {
            write_fault(&mut out, "null", PARSE_ERROR, "E_PARSE", "The body is not JSON; correct it.");
            true
        }
        Some(json) if json.get().starts_with('[') => answer_batch(service, caller, json, &mut out),
        Some(json) => {
            write_invalid(&mut out, json);
            true
        }
    };
    answered.then(|| out.into())
}

/// Returns the body for an error that answers no particular request.
pub fn to_failure_body(error: &impl Serialize) -> Bytes {
    let mut out = Vec::new();
    write_error(&mut out, "null", error);
    out.into()
}

/// Appends the answer to `out`. Returns false for a notification, which gets no answer.
fn answer_request(service: &dyn Service, caller: Caller<'_>, request: &RpcRequest<'_>, out: &mut Vec<u8>) -> bool {
    if !request.is_legal() {
        write_fault(
            out,
            request.answer_id(),
            INVALID_REQUEST,
            "E_INVALID_REQUEST",
            "This is not a JSON-RPC 2.0 request.",
        );
        return true;
    }
    write_result(out, request, service.call_by(caller, &request.method, request.params()))
}

/// Appends a result to `out`. Returns false for a notification, which gets no answer.
fn write_result(out: &mut Vec<u8>, request: &RpcRequest<'_>, result: Result<Box<RawValue>, Error>) -> bool {
    let Some(id) = request.id.map(RawValue::get) else { return false };
    match result {
        Ok(result) => write(out, id, b",\"result\":", result.get().as_bytes()),
        Err(error) => write_error(out, id, &error),
    }
    true
}

fn answer_batch(service: &dyn Service, caller: Caller<'_>, batch: &RawValue, out: &mut Vec<u8>) -> bool {
    let requests: serde_json::Result<Vec<&RawValue>> = serde_json::from_str(batch.get());
    let Some(requests) = requests.ok().filter(|requests| (1..=MAX_BATCH).contains(&requests.len())) else {
        let message = "A batch must hold 1 to 1000 requests.";
        write_fault(out, "null", INVALID_REQUEST, "E_INVALID_REQUEST", message);
        return true;
    };
    if caller.key.is_some() {
        let message = "An Idempotency-Key names one call; send the calls of this batch alone.";
        write_fault(out, "null", INVALID_REQUEST, "E_INVALID_REQUEST", message);
        return true;
    }
    let mut separator = b'[';
    for request in requests {
        // The caller has disconnected, so no further call of the batch starts.
        if patience::is_over() {
            break;
        }
        let before = out.len();
        out.push(separator);
        let answered = match serde_json::from_str::<RpcRequest<'_>>(request.get()) {
            // Refuses `nudge.changes` in a batch: a thousand waiting calls, one after the other, would hold a place for
            // hours.
            Ok(request) if before > MAX_BATCH_ANSWER_BYTES || request.method == CHANGES => {
                let message = match &*request.method {
                    CHANGES => "A call that waits must not stand in a batch; send this request alone.",
                    _ => "The answers to this batch are too large; send this request alone.",
                };
                write_fault(out, request.answer_id(), INVALID_REQUEST, "E_INVALID_REQUEST", message);
                request.id.is_some()
            }
            Ok(request) => answer_request(service, caller, &request, out),
            Err(_) => {
                write_invalid(out, request);
                true
            }
        };
        if answered {
            separator = b',';
        } else {
            out.truncate(before);
        }
    }
    let any = separator == b',';
    if any {
        out.push(b']');
    }
    any
}

/// Appends the error for JSON that is no request, with the id if it has one.
fn write_invalid(out: &mut Vec<u8>, json: &RawValue) {
    #[derive(Deserialize)]
    struct InvalidRequestId<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let id = serde_json::from_str::<InvalidRequestId<'_>>(json.get()).ok().and_then(|found| found.id);
    let id = id.map(RawValue::get).filter(|id| is_id(id)).unwrap_or("null");
    write_fault(out, id, INVALID_REQUEST, "E_INVALID_REQUEST", "This is not a JSON-RPC 2.0 request.");
}

fn is_id(json: &str) -> bool {
    !json.starts_with(['{', '[', 't', 'f'])
}

/// Appends an error of the JSON-RPC protocol.
fn write_fault(out: &mut Vec<u8>, id: &str, code: i32, reason: &str, message: &str) {
    write_error(out, id, &RpcFault { code, message, data: FaultData { reason } });
}

/// An error that the library does not define.
#[derive(Serialize)]
pub struct RpcFault<'a> {
    /// A code outside the library's range.
    pub code: i32,
    /// A sentence that tells the user what to do.
    pub message: &'a str,
    /// The part for programs.
    pub data: FaultData<'a>,
}

/// The part of a [`RpcFault`] for programs.
#[derive(Serialize)]
pub struct FaultData<'a> {
    /// The stable name of the error.
    pub reason: &'a str,
}

fn write_error(out: &mut Vec<u8>, id: &str, error: &impl Serialize) {
    write(out, id, b",\"error\":", &json_text(error).into_bytes());
}

fn write(out: &mut Vec<u8>, id: &str, member: &[u8], value: &[u8]) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(member);
    out.extend_from_slice(value);
    out.push(b'}');
}
