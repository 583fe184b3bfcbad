//! Searches.

use nudge::{Nudge, Query};

use super::contention::count;
use crate::data::{self, SCOPES};
use crate::measure::{interleave, work};
use crate::peers::scan::{Floor, PLACE, Scan};
use crate::table::{Line, Scale, versus};

const TOP: usize = 10;
/// On one hint in 8 or so, the commonest.
const TAG: &str = "tag-00";

fn ask(tag: Option<&str>) -> Query {
    Query { context: data::place(), tags: tag.into_iter().map(Into::into).collect(), ..Query::default() }
}

/// The first ten names must be the same on both sides: else they do not do the same work.
fn agree(nudge: &Nudge, scan: &Scan) {
    let rows = nudge.query(ask(None)).expect("the query is valid").hints;
    let hits = scan.query(None, &PLACE, nudge.now(), TOP);
    let ours: Vec<_> = rows.iter().map(|row| (row.hint.component(), row.hint.key())).collect();
    let theirs: Vec<_> = hits.iter().map(|hit| hit.hint.name()).collect();
    assert_eq!(ours, theirs, "the peer finds other hints");
    assert!(rows.iter().zip(&hits).all(|(row, hit)| (row.score - hit.score).abs() < 1e-9 && hit.reasons.len() < 3));
}

/// Top 10 of everything that fits.
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

/// Top 10 with the commonest tag.
pub fn tag(scale: &Scale) -> Vec<Line> {
    let line = |hints| {
        let seeds = data::seeds(hints);
        let (nudge, floor) = (data::store(&seeds), Floor::new(hints));
        let times = interleave(
            scale.turns,
            &mut [work(|_| nudge.query(ask(Some(TAG))).expect("the query is valid")), work(|_| floor.touch())],
        );
        let tagged = seeds.iter().filter(|seed| seed.set.meta.tags.iter().any(|tag| tag == TAG)).count();
        Line {
            what: format!("query by tag, {tagged} of {}", count(hints)),
            limit: 3.0,
            unit: "x",
            measured: Some(times.ratio(0, 1)),
            peer: "one load from each 32-byte row".into(),
            absolute: versus(times.median(0), times.median(1)),
        }
    };
    [scale.small, scale.large].map(line).into()
}
