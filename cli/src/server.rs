//! The server: HTTP for everything, MCP over stdio for the agent that started it.
//!
//! One thread drives both. What they answer is a [`Service`]; this module and those below it know no
//! method but `nudge.shutdown`.

pub mod calls;
pub mod changes;
pub mod control;
pub mod door;
pub mod history;
pub mod http;
pub mod local;
pub mod log;
pub mod mcp;
pub mod mcp_http;
pub mod resources;
pub mod role;
pub mod rpc;
pub mod stdio;
pub mod subscriptions;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use nudge::{Error, ErrorKind, Result, Service, Services};
use nudge_client::ServerFile;
use tokio::net::TcpListener;
use tokio::sync::watch;

use changes::Changes;
use control::Control;
use door::Door;
use history::History;
use mcp::{FillIn, Tools};
use mcp_http::McpHttp;
use role::Primary;

/// What stands on stdin and stdout.
pub enum Stdio {
    /// An MCP client; when it closes stdin the server ends.
    Mcp(Option<Arc<FillIn>>),
    /// Nothing that is read: serve until told to stop.
    Off,
}

/// A server that is about to serve.
pub struct Server {
    /// The runtime directory, won, and the port, bound.
    pub primary: Primary,
    /// Who may come in over HTTP.
    pub door: Door,
    /// What answers the calls.
    pub service: Arc<dyn Service>,
    /// What changes in it.
    pub history: Arc<History>,
    /// Since when `service` has its state, for `server.pid`.
    pub started: String,
    /// Whether to speak MCP.
    pub stdio: Stdio,
    /// Drops what has expired.
    pub sweep: Box<dyn Fn() + Send>,
}

/// How often what has expired is dropped; until then it takes room but is never shown.
const SWEEP: Duration = Duration::from_secs(5);
/// Time for answers under way once the server is told to stop; `nudge stop` promises half a second.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

impl Server {
    /// Serves until stdin ends, a signal comes, or `nudge.shutdown` is called.
    ///
    /// # Errors
    /// When `server.pid` cannot be written, or the MCP client does not speak MCP.
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed("start the event loop", &error))?;
        let served = runtime.block_on(self.serve());
        // A thread may sit in a read of stdin for ever; it must not hold up the end.
        runtime.shutdown_background();
        served
    }

    async fn serve(self) -> Result<()> {
        let Self { primary, door, service, history, started, stdio, sweep } = self;
        let signal = stop_signal().map_err(|error| failed("listen for signals", &error))?;
        let (dir, lock, listener) = primary.into_parts();
        let address = listener.local_addr().map_err(|error| failed("read the port", &error))?;
        let listener = TcpListener::from_std(listener).map_err(|error| failed("listen", &error))?;

        let (stop, stopped) = watch::channel(false);
        let changes = Changes::gather(history.touched(), Arc::clone(&service), stopped.clone());
        let mcp = McpHttp::new(
            Tools::new(Arc::clone(&service), None).with_changes(changes.clone()).with_structured_results(),
            stopped.clone(),
        );
        let over_http = Services::new(vec![Arc::clone(&service), Arc::new(Control::new(stop.clone()))]);
        let token = door.token().map(ToOwned::to_owned);
        let file = ServerFile { pid: std::process::id(), port: address.port(), started, token };
        dir.write_server_file(&lock, &file)?;
        if matches!(stdio, Stdio::Off) {
            let hint = if file.token.is_some() { ", the token is in it" } else { ", no token needed" };
            say(&format!("serving http://{address} ({}{hint})", dir.server_file_path().display()));
        }
        tracing::info!(%address, pid = std::process::id(), "serving");
        let http = http::spawn(listener, door, Arc::new(over_http), mcp, stopped.clone());
        let housekeeping = tokio::spawn(housekeeping(sweep));

        let mut stopped = stopped;
        let ended = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => {
                tracing::info!("told to stop");
                Ok(())
            }
            () = signal => {
                tracing::info!("ended by a signal");
                Ok(())
            }
            ended = client(stdio, service, changes) => ended,
        };
        stop.send_replace(true);
        history.close();
        housekeeping.abort();
        http.drained(DRAIN_TIMEOUT).await;
        // While the lock is still ours: what stands there afterwards is the next server's.
        let removed = dir.remove_server_file(&lock);
        drop(lock);
        ended.and(removed)
    }
}

/// Serves the MCP client until it goes; without one, for ever.
async fn client(stdio: Stdio, service: Arc<dyn Service>, changes: Changes) -> Result<()> {
    match stdio {
        Stdio::Mcp(fill_in) => mcp::serve(Tools::new(service, fill_in).with_changes(changes)).await,
        Stdio::Off => std::future::pending().await,
    }
}

async fn housekeeping(sweep: Box<dyn Fn() + Send>) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        sweep();
    }
}

/// Resolves when the process is asked to end.
#[cfg(unix)]
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// Resolves when the process is asked to end.
#[cfg(not(unix))]
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    let mut close = tokio::signal::windows::ctrl_close()?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = close.recv() => {}
        }
    })
}

/// Tells people on stderr, if it still leads anywhere.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "nudge: {text}");
}

fn failed(what: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("The server cannot {what}: {error}; free some resources and try again."))
}
