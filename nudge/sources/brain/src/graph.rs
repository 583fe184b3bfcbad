//! Units by relation: from some units hop by hop along what their authors have linked.
//!
//! All edges at once would flood: in most brains a few units are linked with nearly all. So those are not gone through,
//! each hop counts half, and of what a hop finds the best few go on.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use nudge_storage::Failure;
use nudge_storage::rusqlite::Connection;

/// Most hops.
pub const MAX_HOPS: usize = 3;
/// Units with more relations are not gone through.
const HUB: usize = 64;
/// Most units from which the next hop goes on.
const BEAM: usize = 32;
/// What a hop leaves of a score, and the least that counts.
const DAMPING: f64 = 0.5;
const FLOOR: f64 = 0.02;
/// The number of relations at which a unit passes on half.
const MANY: f64 = 8.0;

/// Whoever knows the relations of units.
pub trait Graph {
    /// The relations of a unit, in both directions; at most one more than `limit`.
    ///
    /// # Errors
    /// Those of the database.
    fn edges(&self, unit: i64, limit: usize) -> Result<Vec<Edge>, Failure>;
}

/// A relation, seen from one of its ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The other end.
    pub unit: i64,
    pub kind: String,
    pub weight: f64,
}

/// A unit that was found by relation.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    pub unit: i64,
    /// The unit that it was reached from, and what relates the two.
    pub via: i64,
    pub kind: String,
    /// How far from where it began.
    pub hop: usize,
    pub score: f64,
}

/// The relations in the index.
pub struct Relations<'a>(pub &'a Connection);

