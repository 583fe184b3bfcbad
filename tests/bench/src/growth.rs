//! Every verb of every source, of few items and of many, for valgrind to count: `tests/bench/growth` is the command.

mod brain;
mod code;
mod hints;
mod records;
mod signals;

use std::path::Path;

use nudge_core::service::Service;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A source, and what it does with so many items, which a folder has.
struct Grown {
    name: &'static str,
    /// Puts them into an empty folder.
    fill: fn(&Path, usize),
    /// Asks every verb about them.
    ask: fn(&Path, usize),
}

const ALL: [Grown; 5] = [
    Grown { name: "hints", fill: |_, _| {}, ask: hints::ask },
    Grown { name: "signals", fill: signals::fill, ask: signals::ask },
    Grown { name: "records", fill: records::fill, ask: records::ask },
    Grown { name: "code", fill: code::fill, ask: code::ask },
    Grown { name: "brain", fill: brain::fill, ask: brain::ask },
];

/// The names of the sources.
pub fn sources() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|source| source.name)
}

/// Puts so many items of a source into an empty folder. Whether there is such a source.
pub fn fill(source: &str, folder: &Path, items: usize) -> bool {
    let found = ALL.iter().find(|entry| entry.name == source);
    found.inspect(|source| (source.fill)(folder, items)).is_some()
}

/// Asks every verb of a source about the items of a folder. Whether there is such a source.
pub fn ask(source: &str, folder: &Path, items: usize) -> bool {
    let found = ALL.iter().find(|entry| entry.name == source);
    found.inspect(|source| (source.ask)(folder, items)).is_some()
}

/// Asks once for what is remembered from then on, then `calls` times while valgrind counts; the closure is told which time it
/// is, from 0. Prints the verb and how many calls were counted, in the order in which valgrind writes its counts.
fn of(verb: &str, calls: usize, mut ask: impl FnMut(usize)) {
    ask(0);
    counted_calls(calls, &mut ask);
    counted_calls_end();
    println!("{verb}\t{calls}");
}

/// Valgrind writes down what it has counted when this is entered, by its name, and begins anew.
#[inline(never)]
fn counted_calls(calls: usize, ask: &mut dyn FnMut(usize)) {
    (1..=calls).for_each(ask);
}

/// And when this is entered.
#[inline(never)]
fn counted_calls_end() {
    std::hint::black_box(());
}

/// A call, as it travels, and its answer.
fn call(service: &(impl Service + ?Sized), method: &str, params: &Value) -> Box<RawValue> {
    let params = to_raw_value(params).expect("it is JSON");
    service.call(method, &params).unwrap_or_else(|error| panic!("{method} {params}: {error}"))
}

/// The same, read.
fn answer(service: &(impl Service + ?Sized), method: &str, params: &Value) -> Value {
    serde_json::from_str(call(service, method, params).get()).expect("it is JSON")
}
