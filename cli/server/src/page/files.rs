//! The files of the page. They contain no user data; the build embeds them.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

/// A file of the page.
#[derive(Debug, PartialEq, Eq)]
pub struct PageFile {
    /// The path of the file on the server.
    pub path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const fn new_script(path: &'static str, text: &'static str) -> PageFile {
    PageFile { path, content_type: SCRIPT, text }
}

static FILES: &[PageFile] = &[
    PageFile { path: "/web", content_type: HTML, text: include_str!("page.html") },
    PageFile { path: "/web/app.css", content_type: "text/css; charset=utf-8", text: include_str!("app.css") },
    PageFile { path: "/web/icon.svg", content_type: "image/svg+xml", text: include_str!("icon.svg") },
    new_script("/web/app.js", include_str!("app.js")),
    new_script("/web/brain.js", include_str!("brain.js")),
    new_script("/web/code.js", include_str!("code.js")),
    new_script("/web/dom.js", include_str!("dom.js")),
    new_script("/web/edit.js", include_str!("edit.js")),
    new_script("/web/explore.js", include_str!("explore.js")),
    new_script("/web/graph.js", include_str!("graph.js")),
    new_script("/web/hints.js", include_str!("hints.js")),
    new_script("/web/place.js", include_str!("place.js")),
    new_script("/web/record.js", include_str!("record.js")),
    new_script("/web/recorded.js", include_str!("recorded.js")),
    new_script("/web/records.js", include_str!("records.js")),
    new_script("/web/rpc.js", include_str!("rpc.js")),
    new_script("/web/signals.js", include_str!("signals.js")),
    new_script("/web/store.js", include_str!("store.js")),
    new_script("/web/told.js", include_str!("told.js")),
    new_script("/web/words.js", include_str!("words.js")),
];

/// The content security policy. It forbids files of other origins, inline code, a frame around the page, and text that
/// becomes markup or script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

impl PageFile {
    /// Returns true for the HTML file, which a link may open. This file loads the other files.
    pub fn is_page(&self) -> bool {
        self.content_type == HTML
    }
}

/// Finds the file at a path.
pub fn find_file(path: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|file| file.path == path)
}

/// Makes the response with a file.
pub fn respond_with_file(file: &PageFile) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(file.text.as_bytes())));
    *response.status_mut() = StatusCode::OK;
    let headers: [(HeaderName, &'static str); 8] = [
        (header::CONTENT_TYPE, file.content_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        // The connection is closed after a file, as after a refusal, because a file needs no token.
        (header::CONNECTION, "close"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
