//! Measures the secret guard on ordinary texts and on hostile texts.

use nudge::SecretGuard;

use crate::data::{Random, seeds};
use crate::measure::{Stopwatch, percentile};
use crate::table::{Line, Scale, time};

/// Fragments for which the rules search. No fragment is a credential, and none is complete.
const PIECES: &[&str] = &[
    "a",
    "A",
    "0",
    "f",
    "Aa1",
    "=",
    ":",
    "\"",
    "'",
    "\\",
    "\\\"",
    "{",
    "[",
    "[[",
    "{\"a\":",
    "(",
    "$",
    "${",
    "$(",
    "<",
    "%",
    " ",
    "\n",
    "\t",
    "/",
    "//",
    "://",
    "@",
    "://a:b",
    "https://u:",
    "-",
    "--",
    "-----",
    "-----BEGIN ",
    "_",
    ".",
    "eyJ",
    "eyJa.",
    "AKIA",
    "ASIA",
    "ghp_",
    "github_pat_",
    "xoxb-",
    "sk-",
    "sk_live_",
    "AIza",
    "password=",
    "password: ",
    "PASSWORD=",
    "passwd ",
    "--password ",
    "--token=",
    "-p ",
    "-u a:",
    "export ",
    "export A=",
    "secret",
    "api_key=",
    "token\": \"",
    "Authorization: ",
    "Bearer ",
    "Basic ",
    "sha256:",
    "0x",
    "deadbeef",
    "curl -H ",
    "mysql ",
    "é",
    "\u{feff}",
    "\u{202e}",
    "&",
    "&amp;",
    ";",
    "|",
    "==",
    "=>",
    ":=",
    "+/",
    "YWJj",
];

/// Measures the guard on texts of 60 B and 1 KiB, and on hostile texts of 64 KiB.
pub fn check(scale: &Scale) -> Vec<Line> {
    let hostile_pieces = if scale.small < 5_000 { 4 } else { PIECES.len() };
    let (worst, piece) = worst_of(hostile_pieces);
    let line = |what: &str, limit, unit, ns: f64, per_unit, absolute| Line {
        what: what.into(),
        limit,
        unit,
        measured: Some(ns / per_unit),
        peer: "-".into(),
        absolute,
    };
    let short = timed(&texts(60, scale.small.min(1000)));
    let long = timed(&texts(1024, scale.small.min(1000)));
    let half = percentile(short.clone(), 50.0);
    let tail = percentile(long.clone(), 99.0);
    vec![
        line("guard p50, 60 B", 10.0, "us", half, 1e3, format!("p99 {}", time(percentile(short, 99.0)))),
        line("guard p99, 1 KiB", 200.0, "us", tail, 1e3, format!("p50 {}", time(percentile(long, 50.0)))),
        line("guard, worst hostile 64 KiB", 10.0, "ms", worst, 1e6, format!("{piece:?} repeated")),
    ]
}

/// Makes ordinary texts of `bytes` bytes from the values and reasons of generated hints.
fn texts(bytes: usize, count: usize) -> Vec<String> {
    let seeds = seeds(5_000);
    let parts: Vec<_> = seeds
        .iter()
        .flat_map(|seed| [Some(seed.set.value.text()), seed.set.meta.reason.as_deref()])
        .flatten()
        .collect();
    let mut random = Random(9);
    let text = |_| {
        let mut text = String::new();
        while text.len() < bytes {
            text.push_str(parts[random.below(parts.len())]);
            text.push('\n');
        }
        text.truncate(bytes);
        text
    };
    (0..count).map(text).collect()
}

/// Returns for each text the median of five times, in nanoseconds.
fn timed(texts: &[String]) -> Vec<f64> {
    texts.iter().map(|text| percentile((0..5).map(|_| once(text)).collect(), 50.0)).collect()
}

/// Returns the time of one check in nanoseconds. Several checks of a short text are measured together, because reading
/// the clock takes time.
fn once(text: &str) -> f64 {
    let times = if text.len() < 4096 { 16 } else { 1 };
    let start = Stopwatch::start();
    for _ in 0..times {
        std::hint::black_box(SecretGuard::new().check(None, std::hint::black_box(text)));
    }
    start.ns() / f64::from(times)
}

/// Finds the slowest text of 64 KiB that repeats one piece, or two pieces in turn. First it tries all combinations at
/// an eighth of the size, then only the slowest of them at full size. In a scan whose time grows at least linearly, the
/// slowest long text has the same pieces as a slow short text.
fn worst_of(pieces: usize) -> (f64, String) {
    let pieces = &PIECES[..pieces];
    let alone = pieces.iter().map(|&piece| piece.to_owned());
    let pairs = pieces.iter().flat_map(|a| pieces.iter().filter(move |b| a != *b).map(move |b| format!("{a}{b}")));
    let filled = |unit: &str, bytes: usize| unit.repeat(bytes / unit.len());
    let mut tried: Vec<_> = alone.chain(pairs).map(|unit| (once(&filled(&unit, 8 << 10)), unit)).collect();
    tried.sort_by(|a, b| b.0.total_cmp(&a.0));
    let full = tried.into_iter().take(100).map(|(_, unit)| {
        let text = filled(&unit, 64 << 10);
        ((0..3).map(|_| once(&text)).fold(f64::INFINITY, f64::min), unit)
    });
    full.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
}
