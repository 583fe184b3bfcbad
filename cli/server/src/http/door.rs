//! Access control over HTTP: all checks of a request's head, in their order. A request that fails a check is refused.
//!
//! 1. The target is a path, not a URI; otherwise 403. Prevents use as a proxy.
//! 2. There is exactly one `Host`: a loopback name with a port of this server, a name that `--allow-host` allows, or,
//!    for the page alone, the name that `nudge ui` made; otherwise 403. Prevents DNS rebinding.
//! 3. There is no `Origin`, and `Sec-Fetch-Site` is absent or `none`; otherwise 403. Prevents calls by web pages. The
//!    page and `/api` have their own rules, see below.
//! 4. The path exists; otherwise 404.
//! 5. The path allows the method; otherwise 405. No path allows `OPTIONS`, so no preflight succeeds.
//! 6. The token is right, compared in constant time; otherwise 401. Prevents calls by other users of this machine.
//!    `/health`, the page's files and `/web/session` need no token.
//! 7. A `POST` or `PUT` has `Content-Type: application/json`; otherwise 415. Prevents calls that need no preflight.
//! 8. The announced body has at most 32 MiB, at `/web/session` 4 KiB; otherwise 413. Prevents exhaustion before the
//!    server reads a byte of the body.
//!
//! [The server's own page](crate::page) has its own paths and its own check 3: an `Origin` header, if present, must
//! name the host and port of the request. The page's files contain no data. A browser may load them by a link to `/web`
//! or `/`; other pages cannot load them. `/web/session` and `/web/rpc` require `Sec-Fetch-Site: same-origin`.
//! `/web/rpc` accepts only the token of the page.
//!
//! The [routes below `/api`](super::api) serve both programs and the page. `Sec-Fetch-Site`, if present, must be
//! `same-origin`, and an `Origin` header must name the host and port of the request. Both the session's token and a
//! page's token work, with equal rights. A page's token works only for `/web/rpc` and `/api`.
//!
//! No response has a CORS header. [`super::accept`] decides which connections reach these checks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use nudge::{Error, Result};
use nudge_core::text::before_mark;

use super::api::ApiRoute;
use super::ports::ServerPorts;
use super::reply::json_response;
use super::rpc::{self, FaultData, RpcFault};
use crate::MAX_BODY_BYTES;
use crate::page::{self, MAX_CODE_BYTES, PageFile, SessionPage};
use crate::token::AccessToken;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The route of an accepted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpRoute {
    /// `GET /health`
    Health,
    /// `POST /`
    Rpc,
    /// `POST /mcp`, `GET /mcp`, `DELETE /mcp`
    Mcp,
    /// `GET /web`, and the other files of the page
    PageFile(&'static PageFile),
    /// `POST /web/session`
    PageSession,
    /// `POST /web/rpc`
    PageRpc,
    /// A path below `/api`
    Api {
        /// The route.
        api: ApiRoute,
        /// True when the request has a page's token.
        by_page: bool,
    },
}

impl HttpRoute {
    fn from_request(path: &str, method: &Method) -> Option<Self> {
        match path {
            // A browser that opens the address without a path gets the page.
            "/" if matches!(*method, Method::GET | Method::HEAD) => page::find_file("/web").map(Self::PageFile),
            "/" => Some(Self::Rpc),
            "/mcp" | "/mcp/" => Some(Self::Mcp),
            "/health" => Some(Self::Health),
            "/web/session" => Some(Self::PageSession),
            "/web/rpc" => Some(Self::PageRpc),
            _ if path.starts_with("/api/") => ApiRoute::from_path(path).map(|api| Self::Api { api, by_page: false }),
            _ => page::find_file(path).map(Self::PageFile),
        }
    }

    fn allowed_methods(self) -> &'static [Method] {
        match self {
            Self::Rpc | Self::PageSession | Self::PageRpc => &[Method::POST],
            Self::Mcp => &[Method::POST, Method::GET, Method::DELETE],
            Self::Health | Self::PageFile(_) => &[Method::GET, Method::HEAD],
            Self::Api { api, .. } => api.allowed_methods().0,
        }
    }

    /// Returns true for the routes that the page uses.
    fn is_of_page(self) -> bool {
        matches!(self, Self::PageFile(_) | Self::PageSession | Self::PageRpc | Self::Api { .. })
    }

    /// Returns true when a request on this route must have a token.
    pub fn takes_token(self) -> bool {
        matches!(self, Self::Rpc | Self::Mcp | Self::PageRpc | Self::Api { .. })
    }

    /// Returns the most bytes of a body on this route.
    pub fn max_body_bytes(self) -> usize {
        if self == Self::PageSession { MAX_CODE_BYTES } else { MAX_BODY_BYTES }
    }
}

