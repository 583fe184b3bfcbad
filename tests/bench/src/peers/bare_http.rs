//! An HTTP server that does nothing but HTTP: reads a body, answers with so many bytes.

use std::convert::Infallible;
use std::io::{self, Write as _};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// What makes this binary serve instead of measure.
pub const BARE_HTTP: &str = "--bare-http";

/// Prints its port, and serves on one thread until stdin ends.
pub fn serve(bytes: usize) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let answer = Bytes::from("x".repeat(bytes));
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?.port());
        io::stdout().flush()?;
        tokio::spawn(accept(listener, answer));
        let (mut stdin, _) = rmcp::transport::stdio_pipes();
        stdin.read_to_end(&mut Vec::new()).await.map(|_| ())
    })
}

async fn accept(listener: TcpListener, answer: Bytes) {
    while let Ok((stream, _)) = listener.accept().await {
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        let answer = answer.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let answer = answer.clone();
            async move {
                // A body that breaks off ends its connection, not the server.
                drop(request.into_body().collect().await);
                let mut response = Response::new(Full::new(answer));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Ok::<_, Infallible>(response)
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