impl Graph for Relations<'_> {
    fn edges(&self, unit: i64, limit: usize) -> Result<Vec<Edge>, Failure> {
        let sql = "SELECT dst, kind, weight FROM relation WHERE src = ?1 AND dst IS NOT NULL AND dst <> ?1
                   UNION ALL SELECT src, kind, weight FROM relation WHERE dst = ?1 AND src <> ?1 LIMIT ?2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let mut statement = self.0.prepare_cached(sql)?;
        let rows = statement
            .query_map([unit, limit], |row| Ok(Edge { unit: row.get(0)?, kind: row.get(1)?, weight: row.get(2)? }))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// The units that are related to these, best first. `order` decides between equals.
///
/// # Errors
/// Those of the graph.
pub fn expand<K: Ord>(
    graph: &dyn Graph,
    seeds: &[(i64, f64)],
    hops: usize,
    order: impl Fn(i64) -> K,
) -> Result<Vec<Reached>, Failure> {
    let mut known: HashMap<i64, Option<Reached>, RandomState> = seeds.iter().map(|(unit, _)| (*unit, None)).collect();
    let mut frontier = seeds.to_vec();
    for hop in 1..=hops.min(MAX_HOPS) {
        let mut found: HashMap<i64, Reached, RandomState> = HashMap::default();
        for (from, score) in &frontier {
            let edges = graph.edges(*from, HUB)?;
            if edges.len() > HUB {
                continue;
            }
            #[allow(clippy::cast_precision_loss, reason = "64 at most")]
            let share = 1.0 + (1.0 + edges.len() as f64 / MANY).log2();
            for Edge { unit, kind, weight } in edges {
                let score = score * DAMPING * weight / share;
                let is_better = |other: &Reached| (score, &order(other.via)) > (other.score, &order(*from));
                if score < FLOOR || known.contains_key(&unit) || found.get(&unit).is_some_and(|other| !is_better(other))
                {
                    continue;
                }
                found.insert(unit, Reached { unit, via: *from, kind, hop, score });
            }
        }
        let mut best: Vec<_> = found.into_values().collect();
        sort(&mut best, &order);
        best.truncate(BEAM);
        frontier = best.iter().map(|one| (one.unit, one.score)).collect();
        known.extend(best.into_iter().map(|one| (one.unit, Some(one))));
    }
    let mut reached: Vec<_> = known.into_values().flatten().collect();
    sort(&mut reached, &order);
    Ok(reached)
}

fn sort<K: Ord>(reached: &mut [Reached], order: &impl Fn(i64) -> K) {
    reached.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| order(a.unit).cmp(&order(b.unit))));
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;
    use crate::schema::APP;

    /// The same relations in an index.
    fn stored(units: i64, pairs: &[(i64, i64)]) -> Connection {
        let c = Connection::open_in_memory().unwrap();
        APP.migrations.iter().for_each(|script| c.execute_batch(script).unwrap());
        let sql = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
                   INSERT INTO unit(id, path, uid, title, aliases, domain, tags, problems, size, mtime_ns, inode, hash)
                   SELECT n, n, n, '', '[]', '', '[]', '[]', 0, 0, 0, x'' FROM n";
        c.execute(sql, [units]).unwrap();
        let mut insert = c.prepare("INSERT INTO relation VALUES(?1, ?2, 'id', '', 'uses', 1.0, ?3)").unwrap();
        for (ord, (src, dst)) in (0_i64..).zip(pairs) {
            insert.execute([*src, ord, *dst]).unwrap();
        }
        drop(insert);
        c
    }

    #[test]
    fn units_that_all_are_linked_with_flood_nothing() {
        const UNITS: i64 = 50_000;
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::try_from(state >> 33).unwrap() % UNITS + 1
        };
        let mut pairs: Vec<_> = (0..100_000).map(|_| (random(), random())).collect();
        pairs.extend((1..=5).flat_map(|hub| (0..10_000).map(move |_| hub)).map(|hub| (random(), hub)));
        let c = stored(UNITS, &pairs);
        let begun = Instant::now();
        for seed in 6..106 {
            let reached = expand(&Relations(&c), &[(seed, 1.0)], MAX_HOPS, |unit| unit).unwrap();
            assert!(reached.len() <= MAX_HOPS * BEAM);
        }
        // A walk over all edges takes seconds for one; this is a hundred of them, built without care for speed.
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Whoever knows the relations, the same units are reached.
        #[test]
        fn an_index_and_a_list_agree(pairs in proptest::collection::vec((1_i64..30, 1_i64..30), 0..80), hops in 0_usize..5) {
            let pairs: Vec<_> = pairs.into_iter().filter(|(a, b)| a != b).collect();
            let c = stored(30, &pairs);
            let seeds = [(1, 1.0), (2, 0.5)];
            let stored = expand(&Relations(&c), &seeds, hops, |unit| unit).unwrap();
            prop_assert_eq!(stored, expand(&Pairs(pairs), &seeds, hops, |unit| unit).unwrap());
        }
    }

    /// Edges of weight 1.
    struct Pairs(Vec<(i64, i64)>);

    impl Graph for Pairs {
        fn edges(&self, unit: i64, limit: usize) -> Result<Vec<Edge>, Failure> {
            let other = |(a, b): &(i64, i64)| (*a == unit).then_some(*b).or_else(|| (*b == unit).then_some(*a));
            let edge = |unit| Edge { unit, kind: "uses".into(), weight: 1.0 };
            Ok(self.0.iter().filter_map(other).map(edge).take(limit + 1).collect())
        }
    }

    fn reached(pairs: &[(i64, i64)], hops: usize) -> Vec<(i64, i64, usize)> {
        let reached = expand(&Pairs(pairs.to_vec()), &[(1, 1.0)], hops, |unit| unit).unwrap_or_default();
        reached.into_iter().map(|one| (one.unit, one.via, one.hop)).collect()
    }

    #[test]
    fn nearer_units_come_first_and_a_circle_ends() {
        let line = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 1)];
        assert_eq!(reached(&line, 1), [(2, 1, 1), (5, 1, 1)]);
        assert_eq!(reached(&line, 2), [(2, 1, 1), (5, 1, 1), (3, 2, 2), (4, 5, 2)]);
        assert_eq!(reached(&[(1, 2), (2, 3), (3, 4), (4, 5)], 9).last(), Some(&(4, 3, 3)), "never a fourth hop");
        assert_eq!(reached(&[], 2), []);
    }

    #[test]
    fn a_hub_is_reached_and_not_gone_through() {
        let mut pairs: Vec<_> = (10..200).map(|unit| (2, unit)).collect();
        pairs.push((1, 2));
        assert_eq!(reached(&pairs, 3), [(2, 1, 1)]);
    }

    #[test]
    fn of_many_the_best_go_on() {
        let first = (10..70).map(|unit| (1, unit));
        let second = (10..70).map(|unit| (unit, unit + 100));
        let reached = reached(&first.chain(second).collect::<Vec<_>>(), 3);
        assert!(reached.len() <= 3 * BEAM, "{}", reached.len());
    }
}
