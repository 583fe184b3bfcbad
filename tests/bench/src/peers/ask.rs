//! Runs the smallest program that calls a session and prints the answer: `ask SOCKET BODY`. A file contains the
//! prepared request, and the program reads no other file. `tests/bench/run` builds it in the same way as Nudge. It
//! shows the least time that a command needs if it calls a session.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

fn main() -> io::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let (Some(socket), Some(body)) = (args.next(), args.next()) else { return Err(io::ErrorKind::InvalidInput.into()) };
    let body = fs::read(body)?;
    let mut stream = UnixStream::connect(socket)?;
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat())?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        let read = stream.read(&mut buffer)?;
        answer.extend_from_slice(&buffer[..read]);
        if let Some(body) = body_of(&answer) {
            return io::stdout().write_all(body);
        }
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Returns the body of an answer; `None` until all of it has arrived.
fn body_of(answer: &[u8]) -> Option<&[u8]> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = (std::str::from_utf8(&answer[..end]).ok()?, &answer[end + 4..]);
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    (length.parse() == Ok(body.len())).then_some(body)
}
