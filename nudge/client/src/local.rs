//! Implements the local channel: a connection to the PRIMARY that no other user of the machine can open. So callers
//! send no token over it (semantics section 8). The channel is a socket in the runtime directory on Unix, and a named
//! pipe on Windows.

use std::io;

use nudge::Result;
use nudge_os::dir::FileKind;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connection::RequestFailure;
use crate::runtime::{PrimaryLock, RuntimeDir, unlocked_error};

/// A stream that reads and writes bytes.
pub trait DuplexStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> DuplexStream for T {}

pub(crate) use platform::ConnectionProbe;
pub use platform::LocalListener;

impl RuntimeDir {
    /// Opens the local channel for clients, and replaces the channel of an earlier PRIMARY. The caller must run within
    /// a tokio runtime.
    ///
    /// `E_UNAVAILABLE` when `primary.lock` was removed or replaced, or when the system cannot open the channel, for
    /// instance because the path is too long. Clients then use TCP.
    pub fn listen(&self, lock: &PrimaryLock) -> Result<LocalListener> {
        if !lock.is_named(self) {
            return Err(unlocked_error(&self.path().join(crate::runtime::LOCK)));
        }
        self.open_channel().map_err(|error| self.io_error("open", platform::CHANNEL, &error))
    }

    /// Returns true when a file has the channel's name.
    pub fn has_channel(&self) -> bool {
        !matches!(self.dir().look_up(platform::CHANNEL), Ok(FileKind::Missing))
    }

    /// Removes the file of an earlier PRIMARY's local channel. The caller must be PRIMARY.
    pub(crate) fn remove_channel(&self) {
        // A failure is ignored, because no process listens on the old channel.
        let _ = self.dir().remove(platform::CHANNEL);
    }
}

/// Makes the failure of a channel whose PRIMARY lives but cannot be reached now.
fn busy_failure(error: &io::Error) -> RequestFailure {
    RequestFailure::new_broken(&error.to_string(), false)
}

#[cfg(unix)]
mod platform {
    use std::io::{IoSlice, Read as _, Write as _};
    use std::net::Shutdown;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixStream as Socket;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use rustix::net::RecvFlags;
    use tokio::io::unix::AsyncFd;
    use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
    use tokio::net::{TcpStream, UnixListener, UnixStream};

    use super::{DuplexStream, RequestFailure, RuntimeDir, busy_failure, io};

    /// The name of the socket in the runtime directory.
    pub const CHANNEL: &str = "server.sock";

    /// An end of the local channel.
    ///
    /// tokio's own stream wakes its task each time the other end has read data, because there is then space to write.
    /// This causes an extra wake-up for every message at both ends. This type waits for space only after a write found
    /// none.
    pub struct LocalStream {
        socket: AsyncFd<Socket>,
        /// `Some` while the socket has no space for a write.
        full: Option<AsyncFd<OwnedFd>>,
    }

    /// Watches a descriptor for one kind of readiness. tokio's replacement for this function is `unsafe`, because a
    /// type could change its descriptor. Types of the standard library never do that.
    #[allow(deprecated)]
    fn watch_descriptor<T: std::os::fd::AsRawFd>(descriptor: T, interest: Interest) -> io::Result<AsyncFd<T>> {
        AsyncFd::with_interest(descriptor, interest)
    }

    impl LocalStream {
        fn new(stream: UnixStream) -> io::Result<Self> {
            Ok(Self { socket: watch_descriptor(stream.into_std()?, Interest::READABLE)?, full: None })
        }

