//! Keeps the mirror of an index on a graph server. The mirror holds the units and their relations. An update writes
//! only the differences.
//!
//! All data of the mirror has labels that begin with `Nudge` (relations: `NUDGE`), and the key of its brain. Nudge
//! reads and changes no other data on the server.
//!
//! | on the server | properties |
//! |---|---|
//! | `(:NudgeBrain)` | `key`; `state`, the name of the mirrored state, empty during a write |
//! | `(:NudgeUnit)` | `key`, made of `brain` and `id`; `path`, `title`, `type`, `domain`; `degree`, its number of
//! relations |
//! | `[:NUDGE_RELATION]` | `ord`, its position in its unit; `kind`, `weight` |
//!
//! The kind of a relation is a word from a file. So it is stored as a property: as the relation's type, it would be
//! part of the statement's text.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use nudge_core::error::Error;
use nudge_core::number::elapsed_ms;
use nudge_storage::TransactionFailure;
use nudge_storage::rusqlite::{Connection, OptionalExtension as _};
use serde_json::{Map, Value, json};

use crate::bolt::{BoltServer, CypherQuery, Row};
use crate::context::make_safe;
use crate::graph::{IndexRelations, RelationEdge, UnitGraph};
use crate::rows;

/// The longest time that all steps of one question together wait for the server.
pub const WALK_WAIT: Duration = Duration::from_millis(300);
/// The longest time that a check outside of a question waits for the server.
const REACH_WAIT: Duration = Duration::from_secs(5);
/// The longest time that a statement may take to read or write the mirror.
const WRITE_WAIT: Duration = Duration::from_mins(1);
/// The most rounds of comparing and writing. After them, the server must equal the index.
const ROUNDS: usize = 4;
/// The number of rows that one statement writes.
const BATCH: usize = 500;

/// Statements that declare a key, in the dialects of several servers. A server that refuses all of them works without a
/// declared key.
const KEYS: [&str; 3] = [
    "CREATE CONSTRAINT nudge_unit_key IF NOT EXISTS FOR (u:NudgeUnit) REQUIRE u.key IS UNIQUE",
    "CREATE CONSTRAINT ON (u:NudgeUnit) ASSERT u.key IS UNIQUE",
    "CREATE INDEX ON :NudgeUnit(key)",
];
const STATE: &str = "MATCH (b:NudgeBrain {key: $brain}) RETURN b.state";
const SET_STATE: &str = "MERGE (b:NudgeBrain {key: $brain}) SET b.state = $state";
const UNITS: &str =
    "MATCH (u:NudgeUnit {brain: $brain}) RETURN u.key, u.id, u.path, u.title, u.type, u.domain, u.degree";
const RELATIONS: &str = "MATCH (u:NudgeUnit {brain: $brain})-[r:NUDGE_RELATION]->(v)
    RETURN u.key, r.ord, v.key, r.kind, r.weight";
const DELETE_ALL: &str = "MATCH (u:NudgeUnit {brain: $brain}) DETACH DELETE u";
const DELETE_UNITS: &str = "UNWIND $rows AS row MATCH (u:NudgeUnit {key: row.key}) DETACH DELETE u";
const DELETE_RELATIONS: &str =
    "UNWIND $rows AS row MATCH (u:NudgeUnit {key: row.src})-[r:NUDGE_RELATION {ord: row.ord}]->() DELETE r";
const PUT_UNITS: &str = "UNWIND $rows AS row MERGE (u:NudgeUnit {key: row.key})
    SET u.brain = row.brain, u.id = row.id, u.path = row.path, u.title = row.title, u.type = row.type,
        u.domain = row.domain, u.degree = row.degree";
// At this point the relations do not exist yet, so CREATE is enough. ArcadeDB 26.10 refuses a MERGE in which a unit
// occurs twice, because it takes the first use for a write of another client.
const PUT_RELATIONS: &str = "UNWIND $rows AS row MATCH (u:NudgeUnit {key: row.src}) MATCH (v:NudgeUnit {key: row.dst})
    CREATE (u)-[:NUDGE_RELATION {ord: row.ord, kind: row.kind, weight: row.weight}]->(v)";
