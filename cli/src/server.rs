//! The server: HTTP for everything, MCP over stdio for the agent that started it.
//!
//! One thread drives both. The first server of a runtime directory is PRIMARY and has the store; every
//! further one is a PROXY, which forwards what its client asks and stands in line to go on (semantics
//! section 8). What they answer is a [`Service`]; this module and those below it know no method of the
//! store's.

pub mod backend;
pub mod calls;
pub mod changes;
pub mod control;
pub mod door;
pub mod fill_in;
pub mod history;
pub mod http;
pub mod local;
pub mod log;
pub mod mcp;
pub mod mcp_http;
pub mod recorder;
pub mod resources;
pub mod role;
pub mod rpc;
pub mod stdio;
pub mod subscriptions;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use nudge::{Error, ErrorKind, Result, Service, Services};
use nudge_client::{Client, Member, PrimaryLock, RuntimeDir, ServerFile, Session, SessionState};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use backend::Backend;
use changes::Changes;
use control::Control;
use fill_in::FillIn;
use history::History;
use local::Local;
use log::Logged;
use mcp::Tools;
use mcp_http::McpHttp;
use role::{Primary, Proxy, Role, Settings, Turn, Waiting};

/// What stands on stdin and stdout.
pub enum Stdio {
    /// An MCP client; when it closes stdin the server ends.
    Mcp(Option<Arc<dyn FillIn>>),
    /// Nothing that is read: serve until told to stop.
    Off,
}

/// How often what has expired is dropped; until then it takes room but is never shown.
const SWEEP: Duration = Duration::from_secs(5);
const UNSEATED: &str =
    "Somebody has removed primary.lock, so another server may have the session; start this one again.";
/// Until a PRIMARY that could not write `server.pid` tries again.
const NAMING_PAUSE: Duration = Duration::from_millis(100);
/// Time for answers under way once the server is told to stop; `nudge stop` promises half a second.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// Serves until stdin ends, a signal comes, or the session is ended with `nudge.shutdown`.
///
/// # Errors
/// When `server.pid` cannot be written, or the MCP client does not speak MCP.
pub fn run(role: Role, settings: &Arc<Settings>, history: &Arc<History>, stdio: Stdio) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut event_loop = EventLoop(Some(runtime.map_err(|error| failed("start the event loop", &error))?));
    let EventLoop(Some(runtime)) = &mut event_loop else { return Ok(()) };
    runtime.block_on(serve(role, settings, history, stdio))
}

/// A thread may sit in a read of stdin for ever; it must hold up the end neither of a server nor of one
/// that panics.
struct EventLoop(Option<tokio::runtime::Runtime>);

