//! Becoming the one PRIMARY of a runtime directory.

use std::io::ErrorKind as Io;
use std::net::{Ipv4Addr, TcpListener};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nudge::{Error, ErrorKind, Result};
use nudge_client::{PrimaryLock, Remote, RuntimeDir};

/// How long to try for the lock while nobody answers: a server may be ending, or only just starting.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_POLL: Duration = Duration::from_millis(10);
/// Ports tried after the first when that is taken.
const NEXT_PORTS: u16 = 20;

/// The lock, held, and a port, bound.
pub struct Primary {
    dir: RuntimeDir,
    lock: PrimaryLock,
    listener: TcpListener,
    port: u16,
}

impl Primary {
    /// Wins the lock of `dir` and binds a port: `port`, or one of the next when that is taken.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when another server answers for `dir`, and names it; or when no port is free.
    pub fn acquire(dir: RuntimeDir, port: u16) -> Result<Self> {
        let lock = lock(&dir)?;
        // It speaks of a server that is gone.
        dir.remove_server_file(&lock)?;
        let listener = bind(port)?;
        let unusable = |error: std::io::Error| Error::new(ErrorKind::Unavailable, format!("The port fails: {error}."));
        listener.set_nonblocking(true).map_err(unusable)?;
        let port = listener.local_addr().map_err(unusable)?.port();
        Ok(Self { dir, lock, listener, port })
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The runtime directory.
    pub fn dir(&self) -> &RuntimeDir {
        &self.dir
    }

    pub(super) fn into_parts(self) -> (RuntimeDir, PrimaryLock, TcpListener) {
        (self.dir, self.lock, self.listener)
    }
}

/// A failed try is no verdict: the holder may be ending, or a client only probing. So until the lock
/// is won, or the server that `server.pid` names answers.
fn lock(dir: &RuntimeDir) -> Result<PrimaryLock> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        if let Some(lock) = dir.try_lock()? {
            return Ok(lock);
        }
        if let Some(first) = dir.read_server_file().filter(|first| Remote::is_alive(first.port))
            && dir.is_held()
        {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!(
                    "A Nudge server already runs for {} (pid {}, port {}); use that one, or stop it with `nudge stop`.",
                    dir.path().display(),
                    first.pid,
                    first.port
                ),
            ));
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

fn bind(port: u16) -> Result<TcpListener> {
    let last = if port == 0 { port } else { port.saturating_add(NEXT_PORTS) };
    for port in port..=last {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == Io::AddrInUse => {}
            Err(error) => {
                let message = format!("Port {port} cannot be used ({error}); give another with --port.");
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
        }
    }
    let ports = if port == last { format!("Port {port} is") } else { format!("The ports {port} to {last} are") };
    Err(Error::new(ErrorKind::Unavailable, format!("{ports} taken; give another with --port, 0 for any.")))
}
