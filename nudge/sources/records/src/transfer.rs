//! Records out of this database and into it: an export, an import of one or of the upstream plugin's own file, a
//! backup.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge_core::clock::rfc3339;
use nudge_core::context::ContextSpec;
use nudge_core::error::{Error, Result};
use nudge_core::foreign::{self, Links};
use nudge_core::wire;
use nudge_storage::foreign::{Foreign, Limits, Log, MAGIC, Unfit};
use nudge_storage::rusqlite::types::ValueRef;
use nudge_storage::rusqlite::{Connection, Row, Transaction};
use nudge_storage::{Db, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::record::{self, Kind, Origin, Status};
use crate::rows::{self, Author, Draft};
use crate::write::{MAX_RECORDS, Seen, Similar, WriteRules};
use crate::{meaning, project};

/// The form of an export.
const FORMAT: &str = "nudge-records/1";
/// Largest export that is read.
const MAX_BYTES: u64 = 256 << 20;
/// Most records that are named as left out.
const MAX_NAMED: usize = 100;
/// Longest value in a database that is read.
const MAX_VALUE_BYTES: i32 = 16 << 20;
/// Steps of `SQLite`'s and time to read one. A record takes 20 steps.
const MAX_STEPS: u64 = 1_000_000_000;
const MAX_TIME: Duration = Duration::from_secs(20);

/// Params of `nudge.records.export`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// Absent: every project.
    #[serde(default, deserialize_with = "wire::given")]
    pub project: Option<String>,
}

/// Result of `nudge.records.export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// Always `nudge-records/1`.
    pub format: String,
    /// Oldest first.
    pub records: Vec<Moved>,
}

/// A record on its way from one database to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The name of its project.
    pub project: String,
    /// What it is about.
    pub kind: Kind,
    /// Its title.
    pub title: String,
    /// Its body.
    #[serde(default)]
    pub body: String,
    /// Where it stands.
    pub status: Status,
    /// When it was made.
    pub created_at: String,
    /// When it was changed last.
    pub updated_at: String,
}

/// Params of `nudge.records.import`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// An export, a backup, or the upstream plugin's `dude.db`, which is only read.
    pub file: String,
    /// Where a relative path begins.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.records.import`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[allow(clippy::struct_field_names, reason = "it is the word for what became of them, beside `skipped`")]
pub struct Imported {
    /// Records that are new.
    pub imported: usize,
    /// Records that were there already, with the same words.
    pub skipped: usize,
    /// New ones that are like another of their project and kind: by their meaning where a model is there, of the first
    /// 20, else by their titles. The first 100.
    pub similar: Vec<Alike>,
    /// How many more are.
    pub omitted: usize,
    /// Records that may not be stored.
    pub refused: usize,
    /// Why, of the first 100 of them; by their place in the file, as their texts may be anything.
    pub errors: Vec<Refused>,
}

/// A new record that is like another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alike {
    /// Its number.
    pub id: i64,
    /// Its title.
    pub title: String,
    /// The other: the nearest, or the newest of the same title.
    pub like: Similar,
}

/// A record that was not imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Its place in the file, from 1.
    pub at: usize,
    /// Why.
    pub reason: String,
}

/// Params of `nudge.records.backup`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    /// The file to write, which may not be there yet.
    pub file: String,
    /// Where a relative path begins.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.records.backup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// The file.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
}

/// Params of `nudge.records.recover`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recover {
    /// A backup: one of those in `backups`, beside the database, or one that `nudge.records.backup` has made.
    pub file: String,
    /// Where a relative path begins.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.records.recover`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// The backup.
    pub file: String,
    /// How many records there are now.
    pub records: i64,
    /// When the newest of them was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    /// Where the database is that was replaced, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
}

/// The path that somebody means who stands in a folder.
///
/// # Errors
/// `E_INVALID` for a relative one, when nothing says where it begins.
pub fn path(file: &str, context: ContextSpec) -> Result<PathBuf> {
    let context = context.build()?;
    let path = context.cwd().map_or_else(|| PathBuf::from(file), |cwd| Path::new(cwd).join(file));
    let refused = || Error::invalid("`file` must be an absolute path, or come with `context.cwd`.");
    if path.is_absolute() && !file.is_empty() { Ok(path) } else { Err(refused()) }
}

/// Every record of a project, or of all.
pub fn export(c: &Connection, project: Option<i64>) -> Result<Exported, Failure> {
    let mut statement = c.prepare(
        "SELECT p.name, r.kind, r.title, r.body, r.status, r.created_at, r.updated_at
         FROM record r JOIN project p ON p.id = r.project_id WHERE ?1 IS NULL OR r.project_id = ?1 ORDER BY r.id",
    )?;
    let rows = statement.query_map([project], |row| {
        Ok(Moved {
            project: row.get(0)?,
            kind: row.get(1)?,
            title: row.get(2)?,
            body: row.get(3)?,
            status: row.get(4)?,
            created_at: row.get(5)?,
            updated_at: row.get(6)?,
        })
    })?;
    Ok(Exported { format: FORMAT.into(), records: rows.collect::<Result<_, _>>()? })
}

