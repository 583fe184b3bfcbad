//! The server: HTTP for all callers, and MCP over stdio for the agent that started the process.
//!
//! A single thread drives both. The first server of a runtime directory is PRIMARY and opens the sources. Every further
//! server is a PROXY: it forwards its client's calls and waits to become PRIMARY (semantics section 8). Each module
//! uses only the modules above it in this table:
//!
//! | module | purpose |
//! |---|---|
//! | [`memory`] | returns the memory of large calls to the system |
//! | [`work`] | the places and the time of calls on worker threads |
//! | [`session`] | the role as PRIMARY or PROXY, the sources, their rows, change notifications, routes of calls |
//! | [`mcp`] | the tools and resources of one client, over stdio |
//! | [`page`] | the page of the session, for users |
//! | [`http`] | connections, access control, JSON-RPC, MCP over HTTP |

pub mod http;
pub mod log;
pub mod mcp;
pub mod memory;
pub mod methods;
pub mod page;
mod seeds;
pub mod session;
pub mod token;
pub mod watchdog;
pub mod work;

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16};
use std::time::{Duration, Instant};

use nudge::{Error, JoinedServices, Result, Service};
use nudge_app::context::ContextInference;
use nudge_client::{Client, LifeSign, PrimaryLock, RuntimeDir, ServerFile, SessionFile, SessionMember, SessionState};
use nudge_core::source::{ChangeSink as _, SessionIdentity};
use nudge_os::dir::FileId;
use nudge_os::lock::LockPatience;
use nudge_os::process::is_running;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;

use http::accept::{OpenConnections, ServerListeners};
use http::door::HttpDoor;
use http::mcp::McpHttp;
use http::ports::ServerPorts;
use mcp::ClientTools;
use mcp::profile::ServerProfile;
use page::{ForPage, SessionPage};
use session::backend::CallBackend;
use session::changes::{self, ChangeFeeds, TouchedThing};
use session::control::SessionControl;
use session::history::ChangeHistory;
use session::keeper::{self, HintKeeper};
use session::open::OpenSources;
use session::proxies::ConnectedProxies;
use session::role::{self, LockWait, ProxyMember, ReadyPrimary, RoleTurn, ServeSettings, ServerRole};
use session::rows::PrimaryRows;
use session::status::{AskedSources, ServerStatus};
use session::time::SessionTime;
use token::AccessToken;
use watchdog::Watchdog;
use work::{CallerId, WorkPool};

/// The most bytes of an HTTP body, and of a line on stdio.
pub const MAX_BODY_BYTES: usize = 32 << 20;

/// How the server uses stdin and stdout.
pub enum StdioUse {
    /// An MCP client uses stdin and stdout; the server ends when the client closes stdin.
    Mcp {
        /// Infers the context for calls that have none.
        inference: Arc<ContextInference>,
        /// The profile whose tools replace all other tools, if any.
        profile: Option<&'static ServerProfile>,
    },
    /// Nothing uses stdin; the server runs until a signal or a caller ends it.
    Off,
}

/// The interval of the sources' periodic work, such as removal of expired entries. Until then an expired entry uses
/// memory, but no answer contains it.
const TICK: Duration = Duration::from_secs(5);
/// The interval at which a PROXY checks that the files of its session exist.
const LOOK: Duration = Duration::from_secs(1);
/// The interval at which a PRIMARY updates the times of its files. Programs that remove old files wait for hours or
/// days.
const TOUCH: Duration = Duration::from_hours(1);
/// The text about itself that a server prints when a user starts it by hand.
const HOW_IT_ENDS: &str = "this is the memory that your coding agents and `nudge` in other terminals share, on this \
                           machine alone; Ctrl-C or `nudge stop` ends it";
