//! Runs a plain HTTP server. It reads a body and answers with a fixed number of bytes, or with the library's answer to
//! the call in the body.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use nudge::{Nudge, Service as _, SetHint};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::process::{KEY, VALUE};

/// The argument that makes this binary serve and not measure.
pub const BARE_HTTP: &str = "--bare-http";

/// The kind of answer.
#[derive(Clone)]
enum Answers {
    /// The same bytes for every request.
    Bytes(Bytes),
    /// The answer of the library to the call.
    Calls(Arc<Nudge>),
}

#[derive(Deserialize)]
struct Call<'a> {
    id: u64,
    method: &'a str,
    #[serde(borrow)]
    params: &'a RawValue,
}

#[derive(Serialize)]
struct Answer {
    jsonrpc: &'static str,
    id: u64,
    result: Box<RawValue>,
}

impl Answers {
    fn to(&self, body: &[u8]) -> Bytes {
        let store = match self {
            Self::Bytes(bytes) => return bytes.clone(),
            Self::Calls(store) => store,
        };
        let call: Call<'_> = serde_json::from_slice(body).expect("a call");
        let result = store.call(call.method, call.params).expect("it is stored");
        serde_json::to_vec(&Answer { jsonrpc: "2.0", id: call.id, result }).expect("it is JSON").into()
    }
}

/// Prints its port, and serves on one thread until stdin ends. With `bytes` it answers with so many bytes, otherwise
/// with the answers to calls about one hint.
pub fn serve(bytes: Option<usize>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let answers = bytes.map_or_else(
        || {
            let store = Nudge::default();
            store.set(SetHint::new(KEY.0, KEY.1, VALUE)).expect("it is a hint");
            Answers::Calls(Arc::new(store))
        },
        |bytes| Answers::Bytes(Bytes::from("x".repeat(bytes))),
    );
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?.port());
        io::stdout().flush()?;
        tokio::spawn(accept(listener, answers));
        let (mut stdin, _) = rmcp::transport::stdio_pipes();
        stdin.read_to_end(&mut Vec::new()).await.map(|_| ())
    })
}

async fn accept(listener: TcpListener, answers: Answers) {
    while let Ok((stream, _)) = listener.accept().await {
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        let answers = answers.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let answers = answers.clone();
            async move {
                // A body that breaks off ends its connection, but not the server.
                let body = request.into_body().collect().await.map_or_else(|_| Bytes::new(), Collected::to_bytes);
                let mut response = Response::new(Full::new(answers.to(&body)));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Ok::<_, Infallible>(response)
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
