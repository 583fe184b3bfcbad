//! Provides a server for tests. It holds the real lock, and sends prepared answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nudge_client::{PrimaryLock, RuntimeDir, ServerFile, SessionFile};

#[derive(Debug, Clone, Copy)]
pub enum CannedReply {
    Text(u16, &'static str),
    /// Answers after a delay.
    Late(Duration, &'static str),
    /// Answers, and then closes the connection.
    Last(&'static str),
    /// Closes the connection and sends nothing.
    Nothing,
    /// Closes the connection after a part of the answer.
    Part,
}

/// Makes answers wait until a test opens the gate.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub fn shut(&self) {
        *self.0.0.lock().unwrap() = false;
    }

    /// Waits until the gate is open.
    pub fn pass(&self) {
        let shut = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(shut, |open| !*open).unwrap());
    }
}

#[derive(Debug, Clone)]
pub struct Request {
    /// The number of the connection on which the request came, counted from 0.
    pub connection: usize,
    pub line: String,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

type Respond = Box<dyn Fn(usize, &Request) -> CannedReply + Send + Sync>;

struct Inner {
    dir: RuntimeDir,
    port: u16,
    lock: Mutex<Option<PrimaryLock>>,
    seen: Mutex<Vec<Request>>,
    open: Mutex<Vec<TcpStream>>,
    closed: AtomicBool,
    /// The number of connections that have ended. The client's system has noticed their end.
    over: AtomicUsize,
    respond: Respond,
}

#[derive(Clone)]
pub struct Server(Arc<Inner>);

impl Server {
    /// Takes the lock as soon as it is free, and writes `server.pid`. `respond` gets the request and the number of
    /// earlier requests.
    pub fn start(dir: &RuntimeDir, respond: impl Fn(usize, &Request) -> CannedReply + Send + Sync + 'static) -> Self {
        let deadline = Instant::now() + Duration::from_secs(5);
        let lock = loop {
            match dir.try_lock().unwrap() {
                Some(lock) => break lock,
                None => assert!(Instant::now() < deadline, "the lock is free"),
            }
        };
        dir.remove_server_file(&lock).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let file = ServerFile { pid: 1, port, started: String::new(), token: Some("swordfish".into()) };
        dir.write_server_file(&lock, &file).unwrap();
        let server = Self(Arc::new(Inner {
            dir: dir.clone(),
            port,
            lock: Mutex::new(Some(lock)),
            seen: Mutex::default(),
            open: Mutex::default(),
            closed: AtomicBool::new(false),
            over: AtomicUsize::new(0),
            respond: Box::new(respond),
        }));
        let inner = Arc::clone(&server.0);
        thread::spawn(move || inner.accept(&listener));
        server
    }

    pub fn port(&self) -> u16 {
        self.0.port
    }

    pub fn seen(&self) -> Vec<Request> {
        self.0.seen.lock().unwrap().clone()
    }

    pub fn write_session(&self, session: &SessionFile) {
        self.0.dir.write_session(self.0.lock.lock().unwrap().as_ref().unwrap(), session).unwrap();
    }

    /// Ends like a process that dies: its connections close and its lock is released.
    pub fn die(&self) {
        self.stop_accepting();
        for stream in self.0.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.unlock();
    }

    /// Ends like a server that stops in order.
    pub fn leave(&self) {
        if let Some(lock) = &*self.0.lock.lock().unwrap() {
            self.0.dir.remove_server_file(lock).unwrap();
        }
        self.die();
    }

    /// Waits until the server has received `count` requests.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.0.seen.lock().unwrap().len() < count {
            assert!(Instant::now() < deadline, "{count} requests come");
            thread::yield_now();
        }
    }

    /// Waits until `count` connections have ended.
    pub fn wait_for_ends(&self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.0.over.load(Ordering::SeqCst) < count {
            assert!(Instant::now() < deadline, "the connections end");
            thread::yield_now();
        }
    }

    pub fn unlock(&self) {
        self.0.lock.lock().unwrap().take();
    }

    pub fn stop_accepting(&self) {
        if !self.0.closed.swap(true, Ordering::SeqCst) {
            // Wakes the thread that accepts connections.
            drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.0.port)));
            while TcpStream::connect((Ipv4Addr::LOCALHOST, self.0.port)).is_ok() {}
        }
    }
}

impl Inner {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for (connection, stream) in listener.incoming().enumerate() {
            if self.closed.load(Ordering::SeqCst) {
                return;
            }
            let stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            self.open.lock().unwrap().push(stream.try_clone().unwrap());
            let inner = Arc::clone(&self);
            thread::spawn(move || {
                // An error is ignored, because a client may close its connection at any time.
                let _ = inner.serve(connection, &stream);
                let _ = stream.shutdown(Shutdown::Both);
                inner.over.fetch_add(1, Ordering::SeqCst);
            });
        }
    }

    fn serve(&self, connection: usize, mut stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                match line.trim_end() {
                    "" => break,
                    line => lines.push(line.to_owned()),
                }
            }
            let line = lines.remove(0);
            let headers: Vec<_> = lines.iter().filter_map(|line| line.split_once(": ")).collect();
            let headers: Vec<_> =
                headers.into_iter().map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
            let mut request = Request { connection, line, headers, body: String::new() };
            let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            request.body = String::from_utf8(body).unwrap();
            let count = {
                let mut seen = self.seen.lock().unwrap();
                seen.push(request.clone());
                seen.len() - 1
            };
            let (status, text) = match (self.respond)(count, &request) {
                CannedReply::Text(status, text) => (status, text),
                CannedReply::Late(late, text) => {
                    thread::sleep(late);
                    (200, text)
                }
                CannedReply::Last(text) => {
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len());
                    return stream.write_all(head.as_bytes());
                }
                CannedReply::Nothing => return Ok(()),
                CannedReply::Part => {
                    return stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"jsonrpc\"");
                }
            };
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{text}", text.len());
            stream.write_all(head.as_bytes())?;
        }
    }
}
