//! Decides the role of a server: takes the lock as PRIMARY or joins as PROXY, and promotes a PROXY that wins the lock.
//! `nudge/client/src/members.rs` describes the protocol and why it is correct.

use std::io::ErrorKind as Io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nudge::Clock as _;
use nudge::{Error, JoinedServices, Result};
use nudge_app::kept::KEPT_TTL;
use nudge_app::{followed, settings, sources};
use nudge_client::{
    MemberWatch, PROTOCOL, PrimaryLock, PrimarySeat, ROWS, RemoteServer, RuntimeDir, ServerFile, SessionFile,
    SessionMember, SessionState,
};
use nudge_core::clock::rfc3339;
use nudge_core::settings::{SettingValues, ValueOrigin};
use nudge_core::source::{DataDir, SessionIdentity};
use nudge_os::lock::LockPatience;
use nudge_storage::SessionDb;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::counts::SessionCounts;
use super::dead;
use super::history::ChangeHistory;
use super::keeper::{self, HintKeeper, KeeperSetup};
use super::open::{OpenSources, SourceSupplies};
use super::rows::PrimaryRows;
use super::time::SessionTime;
use crate::http::ports::bind_loopback;
use crate::token::AccessToken;

/// The time for which a process tries to get the lock while no server answers. The lock's owner may be about to end, or
/// may have just started.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The time within which the members of a stopped session notice the stop.
const FAREWELL: Duration = Duration::from_millis(500);
/// The time within which members rejoin their session after another program removed `members.lock`. A member checks the
/// file every second.
const REJOIN_PATIENCE: Duration = Duration::from_secs(2);
/// The time for which such a member tries to rejoin while another process decides its role. On a quiet machine, a
/// decision takes microseconds.
const REJOIN_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_POLL: Duration = Duration::from_millis(10);
/// The time for which a PRIMARY tries to get the port of its predecessor.
const PORT_PATIENCE: Duration = Duration::from_millis(50);
/// The pause between two tries for the port.
const PORT_PAUSE: Duration = Duration::from_millis(1);
/// The pause before a PROXY that could not become PRIMARY tries again. In the pause, another PROXY may try.
const PROMOTION_PAUSE: Duration = Duration::from_millis(100);
/// The number of ports to try after the first port, if that is taken.
const NEXT_PORTS: u16 = 20;

/// The settings of a PRIMARY. A PROXY stores them for its promotion.
pub struct ServeSettings {
    /// The directory of the lock, the rows and `server.pid`.
    pub dir: RuntimeDir,
    /// The port that the first PRIMARY of a session tries first; 0 for any port.
    pub port: u16,
    /// Names that the `Host` header may have in addition to the loopback names.
    pub allow_host: Vec<String>,
    /// The token that HTTP callers must send, if any.
    pub asks: RequiredToken,
    /// The configured values, for the sources.
    pub values: Arc<SettingValues>,
    /// The directory in which sources keep files.
    pub data: DataDir,
    /// The folder for files that sources can make again.
    pub cache: DataDir,
    /// True when changes are stored as rows, so that they survive this process.
    pub journal: bool,
    /// True when a new session keeps its hints for later sessions.
    pub keep: bool,
}

/// The token that HTTP callers must send.
pub enum RequiredToken {
    /// No token.
    Nothing,
    /// A token that the user gave.
    For(AccessToken),
    /// The session's own token, which the first PRIMARY creates.
    ForTheSessions,
}

/// The role of a `nudge serve` process.
pub enum ServerRole {
    /// The process has the lock.
    Primary(Box<ReadyPrimary>),
    /// Another process has the lock and answers calls.
    Proxy(ProxyMember),
}

/// A PRIMARY that is ready to serve: it holds the lock, has bound a port, and has restored the sources.
pub struct ReadyPrimary {
    /// The membership; `None` for a promoted PROXY, which already is a member.
    pub member: Option<SessionMember>,
    /// The TCP listeners, all on the same port.
    pub listeners: Vec<TcpListener>,
    /// The token that TCP callers must send.
    pub token: Option<AccessToken>,
    /// The opened sources.
    pub sources: Arc<OpenSources>,
    /// The rows in which the sources record changes.
    pub rows: Arc<PrimaryRows>,
    /// Keeps the hints for later sessions.
    pub keeper: Arc<HintKeeper>,
    /// The server's clock.
    pub clock: Arc<ServerClock>,
    /// The session's time: the time of the same clock, as long as that is plausible.
    pub time: Arc<SessionTime>,
    /// The content of `server.pid`.
    pub file: ServerFile,
    /// The content of the session file.
    pub session: SessionFile,
    /// The lock. As the last field, it is dropped after all others.
    pub lock: PrimaryLock,
}

