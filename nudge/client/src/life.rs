//! The sign of life of a PRIMARY: a socket without a file, so that no removal of files takes it away. A server that
//! starts in a directory without a session asks by it whether a PRIMARY lives that has lost its files, and lets it put
//! them back. Linux alone has such sockets; elsewhere there is no sign.

use std::time::Duration;

#[cfg(target_os = "linux")]
pub use linux::LifeSign;
#[cfg(target_os = "linux")]
pub(crate) use linux::ask_primary;
#[cfg(not(target_os = "linux"))]
pub use none::LifeSign;
#[cfg(not(target_os = "linux"))]
pub(crate) use none::ask_primary;

/// Longest wait of a command, a hook or a binding for the PRIMARY, which puts its files back within milliseconds unless it is suspended.
pub(crate) const CLIENT_PATIENCE: Duration = Duration::from_millis(500);

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, Read as _};
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener as Socket, UnixStream as Asking};
    use std::path::Path;
    use std::time::Duration;

    use tokio::net::{UnixListener, UnixStream};

    use crate::runtime::RuntimeDir;

    /// The sign of life of this process, which is PRIMARY, as long as this value lives.
    #[derive(Debug)]
    pub struct LifeSign(UnixListener);

    /// A server that asks, and goes on when this is dropped.
    #[derive(Debug)]
    pub struct AskingServer(#[allow(dead_code)] UnixStream);

    impl LifeSign {
        /// Waits for a server of this user's that asks. The caller looks after its files, and then drops the value.
        pub async fn wait_for_question(&mut self) -> AskingServer {
            let us = rustix::process::geteuid().as_raw();
            loop {
                match self.0.accept().await {
                    Ok((stream, _)) if stream.peer_cred().is_ok_and(|peer| peer.uid() == us) => {
                        return AskingServer(stream);
                    }
                    Ok(_) => {}
                    // Out of descriptors: the one that asks goes on by itself.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        }
    }

    impl RuntimeDir {
        /// Shows that a PRIMARY of this directory lives. It is called within a tokio runtime.
        ///
        /// # Errors
        /// The system's error, for instance while the one before still has the sign.
        pub fn show_life(&self) -> io::Result<LifeSign> {
            let socket = Socket::bind_addr(&make_address(self.path())?)?;
            socket.set_nonblocking(true)?;
            UnixListener::from_std(socket).map(LifeSign)
        }

        /// Asks whether a PRIMARY of this path lives, and waits, blocking the thread, until it has put back its files,
        /// `patience` at the most. Returns false at once when there is none.
        pub fn ask_for_life(&self, patience: Duration) -> bool {
            ask_primary(self.path(), patience).is_ok()
        }
    }

    /// Asks the PRIMARY of a path, which must be of this user's, to look after its files, and waits until it has.
    pub(crate) fn ask_primary(path: &Path, patience: Duration) -> io::Result<()> {
        let mut stream = Asking::connect_addr(&make_address(path)?)?;
        let theirs = rustix::net::sockopt::socket_peercred(&stream)?.uid;
        if theirs != rustix::process::geteuid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        stream.set_read_timeout(Some(patience))?;
        // It says nothing: the end of the connection is the answer.
        let _ = stream.read(&mut [0]);
        Ok(())
    }

    /// The name: of the user and the path, at most 107 bytes long.
    fn make_address(path: &Path) -> io::Result<SocketAddr> {
        let (user, path) = (rustix::process::geteuid().as_raw(), path.as_os_str().as_bytes());
        SocketAddr::from_abstract_name(format!("nudge-{user}-{:08x}-{}", crc32fast::hash(path), path.len()))
    }
}

#[cfg(not(target_os = "linux"))]
mod none {
    use std::convert::Infallible;
    use std::io;
    use std::path::Path;
    use std::time::Duration;

    use crate::runtime::RuntimeDir;

    /// The sign of life of a PRIMARY, which this system has none for.
    #[derive(Debug)]
    pub struct LifeSign(Infallible);

    impl LifeSign {
        /// Waits for ever.
        pub async fn wait_for_question(&mut self) -> Infallible {
            std::future::pending().await
        }
    }

    impl RuntimeDir {
        /// Shows that a PRIMARY of this directory lives.
        ///
        /// # Errors
        /// Always: this system has no such sign.
        pub fn show_life(&self) -> io::Result<LifeSign> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// Returns false: this system has no such sign.
        pub fn ask_for_life(&self, _: Duration) -> bool {
            false
        }
    }

    /// Fails: this system has no such sign.
    pub(crate) fn ask_primary(_: &Path, _: Duration) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
