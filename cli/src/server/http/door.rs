//! Access control over HTTP: all checks of a request's head, in the order they are made:
//!
//! | # | check | refused with | against |
//! |---|---|---|---|
//! | 1 | the target is a path, not a URI | 403 | use as a proxy |
//! | 2 | exactly one `Host`: a loopback name with our port, or one allowed by `--allow-host` | 403 | DNS rebinding |
//! | 3 | no `Origin`; `Sec-Fetch-Site` absent or `none` | 403 | calls made by web pages |
//! | 4 | the path exists | 404 | |
//! | 5 | the method is the path's; `OPTIONS` never is, so no preflight succeeds | 405 | |
//! | 6 | the token, compared in constant time (not for `/health`) | 401 | other users of this machine |
//! | 7 | of a `POST`: `Content-Type: application/json` | 415 | calls that need no preflight |
//! | 8 | a body announced as larger than 32 MiB | 413 | exhaustion, before a byte of it is read |
//!
//! No response ever carries a CORS header. [`super::accept`] decides which connections get this far.

use std::path::{Path, PathBuf};

use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use nudge::{Error, Result};

use super::reply::json;
use super::rpc::{self, Fault, FaultData};
use crate::server::MAX_BODY_BYTES;
use crate::server::token::Token;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The route of a request that was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// `GET /health`
    Health,
    /// `POST /`
    Rpc,
    /// `POST /mcp`, `GET /mcp`, `DELETE /mcp`
    Mcp,
}

/// The rules of one server.
#[derive(Debug)]
pub struct Door {
    /// Complete values of `Host`, in lower case.
    own_hosts: [String; 3],
    /// Names that may stand in `Host` with any port or none, in lower case.
    allowed_hosts: Vec<String>,
    token: Option<Token>,
    token_file: PathBuf,
}

impl Door {
    /// Makes the rules for a port. The refusal of a request without a token names `token_file`.
    ///
    /// # Errors
    /// `E_INVALID` when an allowed host is not a bare name.
    pub fn new(port: u16, token: Option<Token>, allow_host: &[String], token_file: PathBuf) -> Result<Self> {
        let bare = |name: &&String| name.is_empty() || name.contains([':', '/', '*', '@', ',', ' ']);
        if let Some(name) = allow_host.iter().find(bare) {
            let message = format!("`{name}` is not a host name; give --allow-host a bare name such as build.internal.");
            return Err(Error::invalid(message));
        }
        Ok(Self {
            own_hosts: ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}")),
            allowed_hosts: allow_host.iter().map(|name| name.to_ascii_lowercase()).collect(),
            token,
            token_file,
        })
    }

    /// Checks a request's head. Over the local channel, which only this user's processes reach and no web page, the
    /// checks 2 and 6 are left out.
    ///
    /// # Errors
    /// The refusal of the first check that fails.
    pub fn check(&self, head: &Parts, is_local: bool) -> Result<Route, Refusal> {
        if head.uri.authority().is_some() || head.uri.scheme().is_some() {
            return Err(Refusal::forbidden("The request target must be a path such as `/`."));
        }
        if !is_local && !one(&head.headers, &header::HOST).is_some_and(|host| self.is_ours(host)) {
            return Err(Refusal::forbidden(
                "`Host` must be 127.0.0.1, localhost or [::1] with the port, or a name given by --allow-host.",
            ));
        }
        if head.headers.contains_key(header::ORIGIN)
            || head.headers.get_all(SEC_FETCH_SITE).iter().any(|site| site != "none")
        {
            return Err(Refusal::forbidden("Web pages may not call this server; call it without `Origin`."));
        }
        let (route, methods) = match head.uri.path() {
            "/" => (Route::Rpc, &[Method::POST][..]),
            "/mcp" | "/mcp/" => (Route::Mcp, &[Method::POST, Method::GET, Method::DELETE][..]),
            "/health" => (Route::Health, &[Method::GET, Method::HEAD][..]),
            _ => return Err(Refusal::not_found()),
        };
        if !methods.contains(&head.method) {
            return Err(Refusal::method(route));
        }
        if route == Route::Health {
            return Ok(route);
        }
        if !is_local && !self.shows_token(&head.headers) {
            return Err(Refusal::unauthorized(&self.token_file));
        }
        if head.method == Method::POST && !one(&head.headers, &header::CONTENT_TYPE).is_some_and(is_json) {
            return Err(Refusal::media_type());
        }
        let announced = one(&head.headers, &header::CONTENT_LENGTH).and_then(|text| text.parse::<usize>().ok());
        if announced.is_some_and(|bytes| bytes > MAX_BODY_BYTES) {
            return Err(Refusal::too_large());
        }
        Ok(route)
    }

    fn is_ours(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        if self.own_hosts.contains(&host) {
            return true;
        }
        let name = match host.split_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => name,
            _ => &host,
        };
        self.allowed_hosts.iter().any(|allowed| allowed == name)
    }

    fn shows_token(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let shown = one(headers, &header::AUTHORIZATION).and_then(|value| value.split_once(' '));
        shown.is_some_and(|(scheme, shown)| scheme.eq_ignore_ascii_case("bearer") && token.is(shown.trim().as_bytes()))
    }
}

/// Returns the value of a header that occurs exactly once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// The refusal of a request: a status, and a JSON-RPC error as its body.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    reason: &'static str,
    message: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Refusal {
    fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into(), header: None }
    }

    fn forbidden(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "E_FORBIDDEN", message)
    }

    fn not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "E_NO_SUCH_PATH",
            "There is nothing here; use `POST /`, `/mcp` or `GET /health`.",
        )
    }

    fn method(route: Route) -> Self {
        let (allow, message) = match route {
            Route::Rpc => ("POST", "Use `POST /` with a JSON-RPC request."),
            Route::Mcp => ("GET, POST, DELETE", "Use `POST`, `GET` or `DELETE` as MCP's streamable HTTP says."),
            Route::Health => ("GET, HEAD", "Use `GET /health`."),
        };
        let refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, "E_METHOD_NOT_ALLOWED", message);
        refusal.with(header::ALLOW, allow)
    }

    fn unauthorized(token_file: &Path) -> Self {
        let message = format!("Send `Authorization: Bearer TOKEN` with the token from {}.", token_file.display());
        let refusal = Self::new(StatusCode::UNAUTHORIZED, "E_UNAUTHORIZED", message);
        refusal.with(header::WWW_AUTHENTICATE, "Bearer")
    }

    fn media_type() -> Self {
        let message = "Send JSON, with `Content-Type: application/json`.";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "E_MEDIA_TYPE", message)
    }

    /// Refuses a body over [`MAX_BODY_BYTES`].
    pub fn too_large() -> Self {
        let message = "The body is over 32 MiB; send it in parts.";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "E_TOO_LARGE", message)
    }

    /// Refuses a body that did not arrive in time.
    pub fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "E_TIMEOUT", "The body did not arrive in time; send it again.")
    }

    /// Refuses a body that broke off or whose framing is wrong.
    pub fn broken() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "E_BAD_REQUEST", "The body could not be read; send it again.")
    }

    fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, HeaderValue::from_static(value)));
        self
    }

    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Builds the response. Its JSON-RPC code is the status times 100, outside the range of the protocol's own.
    pub fn response(self) -> Response<Full<bytes::Bytes>> {
        let code = i32::from(self.status.as_u16()) * 100;
        let body = rpc::failure(&Fault { code, message: &self.message, data: FaultData { reason: self.reason } });
        let mut response = json(self.status, body);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        // A refusal closes the connection, so that nobody without a token keeps one.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }
}
