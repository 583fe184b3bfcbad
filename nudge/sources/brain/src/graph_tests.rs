//! Runs the same tests with every implementation of a graph: a list, the index, and the user's graph server. All must
//! return the same rows.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::schema::APP;

/// A relation: from, to, kind, weight.
type Link = (i64, i64, &'static str, f64);

/// A kind of graph that the tests can fill.
trait World {
    /// Calls `call` with the graph of the units 1 to `units` and their relations.
    fn with(&self, units: i64, links: &[Link], call: &mut dyn FnMut(&dyn UnitGraph));
}

/// A list of relations in memory.
struct List(Vec<Link>);

impl UnitGraph for List {
    fn find_edges(&self, units: &[i64], limit: usize) -> Result<Vec<RelationEdge>, TransactionFailure> {
        let edges_of = |from: i64| {
            let edges = self.0.iter().filter(|(a, b, ..)| a != b).filter_map(move |(a, b, kind, weight)| {
                let unit = (*a == from).then_some(*b).or_else(|| (*b == from).then_some(*a))?;
                Some(RelationEdge { from, unit, kind: (*kind).to_owned(), weight: *weight })
            });
            let edges: Vec<_> = edges.collect();
            if edges.len() > limit { Vec::new() } else { edges }
        };
        Ok(units.iter().flat_map(|unit| edges_of(*unit)).collect())
    }
}

struct Lists;

impl World for Lists {
    fn with(&self, _: i64, links: &[Link], call: &mut dyn FnMut(&dyn UnitGraph)) {
        call(&List(links.to_vec()));
    }
}

struct Indexes;

impl World for Indexes {
    fn with(&self, units: i64, links: &[Link], call: &mut dyn FnMut(&dyn UnitGraph)) {
        call(&IndexRelations(&stored(units, links)));
    }
}

/// Makes an index with these units and relations. Also adds relations to missing units.
fn stored(units: i64, links: &[Link]) -> Connection {
    let c = Connection::open_in_memory().unwrap();
    APP.migrations.iter().for_each(|script| c.execute_batch(script).unwrap());
    let sql = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
               INSERT INTO unit(id, path, uid, title, aliases, domain, tags, problems, size, mtime_ns, inode, hash)
               SELECT n, n || '.md', 'note ' || n, '', '[]', '', '[]', '[]', 0, 0, 0, x'' FROM n";
    c.execute(sql, [units]).unwrap();
    let mut insert = c.prepare("INSERT INTO relation VALUES(?1, ?2, 'id', '', ?4, ?5, ?3)").unwrap();
    for (ord, (src, dst, kind, weight)) in (1_i64..).zip(links) {
        insert.execute(nudge_storage::rusqlite::params![src, ord, dst, kind, weight]).unwrap();
    }
    drop(insert);
    c.execute("INSERT INTO relation SELECT id, 0, 'id', 'nobody', 'uses', 1.0, NULL FROM unit", []).unwrap();
    c
}

fn reached(world: &dyn World, units: i64, links: &[Link], seeds: &[(i64, f64)], hops: usize) -> Vec<ReachedUnit> {
    let mut reached = Vec::new();
    world.with(units, links, &mut |graph| reached = find_related(graph, seeds, hops, |unit| unit).unwrap());
    reached
}

/// Returns the units that a walk from unit 1 reaches, each as unit, via, hop.
fn found(world: &dyn World, units: i64, links: &[Link], hops: usize) -> Vec<(i64, i64, usize)> {
    let reached = reached(world, units, links, &[(1, 1.0)], hops);
    reached.into_iter().map(|unit| (unit.unit, unit.via, unit.hop)).collect()
}

fn uses(pairs: impl IntoIterator<Item = (i64, i64)>) -> Vec<Link> {
    pairs.into_iter().map(|(a, b)| (a, b, "uses", 1.0)).collect()
}

/// Checks the rules of a walk on a few examples.
fn keeps_the_contract(world: &dyn World) {
    // Nearer units come first. Links count in both directions. A walk around a circle ends.
    let circle = uses([(1, 2), (2, 3), (3, 4), (4, 5), (5, 1)]);
    assert_eq!(found(world, 5, &circle, 0), []);
    assert_eq!(found(world, 5, &circle, 1), [(2, 1, 1), (5, 1, 1)]);
    assert_eq!(found(world, 5, &circle, 2), [(2, 1, 1), (5, 1, 1), (3, 2, 2), (4, 5, 2)]);
    assert_eq!(found(world, 5, &uses([(1, 2), (2, 3), (3, 4), (4, 5)]), 9).last(), Some(&(4, 3, 3)), "no fourth hop");
    assert_eq!(found(world, 2, &[], 2), []);
    assert_eq!(found(world, 2, &uses([(1, 1)]), 2), [], "a unit that names itself");
    assert_eq!(reached(world, 2, &circle[..1], &[], 2), []);

    // The walk continues through a unit with 64 relations. A unit with 65 relations is reached, but the walk does not
    // continue through it.
    let around = |count: i64| uses((3..2 + count).map(|unit| (2, unit)).chain([(1, 2)]));
    assert_eq!(found(world, 70, &around(65), 3), [(2, 1, 1)]);
    assert_eq!(found(world, 70, &around(64), 3).len(), 1 + 32, "of what a hop finds the best 32 stay");

    // If all units of a hop are equal, the first 32 continue, in their order. A unit whose score is below the limit
    // does not continue.
    let wide = uses((2..62).map(|unit| (1, unit)).chain((2..62).map(|unit| (unit, unit + 60))));
    let firsts: Vec<_> = found(world, 130, &wide, 3).into_iter().map(|(unit, ..)| unit).collect();
    assert_eq!(firsts[..32], (2..34).collect::<Vec<_>>());
    let weak = [(1, 2, "uses", 0.05), (1, 3, "uses", 0.5), (3, 4, "uses", 0.1)];
    assert_eq!(found(world, 4, &weak, 3), [(3, 1, 1)]);

    // If two units have several relations, the strongest counts. If they are equally strong, the kind decides.
    let several = [(1, 2, "uses", 0.5), (2, 1, "informed by", 1.0), (1, 2, "implements", 1.0), (1, 3, "up", 0.5)];
    let told: Vec<_> =
        reached(world, 3, &several, &[(1, 1.0)], 1).into_iter().map(|unit| (unit.unit, unit.kind)).collect();
    assert_eq!(told, [(2, "implements".to_owned()), (3, "up".to_owned())]);

    // The kind comes from a file. It is only data, even if it looks like Cypher.
    let odd = [(1, 2, "a`]->(x) DETACH DELETE x //", 1.0), (2, 3, "größer 'als' \"x\"", 1.0)];
    let kinds: Vec<_> = reached(world, 3, &odd, &[(1, 1.0)], 2).into_iter().map(|unit| unit.kind).collect();
    assert_eq!(kinds, odd.map(|(.., kind, _)| kind));
}

/// Returns a function that makes pseudo-random numbers below a limit. The same seed gives the same numbers.
fn numbers(mut state: u64) -> impl FnMut(i64) -> i64 {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(state >> 33).unwrap() % below
    }
}

