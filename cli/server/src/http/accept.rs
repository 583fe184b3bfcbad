//! Accepts connections. Limits their number, and the time for which a connection may stay without a token.
//!
//! The local channel and TCP have separate places, so callers on the port cannot take the places of this user's own
//! processes. A TCP connection must send a complete head within two seconds. When all TCP places are taken, the server
//! closes the oldest connection that sent no token, to accept the next connection.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nudge_client::{DuplexStream, LocalListener};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::work::CallerId;

/// The most connections over TCP, and the most over the local channel. Further connections wait in the listener's
/// queue. A process with a low limit of open files has fewer places.
const MAX_CONNECTIONS: usize = 512;
/// The divisor of the local channel's places: one process may have a quarter of them.
const LOCAL_SHARE: usize = 4;
/// The least number of connections of each kind.
const MIN_CONNECTIONS: usize = 16;
/// The number of open files that are reserved for other uses than connections.
const OTHER_FILES: usize = 64;
/// The time within which a TCP connection must send its first head.
const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause after a failed accept, for example when the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// The sockets on which a server listens.
pub struct ServerListeners {
    /// The listeners on the session's port, one for each loopback address.
    pub tcp: Vec<TcpListener>,
    /// Receives the listeners of further ports.
    pub further: UnboundedReceiver<std::net::TcpListener>,
    /// The local channel, if the system has one.
    pub local: Option<LocalListener>,
}

/// An accepted connection.
pub struct AcceptedConnection {
    /// The stream of bytes.
    pub stream: Box<dyn DuplexStream>,
    /// The other end of the connection.
    pub peer: ConnectionPeer,
    /// The connection's place; a drop releases it.
    pub place: OwnedSemaphorePermit,
}

/// The other end of a connection.
pub enum ConnectionPeer {
    /// A process of this user, as the system confirms.
    Local(LocalPeer),
    /// Any process on this machine.
    Stranger(StrangerPeer),
}

impl ConnectionPeer {
    /// Returns true for a process of this user.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// Returns the caller that holds the places of this connection's calls. `proxy` is the process id that a PROXY
    /// reports.
    pub fn caller_id(&self, proxy: Option<u32>) -> CallerId {
        match self {
            Self::Local(LocalPeer { pid, number, .. }) => match (proxy, pid) {
                (Some(said), pid) => CallerId::Proxy(pid.unwrap_or(said)),
                (None, Some(pid)) => CallerId::Process(*pid),
                (None, None) => CallerId::Connection(*number),
            },
            Self::Stranger(stranger) => CallerId::Connection(stranger.number),
        }
    }

    /// Returns true when the peer's process has more connections than one process may have.
    pub fn is_over_its_share(&self) -> bool {
        matches!(self, Self::Local(LocalPeer { counted: Some(counted), .. }) if counted.is_over)
    }

    /// Returns the two addresses of a TCP connection, the peer's first.
    pub fn tcp_ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Self::Local(_) => None,
            Self::Stranger(stranger) => stranger.ends,
        }
    }

    /// Notes that the peer has sent a complete head.
    pub fn has_spoken(&self) {
        if let Self::Stranger(stranger) = self {
            stranger.spoke.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the server accepted a request of this peer. The server then no longer closes the connection to make
    /// room.
    pub fn is_let_in(&self) {
        if let Self::Stranger(stranger) = self {
            stranger.all.held.lock().remove(&stranger.number);
        }
    }

    /// Resolves when the server must close the connection.
    pub async fn wait_for_dismissal(&self) {
        let Self::Stranger(stranger) = self else { return std::future::pending().await };
        let silent = async {
            sleep(FIRST_HEAD_TIMEOUT).await;
            if stranger.spoke.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = stranger.gives_way.notified() => {}
            () = silent => {}
        }
    }
}

/// The process at the other end of a connection over the local channel.
pub struct LocalPeer {
    number: u64,
    /// The process id, if the system reports it.
    pid: Option<u32>,
    counted: Option<CountedConnection>,
}

/// The number of connections over the local channel for each process.
#[derive(Default)]
struct LocalProcesses(Mutex<HashMap<u32, usize>>);

/// Counts a connection of a process until this value is dropped.
struct CountedConnection {
    all: Arc<LocalProcesses>,
    pid: u32,
    is_over: bool,
}

impl LocalProcesses {
    fn add_connection(self: &Arc<Self>, pid: Option<u32>, most: usize) -> LocalPeer {
        let counted = pid.map(|pid| {
            let mut all = self.0.lock();
            let count = all.entry(pid).or_default();
            *count += 1;
            CountedConnection { all: Arc::clone(self), pid, is_over: *count > most }
        });
        LocalPeer { number: next_number(), pid, counted }
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        if let Some(count) = all.get_mut(&self.pid) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.pid);
            }
        }
    }
}

