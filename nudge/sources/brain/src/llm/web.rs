//! Sends requests over HTTP, with limits of time, size and tries. A key is sent only to the server that it belongs to.

use std::time::{Duration, Instant};

use nudge_core::error::{Error, Result};
use nudge_core::text::before_mark;
use serde_json::Value;

use super::RequestFault;

const TRIES: u32 = 3;
/// The longest pause before the next try that a server may demand.
const MAX_PAUSE: Duration = Duration::from_mins(1);
const MAX_ANSWER: u64 = 4 << 20;

/// The answer of a server.
pub struct WebResponse {
    pub status: u16,
    pub body: Value,
    pause: Option<Duration>,
}

/// Returns true when the host of an address is this machine.
pub fn is_local(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = before_mark(rest, &['/', '?', '#']);
    if host.contains('@') {
        return false;
    }
    let host = host.strip_prefix('[').map_or_else(|| host.split(':').next(), |rest| rest.split(']').next());
    matches!(host, Some("127.0.0.1" | "localhost" | "::1"))
}

/// Refuses an address to which a key would be sent unencrypted over the network.
///
/// # Errors
/// `E_INVALID` for such an address.
pub fn check_url(url: &str) -> Result<()> {
    if url.starts_with("https://") || (url.starts_with("http://") && is_local(url)) {
        return Ok(());
    }
    Err(Error::invalid("The address must begin with https://; http:// is for this machine alone."))
}

/// Returns true when a request may use the proxy that the environment names: the request is encrypted and leaves this
/// machine. A proxy could read any other request.
fn may_use_proxy(url: &str) -> bool {
    url.starts_with("https://") && !is_local(url)
}

/// Sends one request: with POST if there is a body, else with GET.
///
/// # Errors
/// The reason why there is no answer.
pub fn send_request(
    url: &str,
    headers: &[(&str, String)],
    body: Option<&Value>,
    limit: Duration,
) -> Result<WebResponse, RequestFault> {
    check_url(url).map_err(|error| RequestFault::new_lasting(error.message()))?;
    let proxy = if may_use_proxy(url) { ureq::Proxy::try_from_env() } else { None };
    let agent = ureq::Agent::config_builder()
        .proxy(proxy)
        .timeout_global(Some(limit))
        .http_status_as_error(false)
        // A redirect would send the key to another server, so none is followed.
        .max_redirects(0)
        .user_agent(concat!("nudge/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent();
    let failed = |error: &ureq::Error| match error {
        ureq::Error::Timeout(_) => RequestFault::new_passing(format!("there was no answer in {} s", limit.as_secs())),
        _ => RequestFault::new_passing("the server cannot be reached"),
    };
    let answer = match body {
        Some(body) => {
            let request = headers.iter().fold(agent.post(url), |request, (name, value)| request.header(*name, value));
            request.header("content-type", "application/json").send(body.to_string())
        }
        None => headers.iter().fold(agent.get(url), |request, (name, value)| request.header(*name, value)).call(),
    };
    let mut answer = answer.map_err(|error| failed(&error))?;
    let status = answer.status().as_u16();
    let pause = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let text = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_string().map_err(|error| failed(&error))?;
    let body = serde_json::from_str(&text).unwrap_or_default();
    Ok(WebResponse { status, body, pause: pause.map(Duration::from_secs) })
}

/// Sends a request to the API of a model. Retries after a fault that may pass, when the pause that the server demands
/// is over.
///
/// # Errors
/// The reason why there is no answer.
pub fn ask_api(
    who: &str,
    url: &str,
    headers: &[(&str, String)],
    body: &Value,
    limit: Duration,
) -> Result<Value, RequestFault> {
    let end = Instant::now() + limit;
    let mut last = RequestFault::new_passing("nobody was asked");
    for attempt in 1..=TRIES {
        match send_request(url, headers, Some(body), end.saturating_duration_since(Instant::now())) {
            Ok(said) if said.status == 200 && !said.body.is_null() => return Ok(said.body),
            Ok(said) => {
                last = if said.status == 200 {
                    RequestFault::new_passing(format!("{who} answered no JSON"))
                } else {
                    fault_from_status(who, said.status)
                };
                let pause = said.pause.unwrap_or(Duration::from_secs(u64::from(attempt)));
                if !last.may_pass || pause > MAX_PAUSE || Instant::now() + pause > end {
                    return Err(last);
                }
                if attempt < TRIES {
                    std::thread::sleep(pause);
                }
            }
            // After a failed connection or a timeout there is no retry.
            Err(fault) => return Err(fault),
        }
    }
    Err(last)
}

/// Returns the fault for an HTTP status.
pub fn fault_from_status(who: &str, status: u16) -> RequestFault {
    match status {
        401 | 403 => RequestFault::new_lasting(format!("{who} does not take the key (status {status})")),
        429 | 500..=599 => RequestFault::new_passing(format!("{who} is busy or broken (status {status})")),
        _ => RequestFault::new_lasting(format!("{who} refuses with status {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test cannot change the environment of its own process. So the test starts itself again with another
    /// environment.
    #[test]
    fn no_proxy_hears_of_calls_to_this_machine() {
        let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        proxy.set_nonblocking(true).unwrap();
        let proxy_url = format!("http://{}", proxy.local_addr().unwrap());
        let server = tiny_http::Server::http("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", server.server_addr());
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            let mut tests = std::process::Command::new(std::env::current_exe().unwrap());
            tests.args(["--exact", "llm::web::tests::a_process_of_its_own_asks", "--ignored"]);
            tests.env_remove("NO_PROXY").env_remove("no_proxy");
            let mut tests = tests.env(name, &proxy_url).env("NUDGE_TEST_URL", &url).spawn().unwrap();
            // If the other process connects to the proxy, or ends, no request can arrive here any more.
            let heard = loop {
                match server.recv_timeout(Duration::from_millis(20)).unwrap() {
                    Some(request) => break Some(request),
                    None if tests.try_wait().unwrap().is_some() || proxy.accept().is_ok() => break None,
                    None => {}
                }
            };
            heard.expect("the server itself is asked").respond(tiny_http::Response::from_string("{}")).unwrap();
            assert!(tests.wait().unwrap().success(), "{name}");
            assert_eq!(
                proxy.accept().unwrap_err().kind(),
                std::io::ErrorKind::WouldBlock,
                "{name}: the proxy heard of it"
            );
        }
    }

    #[test]
    #[ignore = "started by the test above"]
    fn a_process_of_its_own_asks() {
        let url = std::env::var("NUDGE_TEST_URL").unwrap();
        let headers = [("authorization", "Bearer none".to_owned())];
        let said = send_request(&url, &headers, Some(&serde_json::json!({})), Duration::from_secs(20)).unwrap();
        assert_eq!(said.status, 200);
    }

    #[test]
    fn a_proxy_carries_what_is_encrypted_to_another_machine() {
        assert!(may_use_proxy("https://api.example.com/v1"));
        for url in ["http://127.0.0.1:1", "https://127.0.0.1:1", "https://localhost/x", "https://[::1]:1", "http://x.y"]
        {
            assert!(!may_use_proxy(url), "{url}");
        }
    }

    #[test]
    fn keys_leave_by_tls_alone() {
        for url in ["https://api.example.com", "http://127.0.0.1:11434/v1", "http://localhost", "http://[::1]:1/x"] {
            assert!(check_url(url).is_ok(), "{url}");
        }
        for url in [
            "http://example.com",
            "http://127.0.0.1.example.com",
            "http://127.0.0.1@example.com",
            "ftp://x",
            "",
            "http://localhost@a.b/",
        ] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