/// An export whose records are not read yet.
#[derive(Deserialize)]
struct Unread<'a> {
    format: String,
    #[serde(borrow)]
    records: Vec<&'a RawValue>,
}

/// Reads the records of a file; one that cannot be read is told by its reason.
///
/// # Errors
/// `E_INVALID` for a file that is neither.
pub fn read(path: &Path) -> Result<Vec<Result<Moved, String>>> {
    let unreadable = |error: std::io::Error| {
        Error::invalid(format!(
            "{} cannot be read ({error}); name an export or the upstream's dude.db.",
            path.display()
        ))
    };
    let mut begin = [0; 16];
    let (file, _) = foreign::open(path, Links::Followed).map_err(unreadable)?;
    let is_sqlite = std::io::Read::read_exact(&mut &file, &mut begin).is_ok() && begin == *MAGIC;
    drop(file);
    if is_sqlite {
        return read_upstream(path);
    }
    let text = foreign::read_text(path, Links::Followed, MAX_BYTES).map_err(unreadable)?;
    let exported: Unread<'_> = serde_json::from_str(&text)
        .map_err(|_| Error::invalid("The file is no export of records; `nudge records export` writes one."))?;
    if exported.format != FORMAT {
        return Err(Error::invalid("The export is of a later version of Nudge; update this one."));
    }
    // One that is none is told of, and keeps no other out.
    let read = |record: &RawValue| wire::parse(record.get(), "record").map_err(|error| error.message().to_owned());
    Ok(exported.records.into_iter().map(read).collect())
}

/// Reads the upstream plugin's file, or a backup, by its `project` and `record` tables alone.
///
/// Its tables promise nothing of what their columns hold, so each row is judged by itself.
fn read_upstream(path: &Path) -> Result<Vec<Result<Moved, String>>> {
    let limits = Limits {
        file_bytes: MAX_BYTES,
        value_bytes: MAX_VALUE_BYTES,
        all_bytes: MAX_BYTES,
        steps: MAX_STEPS,
        until: Instant::now() + MAX_TIME,
    };
    // The plugin may have it open.
    let file = Foreign::open(path, Links::Followed, Log::Read, &limits).map_err(unfit)?;
    let mut projects = HashMap::new();
    file.rows("project", &["id", "name"], None, &mut |row| {
        if let Ok(id) = row.get::<_, i64>(0) {
            projects.insert(id, text(row, 1, "project"));
        }
        ControlFlow::Continue(())
    })
    .map_err(unfit)?;
    let columns = ["id", "project_id", "kind", "title", "body", "status", "created_at", "updated_at"];
    let mut moved: Vec<(i64, Result<Moved, String>)> = Vec::new();
    file.rows("record", &columns, None, &mut |row| {
        moved.push((row.get(0).unwrap_or_default(), of_upstream(row, &projects)));
        ControlFlow::Continue(())
    })
    .map_err(unfit)?;
    moved.sort_by_key(|(id, _)| *id);
    Ok(moved.into_iter().map(|(_, one)| one).collect())
}

/// The refusal of a database. `SQLite`'s own words may repeat a value.
fn unfit(unfit: Unfit) -> Error {
    Error::invalid(match unfit {
        Unfit::File(error) => format!("The file cannot be read ({error}); name an export or the upstream's dude.db."),
        Unfit::NotADatabase | Unfit::NoTable | Unfit::NotOwn => {
            "The file is a database, but not one of records; name the upstream's dude.db.".into()
        }
        Unfit::InUse | Unfit::Damaged => {
            "The file cannot be read to its end; it may be damaged, or in use. Give a copy of it.".into()
        }
        Unfit::TooMuch => "The file has more than 256 MiB, or takes too long to read; give a smaller one.".into(),
    })
}

/// A row of the upstream's, or why it is no record.
fn of_upstream(row: &Row<'_>, projects: &HashMap<i64, Result<String, String>>) -> Result<Moved, String> {
    let no_project = || Err("its project is no text".to_owned());
    let project = row.get(1).ok().and_then(|id: i64| projects.get(&id).cloned()).unwrap_or_else(no_project);
    let given = |at: usize| row.get_ref(at).is_ok_and(|value| !matches!(value, ValueRef::Null));
    // Either time stands for the other.
    let time = |at: usize, other: usize| match (given(at), given(other)) {
        (true, _) => text(row, at, "time"),
        (false, true) => text(row, other, "time"),
        (false, false) => Ok(String::new()),
    };
    let unknown = |_| "its kind or status is unknown".to_owned();
    Ok(Moved {
        project: project?,
        kind: serde_json::from_value(text(row, 2, "kind")?.into()).map_err(unknown)?,
        title: text(row, 3, "title")?,
        body: if given(4) { text(row, 4, "body")? } else { String::new() },
        status: serde_json::from_value(text(row, 5, "status")?.into()).map_err(unknown)?,
        created_at: time(6, 7)?,
        updated_at: time(7, 6)?,
    })
}

