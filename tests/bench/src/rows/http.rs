//! Measures calls over HTTP from clients that keep their connections open.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::measure::{Turns, Work, interleave_processes, percentile, wall_ns};
use crate::peers::bare_http::BARE_HTTP;
use crate::process::{KEY, Lines, Server, VALUE, on_processor, program, request};
use crate::table::{Line, Scale, time};

/// The processor of the servers. The clients run on other processors.
const SERVERS: usize = 1;
const CLIENTS: [usize; 2] = [4, 32];
/// The lengths of the values in hundreds of bytes. The largest length is the limit of a value.
const SIZES: [usize; 10] = [1, 2, 5, 10, 20, 40, 80, 160, 320, 655];
/// The number of batches for each length. Disturbances by other processes spare at least one batch. A delay that the
/// server causes in every hundredth call is in all batches.
const BATCHES: usize = 8;
/// The number of measured latencies for each call of a batch.
const LATENCIES_A_CALL: usize = 4000;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_io().build().expect("an event loop")
}

/// A client that repeats one request on an open connection.
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

impl Client {
    async fn connect(port: u16, request: &[u8]) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        Self { stream, request: request.to_owned(), buffer: vec![0; 128 << 10] }
    }

    /// Makes one call; returns the length of the answer with its headers.
    async fn call(&mut self) -> usize {
        self.stream.write_all(&self.request).await.expect("the server reads");
        let mut read = 0;
        loop {
            let more = self.stream.read(&mut self.buffer[read..]).await.expect("the server writes");
            assert!(more > 0, "the server closed the connection");
            read += more;
            if whole(&self.buffer[..read]) == Some(read) {
                return read;
            }
        }
    }

    fn answer(&self, length: usize) -> String {
        String::from_utf8_lossy(&self.buffer[..length]).into_owned()
    }
}

/// Returns the length of the whole answer. `answer` has the bytes so far. Returns `None` until the headers are
/// complete.
fn whole(answer: &[u8]) -> Option<usize> {
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&answer[..head]).ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    Some(head + length)
}

/// Clients that call at the same time. In a step each client makes one call.
struct Crowd<'a> {
    runtime: &'a Runtime,
    clients: Vec<Client>,
}

impl<'a> Crowd<'a> {
    fn new(runtime: &'a Runtime, count: usize, port: u16, request: &[u8]) -> Self {
        let clients = runtime.block_on(async {
            let mut clients = Vec::new();
            for _ in 0..count {
                clients.push(Client::connect(port, request).await);
            }
            clients
        });
        Self { runtime, clients }
    }

    fn steps(&mut self, count: usize) {
        let clients = std::mem::take(&mut self.clients);
        self.clients = self.runtime.block_on(async {
            let mut running = JoinSet::new();
            for mut client in clients {
                running.spawn(async move {
                    for _ in 0..count {
                        client.call().await;
                    }
                    client
                });
            }
            running.join_all().await
        });
    }
}

/// The names of the peers: a server that reads and answers with as many bytes, and a server that also makes the call.
const BARE: &str = "bare hyper, as many bytes";
const CALLS: &str = "bare hyper, the same call of the library";