/// The clock of a server.
#[cfg(not(feature = "test-clock"))]
pub type ServerClock = nudge::SystemClock;
/// The clock of a server under test; the test moves it.
#[cfg(feature = "test-clock")]
pub type ServerClock = nudge::ManualClock;

/// A PROXY: a member of the session that waits for the lock.
pub struct ProxyMember {
    /// The membership in the session.
    pub member: SessionMember,
    /// The PRIMARY that answered this process.
    pub first: ServerFile,
    /// The session, if its file could be read.
    pub session: Option<SessionFile>,
}

impl ProxyMember {
    /// Returns the id of the session, if known.
    pub fn session_id(&self) -> Option<String> {
        self.session.as_ref().map(|session| session.id.clone())
    }
}

/// Returns the role of this process: PRIMARY, or PROXY of a PRIMARY that answers.
///
/// # Errors
/// `E_UNAVAILABLE` when another process holds the lock and does not answer, when no port is free, or when the directory
/// cannot be used.
pub fn take_role(settings: &ServeSettings, history: &Arc<ChangeHistory>) -> Result<ServerRole> {
    let dir = &settings.dir;
    let begun = Instant::now();
    let mut is_asked = false;
    loop {
        if let Some(lock) = dir.try_lock()? {
            // A living PRIMARY may have lost all files of its session. It restores them when another server asks for a
            // sign of life.
            if !std::mem::replace(&mut is_asked, true) && dir.read_session() == SessionState::Unknown {
                drop(lock);
                dir.ask_for_life(LOCK_TIMEOUT);
                dir.follow_path();
                continue;
            }
            // Members may be alive although no file shows them. In time, such a member takes the lock or rejoins.
            if begun.elapsed() < REJOIN_PATIENCE && dir.lacks_members_file() && dir.read_session().is_alive() {
                drop(lock);
                sleep(LOCK_POLL);
                continue;
            }
            // The file `server.pid` describes a server that has ended.
            dir.remove_server_file(&lock)?;
            if dir.read_session() == SessionState::Stopped && dir.has_members(&lock)? && begun.elapsed() < FAREWELL {
                // The members of a stopped session end as soon as they notice the stop. This wait keeps them
                // out of the new session.
                drop(lock);
                sleep(LOCK_POLL);
                continue;
            }
            let goes_on = !dir.session_is_over(&lock)?;
            let taken = take_over(settings, history, lock, goes_on, None, || false)?;
            return Ok(ServerRole::Primary(Box::new(ReadyPrimary { member: Some(dir.join_session()?), ..taken })));
        }
        // A failed try does not prove that a PRIMARY is alive: the lock's owner may be about to end, or a client may be
        // testing the lock.
        if let Some(first) = dir.read_server_file().filter(|first| RemoteServer::is_alive(dir, first))
            && dir.is_held()
        {
            dir.check_protocol()?;
            let member = dir.join_session()?;
            let session = match dir.read_session() {
                SessionState::Lives(session) => Some(session),
                _ => None,
            };
            // If another process had won the lock meanwhile, it would have removed `server.pid`. Only an unchanged file
            // shows that the session belongs to `first`.
            if dir.read_server_file().as_ref() == Some(&first) {
                return Ok(ServerRole::Proxy(ProxyMember { member, first, session }));
            }
            continue;
        }
        if begun.elapsed() > LOCK_TIMEOUT {
            let named = dir.read_server_file().map(|first| format!(" (server.pid names pid {})", first.pid));
            return Err(Error::unavailable(format!(
                "Another process holds the lock of {} and does not answer{}; end it and try again.",
                dir.path().display(),
                named.unwrap_or_default()
            )));
        }
        sleep(LOCK_POLL);
    }
}

