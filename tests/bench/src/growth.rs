//! Calls every verb of every source with few items and with many items, while valgrind counts instructions.
//! `tests/bench/growth` runs this.

mod brain;
mod code;
mod hints;
mod records;
mod signals;

use std::path::Path;

use nudge_core::service::Service;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A source, with a function that fills a folder and a function that calls all verbs.
struct Grown {
    name: &'static str,
    /// Stores this many items in an empty folder.
    fill: fn(&Path, usize),
    /// Calls all verbs on a folder with this many items.
    ask: fn(&Path, usize),
}

const ALL: [Grown; 5] = [
    Grown { name: "hints", fill: |_, _| {}, ask: hints::ask },
    Grown { name: "signals", fill: signals::fill, ask: signals::ask },
    Grown { name: "records", fill: records::fill, ask: records::ask },
    Grown { name: "code", fill: code::fill, ask: code::ask },
    Grown { name: "brain", fill: brain::fill, ask: brain::ask },
];

/// Returns the names of the sources.
pub fn sources() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|source| source.name)
}

/// Stores this many items of a source in an empty folder. Returns false if there is no such source.
pub fn fill(source: &str, folder: &Path, items: usize) -> bool {
    let found = ALL.iter().find(|entry| entry.name == source);
    found.inspect(|source| (source.fill)(folder, items)).is_some()
}

/// Calls all verbs of a source on a folder with this many items. Returns false if there is no such source.
pub fn ask(source: &str, folder: &Path, items: usize) -> bool {
    let found = ALL.iter().find(|entry| entry.name == source);
    found.inspect(|source| (source.ask)(folder, items)).is_some()
}

/// Calls `ask` once to fill caches. Then calls it `calls` times while valgrind counts. `ask` gets the number of the
/// call, which begins with 0. Prints the verb and the number of counted calls; valgrind writes its counts in the same
/// order.
fn of(verb: &str, calls: usize, mut ask: impl FnMut(usize)) {
    ask(0);
    counted_calls(calls, &mut ask);
    counted_calls_end();
    println!("{verb}\t{calls}");
}

/// Valgrind knows this function by its name. On entry, valgrind writes its count and begins a new one.
#[inline(never)]
fn counted_calls(calls: usize, ask: &mut dyn FnMut(usize)) {
    (1..=calls).for_each(ask);
}

/// On entry to this function too, valgrind writes its count.
#[inline(never)]
fn counted_calls_end() {
    std::hint::black_box(());
}

/// Makes a call with JSON params; returns the answer as JSON text.
fn call(service: &(impl Service + ?Sized), method: &str, params: &Value) -> Box<RawValue> {
    let params = to_raw_value(params).expect("it is JSON");
    service.call(method, &params).unwrap_or_else(|error| panic!("{method} {params}: {error}"))
}

/// Makes a call; returns the parsed answer.
fn answer(service: &(impl Service + ?Sized), method: &str, params: &Value) -> Value {
    serde_json::from_str(call(service, method, params).get()).expect("it is JSON")
}
