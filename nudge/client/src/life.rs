//! Implements the sign of life of a PRIMARY: a socket without a file, which no removal of files can remove. A server
//! that starts in a directory without a session connects to this socket. If a PRIMARY lives and has lost its files, it
//! restores them then. Only Linux has such sockets; other systems have no sign of life.

use std::time::Duration;

#[cfg(target_os = "linux")]
pub use linux::LifeSign;
#[cfg(target_os = "linux")]
pub(crate) use linux::ask_primary;
#[cfg(not(target_os = "linux"))]
pub use none::LifeSign;
#[cfg(not(target_os = "linux"))]
pub(crate) use none::ask_primary;

/// Longest wait of a command, a hook or a binding for the PRIMARY to restore its files. A PRIMARY restores them within
/// milliseconds unless it is suspended.
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

    /// The sign of life of this process, which is PRIMARY. Dropping the value ends the sign.
    #[derive(Debug)]
    pub struct LifeSign(UnixListener);

    /// A server that waits until the PRIMARY has checked its files. Dropping the value ends the wait.
    #[derive(Debug)]
    pub struct AskingServer(#[allow(dead_code)] UnixStream);

    impl LifeSign {
        /// Waits until a server of this user asks for a sign of life. The caller must check its own files and then drop
        /// the result.
        pub async fn wait_for_question(&mut self) -> AskingServer {
            let us = rustix::process::geteuid().as_raw();
            loop {
                match self.0.accept().await {
                    Ok((stream, _)) if stream.peer_cred().is_ok_and(|peer| peer.uid() == us) => {
                        return AskingServer(stream);
                    }
                    Ok(_) => {}
                    // This process has no free descriptor. The other server stops waiting after its own time limit.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        }
    }

    impl RuntimeDir {
        /// Shows that a PRIMARY of this directory lives. The caller must run within a tokio runtime.
        ///
        /// # Errors
        /// The system's error, for instance while the previous PRIMARY still shows its sign of life.
        pub fn show_life(&self) -> io::Result<LifeSign> {
            let socket = Socket::bind_addr(&make_address(self.path())?)?;
            socket.set_nonblocking(true)?;
            UnixListener::from_std(socket).map(LifeSign)
        }

        /// Asks whether a PRIMARY of this path lives. If one does, blocks the thread until the PRIMARY has restored its
        /// files, at most for `patience`. Returns false at once when no PRIMARY lives.
        pub fn ask_for_life(&self, patience: Duration) -> bool {
            ask_primary(self.path(), patience).is_ok()
        }
    }

    /// Asks the PRIMARY of a path, which must belong to this user, to check its files, and waits until the check has
    /// ended.
    pub(crate) fn ask_primary(path: &Path, patience: Duration) -> io::Result<()> {
        let mut stream = Asking::connect_addr(&make_address(path)?)?;
        let theirs = rustix::net::sockopt::socket_peercred(&stream)?.uid;
        if theirs != rustix::process::geteuid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        stream.set_read_timeout(Some(patience))?;
        // The PRIMARY sends nothing. It answers by closing the connection.
        let _ = stream.read(&mut [0]);
        Ok(())
    }

    /// Makes the socket's name from the user and the path, with at most 107 bytes.
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

    /// The sign of life of a PRIMARY. On this system no such value can exist.
    #[derive(Debug)]
    pub struct LifeSign(Infallible);

    impl LifeSign {
        /// Waits forever.
        pub async fn wait_for_question(&mut self) -> Infallible {
            std::future::pending().await
        }
    }

    impl RuntimeDir {
        /// Fails, because this system has no sign of life.
        ///
        /// # Errors
        /// Always `Unsupported`.
        pub fn show_life(&self) -> io::Result<LifeSign> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// Returns false, because this system has no sign of life.
        pub fn ask_for_life(&self, _: Duration) -> bool {
            false
        }
    }

    /// Returns an error, because this system has no sign of life.
    pub(crate) fn ask_primary(_: &Path, _: Duration) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
