//! Measures lookups from C and compares them with the same lookups from Rust.

use std::hint::black_box;
use std::process::Command;

use nudge::{Service, View};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::get::{self, Stores};
use crate::data;
use crate::measure::{Stopwatch, median};
use crate::process::{Lines, program};
use crate::table::{Line, Scale, versus};

/// The program `bindings/c/bench.c`, linked with the shared library.
pub const PROGRAMS: &[&str] = &["nudge-c"];

/// The number of lookups before the measurement.
const WARM: usize = 2_000;

/// The C program. Its store has the same hints as that of the Rust side.
struct Client(Lines);

impl Client {
    fn start(stores: &Stores) -> Option<Self> {
        let mut lines = Lines::start(Command::new(program("nudge-c")?)).ok()?;
        let whole = stores.nudge.call("nudge.export", &to_raw_value(&json!({})).ok()?).ok()?;
        let whole: Value = serde_json::from_str(whole.get()).ok()?;
        lines.send(&format!("{}\n", json!({"payload": whole["payload"], "allow_secret": true})));
        let names = stores.names.all_asked();
        lines.send(&format!("{}\n", names.len()));
        for (component, key) in names {
            lines.send(&format!("{component} {key}\n"));
        }
        Some(Self(lines))
    }

    /// Returns the processor time of `times` lookups, in nanoseconds.
    fn ns(&mut self, what: &str, times: usize) -> f64 {
        self.0.send(&format!("{what} {times}\n"));
        self.0.receive().split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(f64::NAN)
    }
}

// The number of lookups in a slice is small enough for the conversions.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
/// Runs both sides in turn. Returns the median of each side in nanoseconds per lookup, and the median of their ratios.
fn turns(scale: &Scale, client: &mut Client, what: &str, mut rust: impl FnMut(usize)) -> [f64; 3] {
    let mut step = 0;
    let mut ours = |times: usize| {
        let watch = Stopwatch::start();
        for _ in 0..times {
            rust(step);
            step += 1;
        }
        watch.ns()
    };
    // The slice is long, so that the cache misses after each change of processes count little.
    let slice = scale.turns.slice.as_nanos() as f64 * 10.0;
    ours(WARM);
    let times = (slice / (ours(WARM) / WARM as f64)).ceil().max(1.0) as usize;
    client.ns(what, WARM);
    let per = times as f64;
    let turns: Vec<_> = (0..scale.turns.rounds).map(|_| (client.ns(what, times) / per, ours(times) / per)).collect();
    let c = turns.iter().map(|(c, _)| *c).collect();
    let rust = turns.iter().map(|(_, rust)| *rust).collect();
    [median(c), median(rust), median(turns.iter().map(|(c, rust)| c / rust).collect())]
}

/// Measures `get` from C. The client reads the value and frees the match.
pub fn typed(scale: &Scale) -> Vec<Line> {
    let line = |what: &str, peer: &str, figures: Option<[f64; 3]>| Line {
        what: what.into(),
        limit: 1.5,
        unit: "x",
        measured: figures.map(|[_, _, ratio]| ratio),
        peer: peer.into(),
        absolute: figures.map_or_else(String::new, |[c, rust, _]| versus(c, rust)),
    };
    let single = get::stores(scale.small, &data::variants(1));
    let four = get::stores(scale.small, &data::variants(4));
    let context = data::place().build().expect("the place is valid");
    let mut lines = Vec::new();
    for (stores, variants) in [(&single, "1 variant"), (&four, "4 variants")] {
        let view = View::new(&stores.nudge, context.clone());
        let figures = Client::start(stores).map(|mut client| {
            turns(scale, &mut client, "view", |step| {
                let (component, key) = stores.names.at(stores.names.asked(step));
                black_box(view.get(component, key).expect("stored").hint().text());
            })
        });
        lines.push(line(&format!("C get, view, {variants}"), "Rust get, View", figures));
    }
    // A match in C is a handle on the heap, so the Rust side puts its match into a `Box`.
    let view = View::new(&single.nudge, context.clone());
    let figures = Client::start(&single).map(|mut client| {
        turns(scale, &mut client, "view", |step| {
            let (component, key) = single.names.at(single.names.asked(step));
            let handle = black_box(Box::new(view.get(component, key).expect("stored")));
            black_box(handle.hint().text());
        })
    });
    lines.push(line("C get, view, 1 variant", "Rust get, View, in a Box", figures));
    let mut client = Client::start(&four);
    let figures = client.as_mut().map(|client| {
        turns(scale, client, "get", |step| {
            let (component, key) = four.names.at(four.names.asked(step));
            black_box(four.nudge.get(component, key, &context).expect("stored").hint().text());
        })
    });
    lines.push(line("C get, ready context, 4 variants", "Rust get, ready Context", figures));
    let view = View::new(&four.nudge, context.clone());
    let figures = client.as_mut().map(|client| {
        turns(scale, client, "reasons", |step| {
            let (component, key) = four.names.at(four.names.asked(step));
            let found = view.get(component, key).expect("stored");
            black_box((found.hint().text(), found.reasons()));
        })
    });
    lines.push(line("C get, view, reasons read too", "Rust get, View, reasons", figures));
    lines
}
