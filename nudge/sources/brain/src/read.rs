//! Answers questions from the index and the files: one unit, the list of units, the status, the problems.

use std::time::Instant;

use nudge_core::error::{Error, Result};
use nudge_core::near::find_nearest;
use nudge_core::number::{elapsed_ms, to_column};
use nudge_core::text::to_hex;
use nudge_secrets::SecretGuard;
use nudge_storage::TransactionFailure;
use nudge_storage::rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::BrainConfig;
use crate::context::{make_safe, open_refreshed};
use crate::folder::FolderListing;
use crate::front::{FileParts, FrontmatterFields, find_foreign_fields, split_file};
use crate::index::BrainIndex;
use crate::meaning;
use crate::method::{BrainRebuildParams, ContextOnlyParams, UnitGetParams, UnitListParams};
use crate::mirror::{GraphPicture, MirrorDifferences, MirrorResult, read_state};
use crate::rows::read_texts;
use crate::source::BrainSource;

/// The most relations of a unit in an answer, and the most problems.
const MAX_TOLD: i64 = 500;

/// A unit in a list.
#[derive(Debug, Serialize)]
pub struct UnitEntry {
    pub id: String,
    pub title: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub domain: String,
    pub tags: Vec<String>,
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// Result of `nudge.brain.get`.
#[derive(Debug, Serialize)]
pub struct UnitDetails {
    pub unit: UnitEntry,
    /// The hash of the file. A caller passes it as `if_hash`.
    pub hash: String,
    pub frontmatter: Map<String, Value>,
    pub body: String,
    pub related: Vec<UnitRelation>,
    pub backlinks: Vec<UnitRelation>,
}

/// A relation of a unit.
#[derive(Debug, Serialize)]
pub struct UnitRelation {
    pub id: String,
    pub title: String,
    pub relation: String,
}

/// Result of `nudge.brain.list`.
#[derive(Debug, Serialize)]
pub struct UnitList {
    pub units: Vec<UnitEntry>,
    /// All domains of the brain.
    pub domains: Vec<DomainCount>,
    /// The value of `after` for the next call; absent after the last unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A domain with the number of its units.
#[derive(Debug, Serialize)]
pub struct DomainCount {
    pub name: String,
    pub count: i64,
}

/// Result of `nudge.brain.status`.
#[derive(Debug, Serialize)]
pub struct BrainStatus {
    pub root: String,
    pub units: i64,
    pub chunks: i64,
    pub relations: i64,
    /// The state of the embedding model. `vectors` is the number of chunks with a vector.
    pub model: &'static str,
    pub vectors: i64,
    /// Is true when files have changed and some of them are not read yet.
    pub stale: bool,
    /// Says when changes are read.
    pub follows: String,
    pub problems: i64,
    /// The place where relations are looked up: `index`, or the address of the graph server.
    pub graph: String,
    /// The reasons why answers may be incomplete, for the user.
    pub degraded: Vec<String>,
    /// The path of the index.
    pub index: String,
}

/// Result of `nudge.brain.check`.
#[derive(Debug, Serialize)]
pub struct BrainCheck {
    pub problems: Vec<FileProblem>,
    /// The folders that are not read, because their names show that they contain no notes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_folders: Vec<String>,
    pub units: i64,
}

/// A problem of a file.
#[derive(Debug, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileProblem {
    pub path: String,
    pub kind: &'static str,
    pub text: String,
}

/// Result of `nudge.brain.rebuild`.
#[derive(Debug, Serialize)]
pub struct BrainRebuild {
    pub units: i64,
    pub chunks: i64,
    pub ms: u64,
    /// The numbers of units and relations that were written to the graph server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<MirrorResult>,
    /// The reasons why parts of the rebuild failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
}

fn count_rows(c: &Connection, sql: &str) -> Result<i64, TransactionFailure> {
    Ok(c.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Finds a unit by its id or its path. Returns the number and the path of the unit.
pub fn unit_of(c: &Connection, id: &str) -> Result<(i64, String), TransactionFailure> {
    let sql = "SELECT id, path FROM unit WHERE uid = ?1 UNION ALL SELECT id, path FROM unit WHERE path = ?1 LIMIT 1";
    let found = c.prepare_cached(sql)?.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    if let Some(found) = found {
        return Ok(found);
    }
    let mut names = c.prepare_cached("SELECT uid FROM unit UNION SELECT path FROM unit")?;
    let names: Vec<String> = names.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let meant =
        find_nearest(id, names.iter().map(String::as_str)).map(|name| format!(" Did you mean `{}`?", make_safe(name)));
    let mut message = "There is no unit of this id or path.".to_owned();
    message.extend(meant);
    Err(Error::not_found(message).into())
}

fn read_entry(row: &nudge_storage::rusqlite::Row<'_>) -> nudge_storage::rusqlite::Result<UnitEntry> {
    let tags = read_texts(row, 4)?;
    let (id, title, kind, domain) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    Ok(UnitEntry { id, title, kind, domain, tags, path: row.get(5)?, confidence: row.get(6)? })
}

/// The columns of a unit that a list shows.
const ENTRY: &str = "uid, title, kind, domain, tags, path, confidence";

impl BrainSource {
    pub(crate) fn get_unit(&self, params: UnitGetParams) -> Result<UnitDetails> {
        let index = open_refreshed(self, params.context)?;
        let (path, unit, related, backlinks) = index.db.read(|c| {
            let (id, path) = unit_of(c, &params.id)?;
            let unit =
                c.prepare_cached(&format!("SELECT {ENTRY} FROM unit WHERE id = ?1"))?.query_row([id], read_entry)?;
            let links = |own: &str, other: &str| -> Result<Vec<UnitRelation>, TransactionFailure> {
                let sql = format!(
                    "SELECT DISTINCT u.uid, u.title, r.kind FROM relation r JOIN unit u ON u.id = r.{other}
                     WHERE r.{own} = ?1 ORDER BY u.path, r.kind LIMIT ?2"
                );
                let mut statement = c.prepare_cached(&sql)?;
                let link = |row: &nudge_storage::rusqlite::Row<'_>| {
                    Ok(UnitRelation { id: row.get(0)?, title: row.get(1)?, relation: row.get(2)? })
                };
                Ok(statement.query_map(params![id, MAX_TOLD], link)?.collect::<Result<_, _>>()?)
            };
            Ok((path, unit, links("src", "dst")?, links("dst", "src")?))
        })?;
        let gone = |error: std::io::Error| Error::not_found(format!("{path} cannot be read: {error}."));
        let read = index.folder.read(&path).map_err(gone)?;
        let FileParts { yaml, body, .. } = split_file(&read.text);
        let frontmatter = Value::Object(FrontmatterFields::read(yaml).all);
        let is_secret = SecretGuard::new().check_json("frontmatter", &frontmatter).is_some();
        let frontmatter = match frontmatter {
            Value::Object(fields) if !is_secret => fields,
            _ => Map::new(),
        };
        Ok(UnitDetails { unit, hash: to_hex(&read.hash), frontmatter, body: make_safe(body), related, backlinks })
    }

    pub(crate) fn list_units(&self, params: UnitListParams) -> Result<UnitList> {
        let UnitListParams { domain, kind, tag, limit, after, context } = params;
        let limit = limit.get();
        let index = open_refreshed(self, context)?;
        index.db.read(|c| {
            let sql = format!(
                "SELECT {ENTRY} FROM unit WHERE (?1 IS NULL OR domain = ?1) AND (?2 IS NULL OR kind = ?2) AND path > ?4
                   AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(unit.tags) WHERE lower(value) = lower(?3)))
                 ORDER BY path LIMIT ?5"
            );
            let after = after.as_deref().unwrap_or("");
            let most = to_column(limit);
            let mut statement = c.prepare_cached(&sql)?;
            let units = statement.query_map(params![domain, kind, tag, after, most], read_entry)?;
            let units: Vec<UnitEntry> = units.collect::<Result<_, _>>()?;
            let sql = "SELECT domain, count(*) FROM unit GROUP BY domain ORDER BY 2 DESC, 1 LIMIT ?1";
            let mut statement = c.prepare_cached(sql)?;
            let domains =
                statement.query_map([MAX_TOLD], |row| Ok(DomainCount { name: row.get(0)?, count: row.get(1)? }))?;
            let domains = domains.collect::<Result<_, _>>()?;
            let next = units.last().filter(|_| units.len() == limit).map(|last| last.path.clone());
            Ok(UnitList { units, domains, next })
        })
    }

