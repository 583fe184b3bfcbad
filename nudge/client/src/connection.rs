//! Provides an HTTP connection to a server. The task that makes a call also moves the bytes of the connection.

use std::fmt;
use std::future::{Future, poll_fn};
use std::net::Ipv4Addr;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1::{self, SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use nudge::{Error, Result};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::local::{ConnectionProbe, DuplexStream};
use crate::runtime::RuntimeDir;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Largest answer that the client reads, in bytes. An export is smaller, because a server holds at most 24 MiB of
/// hints.
const MAX_ANSWER_BYTES: usize = 128 << 20;

/// The reason why a request got no answer.
#[derive(Debug)]
pub struct RequestFailure {
    /// The error that the caller gets if there is no further attempt.
    pub error: Error,
    /// True when the server may have received a part of the request.
    pub sent: bool,
    /// True when another attempt would fail in the same way.
    pub lasting: bool,
}

impl RequestFailure {
    /// Makes the failure of a connection that could not be opened or that has ended.
    pub fn new_broken(reason: &str, sent: bool) -> Self {
        let message = format!("The Nudge server cannot be reached ({reason}); check `nudge status` or start it again.");
        Self { error: Error::unavailable(message), sent, lasting: false }
    }

    /// Makes a failure that another attempt cannot repair.
    pub fn new_lasting(error: Error) -> Self {
        Self { error, sent: false, lasting: true }
    }
}

type Stream = TokioIo<Box<dyn DuplexStream>>;

fn to_failure(error: &impl fmt::Display) -> RequestFailure {
    RequestFailure::new_broken(&error.to_string(), false)
}

/// A connection that carries one request at a time. It has no background task, so bytes move only while a request waits
/// for its answer. Dropping the value closes the connection.
pub struct ServerConnection {
    sender: SendRequest<Full<Bytes>>,
    /// The future that moves the bytes; `None` after the connection has closed.
    driver: Option<http1::Connection<Stream, Full<Bytes>>>,
    probe: ConnectionProbe,
    /// The headers that every request on this connection has.
    headers: HeaderMap,
}

impl ServerConnection {
    /// Opens a connection over the local channel. Every request on it has the headers in `more`. Returns `None` when
    /// there is no local channel.
    pub async fn open_local(dir: &RuntimeDir, more: &HeaderMap) -> Result<Option<Self>, RequestFailure> {
        let Some(stream) = dir.dial_primary().await? else { return Ok(None) };
        let probe = ConnectionProbe::of_local(&stream).map_err(|error| to_failure(&error))?;
        let host = HeaderValue::from_static("localhost");
        Self::open_over(Box::new(stream), probe, host, more).await.map(Some)
    }

    /// Opens a connection over TCP. Every request on it has the token and the headers in `more`.
    pub async fn open_tcp(port: u16, token: Option<&str>, more: &HeaderMap) -> Result<Self, RequestFailure> {
        let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect((Ipv4Addr::LOCALHOST, port))).await;
        let stream = stream.map_err(|_| RequestFailure::new_broken("no connection within 2 seconds", false))?;
        let stream = stream.map_err(|error| to_failure(&error))?;
        // Turns off Nagle's algorithm, which would only delay a call, because a call is a single small write.
        stream.set_nodelay(true).map_err(|error| to_failure(&error))?;
        let probe = ConnectionProbe::from_stream(&stream).map_err(|error| to_failure(&error))?;
        let host = HeaderValue::try_from(format!("127.0.0.1:{port}")).map_err(|error| to_failure(&error))?;
        let mut connection = Self::open_over(Box::new(stream), probe, host, more).await?;
        if let Some(token) = token {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.map_err(|_| RequestFailure::new_broken("its token cannot be sent", false))?;
            value.set_sensitive(true);
            connection.headers.insert(AUTHORIZATION, value);
        }
        Ok(connection)
    }

    async fn open_over(
        stream: Box<dyn DuplexStream>,
        probe: ConnectionProbe,
        host: HeaderValue,
        more: &HeaderMap,
    ) -> Result<Self, RequestFailure> {
        let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(|error| to_failure(&error))?;
        let mut headers = more.clone();
        headers.insert(HOST, host);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self { sender, driver: Some(driver), probe, headers })
    }

    /// Returns true when the server has neither closed the connection nor sent bytes without a request.
    pub fn is_open(&self) -> bool {
        self.driver.is_some() && !self.sender.is_closed() && self.probe.is_quiet()
    }

    /// Sends `GET /health` without a token, and returns true when the server answers with status 200.
    pub async fn is_healthy(&mut self) -> bool {
        let mut request = Request::new(Full::default());
        *request.uri_mut() = hyper::Uri::from_static("/health");
        request.headers_mut().extend(self.headers.remove(HOST).map(|host| (HOST, host)));
        self.send_request(request).await.is_ok_and(|(status, _)| status == StatusCode::OK)
    }

    /// Posts a call and returns the whole answer, whatever its status is.
    pub async fn post(
        &mut self,
        headers: impl IntoIterator<Item = (hyper::header::HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), RequestFailure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.headers_mut() = self.headers.clone();
        for (name, value) in headers {
            request.headers_mut().insert(name, value);
        }
        self.send_request(request).await
    }

    async fn send_request(&mut self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), RequestFailure> {
        let Self { sender, driver, .. } = self;
        let mut answer = pin!(async {
            if let Err(error) = sender.ready().await {
                return Err(RequestFailure::new_broken(&error.to_string(), false));
            }
            let response = sender.try_send_request(request).await.map_err(|mut error| {
                let sent = error.take_message().is_none();
                RequestFailure::new_broken(&error.error().to_string(), sent)
            })?;
            let status = response.status();
            match Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await {
                Ok(body) => Ok((status, body.to_bytes())),
                Err(error) if error.is::<LengthLimitError>() => {
                    let message = "The Nudge server's answer is larger than 128 MiB; ask for less, or let `nudge export` or \
                                   `nudge records export` write it page by page.";
                    Err(RequestFailure::new_lasting(Error::unavailable(message)))
                }
                Err(error) => Err(RequestFailure::new_broken(&error.to_string(), true)),
            }
        });
        poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
            if driver.as_mut().is_some_and(|driver| Pin::new(driver).poll(cx).is_ready()) {
                // Drops the driver, so that every waiting request on this connection fails.
                *driver = None;
            }
            answer.as_mut().poll(cx)
        })
        .await
    }
}
