//! Calls every verb of every source with few items and with many, while valgrind counts instructions.
//! `tests/bench/growth` runs it.

mod brain;
mod code;
mod hints;
mod records;
mod signals;

use std::path::Path;

use nudge_core::service::Service;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A source, with functions that fill a folder and call the verbs.
struct Grown {
    name: &'static str,
    /// Stores so many items in an empty folder.
    fill: fn(&Path, usize),
    /// Calls every verb for a folder with so many items.
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

/// Stores so many items of a source in an empty folder; returns false if there is no such source.
pub fn fill(source: &str, folder: &Path, items: usize) -> bool {
    let found = ALL.iter().find(|entry| entry.name == source);
    found.inspect(|source| (source.fill)(folder, items)).is_some()
}

/// Calls every verb of a source for a folder with so many items; returns false if there is no such source.
pub fn ask(source: &str, folder: &Path, items: usize) -> bool {
    let found = ALL.iter().find(|entry| entry.name == source);
    found.inspect(|source| (source.ask)(folder, items)).is_some()
}

/// Calls `ask` once to fill caches, then `calls` times while valgrind counts. `ask` gets the number of the call, from
/// 0. Prints the verb and the number of counted calls, in the order in which valgrind writes its counts.
fn of(verb: &str, calls: usize, mut ask: impl FnMut(usize)) {
    ask(0);
    counted_calls(calls, &mut ask);
    counted_calls_end();
    println!("{verb}\t{calls}");
}

/// Valgrind recognises this function by its name: on entry it writes its count and starts again.
#[inline(never)]
fn counted_calls(calls: usize, ask: &mut dyn FnMut(usize)) {
    (1..=calls).for_each(ask);
}

/// Valgrind also writes its count on entry to this function.
#[inline(never)]
fn counted_calls_end() {
    std::hint::black_box(());
}

/// Makes a call with JSON params; returns the JSON answer.
fn call(service: &(impl Service + ?Sized), method: &str, params: &Value) -> Box<RawValue> {
    let params = to_raw_value(params).expect("it is JSON");
    service.call(method, &params).unwrap_or_else(|error| panic!("{method} {params}: {error}"))
}

/// Makes a call and parses the answer.
fn answer(service: &(impl Service + ?Sized), method: &str, params: &Value) -> Value {
    serde_json::from_str(call(service, method, params).get()).expect("it is JSON")
}