    pub(crate) fn read_status(&self, params: ContextOnlyParams) -> Result<BrainStatus> {
        let index = self.open_brain(&params.context.build()?)?;
        let mut degraded = self.refresh_at_once(&index);
        let stale = degraded.iter().any(|why| why.starts_with("stale"));
        let problems = find_problems(&index)?.len();
        let step = self.open_mirror(&index).map(|mirror| self.in_step(&index, mirror)).transpose()?;
        let graph = step.as_ref().and_then(|step| Some(step.as_ref().ok()?.0.bolt.name()));
        let graph = graph.unwrap_or("index").to_owned();
        degraded.extend(step.and_then(Result::err));
        index.db.read(|c| {
            Ok(BrainStatus {
                root: index.folder.path().to_string_lossy().into(),
                units: count_rows(c, "SELECT count(*) FROM unit")?,
                chunks: count_rows(c, "SELECT count(*) FROM chunk")?,
                relations: count_rows(c, "SELECT count(*) FROM relation WHERE dst IS NOT NULL")?,
                model: self.models().get_loaded().state(),
                vectors: meaning::count_with(c)?,
                stale,
                follows: index.follow.describe(),
                problems: to_column(problems),
                graph: graph.clone(),
                degraded: degraded.clone(),
                index: index.db.path().to_string_lossy().into(),
            })
        })
    }

