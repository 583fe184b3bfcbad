//! Measures the memory of a stored hint.

use super::contention::count;
use crate::allocations;
use crate::data;
use crate::table::{Line, Scale};

/// Measures the allocated memory of a filled store, for each hint and for a store of the default size.
pub fn per_hint(scale: &Scale) -> Vec<Line> {
    let live_bytes = |hints| {
        let seeds = data::seeds(hints);
        let (store, counted) = allocations::count(|| data::store(&seeds));
        drop(store);
        counted.live_bytes as f64
    };
    let (small, large) = (live_bytes(scale.small), live_bytes(scale.large));
    let line = |what, limit, unit, measured, absolute| Line {
        what,
        limit,
        unit,
        measured: Some(measured),
        peer: "-".into(),
        absolute,
    };
    vec![
        line(
            format!("memory a hint, {} hints", count(scale.large)),
            450.0,
            "B",
            large / scale.large as f64,
            format!("{:.1} MiB", large / f64::from(1 << 20)),
        ),
        line(
            format!("memory, {} hints", count(scale.small)),
            10.0,
            "MiB",
            small / f64::from(1 << 20),
            format!("{:.0} B a hint", small / scale.small as f64),
        ),
    ]
}
