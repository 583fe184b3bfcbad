//! Finds related units: walks from some units along the links that their authors wrote, hop by hop.
//!
//! In most brains, a few units are linked with nearly all others, so a walk over all edges would be too slow. Three
//! rules limit the walk: it does not continue through such a unit, each hop halves the score, and only the best results
//! of a hop continue.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use nudge_core::number::to_column;
use nudge_storage::TransactionFailure;
use nudge_storage::rusqlite::Connection;

/// The most hops.
pub const MAX_HOPS: usize = 3;
/// The walk does not continue through a unit that has more relations than this.
const HUB: usize = 64;
/// The most units of one hop from which the next hop continues.
const BEAM: usize = 32;
/// The share of the score that remains after a hop. `FLOOR` is the lowest score that counts.
const DAMPING: f64 = 0.5;
const FLOOR: f64 = 0.02;
/// With this number of relations, a unit passes half as much of its score to each related unit as with none.
const MANY: f64 = 8.0;

/// Finds the relations of units: in the index, or on the graph server.
pub trait UnitGraph {
    /// Returns the relations of some units, in both directions. A unit with more than `limit` relations is left out.
    ///
    /// # Errors
    /// The errors of the database, or of the graph server.
    fn find_edges(&self, units: &[i64], limit: usize) -> Result<Vec<RelationEdge>, TransactionFailure>;
}

/// A relation between two units, as one of them sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct RelationEdge {
    /// The unit that sees the relation.
    pub from: i64,
    /// The other unit.
    pub unit: i64,
    pub kind: String,
    pub weight: f64,
}

/// A unit that the walk has reached.
#[derive(Debug, Clone, PartialEq)]
pub struct ReachedUnit {
    pub unit: i64,
    /// The unit from which the walk reached it. `kind` is the kind of the relation.
    pub via: i64,
    pub kind: String,
    /// The number of hops from the nearest seed.
    pub hop: usize,
    pub score: f64,
}

/// The relations that the index holds.
pub struct IndexRelations<'a>(pub &'a Connection);

impl UnitGraph for IndexRelations<'_> {
    fn find_edges(&self, units: &[i64], limit: usize) -> Result<Vec<RelationEdge>, TransactionFailure> {
        let sql = "SELECT ?1, dst, kind, weight FROM relation WHERE src = ?1 AND dst IS NOT NULL AND dst <> ?1
                   UNION ALL SELECT ?1, src, kind, weight FROM relation WHERE dst = ?1 AND src <> ?1 LIMIT ?2";
        let more = to_column(limit + 1);
        let mut statement = self.0.prepare_cached(sql)?;
        let mut edges = Vec::new();
        for unit in units {
            let before = edges.len();
            for row in statement.query_map([*unit, more], |row| {
                Ok(RelationEdge { from: row.get(0)?, unit: row.get(1)?, kind: row.get(2)?, weight: row.get(3)? })
            })? {
                edges.push(row?);
            }
            if edges.len() - before > limit {
                edges.truncate(before);
            }
        }
        Ok(edges)
    }
}

/// Finds the units that are related to `seeds` over at most `hops` relations, the best first. If two units have equal
/// scores, the unit with the lower `order` comes first.
///
/// # Errors
/// The errors of the graph.
pub fn find_related<K: Ord>(
    graph: &dyn UnitGraph,
    seeds: &[(i64, f64)],
    hops: usize,
    order: impl Fn(i64) -> K,
) -> Result<Vec<ReachedUnit>, TransactionFailure> {
    let mut known: HashMap<i64, Option<ReachedUnit>, RandomState> =
        seeds.iter().map(|(unit, _)| (*unit, None)).collect();
    let mut frontier = seeds.to_vec();
    for hop in 1..=hops.min(MAX_HOPS) {
        let units: Vec<i64> = frontier.iter().map(|(unit, _)| *unit).collect();
        let mut edges: HashMap<i64, Vec<RelationEdge>, RandomState> = HashMap::default();
        for edge in if units.is_empty() { Vec::new() } else { graph.find_edges(&units, HUB)? } {
            edges.entry(edge.from).or_default().push(edge);
        }
        let mut found: HashMap<i64, ReachedUnit, RandomState> = HashMap::default();
        for (from, score) in &frontier {
            let Some(edges) = edges.remove(from) else { continue };
            #[allow(clippy::cast_precision_loss, reason = "64 at most")]
            let share = 1.0 + (1.0 + edges.len() as f64 / MANY).log2();
            for RelationEdge { unit, kind, weight, .. } in edges {
                let score = score * DAMPING * weight / share;
                // If scores are equal, the winner does not depend on the order of the edges.
                let is_better =
                    |other: &ReachedUnit| (score, &order(other.via), &other.kind) > (other.score, &order(*from), &kind);
                if score < FLOOR || known.contains_key(&unit) || found.get(&unit).is_some_and(|other| !is_better(other))
                {
                    continue;
                }
                found.insert(unit, ReachedUnit { unit, via: *from, kind, hop, score });
            }
        }
        let mut best: Vec<_> = found.into_values().collect();
        sort_reached(&mut best, &order);
        best.truncate(BEAM);
        frontier = best.iter().map(|reached| (reached.unit, reached.score)).collect();
        known.extend(best.into_iter().map(|reached| (reached.unit, Some(reached))));
    }
    let mut reached: Vec<_> = known.into_values().flatten().collect();
    sort_reached(&mut reached, &order);
    Ok(reached)
}

/// Sorts reached units, the best first. If two units have equal scores, the unit with the lower `order` comes first.
pub fn sort_reached<K: Ord>(reached: &mut [ReachedUnit], order: &impl Fn(i64) -> K) {
    reached.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| order(a.unit).cmp(&order(b.unit))));
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