/// Returns the number of a new connection; it is higher than all numbers before.
fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// The TCP connections that have sent no valid token, in the order of their age.
#[derive(Default)]
pub struct StrangerPeers {
    held: Mutex<BTreeMap<u64, Arc<Notify>>>,
}

/// A connection over TCP.
pub struct StrangerPeer {
    number: u64,
    gives_way: Arc<Notify>,
    spoke: AtomicBool,
    ends: Option<(SocketAddr, SocketAddr)>,
    all: Arc<StrangerPeers>,
}

impl StrangerPeers {
    fn add_connection(self: &Arc<Self>, ends: Option<(SocketAddr, SocketAddr)>) -> StrangerPeer {
        let number = next_number();
        let gives_way = Arc::<Notify>::default();
        self.held.lock().insert(number, Arc::clone(&gives_way));
        StrangerPeer { number, gives_way, spoke: AtomicBool::new(false), ends, all: Arc::clone(self) }
    }

    fn dismiss_oldest(&self) {
        if let Some((_, oldest)) = self.held.lock().pop_first() {
            oldest.notify_one();
        }
    }
}

impl Drop for StrangerPeer {
    fn drop(&mut self) {
        self.all.held.lock().remove(&self.number);
    }
}

/// Controls all accepted connections.
pub struct OpenConnections {
    tcp: Arc<Semaphore>,
    local: Arc<Semaphore>,
    /// The number of places for TCP, and also the number for the local channel.
    places: usize,
    /// Sends a new local channel, which replaces the last one.
    channels: UnboundedSender<LocalListener>,
}

impl OpenConnections {
    /// Accepts connections until `stopped` becomes true. Passes each connection to `serve`.
    pub fn start_accepting(
        listeners: ServerListeners,
        stopped: &watch::Receiver<bool>,
        serve: impl Fn(AcceptedConnection) + Clone + Send + 'static,
    ) -> Self {
        let places = count_places();
        let (tcp, local) = (Arc::new(Semaphore::new(places)), Arc::new(Semaphore::new(places)));
        let strangers = Arc::<StrangerPeers>::default();
        let accept = {
            let (tcp, serve, stopped) = (Arc::clone(&tcp), serve.clone(), stopped.clone());
            move |listener| {
                let accepting = accept_tcp(listener, Arc::clone(&tcp), Arc::clone(&strangers), serve.clone());
                tokio::spawn(run_until_stopped(stopped.clone(), accepting));
            }
        };
        listeners.tcp.into_iter().for_each(&accept);
        let mut further = listeners.further;
        let accepting = async move {
            while let Some(listener) = further.recv().await {
                let _ = TcpListener::from_std(listener).map(&accept);
            }
        };
        tokio::spawn(run_until_stopped(stopped.clone(), accepting));
        let (channels, renewed) = unbounded_channel();
        let accepting = accept_local(listeners.local, renewed, Arc::clone(&local), places / LOCAL_SHARE, serve);
        tokio::spawn(run_until_stopped(stopped.clone(), accepting));
        Self { tcp, local, places, channels }
    }

    /// Accepts connections over a new local channel in place of the last one.
    pub fn renew_local(&self, listener: LocalListener) {
        // An error means that the server is about to stop.
        let _ = self.channels.send(listener);
    }

    /// Waits until all connections have ended, but at most for `patience`.
    ///
    /// # Panics
    /// Never: there are fewer places than 2^32.
    pub async fn wait_until_drained(&self, patience: Duration) {
        let all = u32::try_from(self.places).expect("there are at most MAX_CONNECTIONS places");
        let both = async {
            let _tcp = self.tcp.acquire_many(all).await;
            let _local = self.local.acquire_many(all).await;
        };
        let _ = timeout(patience, both).await;
    }
}