    pub(crate) fn check_brain(&self, params: ContextOnlyParams) -> Result<BrainCheck> {
        let index = self.open_brain(&params.context.build()?)?;
        index.scan(None)?;
        let mut problems = find_problems(&index)?;
        let paths: Vec<String> = index.db.read(|c| {
            let mut statement = c.prepare_cached("SELECT path FROM unit ORDER BY path")?;
            Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
        })?;
        for path in paths {
            let Ok(read) = index.folder.read(&path) else { continue };
            if let Some(why) = find_foreign_fields(&read.text) {
                let text = format!("{why}; it is not read");
                problems.push(FileProblem { path: path.clone(), kind: "frontmatter", text });
            }
            // The answer names only the rule, because the text itself would show the secret to the reader.
            if let Some(rule) = SecretGuard::new().check(None, &read.text) {
                problems.push(FileProblem { path, kind: "secret", text: format!("may hold a credential ({rule})") });
            }
        }
        let config = BrainConfig::load(index.folder.path());
        let FolderListing { left_out, mut other_folders, .. } =
            index.folder.list_files(&config, None).expect("a walk without a deadline ends");
        other_folders.sort_unstable();
        let not_read = |(path, why): (String, &str)| FileProblem { path, kind: "skipped", text: why.to_owned() };
        problems.extend(left_out.into_iter().map(not_read));
        problems.extend(self.check_graph(&index)?);
        problems.sort();
        Ok(BrainCheck {
            problems,
            other_folders,
            units: index.db.read(|c| count_rows(c, "SELECT count(*) FROM unit"))?,
        })
    }