/// Opens the sources and binds the port. The caller writes `server.pid` later, when the server answers calls. `known`
/// is the session to continue if its file is gone. Returns an error when `given_up` becomes true.
fn take_over(
    settings: &ServeSettings,
    history: &Arc<ChangeHistory>,
    lock: PrimaryLock,
    goes_on: bool,
    known: Option<&SessionFile>,
    given_up: impl Fn() -> bool,
) -> Result<ReadyPrimary> {
    let dir = &settings.dir;
    if !goes_on {
        dead::keep_for(settings, &lock);
        dir.remove_session(&lock)?;
    }
    dir.check_protocol()?;
    let before = match dir.read_session() {
        SessionState::Lives(session) => Some(session),
        SessionState::Unknown | SessionState::Stopped => known.cloned(),
        SessionState::Unreadable => return Err(unreadable_session(dir)),
    };
    // Restores the rows of the earlier PRIMARY even if this PRIMARY stores none.
    let (database, mut restored) = SessionDb::open(dir.path(), ROWS, goes_on)?;
    // No rows mean that the earlier PRIMARY stored none.
    let whole = restored.notice.is_none() && !restored.rows.is_empty();
    if let Some(notice) = &restored.notice {
        tracing::warn!(notice, "the rows of the session");
    }
    let identity = before.as_ref().map_or_else(
        || SessionIdentity { id: uuid::Uuid::new_v4().to_string(), created_at: make_clock().now() },
        |session| SessionIdentity { id: session.id.clone(), created_at: session.created_at },
    );
    if goes_on
        && !whole
        && let Err(error) = followed::forget_session(&identity.id)
    {
        tracing::warn!(error = error.message(), "hints of files are not read again");
    }
    let clock = Arc::new(make_clock());
    let time = Arc::new(SessionTime::from_last_session(Arc::clone(&clock), settings));
    let rows = Arc::new(PrimaryRows::new(lock.new_watch(dir), settings.journal.then_some(database)));
    let keep = before.as_ref().map_or(settings.keep, |session| session.keep);
    let (data, kept_clock) = (settings.data.clone(), Arc::clone(&time.clock) as _);
    let setup = KeeperSetup { runtime: dir.path(), session: &identity.id, data, clock: kept_clock };
    let keeper = Arc::new(HintKeeper::open(keep, setup));
    keeper.exchange_deletions(&mut restored, !goes_on);
    let lent = SourceSupplies {
        clock: Arc::clone(&time.clock) as _,
        session: identity.clone(),
        rows: Arc::clone(&rows),
        keeper: Arc::clone(&keeper),
        changes: Arc::new(keeper::ChangeSinkPair(Arc::clone(history) as _, Arc::clone(&keeper) as _)),
        data: settings.data.clone(),
        cache: settings.cache.clone(),
        models: sources::open_models(&settings.values, &settings.data, Arc::clone(&clock) as _),
        settings: derive_values(settings, &keeper),
        counts: Arc::new(SessionCounts::new(
            Arc::clone(&time.clock) as _,
            settings.data.clone(),
            dir.clone(),
            keep,
            goes_on,
        )),
        given_up: &given_up,
    };
    let sources = Arc::new(OpenSources::open(&lent, sources::list_sources(), restored)?);
    keeper.read_back(Arc::new(JoinedServices::new(sources.list_services())), whole);
    if given_up() {
        return Err(Error::unavailable("This process ends and takes nothing over."));
    }

    let listeners = bind_port(before.as_ref().map(|session| session.port), settings.port)?;
    let unusable = |error: std::io::Error| Error::unavailable(format!("The port fails: {error}."));
    for listener in &listeners {
        listener.set_nonblocking(true).map_err(unusable)?;
    }
    let port = listeners[0].local_addr().map_err(unusable)?.port();

    // The session's own token stays the same, even if this PRIMARY requires another token or none.
    let own = before.as_ref().and_then(|session| session.token.clone());
    let own = own.map_or_else(AccessToken::new_random, AccessToken::from_text)?;
    let SessionIdentity { id, created_at } = identity;
    let session = SessionFile { id, protocol: PROTOCOL, created_at, port, token: Some(own.as_text().to_owned()), keep };
    let token = match &settings.asks {
        RequiredToken::Nothing => None,
        RequiredToken::For(token) => Some(token.clone()),
        RequiredToken::ForTheSessions => Some(own),
    };
    if before.as_ref() != Some(&session)
        && let Err(error) = dir.write_session(&lock, &session)
    {
        // `ServingRole::wait_for_turn` in `lib.rs` writes the file later. The other members already have the session's
        // data.
        tracing::warn!(error = error.message(), "the session is not described yet");
    }
    if !settings.journal {
        // Removes the old rows, which would soon be out of date. This is the last step, because after it no step may
        // fail.
        dir.remove_rows(&lock)?;
    }
    let shown = token.as_ref().map(|token| token.as_text().to_owned());
    let file = ServerFile { pid: std::process::id(), port, started: rfc3339::format_time(created_at), token: shown };
    rows.set_seat(PrimarySeat { server: file.clone(), session: session.clone() });
    Ok(ReadyPrimary { member: None, listeners, token, sources, rows, keeper, clock, time, file, session, lock })
}

