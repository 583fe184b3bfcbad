//! Servers with different faults, and a proxy to a real server. A test can cut the connections of the proxy.

use std::env;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The way in which a fake server behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// No server listens.
    Away,
    /// Accepts connections and sends nothing.
    Silent,
    /// Agrees on a version, and then closes the connection.
    HangsUp,
    /// Answers as a web server would.
    OfTheWeb,
    /// Refuses every login.
    Refuses,
    /// Accepts every login, and then answers no question.
    FallsSilent,
}

/// A fake server on this machine.
pub struct Fake {
    port: u16,
    calls: Arc<(Mutex<Vec<TcpStream>>, Condvar)>,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Fake {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let fake = Self { port, calls: Arc::default(), heard: Arc::default() };
        if manner == Manner::Away {
            return fake;
        }
        let (calls, heard) = (Arc::clone(&fake.calls), Arc::clone(&fake.heard));
        thread::spawn(move || {
            for call in listener.incoming() {
                let call = call.unwrap();
                calls.0.lock().unwrap().push(call.try_clone().unwrap());
                calls.1.notify_all();
                let heard = Arc::clone(&heard);
                thread::spawn(move || drop(serve(call, manner, &heard)));
            }
        });
        fake
    }

    pub fn address(&self) -> String {
        format!("bolt://127.0.0.1:{}", self.port)
    }

    /// Waits for at least `at_least` connections, at most a minute, and returns the number of connections. The wait is
    /// needed because a caller may give up before the server has accepted its connection.
    pub fn calls(&self, at_least: usize) -> usize {
        let (calls, more) = &*self.calls;
        let few = |calls: &mut Vec<TcpStream>| calls.len() < at_least;
        more.wait_timeout_while(calls.lock().unwrap(), Duration::from_mins(1), few).unwrap().0.len()
    }

    pub fn heard(&self, word: &str) -> bool {
        self.heard.lock().unwrap().windows(word.len()).any(|bytes| bytes == word.as_bytes())
    }
}

fn serve(mut call: TcpStream, manner: Manner, heard: &Mutex<Vec<u8>>) -> io::Result<()> {
    if manner == Manner::Silent {
        return Ok(());
    }
    call.read_exact(&mut [0; 20])?;
    if manner == Manner::OfTheWeb {
        return call.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    }
    call.write_all(&[0, 0, 4, 5])?;
    if manner == Manner::HangsUp {
        return call.shutdown(Shutdown::Both);
    }
    loop {
        let message = message(&mut call)?;
        heard.lock().unwrap().extend(&message);
        match message.get(1) {
            // The message HELLO.
            Some(0x01) => answer(&mut call, 0x70, &[("server", "Fake/1"), ("connection_id", "1")])?,
            // The message LOGON.
            Some(0x6a) if manner == Manner::Refuses => {
                let code = "Neo.ClientError.Security.Unauthorized";
                answer(&mut call, 0x7f, &[("code", code), ("message", "Who are you?")])?;
            }
            Some(0x6a) => answer(&mut call, 0x70, &[])?,
            _ => {}
        }
    }
}

/// Reads a message, which comes in chunks.
fn message(call: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    loop {
        let mut length = [0; 2];
        call.read_exact(&mut length)?;
        let length = usize::from(u16::from_be_bytes(length));
        if length == 0 {
            return Ok(message);
        }
        let begin = message.len();
        message.resize(begin + length, 0);
        call.read_exact(&mut message[begin..])?;
    }
}

/// Sends a message that contains a map of short texts.
fn answer(call: &mut TcpStream, tag: u8, map: &[(&str, &str)]) -> io::Result<()> {
    let length = |text: &str| u8::try_from(text.len()).unwrap();
    let mut message = vec![0xb1, tag, 0xa0 + u8::try_from(map.len()).unwrap()];
    for text in map.iter().flat_map(|(name, value)| [name, value]) {
        message.extend([0xd0, length(text)]);
        message.extend(text.bytes());
    }
    let mut chunk = u16::try_from(message.len()).unwrap().to_be_bytes().to_vec();
    chunk.extend(message);
    chunk.extend([0, 0]);
    call.write_all(&chunk)
}

/// Returns the settings for the real server that the environment names; `None` without one. The first setting is the
/// address.
pub fn settings() -> Option<Vec<(&'static str, String)>> {
    let Ok(address) = env::var("NUDGE_TEST_BOLT") else {
        eprintln!("skipped: NUDGE_TEST_BOLT names no server; tests/brain/bolt starts one");
        return None;
    };
    let variable = |name: &str| env::var(format!("NUDGE_TEST_BOLT_{name}")).unwrap_or_default();
    Some(vec![
        ("brain.bolt", address),
        ("brain.bolt_user", variable("USER")),
        ("brain.bolt_password", variable("PASSWORD")),
        ("brain.bolt_database", variable("DATABASE")),
    ])
}

/// A proxy to another server. A test can cut its connections.
pub struct Proxy {
    port: u16,
    to: String,
    state: Arc<Mutex<Cut>>,
    listens: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Cut {
    /// The number of bytes that may still reach the server; `None` for no limit.
    left: Option<usize>,
    open: Vec<TcpStream>,
    is_over: bool,
}

impl Cut {
    fn end(&mut self, port: u16) {
        self.is_over = true;
        for stream in self.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // The listener is waiting. This connection wakes it, so that it sees the end.
        drop(TcpStream::connect(("127.0.0.1", port)));
    }
}

impl Proxy {
    pub fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Self {
            port,
            to: to.trim_start_matches("bolt://").to_owned(),
            state: Arc::default(),
            listens: Mutex::default(),
        };
        proxy.listen(listener);
        proxy
    }

    pub fn address(&self) -> String {
        format!("bolt://127.0.0.1:{}", self.port)
    }

    /// Cuts all connections after so many more bytes have gone to the server.
    pub fn end_after(&self, bytes: usize) {
        self.state.lock().unwrap().left = Some(bytes);
    }

    pub fn end(&self) {
        self.state.lock().unwrap().end(self.port);
    }

    pub fn begin_again(&self) {
        self.listens.lock().unwrap().take().unwrap().join().unwrap();
        *self.state.lock().unwrap() = Cut::default();
        self.listen(TcpListener::bind(("127.0.0.1", self.port)).unwrap());
    }

    fn listen(&self, listener: TcpListener) {
        let (to, state, port) = (self.to.clone(), Arc::clone(&self.state), self.port);
        let listens = thread::spawn(move || {
            for call in listener.incoming() {
                if state.lock().unwrap().is_over {
                    return;
                }
                let (call, there) = (call.unwrap(), TcpStream::connect(&to).unwrap());
                let ends = [&call, &there].map(|end| end.try_clone().unwrap());
                state.lock().unwrap().open.extend(ends);
                pass(call.try_clone().unwrap(), there.try_clone().unwrap(), port, Some(Arc::clone(&state)));
                pass(there, call, port, None);
            }
        });
        *self.listens.lock().unwrap() = Some(listens);
    }
}

/// Copies bytes from one connection to the other, until a connection ends or the limit is reached.
fn pass(mut from: TcpStream, mut to: TcpStream, port: u16, state: Option<Arc<Mutex<Cut>>>) {
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if let Some(state) = &state {
                let mut state = state.lock().unwrap();
                if let Some(left) = &mut state.left {
                    *left = left.saturating_sub(count);
                    if *left == 0 {
                        return state.end(port);
                    }
                }
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
