//! Import and export of a large store, beside `serde_json` on plain structs of the same fields. The
//! guard is off: its time over the same strings is a row of its own.

use nudge::{Export, Import, ImportMode, Nudge};
use serde_json::value::RawValue;

use super::contention::count;
use crate::data;
use crate::measure::{Stopwatch, median};
use crate::peers::plain;
use crate::table::{Line, Scale, versus};

fn exported(nudge: &Nudge) -> String {
    let export = nudge.export(&Export::default()).expect("the whole store");
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

/// Text to a filled store; to a filled tree of structs.
pub fn import(scale: &Scale) -> Vec<Line> {
    let text = exported(&data::store(&data::seeds(scale.large)));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=scale.long_rounds {
        // By turns the first: the second finds the heap as the first has left it.
        if round % 2 == 0 {
            theirs.push(import_plain(&text, scale.large));
        }
        ours.push(import_own(&text, scale.large));
        if round % 2 == 1 {
            theirs.push(import_plain(&text, scale.large));
        }
    }
    // The first turn warms the allocator.
    vec![line("import", scale.large, 2.0, "serde_json::from_str, plain structs", (&ours[1..], &theirs[1..]))]
}

fn import_own(text: &str, hints: usize) -> f64 {
    let payload = RawValue::from_string(text.to_owned()).expect("the export is JSON");
    let params = Import { payload, mode: ImportMode::Merge, allow_secret: false };
    let nudge = Nudge::new(data::config());
    let (done, ns) = timed(|| nudge.import(&params).expect("the export can be imported"));
    assert_eq!((done.imported, done.skipped), (hints, 0), "not everything was imported");
    ns
}

fn import_plain(text: &str, hints: usize) -> f64 {
    let (store, ns) = timed(|| serde_json::from_str::<plain::Store>(text).expect("the export is JSON"));
    let read: usize = store.components.values().map(|component| component.hints.len()).sum();
    assert_eq!(read, hints, "the peer reads another store");
    ns
}

/// A filled store to text; a tree of structs to text.
pub fn export(scale: &Scale) -> Vec<Line> {
    let nudge = data::store(&data::seeds(scale.large));
    let plain: plain::Store = serde_json::from_str(&exported(&nudge)).expect("the export is JSON");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..=scale.long_rounds * 3 {
        let (text, plain_ns) = timed(|| serde_json::to_string(&plain).expect("structs are JSON"));
        let (own, ns) = timed(|| exported(&nudge));
        assert!(own == text, "the peer writes another text");
        ours.push(ns);
        theirs.push(plain_ns);
    }
    vec![line("export", scale.large, 1.3, "serde_json::to_string, plain structs", (&ours[1..], &theirs[1..]))]
}