/// The access rules of a server.
#[derive(Debug)]
pub struct HttpDoor {
    ports: Arc<ServerPorts>,
    /// Names, in lower case, that the `Host` header may contain with any port or without a port.
    allowed_hosts: Vec<String>,
    token: Option<AccessToken>,
    token_file: PathBuf,
}

impl HttpDoor {
    /// Makes the rules for a server's ports. The error for a missing token names `token_file`.
    ///
    /// # Errors
    /// `E_INVALID` when an allowed host is not a bare name.
    pub fn new(
        ports: Arc<ServerPorts>,
        token: Option<AccessToken>,
        allow_host: &[String],
        token_file: PathBuf,
    ) -> Result<Self> {
        let bare = |name: &&String| name.is_empty() || name.contains([':', '/', '*', '@', ',', ' ']);
        if let Some(name) = allow_host.iter().find(bare) {
            let message = format!("`{name}` is not a host name; give --allow-host a bare name such as build.internal.");
            return Err(Error::invalid(message));
        }
        Ok(Self {
            ports,
            allowed_hosts: allow_host.iter().map(|name| name.to_ascii_lowercase()).collect(),
            token,
            token_file,
        })
    }

    /// Checks a request's head. Over the local channel, checks 2 and 6 do not apply, because only this user's processes
    /// and no web pages can reach it. They do apply to the page, which is served over TCP.
    ///
    /// # Errors
    /// The refusal of the first check that fails.
    pub fn check_head(&self, head: &Parts, is_local: bool, page: &SessionPage) -> Result<HttpRoute, HttpRefusal> {
        if head.uri.authority().is_some() || head.uri.scheme().is_some() {
            return Err(HttpRefusal::forbidden("The request target must be a path such as `/`."));
        }
        let host = read_single_header(&head.headers, &header::HOST);
        let is_page_name = host.is_some_and(|host| self.is_page_name(host, page));
        if !is_local && !is_page_name && !host.is_some_and(|host| self.is_ours(host)) {
            return Err(HttpRefusal::forbidden(
                "`Host` must be 127.0.0.1, localhost or [::1] with the port, or a name given by --allow-host.",
            ));
        }
        let route = HttpRoute::from_request(head.uri.path(), &head.method);
        check_sender(route, &head.headers, host)?;
        let route = route.ok_or_else(HttpRefusal::not_found)?;
        if is_page_name && !route.is_of_page() {
            return Err(HttpRefusal::forbidden("This name is the page's alone; use 127.0.0.1 with the port."));
        }
        if !route.allowed_methods().contains(&head.method) {
            return Err(HttpRefusal::method_not_allowed(route));
        }
        let route = match route {
            HttpRoute::Api { api, .. } => {
                let by_page = read_bearer(&head.headers).is_some_and(|shown| page.lets_in(shown));
                if !by_page && (is_page_name || (!is_local && !self.shows_token(&head.headers))) {
                    return Err(HttpRefusal::unauthorized(&self.token_file));
                }
                HttpRoute::Api { api, by_page }
            }
            route => route,
        };
        match route {
            HttpRoute::Health | HttpRoute::PageFile(_) => return Ok(route),
            HttpRoute::PageRpc if !read_bearer(&head.headers).is_some_and(|shown| page.lets_in(shown)) => {
                return Err(HttpRefusal::page_over());
            }
            HttpRoute::Rpc | HttpRoute::Mcp if !is_local && !self.shows_token(&head.headers) => {
                return Err(HttpRefusal::unauthorized(&self.token_file));
            }
            HttpRoute::PageSession | HttpRoute::PageRpc | HttpRoute::Rpc | HttpRoute::Mcp | HttpRoute::Api { .. } => {}
        }
        if (head.method == Method::POST || head.method == Method::PUT)
            && !read_single_header(&head.headers, &header::CONTENT_TYPE).is_some_and(is_json)
        {
            return Err(HttpRefusal::media_type());
        }
        let announced =
            read_single_header(&head.headers, &header::CONTENT_LENGTH).and_then(|text| text.parse::<usize>().ok());
        if announced.is_some_and(|bytes| bytes > route.max_body_bytes()) {
            return Err(HttpRefusal::too_large());
        }
        Ok(route)
    }

