//! Measures queries.

use nudge::{Nudge, QueryHints};

use super::contention::count;
use crate::data::{self, SCOPES};
use crate::measure::{Work, interleave, work};
use crate::peers::scan::{Floor, PLACE, Scan};
use crate::table::{Line, Scale, versus};

const TOP: usize = 10;
/// The most common tag: about every 8th hint has it.
const TAG: &str = "tag-00";

fn ask(tag: Option<&str>) -> QueryHints {
    QueryHints { context: data::place(), tags: tag.into_iter().map(Into::into).collect(), ..QueryHints::default() }
}

/// Checks that the first ten names of both sides are equal, so that both do the same work.
fn agree(nudge: &Nudge, scan: &Scan) {
    let rows = nudge.query(ask(None)).expect("the query is valid").hints;
    let hits = scan.query(None, &PLACE, nudge.now(), TOP);
    let ours: Vec<_> = rows.iter().map(|row| (row.hint.component(), row.hint.key())).collect();
    let theirs: Vec<_> = hits.iter().map(|hit| hit.hint.name()).collect();
    assert_eq!(ours, theirs, "the peer finds other hints");
    assert!(rows.iter().zip(&hits).all(|(row, hit)| (row.score - hit.score).abs() < 1e-9 && hit.reasons.len() < 3));
}

/// Measures the best ten of all hints that fit.
pub fn top(scale: &Scale) -> Vec<Line> {
    let line = |hints| {
        let seeds = data::seeds(hints);
        let (nudge, scan) = (data::store(&seeds), Scan::new(&seeds, SCOPES));
        agree(&nudge, &scan);
        let now = nudge.now();
        let times = interleave(
            scale.turns,
            &mut [
                work(|_| nudge.query(ask(None)).expect("the query is valid")),
                work(|_| scan.query(None, &PLACE, now, TOP)),
            ],
        );
        Line {
            what: format!("query top-10, {} hints, 40 scopes", count(hints)),
            limit: 0.1,
            unit: "x",
            measured: Some(times.ratio(0, 1)),
            peer: "scan, GlobSet per hint, sort".into(),
            absolute: versus(times.median(0), times.median(1)),
        }
    };
    [scale.small, scale.large].map(line).into()
}

/// Measures the best ten hints with the most common tag. The peers load a row for every hint, and check each hint that
/// has the tag.
pub fn tag(scale: &Scale) -> Vec<Line> {
    let lines = |hints| {
        let seeds = data::seeds(hints);
        let (nudge, floor) = (data::store(&seeds), Floor::new(hints));
        let is_tagged = |seed: &&data::Seed| seed.set.meta.tags.iter().any(|tag| tag == TAG);
        let tagged = seeds.iter().filter(is_tagged).count();
        let (scan, now) = (Scan::new(seeds.iter().filter(is_tagged), SCOPES), nudge.now());
        // Runs the peers one after another, because a scan evicts the next contender's data from the processor's cache.
        let line = |limit, peer: &str, beside: Work<'_>| {
            let ours = work(|_| nudge.query(ask(Some(TAG))).expect("the query is valid"));
            let times = interleave(scale.turns, &mut [ours, beside]);
            Line {
                what: format!("query by tag, {tagged} of {}", count(hints)),
                limit,
                unit: "x",
                measured: Some(times.ratio(0, 1)),
                peer: peer.into(),
                absolute: versus(times.median(0), times.median(1)),
            }
        };
        [
            line(3.0, "one load from each 32-byte row", work(|_| floor.touch())),
            line(0.5, "scan of those, GlobSet per hint, sort", work(|_| scan.query(None, &PLACE, now, TOP))),
        ]
    };
    [scale.small, scale.large].into_iter().flat_map(lines).collect()
}