/// Returns the values of the settings. If this session keeps hints and the user has set no default ttl, a hint without
/// a ttl gets the long ttl of kept hints.
pub fn derive_values(settings: &ServeSettings, keeper: &HintKeeper) -> Arc<SettingValues> {
    const TTL: &str = "default_ttl";
    let mut values = SettingValues::clone(&settings.values);
    let row = settings::list_settings().find(|setting| setting.name == TTL);
    if let Some(row) = row.filter(|_| keeper.is_on() && values.get_origin(TTL) == ValueOrigin::Default) {
        // The value is a constant that passes the check, so there is no error.
        let _ = values.set(row, ValueOrigin::Default, TTL, KEPT_TTL.into());
    }
    Arc::new(values)
}

/// Returns the clock of a server.
#[cfg(not(feature = "test-clock"))]
pub fn make_clock() -> ServerClock {
    nudge::SystemClock
}

/// Makes a clock that starts at `NUDGE_TEST_CLOCK_MS`, or at the beginning of 2026 if that is not set.
#[cfg(feature = "test-clock")]
pub fn make_clock() -> ServerClock {
    let start = std::env::var("NUDGE_TEST_CLOCK_MS").ok().and_then(|text| text.parse().ok());
    nudge::ManualClock::new(start.unwrap_or(super::test_clock::START_MS))
}

fn unreadable_session(dir: &RuntimeDir) -> Error {
    let message = format!("The file session in {} cannot be read now; try again.", dir.path().display());
    Error::unavailable(message)
}

/// Binds the session's earlier port. If that is impossible, binds `first`, or one of the next [`NEXT_PORTS`] ports.
/// Returns at least one listener.
fn bind_port(before: Option<u16>, first: u16) -> Result<Vec<TcpListener>> {
    if let Some(before) = before {
        // When a process is killed, the system releases its lock a moment before its port.
        let late = Instant::now() + PORT_PATIENCE;
        loop {
            match bind_loopback(before) {
                Ok(listeners) => return Ok(listeners),
                Err(error) if error.kind() == Io::AddrInUse && Instant::now() < late => sleep(PORT_PAUSE),
                Err(_) => break,
            }
        }
    }
    for port in (0..=NEXT_PORTS).map(|more| if first == 0 { 0 } else { first.saturating_add(more) }) {
        match bind_loopback(port) {
            Ok(listeners) => return Ok(listeners),
            Err(error) if error.kind() == Io::AddrInUse => {}
            Err(error) => {
                let message = format!("Port {port} cannot be used ({error}); give another with --port.");
                return Err(Error::unavailable(message));
            }
        }
    }
    let last = first.saturating_add(NEXT_PORTS);
    Err(Error::unavailable(format!("The ports {first} to {last} are taken; give another with --port, 0 for any.")))
}

/// The result of a PROXY's wait, or the reason why a PRIMARY stops serving.
pub enum RoleTurn {
    /// The PROXY is now PRIMARY.
    Primary(Box<ReadyPrimary>),
    /// The session has ended.
    SessionOver,
    /// This process was PRIMARY. Another program removed its files, and another server has started a session in the
    /// directory.
    Unseated,
}

