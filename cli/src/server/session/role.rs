//! PRIMARY or PROXY: who has the lock, and how a PROXY gets it. The protocol and why it holds is told in
//! `nudge/client/src/members.rs`.

use std::io::ErrorKind as Io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nudge::Clock as _;
use nudge::{Error, Result};
use nudge_client::{Member, PrimaryLock, Remote, RuntimeDir, ServerFile, SessionFile, SessionState};
use nudge_core::clock::rfc3339;
use nudge_core::settings::Values;
use nudge_core::source::{DataDir, SessionIdentity};
use tokio::sync::oneshot;

use super::history::History;
use super::journal::SessionJournal;
use super::open::{Lent, OpenSources};
use crate::server::token::Token;

/// How long to try for the lock while nobody answers: a server may be ending, or only just starting.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the members of a session that was stopped have, to notice.
const FAREWELL: Duration = Duration::from_millis(500);
const LOCK_POLL: Duration = Duration::from_millis(10);
/// Until a PROXY that could not become PRIMARY tries again; another may have more luck meanwhile.
const PROMOTION_PAUSE: Duration = Duration::from_millis(100);
/// Ports tried after the first when that is taken.
const NEXT_PORTS: u16 = 20;

/// How to be PRIMARY; a PROXY needs it too, for the day when it becomes one.
pub struct ServeSettings {
    /// Where the lock, the journal and `server.pid` are.
    pub dir: RuntimeDir,
    /// The port tried first by the first PRIMARY of a session; 0 for any.
    pub port: u16,
    /// Further names that `Host` may have.
    pub allow_host: Vec<String>,
    /// What callers must show.
    pub asks: Asks,
    /// What is set, for the sources.
    pub values: Arc<Values>,
    /// Where sources keep files.
    pub data: DataDir,
    /// Whether changes are journalled.
    pub journal: bool,
}

/// What callers over HTTP must show.
pub enum Asks {
    /// Nothing.
    Nothing,
    /// This token.
    For(Token),
    /// The session's own token; its first PRIMARY makes it.
    ForTheSessions,
}

/// What a `nudge serve` is.
pub enum Role {
    /// It has the lock.
    Primary(Box<Primary>),
    /// Another has it, and answers.
    Proxy(Proxy),
}

/// The lock, held, a port, bound, and the sources as the session left them.
pub struct Primary {
    /// None where the process was a member before.
    pub member: Option<Member>,
    /// Where it is to answer.
    pub listener: TcpListener,
    /// What callers over TCP must show.
    pub token: Option<Token>,
    /// The sources, open.
    pub sources: Arc<OpenSources>,
    /// What they record in.
    pub journal: Arc<SessionJournal>,
    /// The time.
    pub clock: Arc<ServerClock>,
    /// What `server.pid` is to say.
    pub file: ServerFile,
    /// What the session file is to say.
    pub session: SessionFile,
    /// Last, so that it is given back last.
    pub lock: PrimaryLock,
}

/// The clock of a server; tests move theirs.
#[cfg(not(feature = "test-clock"))]
pub type ServerClock = nudge::SystemClock;
/// The clock of a server, which tests move.
#[cfg(feature = "test-clock")]
pub type ServerClock = nudge::ManualClock;

/// A member of the session that waits for its turn.
pub struct Proxy {
    /// Its membership.
    pub member: Member,
    /// The PRIMARY that answered.
    pub first: ServerFile,
    /// The session that it belongs to, where its file says.
    pub session: Option<SessionFile>,
}

impl Proxy {
    /// The id of its session, where that is known.
    pub fn id(&self) -> Option<String> {
        self.session.as_ref().map(|session| session.id.clone())
    }
}