        /// Writes as many bytes as the socket has space for. If there is no space, waits until there is some.
        fn poll_write_by(
            &mut self,
            cx: &mut Context<'_>,
            mut write: impl FnMut(&Socket) -> io::Result<usize>,
        ) -> Poll<io::Result<usize>> {
            loop {
                if let Some(full) = &self.full {
                    ready!(full.poll_write_ready(cx))?.clear_ready();
                }
                match write(self.socket.get_ref()) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if self.full.is_none() {
                            let again = self.socket.get_ref().as_fd().try_clone_to_owned()?;
                            self.full = Some(watch_descriptor(again, Interest::WRITABLE)?);
                        }
                    }
                    written => {
                        self.full = None;
                        return Poll::Ready(written);
                    }
                }
            }
        }
    }

    impl AsyncRead for LocalStream {
        fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            loop {
                let mut ready = ready!(self.socket.poll_read_ready(cx))?;
                let room = into.initialize_unfilled();
                let size = room.len();
                match ready.try_io(|socket| socket.get_ref().read(room)) {
                    Err(_) => {}
                    Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(Err(error)) => return Poll::Ready(Err(error)),
                    Ok(Ok(read)) => {
                        // A read that does not fill the buffer has taken all data. The system reports later data.
                        if 0 < read && read < size {
                            ready.clear_ready();
                        }
                        into.advance(read);
                        return Poll::Ready(Ok(()));
                    }
                }
            }
        }
    }

    impl AsyncWrite for LocalStream {
        fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_by(cx, |mut socket| socket.write(bytes))
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            parts: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_by(cx, |mut socket| socket.write_vectored(parts))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(self.socket.get_ref().shutdown(Shutdown::Write))
        }
    }

    /// The PRIMARY's end of the local channel.
    pub struct LocalListener(UnixListener);

    impl LocalListener {
        /// Waits until a process of this user connects. Returns the connection, and the process id if the system
        /// reports it. Closes connections from other users.
        ///
        /// # Errors
        /// The system's error, for instance when no descriptor is free. The listener still works afterwards.
        pub async fn accept(&mut self) -> io::Result<(Box<dyn DuplexStream>, Option<u32>)> {
            loop {
                let (stream, _) = self.0.accept().await?;
                if is_ours(&stream) {
                    let pid = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok());
                    return Ok((Box::new(LocalStream::new(stream)?), pid));
                }
            }
        }
    }

    impl RuntimeDir {
        pub(super) fn open_channel(&self) -> io::Result<LocalListener> {
            self.remove_channel();
            let mut last = io::ErrorKind::NotFound.into();
            let opened = self.dir();
            for path in opened.socket_paths(self.path(), CHANNEL) {
                // No other user can connect before the mode is set, because only this user can enter the folder.
                let bound = UnixListener::bind(&path).and_then(|listener| {
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
                    Ok(listener)
                });
                match bound {
                    Ok(listener) => return Ok(LocalListener(listener)),
                    Err(error) => last = error,
                }
            }
            Err(last)
        }

        /// Connects to the PRIMARY over the local channel; `None` when there is no channel.
        pub(crate) async fn dial_primary(&self) -> Result<Option<LocalStream>, RequestFailure> {
            let opened = self.dir();
            for path in opened.socket_paths(self.path(), CHANNEL) {
                match UnixStream::connect(path).await {
                    Ok(stream) if !is_ours(&stream) => return Ok(None),
                    Ok(stream) => return LocalStream::new(stream).map(Some).map_err(|error| busy_failure(&error)),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(busy_failure(&error)),
                    Err(_) => return Ok(None),
                }
            }
            Ok(None)
        }
    }

    /// Returns true when the process at the other end is of this user.
    fn is_ours(stream: &UnixStream) -> bool {
        stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
    }

    /// A second handle on a connection. It checks the connection at once, without waiting for the event loop.
    pub struct ConnectionProbe(OwnedFd);

    impl ConnectionProbe {
        /// Makes a probe of a TCP connection.
        pub fn from_stream(stream: &TcpStream) -> io::Result<Self> {
            stream.as_fd().try_clone_to_owned().map(Self)
        }

        /// Makes a probe of a local connection.
        pub fn of_local(stream: &LocalStream) -> io::Result<Self> {
            stream.socket.get_ref().as_fd().try_clone_to_owned().map(Self)
        }

        /// Returns true when the other end has neither closed the connection nor sent bytes without a request.
        pub fn is_quiet(&self) -> bool {
            let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            matches!(rustix::net::recv(&self.0, &mut [0_u8], flags), Err(rustix::io::Errno::AGAIN))
        }
    }
}