const EDGES: &str = "UNWIND $units AS key MATCH (u:NudgeUnit {key: key}) WHERE u.degree <= $limit
    MATCH (u)-[r:NUDGE_RELATION]-(v:NudgeUnit) RETURN u.id, v.id, r.kind, r.weight";

/// The mirror of one brain.
#[derive(Clone, Copy)]
pub struct GraphMirror<'a> {
    pub bolt: &'a BoltServer,
    /// The key of the brain, which is unique on the server.
    pub brain: &'a str,
}

/// The units and the relations of the index or of the server, for a comparison.
#[derive(Debug, Default, PartialEq)]
pub struct GraphPicture {
    /// The units by key. A row has id, path, title, type, domain, degree.
    units: BTreeMap<String, Row>,
    /// The relations, by the key of their unit and the position in the unit. A row has the key of the other unit, the
    /// kind, the weight.
    relations: BTreeMap<(String, i64), Row>,
    /// The keys of the units that occur twice, or that have two relations at the same position.
    doubtful: BTreeSet<String>,
}

/// The differences between the server and the index.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MirrorDifferences {
    /// The number of units that are missing on the server or have other values there.
    pub missing: usize,
    /// The number of units on the server that have no file or are doubtful.
    pub orphans: usize,
    /// The number of relations that are missing on the server, have other values there, or have no file.
    pub relations: usize,
}

/// The numbers of mirrored units and relations, and the time that the work took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct MirrorResult {
    pub units: usize,
    pub relations: usize,
    pub ms: u64,
}

/// The reason for a failure when the server returns fewer answers than there were questions.
const UNANSWERED: &str = "the server left a question without an answer";

/// Returns the name of the index's present state. The name changes with each change of the mirrored data.
pub fn read_state(c: &Connection) -> Result<String, TransactionFailure> {
    Ok(rows::read_note(c, "graph")?.unwrap_or_default())
}