/// Becomes PRIMARY, or the PROXY of one that answers.
///
/// # Errors
/// `E_UNAVAILABLE` when somebody holds the lock and does not answer, no port is free, or the directory
/// cannot be used.
pub fn enter(settings: &ServeSettings, history: &Arc<History>) -> Result<Role> {
    let dir = &settings.dir;
    let begun = Instant::now();
    loop {
        if let Some(lock) = dir.try_lock()? {
            // It speaks of a server that is gone.
            dir.remove_server_file(&lock)?;
            if dir.session() == SessionState::Stopped && dir.has_members(&lock)? && begun.elapsed() < FAREWELL {
                // They end as soon as they see it, and belong to no other session then.
                drop(lock);
                sleep(LOCK_POLL);
                continue;
            }
            let goes_on = !dir.session_is_over(&lock)?;
            let taken = take_over(settings, history, lock, goes_on, None, || false)?;
            return Ok(Role::Primary(Box::new(Primary { member: Some(dir.join()?), ..taken })));
        }
        // A failed try is no verdict: the holder may be ending, or a client only probing.
        if let Some(first) = dir.read_server_file().filter(|first| Remote::is_alive(first.port))
            && dir.is_held()
        {
            let member = dir.join()?;
            let session = match dir.session() {
                SessionState::Lives(session) => Some(session),
                _ => None,
            };
            // It is that of `first` only if nobody has won since; whoever does removes `server.pid`.
            if dir.read_server_file().as_ref() == Some(&first) {
                return Ok(Role::Proxy(Proxy { member, first, session }));
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

/// Opens the sources and binds the port; `server.pid` comes last, when calls are answered. `known` is the
/// session that goes on, where its file is gone. Fails when `given_up` becomes true.
fn take_over(
    settings: &ServeSettings,
    history: &Arc<History>,
    lock: PrimaryLock,
    goes_on: bool,
    known: Option<&SessionFile>,
    given_up: impl Fn() -> bool,
) -> Result<Primary> {
    let dir = &settings.dir;
    if !goes_on {
        dir.remove_session(&lock)?;
    }
    let before = match dir.session() {
        SessionState::Lives(session) => Some(session),
        SessionState::Unknown | SessionState::Stopped => known.cloned(),
        SessionState::Unreadable => return Err(unreadable(dir)),
    };
    // What others have recorded is taken over even where nothing is to be recorded from now on.
    let (journal, records) = if settings.journal || goes_on {
        let (journal, restored) = dir.open_journal(&lock, goes_on)?;
        if let Some(notice) = restored.notice {
            tracing::warn!(notice, "the journal");
        }
        (settings.journal.then_some(journal), restored.records)
    } else {
        (None, Vec::new())
    };
    let identity = before.as_ref().map_or_else(
        || SessionIdentity { id: uuid::Uuid::new_v4().to_string(), created_at: clock().now() },
        |session| SessionIdentity { id: session.id.clone(), created_at: session.created_at },
    );
    let clock = Arc::new(clock());
    let journal = Arc::new(SessionJournal::new(lock.watch(dir), journal));
    let lent = Lent {
        clock: Arc::clone(&clock) as _,
        session: identity.clone(),
        journal: Arc::clone(&journal),
        history: Arc::clone(history),
        data: settings.data.clone(),
        settings: Arc::clone(&settings.values),
        given_up: &given_up,
    };
    let sources = Arc::new(OpenSources::open(&lent, records)?);
    if given_up() {
        return Err(Error::unavailable("This process ends and takes nothing over."));
    }

    let listener = bind(before.as_ref().map(|session| session.port), settings.port)?;
    let unusable = |error: std::io::Error| Error::unavailable(format!("The port fails: {error}."));
    listener.set_nonblocking(true).map_err(unusable)?;
    let port = listener.local_addr().map_err(unusable)?.port();

    // The session's token stays what it is, whatever this PRIMARY asks for.
    let own = before.as_ref().and_then(|session| session.token.clone());
    let own = own.map_or_else(Token::random, Token::fixed)?;
    let SessionIdentity { id, created_at } = identity;
    let session = SessionFile { id, created_at, port, token: Some(own.text().to_owned()) };
    let token = match &settings.asks {
        Asks::Nothing => None,
        Asks::For(token) => Some(token.clone()),
        Asks::ForTheSessions => Some(own),
    };
    if before.as_ref() != Some(&session)
        && let Err(error) = dir.write_session(&lock, &session)
    {
        // It is written as soon as it can be; the other members know it.
        tracing::warn!(error = error.message(), "the session is not described yet");
    }
    if !settings.journal {
        // It will not be true for long. Nothing can fail from here on.
        dir.remove_journal(&lock)?;
    }
    let shown = token.as_ref().map(|token| token.text().to_owned());
    let file = ServerFile { pid: std::process::id(), port, started: rfc3339::text(created_at), token: shown };
    Ok(Primary { member: None, listener, token, sources, journal, clock, file, session, lock })
}

#[cfg(not(feature = "test-clock"))]
fn clock() -> ServerClock {
    nudge::SystemClock
}

/// One that stands at the beginning of 2026.
#[cfg(feature = "test-clock")]
fn clock() -> ServerClock {
    nudge::ManualClock::new(super::test_clock::START_MS)
}

fn unreadable(dir: &RuntimeDir) -> Error {
    let message = format!("The file session in {} cannot be read now; try again.", dir.path().display());
    Error::unavailable(message)
}

/// Binds the port that the session has, else `first`, else one of the next.
fn bind(before: Option<u16>, first: u16) -> Result<TcpListener> {
    if let Some(before) = before
        && let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, before))
    {
        return Ok(listener);
    }
    let last = if first == 0 { first } else { first.saturating_add(NEXT_PORTS) };
    for port in first..=last {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == Io::AddrInUse => {}
            Err(error) => {
                let message = format!("Port {port} cannot be used ({error}); give another with --port.");
                return Err(Error::unavailable(message));
            }
        }
    }
    let ports = if first == last { format!("Port {first} is") } else { format!("The ports {first} to {last} are") };
    Err(Error::unavailable(format!("{ports} taken; give another with --port, 0 for any.")))
}

/// How the wait of a PROXY ends.
pub enum Turn {
    /// It is PRIMARY now.
    Primary(Box<Primary>),
    /// Somebody has ended the session.
    SessionOver,
    /// It was PRIMARY, and the lock it holds is nobody's any more.
    Unseated,
}

/// A PROXY's place in the line for the lock.
pub struct Waiting {
    turn: oneshot::Receiver<Turn>,
    left: Arc<LeftLine>,
}

/// Whether a process has left the line.
#[derive(Default)]
struct LeftLine {
    asked: AtomicBool,
    /// Held while a turn is taken, until it is told.
    turn: Mutex<()>,
}

impl LeftLine {
    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Waits on a thread of its own, until the lock comes or the process ends.
    pub fn begin(settings: &Arc<ServeSettings>, history: &Arc<History>, proxy: &Proxy) -> Self {
        let (sender, turn) = oneshot::channel();
        let left = Arc::<LeftLine>::default();
        let line = WaitingLine {
            settings: Arc::clone(settings),
            history: Arc::clone(history),
            session: proxy.session.clone(),
            left: Arc::clone(&left),
        };
        std::thread::spawn(move || line.wait(sender));
        Self { turn, left }
    }

    /// Resolves when the wait is over.
    pub async fn turn(&mut self) -> Turn {
        // The thread ends without a word only when this process is about to.
        (&mut self.turn).await.unwrap_or(Turn::SessionOver)
    }

    /// Steps out of the line. What comes back had come already; what is just coming is given up.
    pub fn leave(mut self) -> Option<Turn> {
        self.left.asked.store(true, Ordering::SeqCst);
        drop(self.left.turn());
        self.turn.try_recv().ok()
    }
}

struct WaitingLine {
    settings: Arc<ServeSettings>,
    history: Arc<History>,
    session: Option<SessionFile>,
    left: Arc<LeftLine>,
}

impl WaitingLine {
    fn wait(self, sender: oneshot::Sender<Turn>) {
        let mut said = String::new();
        // Once, however often it is tried.
        let mut cannot = |error: &Error| {
            if said != error.message() {
                tracing::error!(error = error.message(), "cannot become PRIMARY");
                error.message().clone_into(&mut said);
            }
        };
        loop {
            match self.settings.dir.lock() {
                Err(error) => cannot(&error),
                Ok(lock) => {
                    // [`Waiting::leave`] takes this lock, and ends the session that is about to be taken over.
                    let _turn = self.left.turn();
                    if self.left.is_asked() {
                        return;
                    }
                    match self.take(lock) {
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

    fn take(&self, lock: PrimaryLock) -> Result<Turn> {
        let dir = &self.settings.dir;
        dir.remove_server_file(&lock)?;
        let over = match (dir.session(), &self.session) {
            (SessionState::Lives(session), Some(own)) => own.id != session.id,
            (state, _) => state == SessionState::Stopped,
        };
        if over {
            return Ok(Turn::SessionOver);
        }
        let taken =
            take_over(&self.settings, &self.history, lock, true, self.session.as_ref(), || self.left.is_asked())?;
        Ok(Turn::Primary(Box::new(taken)))
    }
}