async fn run_until_stopped(mut stopped: watch::Receiver<bool>, accepting: impl Future<Output = ()>) {
    tokio::select! {
        () = accepting => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
}

async fn accept_tcp(
    listener: TcpListener,
    free: Arc<Semaphore>,
    strangers: Arc<StrangerPeers>,
    serve: impl Fn(AcceptedConnection),
) {
    loop {
        let Ok((stream, theirs)) = listener.accept().await else {
            // The system has no more descriptors, or the peer has disconnected. The listener itself still works.
            strangers.dismiss_oldest();
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if free.available_permits() == 0 {
            strangers.dismiss_oldest();
        }
        let Ok(place) = Arc::clone(&free).acquire_owned().await else { return };
        // An answer is one write, so Nagle's algorithm would only delay it.
        if stream.set_nodelay(true).is_ok() {
            let ends = stream.local_addr().ok().map(|ours| (theirs, ours));
            serve(AcceptedConnection {
                stream: Box::new(stream),
                peer: ConnectionPeer::Stranger(strangers.add_connection(ends)),
                place,
            });
        }
    }
}

/// Accepts connections over the local channel. If a process has more than `most` connections, a further one gets a
/// refusal and is closed.
async fn accept_local(
    mut listener: Option<LocalListener>,
    mut renewed: UnboundedReceiver<LocalListener>,
    free: Arc<Semaphore>,
    most: usize,
    serve: impl Fn(AcceptedConnection),
) {
    let processes = Arc::<LocalProcesses>::default();
    loop {
        let Some(channel) = &mut listener else {
            listener = renewed.recv().await;
            if listener.is_none() {
                return;
            }
            continue;
        };
        let Ok(place) = Arc::clone(&free).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = channel.accept() => accepted,
            Some(new) = renewed.recv() => {
                listener = Some(new);
                continue;
            }
        };
        match accepted {
            Ok((stream, pid)) => serve(AcceptedConnection {
                stream,
                peer: ConnectionPeer::Local(processes.add_connection(pid, most)),
                place,
            }),
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Returns the number of places for TCP, which is also the number for the local channel.
pub fn count_places() -> usize {
    places_among(open_files())
}

/// Returns the number of places in a process that may open `open_files` files.
fn places_among(open_files: usize) -> usize {
    (open_files.saturating_sub(OTHER_FILES) / 2).clamp(MIN_CONNECTIONS, MAX_CONNECTIONS)
}

/// Returns the number of files that this process may open.
#[cfg(unix)]
fn open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Returns the largest number, because this system does not limit the number of open files.
#[cfg(not(unix))]
fn open_files() -> usize {
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fit_into_the_open_files_of_a_process() {
        for (files, expected) in [(0, 16), (90, 16), (256, 96), (1024, 480), (4096, 512), (usize::MAX, 512)] {
            assert_eq!(places_among(files), expected, "{files}");
        }
    }

    #[test]
    fn a_process_has_its_share_of_the_local_channel() {
        let all = Arc::<LocalProcesses>::default();
        let enter = |pid| ConnectionPeer::Local(all.add_connection(pid, 2));
        let mut peers = [1, 1, 1, 2].map(|pid| enter(Some(pid)));
        assert_eq!(peers.each_ref().map(ConnectionPeer::is_over_its_share), [false, false, true, false]);
        peers[0] = enter(None);
        assert!(enter(Some(1)).is_over_its_share(), "two are open");
        drop(peers);
        assert!(!enter(Some(1)).is_over_its_share() && !enter(None).is_over_its_share() && all.0.lock().is_empty());
        assert_eq!(enter(Some(1)).caller_id(None), CallerId::Process(1));
        assert_eq!(
            (enter(Some(1)).caller_id(Some(3)), enter(None).caller_id(Some(3))),
            (CallerId::Proxy(1), CallerId::Proxy(3))
        );
    }

    #[test]
    fn the_oldest_that_was_not_let_in_gives_way() {
        let all = Arc::<StrangerPeers>::default();
        let [first, second, third] = [(); 3].map(|()| ConnectionPeer::Stranger(all.add_connection(None)));
        first.is_let_in();
        drop(second);
        assert_eq!(all.held.lock().len(), 1);
        all.dismiss_oldest();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(third.wait_for_dismissal());
        // No connection waits without a token any more, so this call closes none.
        all.dismiss_oldest();
        drop((first, third));
        assert!(all.held.lock().is_empty());
    }
}