/// Makes densely linked units, with several kinds and weights of relations.
fn tangle(seed: u64) -> Vec<Link> {
    let mut number = numbers(seed);
    let kinds = [("uses", 1.0), ("links to", 0.5), ("informed by", 1.0)];
    let link = |_| {
        let (kind, weight) = kinds[usize::try_from(number(3)).unwrap()];
        (number(40) + 1, number(40) + 1, kind, weight)
    };
    (0..30 * (seed + 1)).map(link).collect()
}

#[test]
fn a_list_keeps_the_contract() {
    keeps_the_contract(&Lists);
}

#[test]
fn the_index_keeps_the_contract() {
    keeps_the_contract(&Indexes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// The index and a list reach the same units.
    #[test]
    fn an_index_and_a_list_agree(pairs in proptest::collection::vec((1_i64..30, 1_i64..30), 0..80), hops in 0_usize..5) {
        let (links, seeds) = (uses(pairs), [(1, 1.0), (2, 0.5)]);
        prop_assert_eq!(reached(&Indexes, 30, &links, &seeds, hops), reached(&Lists, 30, &links, &seeds, hops));
    }
}

#[test]
fn kinds_and_weights_change_nothing_in_that() {
    for seed in 0..16 {
        let (links, seeds) = (tangle(seed), [(1, 1.0), (2, 0.9), (3, 0.5)]);
        assert_eq!(reached(&Indexes, 40, &links, &seeds, 3), reached(&Lists, 40, &links, &seeds, 3), "{seed}");
    }
}

#[test]
fn units_that_all_are_linked_with_flood_nothing() {
    const UNITS: i64 = 50_000;
    let mut number = numbers(7);
    let mut pairs: Vec<_> = (0..100_000).map(|_| (number(UNITS) + 1, number(UNITS) + 1)).collect();
    pairs.extend((0..50_000).map(|index| (number(UNITS) + 1, index % 5 + 1)));
    let c = stored(UNITS, &uses(pairs));
    let begun = Instant::now();
    for seed in 6..106 {
        let reached = find_related(&IndexRelations(&c), &[(seed, 1.0)], MAX_HOPS, |unit| unit).unwrap();
        assert!(reached.len() <= MAX_HOPS * BEAM);
    }
    // A walk over all edges would take seconds. Here a hundred limited walks take less than five seconds, even in an
    // unoptimised build.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// Tests the server that `NUDGE_TEST_BOLT` names.
#[cfg(feature = "bolt")]
mod server {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::bolt::BoltServer;
    use crate::bolt::tests::server;
    use crate::mirror::{GraphMirror, GraphPicture, MirrorDifferences, MirrorWalk, read_state};

    /// A server that gets a new brain for each graph.
    struct Server(BoltServer, Cell<u32>);

    impl World for Server {
        fn with(&self, units: i64, links: &[Link], call: &mut dyn FnMut(&dyn UnitGraph)) {
            self.1.set(self.1.get() + 1);
            let brain = format!("contract {} {}", std::process::id(), self.1.get());
            let (c, mirror) = (stored(units, links), GraphMirror { bolt: &self.0, brain: &brain });
            mirror.rebuild(&read_state(&c).unwrap(), &GraphPicture::from_index(&c, &brain).unwrap()).unwrap();
            let why = RefCell::default();
            call(&MirrorWalk::new(&c, Some((mirror, Duration::from_mins(1))), &why));
            assert_eq!(why.take(), None, "the index answered in its place");
            mirror.rebuild("", &GraphPicture::default()).unwrap();
        }
    }

    #[test]
    fn it_keeps_the_contract() {
        let Some(server) = server() else { return };
        keeps_the_contract(&Server(server, Cell::new(0)));
    }

    #[test]
    fn it_and_the_index_agree() {
        let Some(server) = server() else { return };
        let server = Server(server, Cell::new(1_000));
        for seed in 0..8 {
            let (links, seeds) = (tangle(seed), [(1, 1.0), (2, 0.9), (3, 0.5)]);
            let by_index = reached(&Indexes, 40, &links, &seeds, 3);
            assert_eq!(reached(&server, 40, &links, &seeds, 3), by_index, "{seed}");
            assert!(seed < 1 || by_index.len() > 3, "{seed}");
        }
    }

    #[test]
    fn it_follows_and_what_is_not_of_the_files_is_found() {
        let Some(server) = server() else { return };
        let brain = format!("follow {}", std::process::id());
        let mirror = GraphMirror { bolt: &server, brain: &brain };
        let c = stored(6, &uses([(1, 2), (2, 3), (3, 1), (5, 6), (1, 2)]));
        let differences = || {
            mirror.find_differences(&read_state(&c).unwrap(), &GraphPicture::from_index(&c, &brain).unwrap()).unwrap()
        };
        let follow = || {
            let picture = || Ok(GraphPicture::from_index(&c, &brain).unwrap());
            mirror.catch_up(&read_state(&c).unwrap(), picture, &|| false).unwrap();
            differences()
        };
        let none = Some(MirrorDifferences::default());
        assert_eq!(follow(), none);
        for change in [
            "DELETE FROM unit WHERE id = 2",
            "UPDATE unit SET title = 'Another' WHERE id = 3",
            "UPDATE unit SET uid = 'else' WHERE id = 1",
            "UPDATE relation SET dst = 4 WHERE src = 5 AND ord > 0",
            "UPDATE relation SET kind = 'up', weight = 0.5 WHERE src = 5",
            "DELETE FROM relation",
        ] {
            c.execute(change, []).unwrap();
            assert_eq!(differences(), None, "not caught up: {change}");
            assert_eq!(follow(), none, "{change}");
        }
        // Simulates another client that changes the data on the server.
        let tamper = "CREATE (u:NudgeUnit {key: $brain + ':x', brain: $brain, id: 'x'}) WITH u
                      MATCH (v:NudgeUnit {key: $brain + ':note 4'}) CREATE (u)-[:NUDGE_RELATION {ord: 0}]->(v)
                      SET v.title = 'Other'";
        let params = serde_json::json!({"brain": brain}).as_object().unwrap().clone();
        server.run_queries(vec![crate::bolt::CypherQuery { text: tamper, params }], Duration::from_mins(1)).unwrap();
        assert_eq!(differences(), Some(MirrorDifferences { missing: 1, orphans: 1, relations: 1 }));
        let picture = GraphPicture::from_index(&c, &brain).unwrap();
        mirror.rebuild(&read_state(&c).unwrap(), &picture).unwrap();
        assert_eq!(differences(), none);
        mirror.rebuild("", &GraphPicture::default()).unwrap();
    }
}