impl Drop for EventLoop {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve(role: Role, settings: &Arc<Settings>, history: &Arc<History>, stdio: Stdio) -> Result<()> {
    let mut signal = std::pin::pin!(stop_signal().map_err(|error| failed("listen for signals", &error))?);
    let (stop, mut stopped) = watch::channel(false);
    let surroundings = Surroundings { settings, history, stop: &stop };
    let people = matches!(stdio, Stdio::Off);
    let (mut place, backend) = match role {
        Role::Primary(primary) => {
            let service = service(&primary.local, history);
            let backend = Arc::new(Backend::here(Arc::clone(&service)));
            let office = surroundings.open(*primary, None, service)?;
            if people {
                say(&office.invitation(&settings.dir));
            }
            (Place::Primary(Box::new(office)), backend)
        }
        Role::Proxy(proxy) => {
            if people {
                let ServerFile { pid, port, .. } = proxy.first;
                say(&format!(
                    "standing by: http://127.0.0.1:{port} (pid {pid}) serves, and this one goes on when it ends"
                ));
            }
            let client = Client::new(&settings.dir, NAME).of_session(proxy.id());
            (surroundings.stand_by(proxy), Arc::new(Backend::there(Arc::new(client))))
        }
    };
    let changes = Changes::gather(history.touched(), Arc::clone(&backend), stopped.clone());
    let mut client = std::pin::pin!(client(stdio, Arc::clone(&backend), changes));
    let ended = loop {
        tokio::select! {
            turn = place.turn(&settings.dir) => match (turn, place) {
                (Turn::Primary(primary), Place::Proxy { member, feed, .. }) => {
                    feed.abort();
                    history.begin();
                    let service = service(&primary.local, history);
                    backend.promote(Arc::clone(&service));
                    // Nobody counts what changed in between.
                    let _ = history.touched().send(changes::Touched::Everything);
                    let office = surroundings.open(*primary, Some(member), service)?;
                    if people {
                        say(&office.invitation(&settings.dir));
                    }
                    place = Place::Primary(Box::new(office));
                }
                (Turn::Unseated, left) => {
                    place = left;
                    break Err(Error::new(ErrorKind::Unavailable, UNSEATED));
                }
                (_, left) => {
                    tracing::info!("the session was ended");
                    place = left;
                    break Ok(());
                }
            },
            _ = stopped.wait_for(|stop| *stop) => {
                tracing::info!("told to stop");
                break Ok(());
            }
            () = &mut signal => {
                tracing::info!("ended by a signal");
                break Ok(());
            }
            ended = &mut client => break ended,
            () = panics() => panic!("told to"),
        }
    };
    stop.send_replace(true);
    history.close();
    ended.and(place.leave(&settings.dir).await)
}

/// Resolves when a test wants to see how the server dies of a mistake of its own.
#[cfg(feature = "test-clock")]
fn panics() -> impl Future<Output = ()> {
    local::test_clock::PANICS.notified()
}

#[cfg(not(feature = "test-clock"))]
fn panics() -> impl Future<Output = ()> {
    std::future::pending()
}

/// Serves the MCP client until it goes; without one, for ever.
async fn client(stdio: Stdio, backend: Arc<Backend>, changes: Changes) -> Result<()> {
    match stdio {
        Stdio::Mcp(fill_in) => mcp::serve(Tools::new(backend, fill_in).with_changes(changes)).await,
        Stdio::Off => std::future::pending().await,
    }
}

/// How a PROXY calls itself where its client says nothing.
const NAME: &str = concat!("nudge-proxy/", env!("CARGO_PKG_VERSION"));

/// What all that runs in this process shares.
struct Surroundings<'a> {
    settings: &'a Arc<Settings>,
    history: &'a Arc<History>,
    stop: &'a watch::Sender<bool>,
}

/// What this process is just now.
enum Place {
    Primary(Box<Office>),
    Proxy { member: Member, waiting: Waiting, feed: JoinHandle<()> },
}

/// A PRIMARY that answers.
struct Office {
    http: http::Http,
    housekeeping: JoinHandle<()>,
    local: Arc<Local>,
    file: ServerFile,
    session: Session,
    member: Member,
    /// Last, so that it is given back last.
    lock: PrimaryLock,
}

/// What answers the methods of a PRIMARY.
fn service(local: &Arc<Local>, history: &Arc<History>) -> Arc<dyn Service> {
    let history = Arc::clone(history) as Arc<dyn Service>;
    Arc::new(Logged(Arc::new(Services::new(vec![history, Arc::clone(local) as Arc<dyn Service>]))))
}

