//! Measures the import and export of a large store. The peer is `serde_json` on plain structs with the same fields. The
//! secret guard is off, because it has its own row for the same strings.

use nudge::{ExportHints, ImportHints, ImportMode, Nudge};
use serde_json::value::RawValue;

use super::contention::count;
use crate::data;
use crate::measure::{Stopwatch, median};
use crate::peers::plain;
use crate::table::{Line, Scale, versus};

/// The order of the importers in a round. An importer finds the heap as the one before has left it. So in this order
/// each importer comes once after each other one.
const TURNS: [usize; 6] = [0, 1, 0, 2, 1, 2];

fn exported(nudge: &Nudge) -> String {
    let export = nudge.export(&ExportHints::default()).expect("the whole store");
    serde_json::to_string(&export.payload).expect("an export is JSON")
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Stopwatch::start();
    let out = work();
    (out, start.ns())
}

fn line(what: &str, hints: usize, limit: f64, peer: &str, (ours, theirs): (&[f64], &[f64])) -> Line {
    Line {
        what: format!("{what} of {} hints", count(hints)),
        limit,
        unit: "x",
        measured: Some(median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())),
        peer: peer.into(),
        absolute: versus(median(ours.to_vec()), median(theirs.to_vec())),
    }
}

/// Measures the import of a text: into a store, into plain structs, and into plain structs with maps for lookups.
pub fn import(scale: &Scale) -> Vec<Line> {
    let text = exported(&data::store(&data::seeds(scale.large)));
    let sides: [fn(&str, usize) -> f64; 3] = [import_own, import_plain, import_kept];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..=scale.long_rounds {
        for side in TURNS {
            times[side].push(sides[side](&text, scale.large));
        }
    }
    // Ignores the first two turns of each importer, which warm up the allocator.
    let [ours, plain, kept] = times.each_ref().map(|times| &times[2..]);
    vec![
        line("import", scale.large, 2.0, "serde_json::from_str, plain structs", (ours, plain)),
        line("import", scale.large, 2.0, "the same, kept by name and by tag", (ours, kept)),
    ]
}

fn import_own(text: &str, hints: usize) -> f64 {
    let payload = RawValue::from_string(text.to_owned()).expect("the export is JSON");
    let params = ImportHints { payload, mode: ImportMode::Merge, allow_secret: false };
    let nudge = Nudge::new(data::config());
    let (done, ns) = timed(|| nudge.import(&params).expect("the export can be imported"));
    assert_eq!((done.imported, done.skipped), (hints, 0), "not everything was imported");
    ns
}

fn import_plain(text: &str, hints: usize) -> f64 {
    let (store, ns) = timed(|| read(text));
    let read: usize = store.components.values().map(|component| component.hints.len()).sum();
    assert_eq!(read, hints, "the peer reads another store");
    ns
}

fn import_kept(text: &str, hints: usize) -> f64 {
    let (kept, ns) = timed(|| plain::Kept::new(read(text)));
    assert_eq!(kept.len(), hints, "the peer keeps another store");
    ns
}

fn read(text: &str) -> plain::Store {
    serde_json::from_str(text).expect("the export is JSON")
}

/// Measures the export: of a store, of plain structs, and of plain structs with maps for lookups.
pub fn export(scale: &Scale) -> Vec<Line> {
    let nudge = data::store(&data::seeds(scale.large));
    let text = exported(&nudge);
    let (plain, kept) = (read(&text), plain::Kept::new(read(&text)));
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..=scale.long_rounds * 3 {
        let (plain, plain_ns) = timed(|| serde_json::to_string(&plain).expect("structs are JSON"));
        let (kept, kept_ns) = timed(|| serde_json::to_string(&kept.shown()).expect("structs are JSON"));
        let (own, ns) = timed(|| exported(&nudge));
        assert!(own == plain, "the peer writes another text");
        // The peer's text is a little shorter: it has no key around each component's hints, and no data about the
        // store.
        assert!(kept.len() > own.len() * 9 / 10, "the peer writes less");
        for (times, ns) in times.iter_mut().zip([ns, plain_ns, kept_ns]) {
            times.push(ns);
        }
    }
    let [ours, plain, kept] = times.each_ref().map(|times| &times[1..]);
    vec![
        line("export", scale.large, 1.3, "serde_json::to_string, plain structs", (ours, plain)),
        line("export", scale.large, 1.3, "the same, kept by name and by tag", (ours, kept)),
    ]
}
