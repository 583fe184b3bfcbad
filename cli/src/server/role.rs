//! PRIMARY or PROXY: who has the lock, and how a PROXY gets it. The protocol and why it holds is told in
//! `nudge/client/src/members.rs`.

use std::io::ErrorKind as Io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nudge::{Config, Error, ErrorKind, Result};
use nudge_client::{Journal, Member, PrimaryLock, Remote, RuntimeDir, ServerFile, SessionState};
use tokio::sync::oneshot;

use super::door::{Door, Token};
use super::history::History;
use super::local::Local;
use super::recorder::Recorder;

/// How long to try for the lock while nobody answers: a server may be ending, or only just starting.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_POLL: Duration = Duration::from_millis(10);
/// Until a PROXY that could not become PRIMARY tries again; another may have more luck meanwhile.
const PROMOTION_PAUSE: Duration = Duration::from_millis(100);
/// Ports tried after the first when that is taken.
const NEXT_PORTS: u16 = 20;

/// How to be PRIMARY; a PROXY needs it too, for the day when it becomes one.
pub struct Settings {
    /// Where the lock, the journal and `server.pid` are.
    pub dir: RuntimeDir,
    /// The port tried first by the first PRIMARY of a session; 0 for any.
    pub port: u16,
    /// Further names that `Host` may have.
    pub allow_host: Vec<String>,
    /// What callers must show.
    pub asks: Asks,
    /// The store's limits.
    pub config: Config,
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

/// The lock, held, a port, bound, and the store as the session left it.
pub struct Primary {
    pub(super) lock: PrimaryLock,
    /// None where the process was a member before.
    pub(super) member: Option<Member>,
    pub(super) listener: TcpListener,
    pub(super) door: Door,
    pub(super) local: Arc<Local>,
    /// What `server.pid` is to say.
    pub(super) file: ServerFile,
}

/// A member of the session that waits for its turn.
pub struct Proxy {
    pub(super) member: Member,
    /// The PRIMARY that answered.
    pub(super) first: ServerFile,
    /// The session that it belongs to.
    session: Option<String>,
}

/// Becomes PRIMARY, or the PROXY of one that answers.
///
/// # Errors
/// `E_UNAVAILABLE` when somebody holds the lock and does not answer, no port is free, or the directory
/// cannot be used.
pub fn enter(settings: &Settings, history: &Arc<History>) -> Result<Role> {
    let dir = &settings.dir;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        if let Some(lock) = dir.try_lock()? {
            // It speaks of a server that is gone.
            dir.remove_server_file(&lock)?;
            let goes_on = !dir.session_is_over(&lock)?;
            let taken = take_over(settings, history, lock, goes_on)?;
            return Ok(Role::Primary(Box::new(Primary { member: Some(dir.join()?), ..taken })));
        }
        // A failed try is no verdict: the holder may be ending, or a client only probing.
        if let Some(first) = dir.read_server_file().filter(|first| Remote::is_alive(first.port))
            && dir.is_held()
        {
            let member = dir.join()?;
            // It is that of `first` only if nobody has won since; whoever does removes `server.pid`.
            let session = lives(dir).filter(|_| dir.read_server_file().as_ref() == Some(&first));
            return Ok(Role::Proxy(Proxy { member, first, session }));
        }
        if Instant::now() > deadline {
            let named = dir.read_server_file().map(|first| format!(" (server.pid names pid {})", first.pid));
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!(
                    "Another process holds the lock of {} and does not answer{}; end it and try again.",
                    dir.path().display(),
                    named.unwrap_or_default()
                ),
            ));
        }
        sleep(LOCK_POLL);
    }
}

/// The id of the session, if it lives.
fn lives(dir: &RuntimeDir) -> Option<String> {
    match dir.session() {
        SessionState::Lives(session) => Some(session.id),
        SessionState::Unknown | SessionState::Stopped => None,
    }
}

