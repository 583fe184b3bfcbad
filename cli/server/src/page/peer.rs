//! Finds out which user is at the other end of a TCP connection.
//!
//! `nudge ui` passes the address with the code to a browser as an argument, and for a moment every user of the machine
//! can read arguments. Linux reports the user of a process, so the server accepts a code only from this user's
//! processes. On macOS the address is no argument (`cmd/ui/open.rs`), and Windows does not show arguments to other
//! users.

use std::net::SocketAddr;

/// Returns false when the connection belongs to another user or is closed. Returns true when the system does not say.
/// Reads a system file, which takes milliseconds if there are many connections.
#[cfg(target_os = "linux")]
pub fn is_this_users(theirs: SocketAddr, ours: SocketAddr) -> bool {
    use nudge_os::foreign::{LinkPolicy, read_text};
    use std::path::Path;

    /// The limit exceeds the tables of a machine with a hundred thousand connections.
    const MAX_TABLE_BYTES: u64 = 32 << 20;

    let table = if theirs.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    match read_text(Path::new(table), LinkPolicy::Followed, MAX_TABLE_BYTES) {
        // Accepts root, which has all rights of this user anyway: in virtual machines, root forwards connections from
        // outside.
        Ok(table) => find_owner(&table, theirs, ours).is_some_and(|uid| uid == 0 || uid == own_uid()),
        // This system does not report the user, so the connection is accepted.
        Err(_) => true,
    }
}

/// Returns true, because this system does not report the user.
#[cfg(not(target_os = "linux"))]
pub fn is_this_users(_: SocketAddr, _: SocketAddr) -> bool {
    true
}

#[cfg(target_os = "linux")]
fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the user at the other end of an open connection. Returns `None` for a closed connection, because the table
/// then names root instead of the user.
#[cfg(target_os = "linux")]
fn find_owner(table: &str, theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    const ESTABLISHED: &str = "01";
    let ends = (format_end(theirs), format_end(ours));
    table.lines().skip(1).find_map(|line| {
        // The fields are: number, local end, other end, state, queues, timer, retransmits, user.
        let fields: Vec<_> = line.split_ascii_whitespace().take(8).collect();
        let [_, local, other, ESTABLISHED, _, _, _, uid] = fields[..] else { return None };
        (local == ends.0 && other == ends.1).then(|| uid.parse().ok())?
    })
}

/// Formats an address as the table does: 32-bit numbers in the machine's byte order, then the port.
#[cfg(target_os = "linux")]
fn format_end(end: SocketAddr) -> String {
    let octets = match end.ip() {
        std::net::IpAddr::V4(ip) => ip.octets().to_vec(),
        std::net::IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = octets.as_chunks::<4>().0.iter().map(|word| format!("{:08X}", u32::from_ne_bytes(*word)));
    format!("{}:{:04X}", words.collect::<String>(), end.port())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_of_our_own_is_ours() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, theirs) = listener.accept().unwrap();
            let ours = server.local_addr().unwrap();
            assert!(is_this_users(theirs, ours), "{address}");
            assert!(!is_this_users(SocketAddr::new(theirs.ip(), 1), ours), "there is no such connection");
            drop((client, server));
            assert!(!is_this_users(theirs, ours), "one that is closed is nobody's");
        }
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn the_table_names_the_user_of_the_other_end() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:223D 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 1 1\n   \
            1: 0100007F:D431 0100007F:223D 01 00000000:00000000 00:00000000 00000000   104        0 2 1\n   \
            2: 0100007F:D432 0100007F:223D 06 00000000:00000000 03:00000000 00000000     0        0 0 3\n   \
            3: broken\n";
        let end = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(find_owner(table, end(0xd431), end(0x223d)), Some(104));
        assert_eq!(find_owner(table, end(0x223d), end(0xd431)), Some(1000));
        assert_eq!(find_owner(table, end(0xd432), end(0x223d)), None, "it is closed");
        assert_eq!(find_owner(table, end(0xd433), end(0x223d)), None);
        let six = "[::1]:8765".parse().unwrap();
        assert_eq!(format_end(six), "00000000000000000000000001000000:223D");
    }
}