    /// Returns true for a name that was made for the page, followed by a port of this server.
    fn is_page_name(&self, host: &str, page: &SessionPage) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        let has_port = port.parse().is_ok_and(|number: u16| number.to_string() == port && self.ports.has_port(number));
        has_port && page.is_its_name(&name.to_ascii_lowercase())
    }

    fn is_ours(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let port = ["127.0.0.1:", "localhost:", "[::1]:"].iter().find_map(|name| host.strip_prefix(name));
        if port.is_some_and(|text| {
            text.parse().is_ok_and(|port: u16| port.to_string() == text && self.ports.has_port(port))
        }) {
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
        read_bearer(headers).is_some_and(|shown| token.is_equal_to(shown.as_bytes()))
    }
}

/// Makes check 3: the browser's headers say which page sent the request, and whether that page may send it.
fn check_sender(route: Option<HttpRoute>, headers: &HeaderMap, host: Option<&str>) -> Result<(), HttpRefusal> {
    let comes_from =
        |sites: &[&str]| headers.get_all(SEC_FETCH_SITE).iter().all(|site| sites.iter().any(|s| site == s));
    let has_origin = headers.contains_key(header::ORIGIN);
    let own = || read_single_header(headers, &header::ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
    let is_own = !has_origin || own().zip(host).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host));
    match route {
        Some(HttpRoute::PageSession | HttpRoute::PageRpc)
            if read_single_header(headers, &SEC_FETCH_SITE) == Some("same-origin") && is_own =>
        {
            Ok(())
        }
        Some(HttpRoute::PageSession | HttpRoute::PageRpc) => {
            Err(HttpRefusal::forbidden("This is for Nudge's own page alone, in a browser; run `nudge ui`."))
        }
        Some(HttpRoute::PageFile(file)) => {
            // A user may follow a link to the page from any site.
            let is_led_to = file.is_page() && read_single_header(headers, &SEC_FETCH_MODE) == Some("navigate");
            if is_own && (is_led_to || comes_from(&["none", "same-origin"])) {
                return Ok(());
            }
            Err(HttpRefusal::forbidden("Other web pages may not load Nudge's page; run `nudge ui`."))
        }
        Some(HttpRoute::Api { .. }) if is_own && comes_from(&["same-origin"]) => Ok(()),
        Some(HttpRoute::Api { .. }) => Err(HttpRefusal::forbidden(
            "Other web pages may not call this; call it without `Origin`, or from Nudge's page.",
        )),
        _ if has_origin || !comes_from(&["none"]) => {
            Err(HttpRefusal::forbidden("Web pages may not call this server; call it without `Origin`."))
        }
        _ => Ok(()),
    }
}

/// Returns the bearer token of the request.
fn read_bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, shown) = read_single_header(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(shown.trim())
}

/// Returns the value of a header that occurs exactly once. Returns `None` for a missing or repeated header.
fn read_single_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