/// Fills the store and binds the port; `server.pid` comes last, when calls are answered.
fn take_over(settings: &Settings, history: &Arc<History>, lock: PrimaryLock, goes_on: bool) -> Result<Primary> {
    let dir = &settings.dir;
    if !goes_on {
        dir.remove_session(&lock)?;
    }
    let before = match dir.session() {
        SessionState::Lives(session) => Some(session),
        SessionState::Unknown | SessionState::Stopped => None,
    };
    let (journal, records) = journal(settings, &lock, goes_on)?;
    let recorder = Arc::new(Recorder::new(Arc::clone(history), journal));
    let local = Local::new(settings.config.clone(), recorder);
    let local = local.of_session(before.as_ref(), &records);
    drop(records);

    let listener = bind(before.as_ref().map_or(settings.port, |session| session.port), settings.port)?;
    let unusable = |error: std::io::Error| Error::new(ErrorKind::Unavailable, format!("The port fails: {error}."));
    listener.set_nonblocking(true).map_err(unusable)?;
    let port = listener.local_addr().map_err(unusable)?.port();
    local.listens_on(port);

    let token = match (&settings.asks, &before) {
        (Asks::Nothing, _) => None,
        (Asks::For(token), _) => Some(token.clone()),
        (Asks::ForTheSessions, Some(session)) => session.token.clone().map(Token::fixed).transpose()?,
        (Asks::ForTheSessions, None) => Some(Token::random()?),
    };
    let door = Door::new(port, token, &settings.allow_host, dir.server_file_path())?;
    let session = local.session(port, door.token());
    if before.as_ref() != Some(&session)
        && let Err(error) = dir.write_session(&lock, &session)
    {
        // Whoever comes next makes a new token and takes another port; no hint depends on it.
        tracing::warn!(error = error.message(), "the session is not described");
    }
    let token = session.token;
    let file = ServerFile { pid: std::process::id(), port, started: local.started(), token };
    Ok(Primary { lock, member: None, listener, door, local: Arc::new(local), file })
}

/// The journal to record in, if any, and what is in it. Without one of its own a PRIMARY still takes
/// over what others have recorded, and removes it: it will not be true for long.
fn journal(settings: &Settings, lock: &PrimaryLock, goes_on: bool) -> Result<(Option<Journal>, Vec<Vec<u8>>)> {
    if !settings.journal && !goes_on {
        return Ok((None, Vec::new()));
    }
    let (journal, restored) = settings.dir.open_journal(lock, goes_on)?;
    if let Some(notice) = restored.notice {
        tracing::warn!(notice, "the journal");
    }
    if settings.journal {
        return Ok((Some(journal), restored.records));
    }
    drop(journal);
    settings.dir.remove_journal(lock)?;
    Ok((None, restored.records))
}

/// Binds the port that the session has, else `first`, else one of the next.
fn bind(before: u16, first: u16) -> Result<TcpListener> {
    if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, before)) {
        return Ok(listener);
    }
    let last = if first == 0 { first } else { first.saturating_add(NEXT_PORTS) };
    for port in first..=last {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == Io::AddrInUse => {}
            Err(error) => {
                let message = format!("Port {port} cannot be used ({error}); give another with --port.");
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
        }
    }
    let ports = if first == last { format!("Port {first} is") } else { format!("The ports {first} to {last} are") };
    Err(Error::new(ErrorKind::Unavailable, format!("{ports} taken; give another with --port, 0 for any.")))
}

/// How the wait of a PROXY ends.
pub enum Turn {
    /// It is PRIMARY now.
    Primary(Box<Primary>),
    /// Somebody has ended the session.
    SessionOver,
}

/// A PROXY's place in the line for the lock.
pub struct Waiting {
    turn: oneshot::Receiver<Turn>,
    left: Arc<Mutex<bool>>,
}

impl Waiting {
    /// Waits on a thread of its own, until the lock comes or the process ends.
    pub fn begin(settings: &Arc<Settings>, history: &Arc<History>, proxy: &Proxy) -> Self {
        let (sender, turn) = oneshot::channel();
        let left = Arc::new(Mutex::new(false));
        let line = Line {
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

    /// Steps out of the line. What comes back had come already.
    pub fn leave(mut self) -> Option<Turn> {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.turn.try_recv().ok()
    }
}

struct Line {
    settings: Arc<Settings>,
    history: Arc<History>,
    session: Option<String>,
    left: Arc<Mutex<bool>>,
}

impl Line {
    fn wait(self, sender: oneshot::Sender<Turn>) {
        let cannot = |error: &Error| tracing::error!(error = error.message(), "cannot become PRIMARY");
        loop {
            match self.settings.dir.lock() {
                Err(error) => cannot(&error),
                Ok(lock) => {
                    // Held until the turn is told: who leaves waits for it, and ends what it finds.
                    let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
                    if *left {
                        return;
                    }
                    match self.take(lock) {
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
        let over = match dir.session() {
            SessionState::Stopped => true,
            SessionState::Lives(session) => self.session.as_ref().is_some_and(|own| *own != session.id),
            SessionState::Unknown => false,
        };
        if over {
            return Ok(Turn::SessionOver);
        }
        Ok(Turn::Primary(Box::new(take_over(&self.settings, &self.history, lock, true)?)))
    }
}