impl GraphPicture {
    /// Reads the picture of an index.
    pub fn from_index(c: &Connection, brain: &str) -> Result<Self, TransactionFailure> {
        let sql = "SELECT u.uid, u.path, u.title, coalesce(u.kind, ''), u.domain,
                     (SELECT count(*) FROM relation WHERE src = u.id AND dst IS NOT NULL AND dst <> u.id)
                     + (SELECT count(*) FROM relation WHERE dst = u.id AND src <> u.id) FROM unit u";
        let mut picture = Self::default();
        let mut statement = c.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (uid, path, title): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (kind, domain, degree): (String, String, i64) = (row.get(3)?, row.get(4)?, row.get(5)?);
            let told = [&path, &title, &kind, &domain].map(|text| Value::from(make_safe(text)));
            let row = std::iter::once(Value::from(&*uid)).chain(told).chain([degree.into()]);
            picture.units.insert(format_key(brain, &uid), row.collect());
        }
        let sql = "SELECT s.uid, r.ord, d.uid, r.kind, r.weight FROM relation r JOIN unit s ON s.id = r.src
                   JOIN unit d ON d.id = r.dst WHERE r.src <> r.dst";
        let mut statement = c.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (src, dst): (String, String) = (row.get(0)?, row.get(2)?);
            let (kind, weight): (String, f64) = (row.get(3)?, row.get(4)?);
            let told = vec![format_key(brain, &dst).into(), kind.into(), weight.into()];
            picture.relations.insert((format_key(brain, &src), row.get(1)?), told);
        }
        Ok(picture)
    }

    /// Builds the picture from the server's rows.
    fn from_rows(units: Vec<Row>, relations: Vec<Row>) -> Self {
        let mut picture = Self::default();
        // The server's rows are not trusted. A row of another length is skipped.
        for mut row in units.into_iter().filter(|row| row.len() == 7) {
            let key = to_text(&row.remove(0));
            if picture.units.insert(key.clone(), row).is_some() {
                picture.doubtful.insert(key);
            }
        }
        for mut row in relations.into_iter().filter(|row| row.len() == 5) {
            let rest = row.split_off(2);
            let (src, ord) = (to_text(&row[0]), row[1].as_i64().unwrap_or(-1));
            if picture.relations.insert((src.clone(), ord), rest).is_some() {
                picture.doubtful.insert(src);
            }
        }
        picture
    }

    /// Counts the differences between this picture, of the index, and `other`, of the server.
    fn find_differences(&self, other: &Self) -> MirrorDifferences {
        let beyond = other.relations.keys().filter(|key| !self.relations.contains_key(*key)).count();
        MirrorDifferences {
            missing: self.units.iter().filter(|(key, unit)| other.units.get(*key) != Some(*unit)).count(),
            orphans: other.units.keys().filter(|key| !self.units.contains_key(*key)).count() + other.doubtful.len(),
            relations: beyond
                + self.relations.iter().filter(|(key, relation)| other.relations.get(*key) != Some(*relation)).count(),
        }
    }

    /// Builds the statements that make the server's picture `other` equal to this picture.
    fn to_be_done(&self, brain: &str, mut other: Self) -> Vec<CypherQuery> {
        let gone: BTreeSet<String> =
            other.units.keys().filter(|key| !self.units.contains_key(*key)).chain(&other.doubtful).cloned().collect();
        // When a unit is deleted, the server deletes its relations too.
        other.units.retain(|key, _| !gone.contains(key));
        other.relations.retain(|(src, _), row| !gone.contains(src) && !gone.contains(&to_text(&row[0])));
        let is_same = |key: &(String, i64), row: &Row| self.relations.get(key) == Some(row);
        let wrong = other.relations.iter().filter(|(key, row)| !is_same(key, row));
        let wrong: Vec<Value> = wrong.map(|((src, ord), _)| json!({"src": src, "ord": ord})).collect();
        let units = self.units.iter().filter(|(key, row)| other.units.get(*key) != Some(*row));
        let units = units.map(|(key, row)| {
            json!({"key": key, "brain": brain, "id": row[0], "path": row[1], "title": row[2], "type": row[3],
                   "domain": row[4], "degree": row[5]})
        });
        let relations = self.relations.iter().filter(|(key, row)| other.relations.get(*key) != Some(*row));
        let relations = relations
            .map(|((src, ord), row)| json!({"src": src, "ord": ord, "dst": row[0], "kind": row[1], "weight": row[2]}));
        let gone = gone.iter().map(|key| json!({"key": key})).collect();
        [
            (DELETE_UNITS, gone),
            (DELETE_RELATIONS, wrong),
            (PUT_UNITS, units.collect()),
            (PUT_RELATIONS, relations.collect()),
        ]
        .into_iter()
        .flat_map(|(text, rows): (_, Vec<Value>)| {
            let batch = |rows: &[Value]| new_query(text, &json!({"rows": rows}));
            rows.chunks(BATCH).map(batch).collect::<Vec<_>>()
        })
        .collect()
    }
}