fn is_json(content_type: &str) -> bool {
    let essence = before_mark(content_type, &[';']);
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// The refusal of a request: an HTTP status, and a JSON-RPC error as the body.
#[derive(Debug)]
pub struct HttpRefusal {
    status: StatusCode,
    reason: &'static str,
    message: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl HttpRefusal {
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
            "There is nothing here; use `POST /`, `/mcp`, `/api/records` or `GET /health`.",
        )
    }

    fn method_not_allowed(route: HttpRoute) -> Self {
        let (allow, message) = match route {
            HttpRoute::Rpc => ("GET, HEAD, POST", "Use `POST /` with a JSON-RPC request."),
            HttpRoute::Mcp => ("GET, POST, DELETE", "Use `POST`, `GET` or `DELETE` as MCP's streamable HTTP says."),
            HttpRoute::Health => ("GET, HEAD", "Use `GET /health`."),
            HttpRoute::PageFile(_) => ("GET, HEAD", "Use `GET`."),
            HttpRoute::PageSession | HttpRoute::PageRpc => ("POST", "Use `POST`."),
            HttpRoute::Api { api, .. } => (api.allowed_methods().1, "This route takes the methods that `Allow` lists."),
        };
        let refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, "E_METHOD_NOT_ALLOWED", message);
        refusal.with_header(header::ALLOW, allow)
    }

    fn unauthorized(token_file: &Path) -> Self {
        let message = format!("Send `Authorization: Bearer TOKEN` with the token from {}.", token_file.display());
        let refusal = Self::new(StatusCode::UNAUTHORIZED, "E_UNAUTHORIZED", message);
        refusal.with_header(header::WWW_AUTHENTICATE, "Bearer")
    }

    fn page_over() -> Self {
        let message = "This page is not known here any more; run `nudge ui` again.";
        let refusal = Self::new(StatusCode::UNAUTHORIZED, "E_UNAUTHORIZED", message);
        refusal.with_header(header::WWW_AUTHENTICATE, "Bearer")
    }

    /// Refuses a code of the page, with this status and message.
    pub fn from_status((status, message): (StatusCode, String)) -> Self {
        let reason = match status {
            StatusCode::FORBIDDEN => "E_FORBIDDEN",
            StatusCode::BAD_REQUEST => "E_BAD_REQUEST",
            _ => "E_UNAVAILABLE",
        };
        Self::new(status, reason, message)
    }

    fn media_type() -> Self {
        let message = "Send JSON, with `Content-Type: application/json`.";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "E_MEDIA_TYPE", message)
    }

    /// Refuses a connection of a process that has too many connections.
    pub fn over_its_share() -> Self {
        let message = "This process has too many connections to the server; close some and try again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "E_UNAVAILABLE", message)
    }

    /// Refuses a body larger than [`HttpRoute::max_body_bytes`].
    pub fn too_large() -> Self {
        let message =
            "The body is too large (32 MiB at most, 4 KiB with a code); send it in parts, as `nudge import FILE` does.";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "E_TOO_LARGE", message)
    }

    /// Refuses a body that did not arrive in time.
    pub fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "E_TIMEOUT", "The body did not arrive in time; send it again.")
    }

    /// Refuses a body that ended early or has wrong framing.
    pub fn broken_body() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "E_BAD_REQUEST", "The body could not be read; send it again.")
    }

    fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, HeaderValue::from_static(value)));
        self
    }

    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Builds the response. The code of the JSON-RPC error is the HTTP status times 100, which is outside the range of
    /// the protocol's own codes.
    pub fn into_response(self) -> Response<Full<bytes::Bytes>> {
        let code = i32::from(self.status.as_u16()) * 100;
        let body =
            rpc::to_failure_body(&RpcFault { code, message: &self.message, data: FaultData { reason: self.reason } });
        let mut response = json_response(self.status, body);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        // Closes the connection, because a caller without a token must not hold one open.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }
}
