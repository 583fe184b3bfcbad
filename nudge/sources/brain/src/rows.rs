//! Reads and writes the rows of the index: indexes one file, and computes the facts that depend on all files.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use nudge_core::number::to_column;
use nudge_storage::TransactionFailure;
use nudge_storage::rusqlite::types::Type;
use nudge_storage::rusqlite::{self, Connection, OptionalExtension as _, Row, params};
use sha2::{Digest as _, Sha256};

use crate::folder::{FileStamp, Hash};
use crate::unit::{KnowledgeUnit, ParsedRelation, without_ending};

/// The facts that the index stores about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownFile {
    /// The number of the file's unit; `None` when the file is not a unit.
    pub id: Option<i64>,
    pub stamp: FileStamp,
    pub hash: Hash,
}

impl KnownFile {
    /// Returns true when the file is a unit and its bytes have this hash.
    pub fn has_hash(&self, hash: &Hash) -> bool {
        self.id.is_some() && self.hash == *hash
    }
}

/// Selects all files that the index knows.
const FILES: &str = "SELECT path, id, size, mtime_ns, inode, hash FROM unit
                     UNION ALL SELECT path, NULL, size, mtime_ns, inode, zeroblob(32) FROM skipped";

fn file_of(row: &Row<'_>) -> nudge_storage::rusqlite::Result<(String, KnownFile)> {
    let stamp = FileStamp { size: row.get(2)?, mtime_ns: row.get(3)?, inode: row.get(4)? };
    Ok((row.get(0)?, KnownFile { id: row.get(1)?, stamp, hash: row.get(5)? }))
}