fn text(row: &Row<'_>, at: usize, name: &str) -> Result<String, String> {
    match row.get_ref(at) {
        Ok(value) => value.as_str().map(str::to_owned).map_err(|_| format!("its {name} is no text")),
        Err(_) => Err(format!("its {name} is missing")),
    }
}

/// Writes records, in one transaction: all that may be stored, or none.
pub fn import(
    tx: &Transaction<'_>,
    moved: &[Result<Moved, String>],
    seen: &HashMap<usize, Seen>,
    rules: &WriteRules<'_>,
) -> Result<Imported, Failure> {
    let mut done = Imported::default();
    for (at, one) in moved.iter().enumerate() {
        let refused = match one {
            Err(reason) => Some(reason.clone()),
            Ok(one) => match import_one(tx, one, rules)? {
                Ok(Some(new)) => {
                    done.imported += 1;
                    done.take_alike(tx, new, seen.get(&at))?;
                    None
                }
                Ok(None) => {
                    done.skipped += 1;
                    None
                }
                Err(error) => Some(error.message().to_owned()),
            },
        };
        if let Some(reason) = refused {
            done.refused += 1;
            if done.errors.len() < MAX_NAMED {
                done.errors.push(Refused { at: at + 1, reason });
            }
        }
    }
    Ok(done)
}

impl Imported {
    /// Takes in what a new record is like, and keeps its vectors.
    fn take_alike(&mut self, tx: &Transaction<'_>, new: (i64, Draft), seen: Option<&Seen>) -> Result<(), Failure> {
        let (id, draft) = new;
        if let Some((model, vectors)) = seen.and_then(|seen| seen.vectors.as_ref()) {
            meaning::keep(tx, id, model, vectors)?;
        }
        let near = seen.and_then(|seen| seen.near.first());
        let near = near.map(|(near, distance)| Ok::<_, Failure>((rows::get(tx, *near)?, *distance))).transpose()?;
        let like = match near {
            Some((near, distance)) => Some(Similar { id: near.id, title: near.title, distance: Some(distance) }),
            None => rows::titled_alike(tx, id, &draft)?.map(|(id, title)| Similar { id, title, distance: None }),
        };
        match like {
            Some(like) if self.similar.len() < MAX_NAMED => {
                self.similar.push(Alike { id, title: draft.title, like });
            }
            Some(_) => self.omitted += 1,
            None => {}
        }
        Ok(())
    }
}

impl Moved {
    /// Its title as a record may have it: one of the upstream's may be longer, or have lines.
    pub fn line(&self) -> String {
        // What was one here comes back as it was.
        if record::is_title(&self.title) {
            return self.title.clone();
        }
        let line = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        nudge_core::text::clipped(&line, record::MAX_TITLE_CHARS)
    }
}

/// The record, where it is new; or why it may not be stored.
///
/// # Errors
/// `E_QUOTA`, which ends the import.
fn import_one(
    tx: &Transaction<'_>,
    one: &Moved,
    rules: &WriteRules<'_>,
) -> Result<Result<Option<(i64, Draft)>>, Failure> {
    let WriteRules { author: Author { by, now, .. }, room, .. } = rules;
    let Moved { project, kind, body, status, created_at, updated_at, .. } = one;
    let title = one.line();
    if let Err(error) = record::check(&title, body).and_then(|()| project::checked(project).map(drop)) {
        return Ok(Err(error));
    }
    let id = match project::by_name(tx, project)? {
        Some(id) => id,
        None => project::insert(tx, project, now)?,
    };
    if rows::same(tx, id, *kind, &title, body)?.is_some() {
        return Ok(Ok(None));
    }
    if rows::count(tx, id)? >= MAX_RECORDS {
        return Ok(Err(Error::invalid("Its project has 10,000 records, which is the most.")));
    }
    room.check(tx, title.len() + body.len())?;
    let at = |text: &str| rfc3339::parse(text).or_else(|| rfc3339::parse(&format!("{}Z", text.replacen(' ', "T", 1))));
    let time = |text: &str| at(text).map_or_else(|| now.clone(), rfc3339::text);
    let draft = Draft { project: id, kind: *kind, title, body: body.clone(), status: *status };
    let author = Author { by: by.clone(), origin: Origin::Import, now: time(updated_at) };
    let new = rows::insert(tx, &draft, &author)?;
    rows::set_created(tx, new, &time(created_at))?;
    Ok(Ok(Some((new, draft))))
}

/// Copies the database into a new file.
pub fn backup(db: &Db, to: &Path) -> Result<BackedUp> {
    let bytes = db.backup(to)?;
    Ok(BackedUp { file: to.display().to_string(), bytes })
}