/// Measures `nudge.get_hint` and compares it with both peers.
pub fn load(scale: &Scale) -> Vec<Line> {
    let line = |clients: usize, peer: &str, measured, absolute| Line {
        what: format!("HTTP, {clients} clients, time a call"),
        limit: 1.25,
        unit: "x",
        measured,
        peer: peer.into(),
        absolute,
    };
    let Some(nudge) = program("nudge") else {
        let lines = CLIENTS.map(|clients| [BARE, CALLS].map(|peer| line(clients, peer, None, "not built here".into())));
        return lines.into_iter().flatten().collect();
    };
    let ours = Server::start(on_processor(SERVERS, &nudge)).expect("the server starts");
    let get = ours.request("nudge.get_hint", &json!({"component": KEY.0, "key": KEY.1}));
    let runtime = runtime();
    let answered = |port: u16, request: &[u8]| {
        runtime.block_on(async {
            let mut client = Client::connect(port, request).await;
            let length = client.call().await;
            client.answer(length)
        })
    };
    let answer = answered(ours.port, &get);
    assert!(answer.contains(VALUE), "{answer}");
    let bytes = answer.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len()).to_string();

    // The peers get the same request with their own port.
    let text = String::from_utf8_lossy(&get);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let peers = [vec![BARE_HTTP, &bytes], vec![BARE_HTTP]].map(|args| {
        let mut bare = on_processor(SERVERS, &std::env::current_exe().expect("this program"));
        bare.args(args);
        let mut bare = Lines::start(bare).expect("the peer starts");
        let port: u16 = bare.receive().trim().parse().expect("it prints its port");
        (bare, port, request(port, &"0".repeat(64), body))
    });
    let [(_bare, port, same), (_calls, calls_port, same_call)] = &peers;
    let called = answered(*calls_port, same_call);
    assert!(called.contains(VALUE), "{called}");

    let turns = Turns { slice: scale.turns.slice * 10, ..scale.turns };
    let lines = CLIENTS.map(|clients| {
        let crowd = |port: u16, request: &[u8]| Crowd::new(&runtime, clients, port, request);
        let mut crowds = [crowd(ours.port, &get), crowd(*port, same), crowd(*calls_port, same_call)];
        let [ours, bare, calls] = &mut crowds;
        let mut contenders: [Work<'_>; 3] =
            [Box::new(|n| ours.steps(n)), Box::new(|n| bare.steps(n)), Box::new(|n| calls.steps(n))];
        let times = interleave_processes(turns, &mut contenders);
        let rate = |contender| clients as f64 / times.median(contender) * 1e6;
        [(BARE, 1), (CALLS, 2)].map(|(peer, contender)| {
            line(
                clients,
                peer,
                Some(times.ratio(0, contender)),
                format!("{:.1}k/s / {:.1}k/s", rate(0), rate(contender)),
            )
        })
    });
    lines.into_iter().flatten().collect()
}

/// Compares the slow answers of each length with the ordinary answers of that length. No length may have a stall.
pub fn sizes(scale: &Scale) -> Vec<Line> {
    let worst = program("nudge").map(|nudge| {
        let ours = Server::start(on_processor(SERVERS, &nudge)).expect("the server starts");
        let runtime = runtime();
        let measure_spread = |size: usize| spread(&runtime, &ours, size, (scale.latencies / LATENCIES_A_CALL).max(20));
        SIZES.map(measure_spread).into_iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio)).expect("there are lengths")
    });
    vec![Line {
        what: "HTTP, values of 0.1 to 64 KB, p99".into(),
        limit: 10.0,
        unit: "x",
        measured: worst.as_ref().map(|worst| worst.ratio),
        peer: "p50 of the same length, worst of 10".into(),
        absolute: worst.map_or_else(|| "not built here".into(), |worst| worst.shown),
    }]
}

struct Spread {
    ratio: f64,
    shown: String,
}

fn spread(runtime: &Runtime, ours: &Server, hundreds: usize, calls: usize) -> Spread {
    let key = format!("{hundreds}");
    let length = hundreds * 100;
    let set = json!({"component": "sizes", "key": key, "value": "lorem ipsum ".repeat(length / 12 + 1)[..length]});
    let set = ours.request("nudge.set_hint", &set);
    let get = ours.request("nudge.get_hint", &json!({"component": "sizes", "key": key}));
    let mut client = runtime.block_on(async {
        let answered = Client::connect(ours.port, &set).await.call().await;
        assert!(answered > length, "the value is not stored");
        let mut client = Client::connect(ours.port, &get).await;
        assert!(client.call().await > length, "the value does not come back");
        client
    });
    let mut batch = |_| {
        let times: Vec<f64> = runtime.block_on(async {
            let mut times = Vec::with_capacity(calls);
            for _ in 0..calls {
                let start = wall_ns();
                client.call().await;
                times.push(wall_ns() - start);
            }
            times
        });
        let (p99, p50) = (percentile(times.clone(), 99.0), percentile(times, 50.0));
        let shown = format!("{} / {} at {} KB", time(p99), time(p50), length as f64 / 1000.0);
        Spread { ratio: p99 / p50, shown }
    };
    (0..BATCHES).map(&mut batch).min_by(|a, b| a.ratio.total_cmp(&b.ratio)).expect("there are batches")
}