impl Surroundings<'_> {
    /// Opens the door of a PRIMARY.
    fn open(&self, primary: Primary, member: Option<Member>, service: Arc<dyn Service>) -> Result<Office> {
        let Primary { lock, member: joined, listener, door, local, file, session } = primary;
        let dir = &self.settings.dir;
        let first = joined.is_some();
        let member = match member.or(joined) {
            Some(member) => member,
            None => dir.join()?,
        };
        let listener = TcpListener::from_std(listener).map_err(|error| failed("listen", &error))?;
        let stopped = self.stop.subscribe();
        // Clients over HTTP begin anew with each PRIMARY, and so do the changes they are told of.
        let backend = Arc::new(Backend::here(Arc::clone(&service)));
        let changes = Changes::gather(self.history.touched(), Arc::clone(&backend), stopped.clone());
        let mcp =
            McpHttp::new(Tools::new(backend, None).with_changes(changes).with_structured_results(), stopped.clone());
        let control = Control::new(dir.clone(), Arc::clone(local.recorder()), self.stop.clone());
        let house = http::House {
            door,
            service: Arc::new(Services::new(vec![service, Arc::new(control)])),
            history: Arc::clone(self.history),
            proxies: Arc::clone(local.proxies()),
            mcp,
        };
        if let Err(error) = dir.write_server_file(&lock, &file) {
            if first {
                return Err(error);
            }
            // The session lives on here, and can be found as soon as there is room for its name.
            tracing::error!(error = error.message(), "nobody can find the server yet");
        }
        tracing::info!(port = file.port, pid = file.pid, "serving");
        let http = http::spawn(listener, house, stopped);
        let housekeeping = tokio::spawn(housekeeping(Arc::clone(&local)));
        Ok(Office { http, housekeeping, local, file, session, member, lock })
    }

    /// Waits for the lock, and hears of changes meanwhile.
    fn stand_by(&self, proxy: Proxy) -> Place {
        let waiting = Waiting::begin(self.settings, self.history, &proxy);
        let pid = std::process::id();
        tracing::info!(pid, primary = proxy.first.pid, "standing by");
        let client = Client::new(&self.settings.dir, NAME).with_header(http::PROXY_HEADER, pid.to_string());
        let (client, dir, id) = (client.of_session(proxy.id()), self.settings.dir.clone(), proxy.id());
        let is_over = move || id.as_ref().is_some_and(|id| dir.is_over(id));
        let feed = tokio::spawn(changes::relay(client, self.history.touched().clone(), is_over));
        Place::Proxy { member: proxy.member, waiting, feed }
    }
}

impl Office {
    /// Where people find it.
    fn invitation(&self, dir: &RuntimeDir) -> String {
        let hint = if self.file.token.is_some() { ", the token is in it" } else { ", no token needed" };
        format!("serving http://127.0.0.1:{} ({}{hint})", self.file.port, dir.server_file_path().display())
    }
}

impl Place {
    /// Resolves when a PROXY's wait is over. A PRIMARY's never is: it sees to it that it can be found.
    async fn turn(&mut self, dir: &RuntimeDir) -> Turn {
        match self {
            Self::Proxy { waiting, feed, .. } => tokio::select! {
                turn = waiting.turn() => turn,
                // Whoever has the lock by now belongs to another session.
                _ = feed => Turn::SessionOver,
            },
            Self::Primary(office) => loop {
                let Office { lock, file, session, .. } = &**office;
                let named = dir.read_server_file().as_ref() == Some(file) || dir.write_server_file(lock, file).is_ok();
                if !lock.is_named(dir) {
                    // Another may be PRIMARY by now; the journal takes nothing from here any more.
                    return Turn::Unseated;
                }
                if dir.session() == SessionState::Unknown {
                    // Cleaned away; the next look will tell whether it could be written.
                    let _ = dir.write_session(lock, session);
                }
                sleep(if named { SWEEP } else { NAMING_PAUSE }).await;
            },
        }
    }

    /// Answers nothing more, and then leaves the session to the others, if there are any.
    async fn leave(self, dir: &RuntimeDir) -> Result<()> {
        match self {
            Self::Primary(office) => {
                let Office { lock, member, local, http, housekeeping, .. } = *office;
                housekeeping.abort();
                http.drained(DRAIN_TIMEOUT).await;
                let journal = local.recorder().close();
                if lock.is_named(dir) {
                    dir.end(Some(lock), member, journal)?;
                }
                // Else what stands in the directory may be another's.
            }
            Self::Proxy { member, waiting, feed } => {
                feed.abort();
                match waiting.leave() {
                    Some(Turn::Primary(won)) => {
                        let Primary { lock, local, .. } = *won;
                        dir.end(Some(lock), member, local.recorder().close())?;
                    }
                    Some(Turn::SessionOver | Turn::Unseated) | None => drop(dir.end(None, member, None)?),
                }
            }
        }
        Ok(())
    }
}

async fn housekeeping(local: Arc<Local>) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        local.sweep();
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