/// A PROXY's wait for the lock.
pub struct LockWait {
    turn: oneshot::Receiver<RoleTurn>,
    left: Arc<LeftLine>,
}

/// The state that [`LockWait`] shares with its thread, to stop the thread's wait.
#[derive(Default)]
struct LeftLine {
    asked: AtomicBool,
    /// Held from the moment the lock is won until the result is sent: [`LockWait::stop_waiting`] waits for its release.
    turn: Mutex<()>,
}

impl LeftLine {
    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }
}

impl LockWait {
    /// Starts a thread that waits for the lock.
    pub fn start_waiting(settings: &Arc<ServeSettings>, history: &Arc<ChangeHistory>, proxy: &ProxyMember) -> Self {
        let (sender, turn) = oneshot::channel();
        let left = Arc::<LeftLine>::default();
        let line = WaitingLine {
            settings: Arc::clone(settings),
            history: Arc::clone(history),
            session: proxy.session.clone(),
            member: proxy.member.new_watch(),
            left: Arc::clone(&left),
        };
        std::thread::spawn(move || line.wait_for_lock(sender));
        Self { turn, left }
    }

    /// Waits for the result.
    pub async fn wait_for_turn(&mut self) -> RoleTurn {
        // The thread ends without a result only when this process is about to end.
        (&mut self.turn).await.unwrap_or(RoleTurn::SessionOver)
    }

    /// Stops the wait. Returns the result if it has already arrived. A running takeover is given up.
    pub fn stop_waiting(mut self) -> Option<RoleTurn> {
        self.left.asked.store(true, Ordering::SeqCst);
        drop(self.left.turn.lock());
        self.turn.try_recv().ok()
    }
}

struct WaitingLine {
    settings: Arc<ServeSettings>,
    history: Arc<ChangeHistory>,
    session: Option<SessionFile>,
    member: MemberWatch,
    left: Arc<LeftLine>,
}

impl WaitingLine {
    fn wait_for_lock(self, sender: oneshot::Sender<RoleTurn>) {
        let mut said = String::new();
        // Logs an error only if it differs from the last one.
        let mut cannot = |error: &Error| {
            if said != error.message() {
                tracing::error!(error = error.message(), "cannot become PRIMARY");
                error.message().clone_into(&mut said);
            }
        };
        loop {
            match self.settings.dir.wait_for_lock(|| self.join_again()) {
                Err(error) => cannot(&error),
                Ok(lock) => {
                    // [`LockWait::stop_waiting`] also takes this mutex, so it waits until the takeover is finished or
                    // given up.
                    let _turn = self.left.turn.lock();
                    if self.left.is_asked() {
                        return;
                    }
                    match self.take_turn(lock) {
                        Err(_) if self.left.is_asked() => return,
                        Err(error) => cannot(&error),
                        Ok(turn) => {
                            let _ = sender.send(turn);
                            return;
                        }
                    }
                }
            }
            sleep(PROMOTION_PAUSE);
        }
    }

    /// Rejoins a session whose files were removed. Without this, a PRIMARY that ends now would find no other member.
    fn join_again(&self) {
        let dir = &self.settings.dir;
        let is_over = self.session.as_ref().is_some_and(|session| dir.is_over(&session.id));
        if let Some(member) = self.member.to_member().filter(|_| !is_over) {
            // A PRIMARY that is about to decide its role needs only a moment. Before the next try, the process may be
            // told to stop.
            dir.stay_member(&member, LockPatience::Within(REJOIN_TIMEOUT));
        }
    }

    fn take_turn(&self, lock: PrimaryLock) -> Result<RoleTurn> {
        let dir = &self.settings.dir;
        dir.remove_server_file(&lock)?;
        let over = match (dir.read_session(), &self.session) {
            (SessionState::Lives(session), Some(own)) => own.id != session.id,
            (state, _) => state == SessionState::Stopped,
        };
        if over {
            return Ok(RoleTurn::SessionOver);
        }
        let taken =
            take_over(&self.settings, &self.history, lock, true, self.session.as_ref(), || self.left.is_asked())?;
        Ok(RoleTurn::Primary(Box::new(taken)))
    }
}