#[cfg(windows)]
mod platform {
    use serde::{Deserialize, Serialize};
    use tokio::net::TcpStream;
    use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};

    use super::{DuplexStream, RequestFailure, RuntimeDir, busy_failure, io};
    use crate::client::new_key;

    /// The name of the file in the runtime directory that holds the pipe's name.
    pub const CHANNEL: &str = "server.pipe";
    /// The system's error code when all instances of a pipe are in use.
    const PIPE_BUSY: i32 = 231;

    /// The name of the pipe. It is random and only in a file of this user, so no other process can create a pipe with
    /// this name first. By default, Windows does not let other users write to the pipe.
    #[derive(Serialize, Deserialize)]
    struct PipeName {
        pipe: String,
    }

    pub type LocalStream = NamedPipeClient;

    /// The PRIMARY's end of the local channel.
    pub struct LocalListener {
        name: String,
        next: NamedPipeServer,
    }

    impl LocalListener {
        /// Waits until a client connects. Windows does not report the client's process id.
        ///
        /// # Errors
        /// The system's error. The listener still works afterwards.
        pub async fn accept(&mut self) -> io::Result<(Box<dyn DuplexStream>, Option<u32>)> {
            self.next.connect().await?;
            let next = ServerOptions::new().reject_remote_clients(true).create(&self.name)?;
            Ok((Box::new(std::mem::replace(&mut self.next, next)), None))
        }
    }

    impl RuntimeDir {
        pub(super) fn open_channel(&self) -> io::Result<LocalListener> {
            let name = format!(r"\\.\pipe\nudge-{}", new_key());
            let next = ServerOptions::new().first_pipe_instance(true).reject_remote_clients(true).create(&name)?;
            self.write_small(CHANNEL, &PipeName { pipe: name.clone() })
                .map_err(|error| io::Error::other(error.message().to_owned()))?;
            Ok(LocalListener { name, next })
        }

        /// Connects to the PRIMARY over the local channel; `None` when there is no channel.
        // The function is `async` only because the Unix version is.
        #[allow(clippy::unused_async)]
        pub(crate) async fn dial_primary(&self) -> Result<Option<LocalStream>, RequestFailure> {
            let named = || serde_json::from_slice::<PipeName>(&self.read_small(CHANNEL)?).ok();
            let Some(PipeName { pipe }) = named() else { return Ok(None) };
            match ClientOptions::new().open(&pipe) {
                // Checks again after opening: if the PRIMARY has died meanwhile, another process may have taken the
                // pipe's name.
                Ok(stream) if self.is_held() && named().is_some_and(|now| now.pipe == pipe) => Ok(Some(stream)),
                Err(error) if error.raw_os_error() == Some(PIPE_BUSY) => Err(busy_failure(&error)),
                Ok(_) | Err(_) => Ok(None),
            }
        }
    }

    /// A second handle on a TCP connection. It checks the connection at once, without waiting for the event loop.
    /// Windows has no such check for a pipe, so a pipe always counts as quiet, and the client repeats a call over a
    /// closed pipe.
    pub struct ConnectionProbe(Option<std::net::TcpStream>);

    impl ConnectionProbe {
        /// Makes a probe of a TCP connection.
        pub fn from_stream(stream: &TcpStream) -> io::Result<Self> {
            use std::os::windows::io::{AsSocket, OwnedSocket};
            let socket: OwnedSocket = stream.as_socket().try_clone_to_owned()?;
            Ok(Self(Some(socket.into())))
        }

        /// Makes a probe of a pipe.
        #[allow(clippy::unnecessary_wraps, reason = "it can fail on Unix")]
        pub fn of_local(_stream: &NamedPipeClient) -> io::Result<Self> {
            Ok(Self(None))
        }

        /// Returns true when the other end has neither closed the connection nor sent bytes without a request.
        pub fn is_quiet(&self) -> bool {
            let waiting = self.0.as_ref().map(|socket| socket.peek(&mut [0]));
            waiting.is_none_or(|waiting| waiting.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock))
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// With a `umask` of 0 or the usual one, the system creates sockets to which other users can connect.
    #[test]
    fn the_channel_is_its_users_alone_whatever_the_umask() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let dir = RuntimeDir::create(Some(&home.path().join("run"))).unwrap();
        let lock = dir.try_lock().unwrap().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let _listener = dir.listen(&lock).unwrap();
        let mode = dir.path().join("server.sock").symlink_metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn more_than_there_is_room_for_goes_over_in_both_directions() {
        let home = tempfile::tempdir().unwrap();
        let dir = RuntimeDir::create(Some(&home.path().join("run"))).unwrap();
        let lock = dir.try_lock().unwrap().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut listener = dir.listen(&lock).unwrap();
            let mut near = dir.dial_primary().await.unwrap().unwrap();
            let (mut far, _) = listener.accept().await.unwrap();
            // The data is several times larger than the socket's buffer.
            let sent: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
            let (all, length) = (sent.clone(), sent.len());
            let echo = tokio::spawn(async move {
                let mut bytes = vec![0; length];
                far.read_exact(&mut bytes).await.unwrap();
                far.write_all(&bytes).await.unwrap();
                far.shutdown().await.unwrap();
            });
            near.write_all(&sent).await.unwrap();
            let mut back = Vec::new();
            near.read_to_end(&mut back).await.unwrap();
            assert!(back == all, "{} bytes came back", back.len());
            echo.await.unwrap();
        });
    }
}