const UNSEATED: &str = "The files of this session were removed and another server has begun one in their place";
/// The pause before a PRIMARY that could not write `server.pid` tries to write it again.
const NAMING_PAUSE: Duration = Duration::from_millis(100);
/// The time limit for answers after the server is told to stop. `nudge stop` promises an end within half a second.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// Serves calls until stdin ends, a signal arrives, or a caller ends the session with `nudge.shutdown`.
///
/// # Errors
/// `E_UNAVAILABLE` when the server cannot start, `server.pid` cannot be written or the lock is lost; `E_INVALID` when
/// the client on stdin does not speak MCP.
pub fn run_server(
    role: ServerRole,
    settings: &Arc<ServeSettings>,
    history: &Arc<ChangeHistory>,
    stdio: StdioUse,
) -> Result<()> {
    nudge_malloc::keep_little();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut event_loop = EventLoop(Some(runtime.map_err(|error| describe_failure("start the event loop", &error))?));
    let EventLoop(Some(runtime)) = &mut event_loop else { return Ok(()) };
    runtime.block_on(run_event_loop(role, settings, history, stdio))
}

/// A runtime that ends in the background on drop. A read of stdin may block a thread for ever; the process must not
/// wait for this thread, even after a panic.
struct EventLoop(Option<tokio::runtime::Runtime>);