    /// Finds the differences between the graph server and the index.
    fn check_graph(&self, index: &BrainIndex) -> Result<Option<FileProblem>> {
        let Some(mirror) = self.open_mirror(index) else { return Ok(None) };
        let (state, picture) = index.db.read(|c| Ok((read_state(c)?, GraphPicture::from_index(c, &index.key)?)))?;
        let name = mirror.bolt.name();
        let mend = "`nudge brain rebuild --graph` writes it anew";
        let text = match mirror.find_differences(&state, &picture) {
            Ok(Some(differences)) if differences == MirrorDifferences::default() => return Ok(None),
            Ok(Some(MirrorDifferences { missing, orphans, relations })) => format!(
                "on {name}, {missing} units are missing or not as here, {orphans} have no file, and {relations} relations are not those of the files; {mend}"
            ),
            Ok(None) => format!("{name} has not caught up with the files yet; {mend}"),
            Err(why) => why,
        };
        Ok(Some(FileProblem { path: String::new(), kind: "graph", text }))
    }

    pub(crate) fn rebuild_brain(&self, params: BrainRebuildParams) -> Result<BrainRebuild> {
        let index = self.open_brain(&params.context.build()?)?;
        let begun = Instant::now();
        let none = || Error::unavailable("There is no graph server: the setting `brain.bolt` names it.");
        let mirror = if params.graph { Some(self.open_mirror(&index).ok_or_else(none)?) } else { None };
        if let Some(mirror) = mirror {
            // The server is checked first, before anything changes.
            let advice = "start it and try again, or leave `graph` out";
            mirror.check_reachable().map_err(|why| Error::unavailable(format!("{why}; {advice}.")).about("graph"))?;
        }
        index.rebuild()?;
        let written = mirror.map(|mirror| {
            let (state, picture) = index.db.read(|c| Ok((read_state(c)?, GraphPicture::from_index(c, &index.key)?)))?;
            Ok::<_, Error>(mirror.rebuild(&state, &picture).inspect(|_| mirror.bolt.mark_working()))
        });
        let (graph, degraded) = match written.transpose()? {
            Some(Ok(mirrored)) => (Some(mirrored), Vec::new()),
            Some(Err(why)) => (None, vec![why]),
            None => (None, Vec::new()),
        };
        self.work_on();
        let ms = elapsed_ms(begun);
        let (units, chunks) = index.db.read(|c| {
            Ok((count_rows(c, "SELECT count(*) FROM unit")?, count_rows(c, "SELECT count(*) FROM chunk")?))
        })?;
        Ok(BrainRebuild { units, chunks, ms, graph, degraded })
    }
}

/// Returns the problems that the index stores.
fn find_problems(index: &BrainIndex) -> Result<Vec<FileProblem>> {
    let sql = "SELECT unit.path, 'frontmatter', p.value FROM unit, json_each(unit.problems) p
        UNION ALL SELECT path, 'skipped', why FROM skipped
        UNION ALL SELECT u.path, 'duplicate id', 'the id `' || u.own_id || '` is that of ' || o.path FROM unit u
          JOIN unit o ON o.uid = u.own_id AND o.id <> u.id WHERE u.own_id IS NOT NULL AND u.uid <> u.own_id
        UNION ALL SELECT u.path, 'dangling', 'leads to `' || r.target || '`, which is no unit, or more than one'
          FROM relation r JOIN unit u ON u.id = r.src WHERE r.dst IS NULL
        UNION ALL SELECT '', 'too many files', value FROM brain WHERE name = 'made' AND value <> ''";
    index.db.read(|c| {
        let mut statement = c.prepare_cached(sql)?;
        let rows =
            statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?)))?;
        let mut problems = Vec::new();
        for row in rows {
            let (path, kind, text) = row?;
            let kind = ["frontmatter", "skipped", "duplicate id", "dangling"].into_iter().find(|known| *known == kind);
            problems.push(FileProblem { path, kind: kind.unwrap_or("too many files"), text: make_safe(&text) });
        }
        problems.sort();
        Ok(problems)
    })
}