impl GraphMirror<'_> {
    fn ask_one(&self, text: &'static str, params: &Value, wait: Duration) -> Result<Vec<Row>, String> {
        Ok(self.bolt.run_queries(vec![new_query(text, params)], wait)?.pop().ok_or(UNANSWERED)?)
    }

    /// Returns the name of the state that the server mirrors; empty when there is no mirror, or during a write.
    fn fetch_state(&self, wait: Duration) -> Result<String, String> {
        let rows = self.ask_one(STATE, &json!({"brain": self.brain}), wait)?;
        Ok(rows.first().and_then(|row| row.first()).map(to_text).unwrap_or_default())
    }

    /// Checks that the server answers.
    pub fn check_reachable(&self) -> Result<(), String> {
        self.fetch_state(REACH_WAIT).map(drop)
    }

    fn set_state(&self, state: &str) -> Result<(), String> {
        self.ask_one(SET_STATE, &json!({"brain": self.brain, "state": state}), WRITE_WAIT).map(drop)
    }

    fn fetch_picture(&self) -> Result<GraphPicture, String> {
        let brain = json!({"brain": self.brain});
        let answers =
            self.bolt.run_queries(vec![new_query(UNITS, &brain), new_query(RELATIONS, &brain)], WRITE_WAIT)?;
        let [units, relations] = <[_; 2]>::try_from(answers).map_err(|_| UNANSWERED)?;
        Ok(GraphPicture::from_rows(units, relations))
    }

    /// Checks that the server mirrors the state of the index, within the time of a question. Returns the time that is
    /// left.
    pub fn in_step(&self, state: &str) -> Result<Duration, String> {
        let begun = Instant::now();
        if self.bolt.unless_broken(|| self.fetch_state(WALK_WAIT))? == state {
            return Ok(WALK_WAIT.saturating_sub(begun.elapsed()));
        }
        Err(format!("bolt: {} has not caught up with the files yet", self.bolt.name()))
    }

    /// Updates the server if it mirrors another state. When `stop` returns true, the update ends after the present
    /// batch, and the next call continues it.
    pub fn catch_up(
        &self,
        state: &str,
        picture: impl FnOnce() -> Result<GraphPicture, String>,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        let _guard = self.bolt.writing.lock();
        if self.fetch_state(REACH_WAIT)? == state {
            return Ok(());
        }
        self.write(state, &picture()?, stop)
    }

    /// Deletes the brain's data on the server, and writes it again.
    pub fn rebuild(&self, state: &str, picture: &GraphPicture) -> Result<MirrorResult, String> {
        let (_guard, begun) = (self.bolt.writing.lock(), Instant::now());
        self.set_state("")?;
        self.ask_one(DELETE_ALL, &json!({"brain": self.brain}), WRITE_WAIT)?;
        self.write(state, picture, &|| false)?;
        let ms = elapsed_ms(begun);
        Ok(MirrorResult { units: picture.units.len(), relations: picture.relations.len(), ms })
    }

    fn write(&self, state: &str, picture: &GraphPicture, stop: &dyn Fn() -> bool) -> Result<(), String> {
        // The state is cleared first. So a question that comes during the write sees that the server is behind.
        self.set_state("")?;
        for text in KEYS {
            let _ = self.ask_one(text, &json!({}), WRITE_WAIT);
        }
        for _ in 0..ROUNDS {
            let there = self.fetch_picture()?;
            if there == *picture {
                // After a restart, a server answers its first question of each kind slowly. So Nudge asks such a
                // question here, before a user does.
                let keys: Vec<&str> = picture.units.keys().take(1).map(String::as_str).collect();
                self.fetch_edges(&keys, 0, WRITE_WAIT)?;
                self.set_state(state)?;
                return Ok(());
            }
            for query in picture.to_be_done(self.brain, there) {
                if stop() {
                    return Err(format!("bolt: {} was not written to the end", self.bolt.name()));
                }
                self.bolt.run_queries(vec![query], WRITE_WAIT)?;
            }
        }
        Err(format!("bolt: {} has something else than was written to it", self.bolt.name()))
    }

    /// Counts the differences between the server and the index. Returns `None` while the server is behind.
    pub fn find_differences(&self, state: &str, picture: &GraphPicture) -> Result<Option<MirrorDifferences>, String> {
        let Some(_guard) = self.bolt.writing.try_lock_for(REACH_WAIT) else { return Ok(None) };
        if self.fetch_state(REACH_WAIT)? != state {
            return Ok(None);
        }
        Ok(Some(picture.find_differences(&self.fetch_picture()?)))
    }

    fn fetch_edges(&self, units: &[&str], limit: usize, wait: Duration) -> Result<Vec<Row>, String> {
        self.ask_one(EDGES, &json!({"units": units, "limit": limit}), wait)
    }
}