impl Drop for EventLoop {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

async fn run_event_loop(
    role: ServerRole,
    settings: &Arc<ServeSettings>,
    history: &Arc<ChangeHistory>,
    stdio: StdioUse,
) -> Result<()> {
    let mut signal = std::pin::pin!(stop_signal().map_err(|error| describe_failure("listen for signals", &error))?);
    let (stop, mut stopped) = watch::channel(false);
    let work = Arc::<WorkPool>::default();
    let shared = ServerParts { settings, history, stop: &stop, work: &work };
    let desk = work.desk_for(CallerId::OwnClient);
    let people = matches!(stdio, StdioUse::Off);
    let (mut serving, backend) = match role {
        ServerRole::Primary(primary) => {
            let calls = PrimaryCalls::new(&primary, &settings.dir, history, &work);
            let backend = Arc::new(CallBackend::from_service(calls.to_service(), desk));
            let server = shared.open_primary(*primary, None, calls).await?;
            if people {
                print_line(&server.describe_address(&settings.dir));
                print_line(HOW_IT_ENDS);
                server.keeper.start_notice().iter().for_each(|notice| print_line(notice));
            }
            (ServingRole::AsPrimary(Box::new(server)), backend)
        }
        ServerRole::Proxy(proxy) => {
            if people {
                let ServerFile { pid, port, .. } = proxy.first;
                print_line(&format!(
                    "standing by: http://127.0.0.1:{port} (pid {pid}) serves, and this one goes on when it ends"
                ));
                print_line("Ctrl-C ends this one, `nudge stop` all of them");
            }
            let client = Client::new(&settings.dir, NAME).of_session(proxy.session_id());
            (shared.stand_by(proxy), Arc::new(CallBackend::from_client(Arc::new(client), desk)))
        }
    };
    // The task ends with the event loop.
    tokio::spawn(memory::give_back());
    let changes = ChangeFeeds::start_gathering(history.touched(), Arc::clone(&backend), stopped.clone());
    seeds::follow_clone_files(&stdio, &backend);
    let mut client = std::pin::pin!(serve_client(stdio, Arc::clone(&backend), changes));
    let ended = loop {
        tokio::select! {
            turn = serving.wait_for_turn(&settings.dir) => match (turn, serving) {
                (RoleTurn::Primary(primary), ServingRole::AsProxy(StandingBy { member, feed, .. })) => {
                    feed.abort();
                    history.begin_numbers();
                    let calls = PrimaryCalls::new(&primary, &settings.dir, history, &work);
                    backend.promote(calls.to_service());
                    // The history lacks the changes before the takeover, and the last PRIMARY may have had other tools.
                    for touched in [TouchedThing::Everything, TouchedThing::Tools] {
                        let _ = history.touched().send(touched);
                    }
                    let server = shared.open_primary(*primary, Some(member), calls).await?;
                    if people {
                        print_line(&server.describe_address(&settings.dir));
                    }
                    serving = ServingRole::AsPrimary(Box::new(server));
                }
                (RoleTurn::SessionOver, ServingRole::AsProxy(left)) if left.is_displaced(&settings.dir) => {
                    tracing::warn!("{UNSEATED}; this process goes over to it");
                    left.feed.abort();
                    left.waiting.stop_waiting();
                    drop(left.member);
                    serving = shared.go_over(&backend).await?;
                }
                (RoleTurn::Unseated, left) => {
                    serving = left;
                    break Ok(());
                }
                (_, left) => {
                    tracing::info!("the session was ended");
                    serving = left;
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
            () = wait_for_panic() => panic!("told to"),
        }
    };
    stop.send_replace(true);
    history.end_waits();
    let told = ended.and(serving.leave_session(&settings.dir).await)?;
    if people && !told.is_empty() {
        print_line(&told);
    }
    Ok(())
}

/// Resolves when a test tells the server to panic.
#[cfg(feature = "test-clock")]
fn wait_for_panic() -> impl Future<Output = ()> {
    session::test_clock::PANICS.notified()
}

#[cfg(not(feature = "test-clock"))]
fn wait_for_panic() -> impl Future<Output = ()> {
    std::future::pending()
}

/// Serves the MCP client until it closes stdin. Without a client, the call never returns.
async fn serve_client(stdio: StdioUse, backend: Arc<CallBackend>, changes: ChangeFeeds) -> Result<()> {
    match stdio {
        StdioUse::Mcp { inference, profile: Some(profile) } => {
            Box::pin(mcp::serve_stdio(async { ClientTools::of_profile(profile, backend, Some(inference)) })).await
        }
        StdioUse::Mcp { inference, profile: None } => {
            Box::pin(mcp::serve_stdio(async { ClientTools::new(backend, Some(inference)).await.with_changes(changes) }))
                .await
        }
        StdioUse::Off => std::future::pending().await,
    }
}

/// The caller name of a PROXY whose client has no name.
const NAME: &str = concat!("nudge-proxy/", env!("CARGO_PKG_VERSION"));

/// The state that all parts of the server share.
struct ServerParts<'a> {
    settings: &'a Arc<ServeSettings>,
    history: &'a Arc<ChangeHistory>,
    stop: &'a watch::Sender<bool>,
    work: &'a Arc<WorkPool>,
}

/// The current role of this process.
enum ServingRole {
    AsPrimary(Box<PrimaryServer>),
    AsProxy(StandingBy),
}

/// A PROXY that forwards calls.
struct StandingBy {
    member: SessionMember,
    waiting: LockWait,
    feed: JoinHandle<()>,
    session: Option<String>,
    /// The session's lock file, as the last check saw it.
    lock: Option<FileId>,
}

impl StandingBy {
    /// Returns true when the session is over. Otherwise notes the identity of the session's lock file.
    fn is_over(&mut self, dir: &RuntimeDir) -> bool {
        let Some(id) = &self.session else { return false };
        match dir.read_session() {
            SessionState::Stopped => true,
            SessionState::Lives(session) if session.id != *id => true,
            SessionState::Lives(_) => {
                self.lock = dir.lock_id();
                false
            }
            SessionState::Unknown | SessionState::Unreadable => false,
        }
    }

    /// Returns true when another program removed the files of the session and another session has started in the
    /// directory. After `nudge stop` the result is false: it leaves the locks in place, and the empty session file ends
    /// all members.
    fn is_displaced(&self, dir: &RuntimeDir) -> bool {
        self.session.is_some() && dir.lock_id() != self.lock && dir.read_session() != SessionState::Stopped
    }
}

/// A PRIMARY that answers calls.
struct PrimaryServer {
    connections: OpenConnections,
    housekeeping: JoinHandle<()>,
    watchdog: Watchdog,
    proxies: Arc<ConnectedProxies>,
    sources: Arc<OpenSources>,
    rows: Arc<PrimaryRows>,
    keeper: Arc<HintKeeper>,
    time: Arc<SessionTime>,
    file: ServerFile,
    session: SessionFile,
    member: SessionMember,
    /// The sign of life, which other servers can question. `None` when the system has none, or when the previous
    /// PRIMARY still has it.
    life: Option<LifeSign>,
    /// The time of the last touch of the files.
    touched: Instant,
    /// The lock. As the last field, it is dropped after all others.
    lock: PrimaryLock,
}

/// The services that answer the methods of a PRIMARY.
struct PrimaryCalls {
    all: Vec<Arc<dyn Service>>,
    proxies: Arc<ConnectedProxies>,
}

impl PrimaryCalls {
    /// Collects the services: first the server's own, then the services that combine all sources, then each source's.
    fn new(primary: &ReadyPrimary, runtime: &RuntimeDir, history: &Arc<ChangeHistory>, work: &Arc<WorkPool>) -> Self {
        let SessionFile { id, created_at, port, .. } = primary.session.clone();
        let proxies = Arc::<ConnectedProxies>::default();
        let status = ServerStatus {
            session: SessionIdentity { id, created_at },
            clock: Arc::clone(&primary.clock) as _,
            sources: Arc::clone(&primary.sources),
            rows: Arc::clone(&primary.rows),
            keeper: Arc::clone(&primary.keeper),
            proxies: Arc::clone(&proxies),
            work: Arc::clone(work),
            asked: Arc::<AskedSources>::default(),
            own: history.methods().into_iter().chain(primary.sources.shared_methods()).collect(),
            runtime: runtime.clone(),
            port: AtomicU16::new(port),
        };
        let mut all: Vec<Arc<dyn Service>> = vec![Arc::new(status), Arc::clone(history) as _];
        #[cfg(feature = "test-clock")]
        all.push(Arc::new(session::test_clock::TestClock(Arc::clone(&primary.clock))));
        all.extend(primary.sources.list_services());
        Self { all, proxies }
    }

    /// Joins all services into one service.
    fn to_service(&self) -> Arc<dyn Service> {
        Arc::new(log::LoggedServices(JoinedServices::new(self.all.clone())))
    }

    /// Joins all services and the services that exist only over HTTP into one service.
    fn to_http_service(&self, control: SessionControl, page: &Arc<SessionPage>) -> Arc<dyn Service> {
        let all = self.all.iter().cloned().chain([Arc::new(control) as Arc<dyn Service>, Arc::clone(page) as _]);
        Arc::new(log::LoggedServices(JoinedServices::new(all.collect())))
    }
}

impl ServerParts<'_> {
    /// Starts to answer calls as PRIMARY.
    async fn open_primary(
        &self,
        primary: ReadyPrimary,
        member: Option<SessionMember>,
        calls: PrimaryCalls,
    ) -> Result<PrimaryServer> {
        let ReadyPrimary { lock, member: joined, listeners, token, sources, rows, keeper, clock, time, file, session } =
            primary;
        let dir = &self.settings.dir;
        let first = joined.is_some();
        let member = match member.or(joined) {
            Some(member) => member,
            None => dir.join_session()?,
        };
        let (ports, further) = ServerPorts::new(file.port);
        let ports = Arc::new(ports);
        let door = HttpDoor::new(Arc::clone(&ports), token, &self.settings.allow_host, dir.server_file_path())?;
        let tcp = listeners.into_iter().map(TcpListener::from_std).collect::<std::io::Result<_>>();
        let tcp = tcp.map_err(|error| describe_failure("listen", &error))?;
        let local = dir.listen(&lock).inspect_err(|error| {
            tracing::warn!(error = error.message(), "there is no local channel; clients use the port");
        });
        let stopped = self.stop.subscribe();
        // HTTP clients connect again to each new PRIMARY, so their change notifications also start again.
        let desk = self.work.desk_for(CallerId::OwnClient);
        let backend = Arc::new(CallBackend::from_service(calls.to_service(), desk));
        let changes = ChangeFeeds::start_gathering(self.history.touched(), Arc::clone(&backend), stopped.clone());
        let tools = ClientTools::new(backend, None).await.with_changes(changes).with_structured_results();
        let mcp = McpHttp::new(tools, stopped.clone());
        let proxies = Arc::clone(&calls.proxies);
        let watchdog = Watchdog::start(Arc::clone(&proxies), Arc::clone(self.work));
        let control = SessionControl {
            dir: dir.clone(),
            rows: Arc::clone(&rows),
            sources: Arc::clone(&sources),
            keeper: Arc::clone(&keeper),
            time: Arc::clone(&time),
            stop: self.stop.clone(),
            ended: AtomicBool::new(false),
        };
        // The key is the session's own token, even if callers need another token or none: every PRIMARY of the session
        // knows it.
        let key = session.token.clone().map_or_else(AccessToken::new_random, AccessToken::from_text)?;
        let page = Arc::new(SessionPage::new(clock as _, key, ports));
        let service = calls.to_http_service(control, &page);
        let endpoint = http::HttpEndpoint {
            door,
            for_page: Arc::new(ForPage(Arc::clone(&service))),
            service,
            page,
            history: Arc::clone(self.history),
            proxies: Arc::clone(&proxies),
            work: Arc::clone(self.work),
            mcp,
            refused: http::RefusalLog::default(),
        };
        if let Err(error) = dir.write_server_file(&lock, &file) {
            if first {
                return Err(error);
            }
            // A promoted PROXY continues without the file; `ServingRole::wait_for_turn` writes it as soon as possible.
            tracing::error!(error = error.message(), "nobody can find the server yet");
        }
        tracing::info!(port = file.port, pid = file.pid, "serving");
        let connections =
            http::serve_connections(ServerListeners { tcp, further, local: local.ok() }, endpoint, &stopped);
        sources.begin_work();
        keeper.start_writer();
        let housekeeping =
            tokio::spawn(run_housekeeping(Arc::clone(&sources), Arc::clone(self.history), Arc::clone(&time)));
        let server = PrimaryServer {
            connections,
            housekeeping,
            watchdog,
            proxies,
            sources,
            rows,
            keeper,
            time,
            file,
            session,
            member,
            life: dir.show_life().ok(),
            touched: Instant::now(),
            lock,
        };
        Ok(server)
    }

    /// Joins the session that has replaced this one, as a server does at its start.
    async fn go_over(&self, backend: &CallBackend) -> Result<ServingRole> {
        let (settings, history) = (Arc::clone(self.settings), Arc::clone(self.history));
        let entered = spawn_blocking(move || role::take_role(&settings, &history)).await;
        let serving = match entered.map_err(|error| describe_failure("start a thread", &error.into()))?? {
            ServerRole::Primary(primary) => {
                self.history.begin_numbers();
                let calls = PrimaryCalls::new(&primary, &self.settings.dir, self.history, self.work);
                backend.promote(calls.to_service());
                ServingRole::AsPrimary(Box::new(self.open_primary(*primary, None, calls).await?))
            }
            ServerRole::Proxy(proxy) => {
                let client = Client::new(&self.settings.dir, NAME).of_session(proxy.session_id());
                backend.go_over(Arc::new(client));
                self.stand_by(proxy)
            }
        };
        for touched in [TouchedThing::Everything, TouchedThing::Tools] {
            let _ = self.history.touched().send(touched);
        }
        Ok(serving)
    }

    /// Becomes a PROXY: starts to wait for the lock and to relay changes.
    fn stand_by(&self, proxy: ProxyMember) -> ServingRole {
        let waiting = LockWait::start_waiting(self.settings, self.history, &proxy);
        let pid = std::process::id();
        tracing::info!(pid, primary = proxy.first.pid, "standing by");
        let client = Client::new(&self.settings.dir, NAME).with_header(http::PROXY_HEADER, pid.to_string());
        let (client, dir, id) = (client.of_session(proxy.session_id()), self.settings.dir.clone(), proxy.session_id());
        let is_over = move || id.as_ref().is_some_and(|id| dir.is_over(id));
        let feed = tokio::spawn(changes::relay_changes(client, self.history.touched().clone(), is_over));
        let (session, lock) = (proxy.session_id(), self.settings.dir.lock_id());
        ServingRole::AsProxy(StandingBy { member: proxy.member, waiting, feed, session, lock })
    }
}

impl PrimaryServer {
    /// Returns the line that tells users the server's address.
    fn describe_address(&self, dir: &RuntimeDir) -> String {
        let hint = if self.file.token.is_some() { ", the token is in it" } else { ", no token needed" };
        format!("serving http://127.0.0.1:{} ({}{hint})", self.file.port, dir.server_file_path().display())
    }
}

impl ServingRole {
    /// Resolves when a PROXY's wait is over. A PRIMARY restores missing files of its session, and resolves only when
    /// another server has started a session in the directory.
    async fn wait_for_turn(&mut self, dir: &RuntimeDir) -> RoleTurn {
        match self {
            Self::AsProxy(proxy) => loop {
                tokio::select! {
                    turn = proxy.waiting.wait_for_turn() => return turn,
                    // The relay of changes ends only with the session; the lock then belongs to another session.
                    _ = &mut proxy.feed => return RoleTurn::SessionOver,
                    () = sleep(LOOK) => {
                        dir.follow_path();
                        if proxy.is_over(dir) {
                            return RoleTurn::SessionOver;
                        }
                        dir.stay_member(&proxy.member, LockPatience::AtOnce);
                    }
                }
            },
            Self::AsPrimary(server) => {
                let mut asking = None;
                // The files were written a moment ago, so the first check may come after the client's first answer.
                let mut pause = NAMING_PAUSE;
                loop {
                    let PrimaryServer {
                        lock, file, session, sources, rows, member, connections, life, touched, ..
                    } = &mut **server;
                    if life.is_none() {
                        *life = dir.show_life().ok();
                    }
                    // The files have been checked. The drop of the question tells the other server that this one lives.
                    let _ = asking.take();
                    let mut is_retaken = false;
                    let asked = async {
                        match life {
                            Some(life) => life.wait_for_question().await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = rows.wait_for_retake() => is_retaken = true,
                        server = asked => asking = Some(server),
                    }
                    match rows.keep_seat(dir) {
                        Ok(has_restored) => is_retaken |= has_restored,
                        Err(error) => {
                            tracing::error!(error = error.message(), "the files of the session cannot be put back");
                            return RoleTurn::Unseated;
                        }
                    }
                    if is_retaken {
                        // The sources store their rows again before another server hears that this one lives.
                        let sources = Arc::clone(sources);
                        let _ = spawn_blocking(move || sources.tick()).await;
                    }
                    dir.stay_member(member, LockPatience::AtOnce);
                    if !dir.has_channel()
                        && let Ok(channel) = dir.listen(lock)
                    {
                        connections.renew_local(channel);
                    }
                    if touched.elapsed() >= TOUCH {
                        *touched = Instant::now();
                        dir.touch_files();
                    }
                    let named =
                        dir.read_server_file().as_ref() == Some(file) || dir.write_server_file(lock, file).is_ok();
                    if dir.read_session() == SessionState::Unknown {
                        // Another program removed the session file. If the write fails, the next round tries again.
                        let _ = dir.write_session(lock, session);
                    }
                    pause = if named { TICK } else { NAMING_PAUSE };
                }
            }
        }
    }

    /// Stops answering and leaves the session to its other members. If there are none, returns a line for users that
    /// says which hints are kept or lost.
    async fn leave_session(self, dir: &RuntimeDir) -> Result<String> {
        match self {
            Self::AsPrimary(server) => {
                let PrimaryServer { lock, member, sources, rows, keeper, time, session, .. } = *server;
                let PrimaryServer { connections, housekeeping, watchdog, proxies, .. } = *server;
                let connected = proxies.pids();
                // If the directory was moved, the moved one still has the lock, and the old path may have a new
                // directory with a lock.
                let is_seated = rows.keep_seat(dir).is_ok();
                // Stops the watchdog first, because the sources may take longer to close than the watchdog allows.
                drop(watchdog);
                housekeeping.abort();
                connections.wait_until_drained(DRAIN_TIMEOUT).await;
                sources.close();
                rows.close();
                // Closes the keeper of the kept hints before the next PRIMARY can start.
                keeper.close();
                time.leave_time(true);
                let is_named = is_seated && lock.is_named(dir);
                if is_named && dir.end_session(Some(lock), member, || connected.iter().any(|pid| is_running(*pid)))? {
                    return Ok(keeper.summarize_end(sources.count_hints()).to_text());
                }
                if is_named {
                    return Ok(String::new());
                }
                // The files in the directory belong to another PRIMARY, so they stay.
                let hints = sources.count_hints();
                let file = if hints == 0 { Ok(String::new()) } else { keeper::write_out(&sources, &session.id) };
                let left = match file {
                    Ok(file) if file.is_empty() => String::new(),
                    Ok(file) => format!("; its {hints} hints are in {file}, which `nudge import` reads"),
                    Err(error) => format!("; its {hints} hints are lost ({})", error.message().trim_end_matches('.')),
                };
                return Err(Error::unavailable(format!("{UNSEATED}{left}; start this one again.")));
            }
            Self::AsProxy(StandingBy { member, waiting, feed, .. }) => {
                feed.abort();
                match waiting.stop_waiting() {
                    Some(RoleTurn::Primary(won)) => {
                        let ReadyPrimary { lock, sources, rows, keeper, .. } = *won;
                        sources.close();
                        rows.close();
                        keeper.close();
                        dir.end_session(Some(lock), member, || false)?;
                    }
                    Some(RoleTurn::SessionOver | RoleTurn::Unseated) | None => {
                        dir.end_session(None, member, || false)?;
                    }
                }
            }
        }
        Ok(String::new())
    }
}

/// Runs the sources' periodic work on a worker thread. Reports when a source starts or stops being in use, because the
/// list of tools then changes.
async fn run_housekeeping(sources: Arc<OpenSources>, history: Arc<ChangeHistory>, time: Arc<SessionTime>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut in_use: Option<Vec<&'static str>> = None;
    loop {
        ticks.tick().await;
        let (ticking, time) = (Arc::clone(&sources), Arc::clone(&time));
        // A panic does not end the loop: the source still answers calls, or reports its own failure.
        let ticked = spawn_blocking(move || {
            ticking.tick();
            time.leave_time(false);
            ticking.in_use()
        });
        let Ok(now) = ticked.await else { continue };
        let before = in_use.get_or_insert_with(|| now.clone());
        let names = sources.iter().map(|(spec, _)| spec.name);
        let changed = names.filter(|name| before.contains(name) != now.contains(name));
        history.tell_changes(&changed.map(|name| sources.in_use_event(name)).collect::<Vec<_>>());
        in_use = Some(now);
    }
}

/// Resolves when the system asks the process to end.
#[cfg(unix)]
pub fn stop_signal() -> std::io::Result<impl Future<Output = ()> + use<>> {
    use tokio::signal::unix::{SignalKind, signal};

    nudge_os::process::leave_signals(&[SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]);
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

/// Resolves when the system asks the process to end.
#[cfg(not(unix))]
pub fn stop_signal() -> std::io::Result<impl Future<Output = ()> + use<>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    let mut close = tokio::signal::windows::ctrl_close()?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = close.recv() => {}
        }
    })
}

/// Prints a line for users on stderr. Ignores the error when stderr is closed.
fn print_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "nudge: {text}");
}

fn describe_failure(what: &str, error: &std::io::Error) -> Error {
    Error::unavailable(format!("The server cannot {what}: {error}; free some resources and try again."))
}