/// Returns all files that the index knows, by path.
pub fn read_files(c: &Connection) -> Result<HashMap<String, KnownFile, RandomState>, TransactionFailure> {
    let mut statement = c.prepare_cached(FILES)?;
    let rows = statement.query_map([], file_of)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Reads the stored facts of one file; `None` when the index does not know the file.
pub fn read_file(c: &Connection, path: &str) -> Result<Option<KnownFile>, TransactionFailure> {
    let mut statement = c.prepare_cached(&format!("SELECT * FROM ({FILES}) WHERE path = ?1"))?;
    Ok(statement.query_row([path], file_of).optional()?.map(|(_, file)| file))
}

/// Reads a named value about the whole index.
pub fn read_note(c: &Connection, name: &str) -> Result<Option<String>, TransactionFailure> {
    let mut statement = c.prepare_cached("SELECT value FROM brain WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// Returns true when the facts that depend on all files are up to date.
pub fn is_settled(c: &Connection) -> Result<bool, TransactionFailure> {
    Ok(read_note(c, "settled")?.as_deref() == Some("1"))
}

/// Writes a named value about the whole index.
pub fn set_note(c: &Connection, name: &str, value: &str) -> Result<(), TransactionFailure> {
    c.prepare_cached("INSERT INTO brain VALUES(?1, ?2) ON CONFLICT(name) DO UPDATE SET value = ?2")?
        .execute([name, value])?;
    Ok(())
}

/// Stores that a file is not a unit, and the reason for it.
pub fn skip_file(c: &Connection, path: &str, stamp: FileStamp, why: &str) -> Result<(), TransactionFailure> {
    remove_file(c, path)?;
    c.prepare_cached("INSERT INTO skipped VALUES(?1, ?2, ?3, ?4, ?5)")?.execute(params![
        path,
        stamp.size,
        stamp.mtime_ns,
        stamp.inode,
        why
    ])?;
    Ok(())
}

/// Removes a file from the index.
pub fn remove_file(c: &Connection, path: &str) -> Result<(), TransactionFailure> {
    c.prepare_cached("DELETE FROM unit WHERE path = ?1")?.execute([path])?;
    c.prepare_cached("DELETE FROM skipped WHERE path = ?1")?.execute([path])?;
    Ok(())
}

/// Stores the new stamp of a file whose bytes are the same as before.
pub fn touch_file(c: &Connection, path: &str, stamp: FileStamp) -> Result<(), TransactionFailure> {
    c.prepare_cached("UPDATE unit SET size = ?2, mtime_ns = ?3, inode = ?4 WHERE path = ?1")?.execute(params![
        path,
        stamp.size,
        stamp.mtime_ns,
        stamp.inode
    ])?;
    Ok(())
}

/// Changes the path of a unit.
pub fn rename_file(c: &Connection, from: &str, to: &str) -> Result<(), TransactionFailure> {
    remove_file(c, to)?;
    c.prepare_cached("UPDATE unit SET path = ?2 WHERE path = ?1")?.execute([from, to])?;
    Ok(())
}

/// Indexes a file: replaces its old rows. Returns true when a relation may now lead to another unit. Then the caller
/// must call [`settle_index`].
pub fn put_file(
    c: &Connection,
    path: &str,
    text: &str,
    stamp: FileStamp,
    hash: &Hash,
) -> Result<bool, TransactionFailure> {
    let unit = KnowledgeUnit::read(path, text);
    let names = (unit.own_id.clone(), unit.title.clone(), to_json(&unit.aliases));
    let sql = "SELECT own_id, title, aliases FROM unit WHERE path = ?1";
    let known =
        c.prepare_cached(sql)?.query_row([path], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
    c.prepare_cached("DELETE FROM skipped WHERE path = ?1")?.execute([path])?;
    let sql = "INSERT INTO unit(path, uid, own_id, title, aliases, summary, kind, domain, tags, confidence, source,
                 created, modified, problems, size, mtime_ns, inode, hash)
               VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
               ON CONFLICT(path) DO UPDATE SET own_id = ?3, title = ?4, aliases = ?5, summary = ?6, kind = ?7,
                 domain = ?8, tags = ?9, confidence = ?10, source = ?11, created = ?12, modified = ?13, problems = ?14,
                 size = ?15, mtime_ns = ?16, inode = ?17, hash = ?18
               RETURNING id";
    let provisional = unit.own_id.as_ref().unwrap_or(&unit.path_id);
    let id: i64 = c.prepare_cached(sql)?.query_row(
        params![
            path,
            provisional,
            unit.own_id,
            unit.title,
            to_json(&unit.aliases),
            unit.summary,
            unit.kind,
            unit.domain,
            to_json(&unit.tags),
            unit.confidence,
            unit.source,
            unit.created,
            unit.modified,
            to_json(&unit.problems),
            stamp.size,
            stamp.mtime_ns,
            stamp.inode,
            hash,
        ],
        |row| row.get(0),
    )?;
    put_chunks(c, id, &unit, text)?;
    Ok(put_relations(c, id, &unit)? || known != Some(names))
}

/// Writes the relations of a unit if they have changed. Returns true if it has written them.
fn put_relations(c: &Connection, id: i64, unit: &KnowledgeUnit) -> Result<bool, TransactionFailure> {
    let mut known = c.prepare_cached("SELECT by, target, kind, weight FROM relation WHERE src = ?1 ORDER BY ord")?;
    let known = known.query_map([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let known: Vec<(String, String, String, f64)> = known.collect::<Result<_, _>>()?;
    let is_same = |(relation, (named_by, target, kind, weight)): (&ParsedRelation, &(String, String, String, f64))| {
        (relation.target.kind_name(), relation.target.as_str(), &*relation.kind) == (named_by, target, kind)
            && relation.weight.total_cmp(weight).is_eq()
    };
    if known.len() == unit.relations.len() && unit.relations.iter().zip(&known).all(is_same) {
        return Ok(false);
    }
    c.prepare_cached("DELETE FROM relation WHERE src = ?1")?.execute([id])?;
    let mut insert = c.prepare_cached("INSERT INTO relation VALUES(?1, ?2, ?3, ?4, ?5, ?6, NULL)")?;
    for (ord, relation) in (0_i64..).zip(&unit.relations) {
        insert.execute(params![
            id,
            ord,
            relation.target.kind_name(),
            relation.target.as_str(),
            relation.kind,
            relation.weight
        ])?;
    }
    Ok(true)
}

fn put_chunks(c: &Connection, id: i64, unit: &KnowledgeUnit, text: &str) -> Result<(), TransactionFailure> {
    // A new chunk uses the vector of the old chunk at the same position until its own vector is made.
    let mut old = c.prepare_cached("SELECT ord, meaning FROM chunk WHERE unit = ?1")?;
    let old: HashMap<i64, Hash, RandomState> =
        old.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    c.prepare_cached("DELETE FROM chunk WHERE unit = ?1")?.execute([id])?;
    let mut has_vector = c.prepare_cached("SELECT 1 FROM vector WHERE hash = ?1")?;
    let mut insert = c.prepare_cached(
        "INSERT INTO chunk(unit, ord, begin, line, last_line, level, breadcrumb, head, text, hash, meaning)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let (mut line, mut counted) = (1, 0);
    let names = unit.join_names();
    for (ord, chunk) in (0_i64..).zip(&unit.chunks) {
        let own = text.get(chunk.range.clone()).expect("a chunk lies within its text");
        // A chunk may begin before the end of the previous chunk.
        let (from, to) = (counted.min(chunk.range.start), counted.max(chunk.range.start));
        let between = count_lines(text.get(from..to).expect("a chunk lies within its text"));
        line = if counted <= chunk.range.start { line + between } else { line - between };
        counted = chunk.range.start;
        let head = match (ord, &*chunk.breadcrumb) {
            (0, "") => names.clone(),
            (0, breadcrumb) => format!("{names}\n{breadcrumb}"),
            (_, breadcrumb) => breadcrumb.to_owned(),
        };
        let hash: Hash = Sha256::digest(build_embedded_text(&unit.title, &chunk.breadcrumb, own)).into();
        let is_made = has_vector.exists([hash])?;
        let meaning = old.get(&ord).filter(|_| !is_made).copied().unwrap_or(hash);
        let begin = to_column(chunk.range.start);
        insert.execute(params![
            id,
            ord,
            begin,
            line,
            line + count_lines(own),
            chunk.level,
            chunk.breadcrumb,
            head,
            own,
            hash,
            meaning
        ])?;
    }
    Ok(())
}

/// Returns the text whose vector represents a chunk: the headings and the chunk's text.
pub fn build_embedded_text(title: &str, breadcrumb: &str, text: &str) -> String {
    let is_told = breadcrumb.starts_with(title);
    let above = [title, breadcrumb]
        .into_iter()
        .filter(|part| !part.is_empty())
        .skip(usize::from(is_told && !breadcrumb.is_empty()));
    format!("{}\n{text}", above.collect::<Vec<_>>().join(" > "))
}

fn count_lines(text: &str) -> i64 {
    to_column(text.bytes().filter(|byte| *byte == b'\n').count())
}

fn to_json(texts: &[String]) -> String {
    serde_json::Value::from(texts).to_string()
}

/// Reads a column that [`to_json`] wrote.
///
/// # Errors
/// The error for a column that does not hold a list of texts.
pub fn read_texts(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<String>> {
    let list: String = row.get(column)?;
    serde_json::from_str(&list)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

/// The names by which relations can refer to a unit.
struct NamedUnit {
    id: i64,
    path: String,
    uid: String,
    own_id: Option<String>,
    title: String,
    aliases: Vec<String>,
}

/// Computes the facts that depend on all files: the id of each unit, and the target unit of each relation. The result
/// does not depend on the order in which the files were read.
pub fn settle_index(c: &Connection) -> Result<(), TransactionFailure> {
    let mut statement = c.prepare_cached("SELECT id, path, uid, own_id, title, aliases FROM unit ORDER BY path")?;
    let rows = statement.query_map([], |row| {
        let aliases = read_texts(row, 5)?;
        let (id, path, uid) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(NamedUnit { id, path, uid, own_id: row.get(3)?, title: row.get(4)?, aliases })
    })?;
    let mut units: Vec<_> = rows.collect::<Result<_, _>>()?;
    give_ids(c, &mut units)?;
    resolve_relations(c, &units)?;
    set_note(c, "settled", "1")
}

/// Gives each unit its id. If several files state the same id, the first file by path gets it. Each of the other files
/// gets its path as id.
fn give_ids(c: &Connection, units: &mut [NamedUnit]) -> Result<(), TransactionFailure> {
    let mut owners: HashMap<&str, i64, RandomState> = HashMap::default();
    for unit in units.iter() {
        if let Some(own) = unit.own_id.as_deref() {
            owners.entry(own).or_insert(unit.id);
        }
    }
    let given: Vec<_> = units
        .iter()
        .map(|unit| {
            let own = unit.own_id.as_deref().filter(|own| owners.get(own) == Some(&unit.id));
            let by_path = without_ending(&unit.path);
            let is_free = owners.get(by_path).is_none_or(|owner| *owner == unit.id);
            own.unwrap_or(if is_free { by_path } else { &unit.path }).to_owned()
        })
        .collect();
    let mut update = c.prepare_cached("UPDATE unit SET uid = ?2 WHERE id = ?1")?;
    for (unit, uid) in units.iter_mut().zip(given) {
        if unit.uid != uid {
            update.execute(params![unit.id, uid])?;
            unit.uid = uid;
        }
    }
    Ok(())
}

/// The unit that has a name, or the fact that several units have it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameOwner {
    One(i64),
    Several,
}

/// Maps each name to the unit that has it. Upper and lower case count as equal.
#[derive(Default)]
struct UnitNames(HashMap<String, NameOwner, RandomState>);

impl UnitNames {
    fn add(&mut self, name: &str, id: i64) {
        let owner = self.0.entry(name.to_lowercase()).or_insert(NameOwner::One(id));
        if *owner != NameOwner::One(id) {
            *owner = NameOwner::Several;
        }
    }

    fn find_owner(&self, name: &str) -> Option<NameOwner> {
        self.0.get(&name.to_lowercase()).copied()
    }
}

/// Finds the target unit of each relation by id, path, title, alias or file name. A relation has no target if several
/// units have the name, because a guess could be wrong.
fn resolve_relations(c: &Connection, units: &[NamedUnit]) -> Result<(), TransactionFailure> {
    let (mut ids, mut paths, mut titles, mut stems) = <(UnitNames, UnitNames, UnitNames, UnitNames)>::default();
    let mut folders: HashMap<i64, &str, RandomState> = HashMap::default();
    for unit in units {
        let path = without_ending(&unit.path);
        let (folder, stem) = path.rsplit_once('/').unwrap_or(("", path));
        ids.add(&unit.uid, unit.id);
        paths.add(path, unit.id);
        stems.add(stem, unit.id);
        folders.insert(unit.id, folder);
        for name in std::iter::once(&unit.title).chain(&unit.aliases) {
            titles.add(name, unit.id);
        }
    }
    let mut statement = c.prepare_cached("SELECT src, ord, by, target, dst FROM relation")?;
    let mut rows = statement.query([])?;
    let mut found: Vec<(i64, i64, Option<i64>)> = Vec::new();
    while let Some(row) = rows.next()? {
        let (src, ord, dst): (i64, i64, Option<i64>) = (row.get(0)?, row.get(1)?, row.get(4)?);
        let (named_by, target): (String, String) = (row.get(2)?, row.get(3)?);
        let target = target.as_str();
        let folder = folders.get(&src).copied().unwrap_or_default();
        let by_path = || join_path(folder, target).and_then(|path| paths.find_owner(without_ending(&path)));
        let from_top = || join_path("", target).and_then(|path| paths.find_owner(without_ending(&path)));
        let unit = match &*named_by {
            "id" => ids.find_owner(target),
            "path" => by_path(),
            _ => from_top()
                .filter(|_| target.contains('/'))
                .or_else(by_path)
                .or_else(|| titles.find_owner(target))
                .or_else(|| stems.find_owner(without_ending(target)))
                .or_else(from_top)
                .or_else(|| ids.find_owner(target)),
        };
        let unit = match unit {
            Some(NameOwner::One(unit)) => Some(unit),
            Some(NameOwner::Several) | None => None,
        };
        if unit != dst {
            found.push((src, ord, unit));
        }
    }
    let mut update = c.prepare_cached("UPDATE relation SET dst = ?3 WHERE src = ?1 AND ord = ?2")?;
    for (src, ord, unit) in found {
        update.execute(params![src, ord, unit])?;
    }
    Ok(())
}

/// Joins a relative path to a folder. A leading `/` means the top of the brain. Returns `None` for a path that leads
/// out of the brain.
fn join_path(folder: &str, target: &str) -> Option<String> {
    let from = if target.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in from.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_within_the_brain() {
        for (folder, target, path) in [
            ("a/b", "c.md", Some("a/b/c.md")),
            ("a/b", "../c.md", Some("a/c.md")),
            ("a/b", "/c.md", Some("c.md")),
            ("", "./c.md", Some("c.md")),
            ("a", "../../c.md", None),
        ] {
            assert_eq!(join_path(folder, target).as_deref(), path, "{folder} {target}");
        }
    }

    #[test]
    fn what_a_vector_is_made_of() {
        assert_eq!(build_embedded_text("A", "A > B", "x"), "A > B\nx");
        assert_eq!(build_embedded_text("T", "A > B", "x"), "T > A > B\nx");
        assert_eq!(build_embedded_text("T", "", "x"), "T\nx");
    }
}