/// Walks along the relations on the server. If the server fails, the rest of the walk uses the relations in the index.
pub struct MirrorWalk<'a> {
    /// The server, and the time that is left to wait for it. The time between two hops is not counted.
    mirror: Option<(GraphMirror<'a>, Cell<Duration>)>,
    relations: IndexRelations<'a>,
    why: &'a RefCell<Option<String>>,
}

impl<'a> MirrorWalk<'a> {
    /// Makes a walk with a time limit for the server. If the server fails, the walk writes the reason into `why`.
    pub fn new(
        c: &'a Connection,
        mirror: Option<(GraphMirror<'a>, Duration)>,
        why: &'a RefCell<Option<String>>,
    ) -> Self {
        Self { mirror: mirror.map(|(mirror, left)| (mirror, Cell::new(left))), relations: IndexRelations(c), why }
    }

    fn edges_there(
        &self,
        mirror: GraphMirror<'_>,
        wait: Duration,
        units: &[i64],
        limit: usize,
    ) -> Result<Vec<RelationEdge>, TransactionFailure> {
        let c = self.relations.0;
        let mut uid = c.prepare_cached("SELECT uid FROM unit WHERE id = ?1")?;
        let mut ids: HashMap<String, Option<i64>> = HashMap::new();
        for unit in units {
            ids.insert(uid.query_row([unit], |row| row.get(0))?, Some(*unit));
        }
        let keys: Vec<String> = ids.keys().map(|uid| format_key(mirror.brain, uid)).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let unanswered = |why: String| TransactionFailure::from(Error::unavailable(why));
        let rows = mirror.bolt.unless_broken(|| mirror.fetch_edges(&keys, limit, wait)).map_err(unanswered)?;
        let mut unit = c.prepare_cached("SELECT id FROM unit WHERE uid = ?1")?;
        let mut edges = Vec::with_capacity(rows.len());
        for row in rows {
            // The server's rows are not trusted. A row of another form is skipped.
            let [from, to, kind, weight] = &row[..] else { continue };
            let Some(weight) = weight.as_f64() else { continue };
            let mut id = |uid: &Value| -> Result<Option<i64>, TransactionFailure> {
                let uid = to_text(uid);
                if let Some(known) = ids.get(&uid) {
                    return Ok(*known);
                }
                let found = unit.query_row([&uid], |row| row.get(0)).optional()?;
                ids.insert(uid, found);
                Ok(found)
            };
            if let (Some(from), Some(unit)) = (id(from)?, id(to)?) {
                edges.push(RelationEdge { from, unit, kind: to_text(kind), weight });
            }
        }
        Ok(edges)
    }
}

impl UnitGraph for MirrorWalk<'_> {
    fn find_edges(&self, units: &[i64], limit: usize) -> Result<Vec<RelationEdge>, TransactionFailure> {
        let Some((mirror, left)) = self.mirror.as_ref().filter(|_| self.why.borrow().is_none()) else {
            return self.relations.find_edges(units, limit);
        };
        let begun = Instant::now();
        let there = self.edges_there(*mirror, left.get(), units, limit);
        left.set(left.get().saturating_sub(begun.elapsed()));
        match there {
            Err(TransactionFailure::Refused(error)) => {
                *self.why.borrow_mut() = Some(error.message().to_owned());
                self.relations.find_edges(units, limit)
            }
            answer => answer,
        }
    }
}

fn format_key(brain: &str, uid: &str) -> String {
    format!("{brain}:{uid}")
}

fn new_query(text: &'static str, params: &Value) -> CypherQuery {
    CypherQuery { text, params: params.as_object().cloned().unwrap_or_else(Map::new) }
}

fn to_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
