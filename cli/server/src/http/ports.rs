//! The ports on which a server listens: the session's port, and further ones for `nudge ui --port`.
//!
//! The same checks apply to requests on every port. A further port exists as long as its process. If another process
//! takes over the session, it takes over only the session's own port.

use std::io::ErrorKind as Io;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

use nudge::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The most ports in addition to the session's port.
const MAX_FURTHER: usize = 4;

/// The ports of a server.
#[derive(Debug)]
pub struct ServerPorts {
    own: u16,
    further: Mutex<Vec<u16>>,
    to_accept: UnboundedSender<TcpListener>,
}

impl ServerPorts {
    /// Makes the ports of a server that already listens on `own`. Also returns the receiver for the listeners of
    /// further ports.
    pub fn new(own: u16) -> (Self, UnboundedReceiver<TcpListener>) {
        let (to_accept, accepted) = unbounded_channel();
        (Self { own, further: Mutex::default(), to_accept }, accepted)
    }

    /// Returns the session's own port.
    pub fn own(&self) -> u16 {
        self.own
    }

    /// Returns true when the server listens on the port.
    pub fn has_port(&self, port: u16) -> bool {
        port == self.own || self.further.lock().contains(&port)
    }

    /// Listens on a further port. Does nothing if the server already listens there.
    ///
    /// # Errors
    /// `E_CONFLICT` for a port that another program uses, `E_INVALID` for a port that cannot be opened, `E_QUOTA` when
    /// all further ports are in use.
    pub fn listen_on(&self, port: u16) -> Result<()> {
        if port == 0 {
            return Err(Error::invalid("A port for the page is a number from 1 to 65535; give another with --port."));
        }
        if port == self.own {
            return Ok(());
        }
        let mut further = self.further.lock();
        if further.contains(&port) {
            return Ok(());
        }
        if further.len() == MAX_FURTHER {
            let message = "This server listens on four further ports, which is the most; use one of these.";
            return Err(Error::quota("ports", MAX_FURTHER, message));
        }
        let unusable = |error: std::io::Error| match error.kind() {
            Io::AddrInUse => {
                Error::conflict(format!("Port {port} is taken by another program; give another with --port."))
            }
            _ => Error::invalid(format!("Port {port} cannot be used ({error}); give another with --port.")),
        };
        for listener in bind_loopback(port).map_err(unusable)? {
            listener.set_nonblocking(true).map_err(unusable)?;
            // A server that is about to stop accepts no more connections, so a failed send does not matter.
            let _ = self.to_accept.send(listener);
        }
        further.push(port);
        Ok(())
    }
}

/// Binds a port on both loopback addresses. A client may resolve `localhost` to either address, and would send its
/// token to another program if that program had the other address.
///
/// # Errors
/// The error of the first address. An error of the second address counts only if it is `AddrInUse`.
pub fn bind_loopback(port: u16) -> std::io::Result<Vec<TcpListener>> {
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    match TcpListener::bind((Ipv6Addr::LOCALHOST, first.local_addr()?.port())) {
        Ok(second) => Ok(vec![first, second]),
        Err(error) if error.kind() == Io::AddrInUse => Err(error),
        // The machine does not have the second address, so no other program can have it.
        Err(_) => Ok(vec![first]),
    }
}

#[cfg(test)]
mod tests {
    use nudge::ErrorKind;

    use super::*;

    #[test]
    fn a_port_is_had_once_and_four_are_the_most() {
        let taken = bind_loopback(0).unwrap();
        let taken = taken[0].local_addr().unwrap().port();
        let (ports, mut listeners) = ServerPorts::new(7);
        assert_eq!(ports.listen_on(0).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(ports.listen_on(taken).unwrap_err().kind(), ErrorKind::Conflict);
        assert!(
            !ports.has_port(taken) && ports.has_port(7) && ports.listen_on(7).is_ok() && listeners.try_recv().is_err()
        );
        for _ in 0..MAX_FURTHER {
            let free = bind_loopback(0).unwrap()[0].local_addr().unwrap().port();
            ports.listen_on(free).unwrap();
            assert!(ports.has_port(free) && ports.listen_on(free).is_ok());
        }
        let free = bind_loopback(0).unwrap()[0].local_addr().unwrap().port();
        assert_eq!(ports.listen_on(free).unwrap_err().kind(), ErrorKind::Quota);
        let first = listeners.try_recv().unwrap().local_addr().unwrap().port();
        assert!(ports.has_port(first));
    }
}
