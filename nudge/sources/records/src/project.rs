//! Finds the project of a caller's folder or repository, and the name of the project.
//!
//! A project has one name and any number of repositories. So a clone, a second remote of a fork and a renamed
//! repository belong to one project. Two repositories with the same name on different hosts are two projects until the
//! user joins them.

use std::path::Path;

use nudge_core::clock::{Clock, rfc3339};
use nudge_core::context::Context;
use nudge_core::error::{Error, Result};
use nudge_core::near::find_nearest;
use nudge_core::number::to_column;
use nudge_core::place::repo::RepoName;
use nudge_core::text::after_mark;
use nudge_storage::TransactionFailure;
use nudge_storage::rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;

use crate::{record, rows};

/// The hosts where the organisation and the name identify a repository.
const HOSTS: [&str; 3] = ["github.com", "gitlab.com", "bitbucket.org"];
/// The most bytes of a project's name.
const MAX_NAME_BYTES: usize = 1 << 10;
/// The most projects in a list.
const MAX_PROJECTS: i64 = 1_000;

/// The parts of a caller's context that decide its project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLocation {
    /// The repository in its normal form, or the folder. The database stores this text as an alias of the project.
    alias: String,
    /// The names that the project may get, the best first. The last name is unique to this repository.
    names: Vec<String>,
}

impl ProjectLocation {
    /// Returns the location of a caller's context. Returns `None` when the context has no repository. A folder alone is
    /// not enough: every subfolder of a project would become a project of its own.
    pub fn from_context(context: &Context) -> Option<Self> {
        match context.repo_name() {
            Some(RepoName::Path { host, path }) => {
                let host = host.as_deref().unwrap_or("");
                let alias = format!("{host}/{path}");
                let base = path.rsplit('/').next().unwrap_or(path).to_owned();
                let names = if host.is_empty() || HOSTS.contains(&host) {
                    vec![path.to_string(), alias.clone()]
                } else {
                    vec![base, path.to_string(), alias.clone()]
                };
                Some(Self { alias, names })
            }
            Some(RepoName::File(path)) => {
                let base = path.trim_end_matches('/').rsplit('/').next().filter(|base| !base.is_empty());
                // A folder without a repository is named by its whole path. The last part of the path says little, and
                // is often the last part of other paths too.
                let base = base.filter(|_| !is_mere_folder(Path::new(&**path)));
                let names = base.map(str::to_owned).into_iter().chain([path.to_string()]).collect();
                Some(Self { alias: format!("file://{path}"), names })
            }
            None => None,
        }
    }
}

/// Returns true when a path is a folder without a repository.
fn is_mere_folder(path: &Path) -> bool {
    path.is_dir() && !path.join(".git").exists() && !path.join("HEAD").exists()
}

/// Returns the name that a new project of this context gets if no other project has this name. Returns `None` when the
/// context has no repository.
///
/// ```
/// use nudge_core::context::Context;
/// use nudge_records::project_name;
///
/// let name = |repo: &str| project_name(&Context::builder().repo(repo).build().unwrap());
/// assert_eq!(name("git@github.com:vercel/next.js.git").as_deref(), Some("vercel/next.js"));
/// assert_eq!(name("https://git.example.com/team/shop").as_deref(), Some("shop"));
/// assert_eq!(name("file:///home/ada/shop").as_deref(), Some("shop"));
/// # let place = tempfile::tempdir().unwrap();
/// # let place = place.path().to_str().unwrap();
/// // This folder has no repository.
/// assert_eq!(name(&format!("file://{place}")).as_deref(), Some(place));
/// let folder = Context::builder().cwd("/tmp/notes").build().unwrap();
/// assert_eq!(project_name(&folder), None);
/// ```
pub fn project_name(context: &Context) -> Option<String> {
    ProjectLocation::from_context(context).map(|here| here.names[0].clone())
}

/// A project in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProjectEntry {
    /// The number.
    pub id: i64,
    /// The name.
    pub name: String,
    /// The number of the project's records.
    pub records: i64,
    /// The time when the project was created, RFC 3339.
    pub created_at: String,
    /// The time of the last change of the project's records, RFC 3339.
    pub updated_at: String,
}

/// The projects that a read is limited to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectChoice {
    /// Only this project.
    One(i64),
    /// All projects.
    All,
    /// A project without a record. The text is the requested name, which is used to find similar names.
    None(Option<String>),
}

/// Finds the project for a read: the project named `given`, or all projects for `*`. Without a name, finds the project
/// of the caller's context.
pub fn choose_project(
    c: &Connection,
    given: Option<&str>,
    here: Option<&ProjectLocation>,
) -> Result<ProjectChoice, TransactionFailure> {
    match given {
        Some("*") => Ok(ProjectChoice::All),
        Some(name) => {
            Ok(by_name(c, name)?.map_or_else(|| ProjectChoice::None(Some(name.to_owned())), ProjectChoice::One))
        }
        None => {
            let known = here.map(|here| find_project(c, here)).transpose()?.map(|(id, _)| id);
            Ok(known.flatten().map_or(ProjectChoice::None(None), ProjectChoice::One))
        }
    }
}

/// Finds the project for a write, and creates it if it does not exist.
///
/// # Errors
/// `E_INVALID` for an unknown name without `create`: otherwise a misspelt name would make a new project.
pub fn for_write(
    c: &Connection,
    given: Option<&str>,
    create: bool,
    here: Option<&ProjectLocation>,
    clock: &dyn Clock,
) -> Result<(i64, String), TransactionFailure> {
    let now = || rfc3339::format_time(clock.now());
    if let Some(name) = given {
        let name = check_name(name)?;
        if let Some(id) = by_name(c, name)? {
            return Ok((id, name.to_owned()));
        }
        let own = here.filter(|here| here.names.iter().any(|own| own == name));
        if !create && own.is_none() {
            let like = find_similar_names(c, name)?;
            let hint = if like.is_empty() { String::new() } else { format!(" There is {}.", like.join(", ")) };
            let message = format!("No project has this name; give `create_project` to begin one.{hint}");
            return Err(Error::invalid(message).about("create_project").with_data("projects_like", like).into());
        }
        let id = insert_project(c, name, &now())?;
        if let Some(own) = own {
            set_alias(c, &own.alias, id)?;
        }
        return Ok((id, name.to_owned()));
    }
    let here = here.ok_or_else(|| {
        Error::invalid("Nothing says which project this belongs to; pass `project`, or `context.repo`.")
            .about("project")
            .about("context.repo")
    })?;
    let (there, own) = match find_project(c, here)? {
        (Some(id), None) => return Ok((id, name(c, id)?)),
        (None, None) => {
            return Err(Error::invalid("Another project has every name of this place; pass `project`.")
                .about("project")
                .into());
        }
        (there, Some(own)) => (there, own),
    };
    let id = there.map_or_else(|| insert_project(c, own, &now()), Ok)?;
    c.execute("DELETE FROM project_alias WHERE repo = ?1", [to_unmet_alias(own)])?;
    set_alias(c, &here.alias, id)?;
    Ok((id, name(c, id)?))
}

/// Finds the project of a caller's context. If the repository is not an alias of a project yet, the function also
/// returns the name to use: the first name that no project of another repository has.
fn find_project<'a>(
    c: &Connection,
    here: &'a ProjectLocation,
) -> Result<(Option<i64>, Option<&'a str>), TransactionFailure> {
    if let Some(id) = by_alias(c, &here.alias)? {
        return Ok((Some(id), None));
    }
    for name in &here.names {
        match by_name(c, name)? {
            None => return Ok((None, Some(name))),
            // This project has no repository yet: a user named it, or an import made it, or it had no repository when
            // it was joined.
            Some(id) if by_alias(c, &to_unmet_alias(name))?.is_some() || !has_alias(c, id)? => {
                return Ok((Some(id), Some(name)));
            }
            Some(_) => {}
        }
    }
    Ok((None, None))
}

/// Refuses a text that cannot be the name of a project, or that looks like a credential.
///
/// # Errors
/// `E_INVALID`, `E_SECRET_REJECTED`.
pub fn check_name(name: &str) -> Result<&str> {
    let is_fine = !name.trim().is_empty() && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control);
    if !is_fine || name == "*" {
        let message = "`project` must be a name of 1 byte to 1 KiB, such as `org/repo`, and not `*`.";
        return Err(Error::invalid(message).about("project"));
    }
    record::refuse_secret("project", name).map(|()| name)
}

/// Lists the projects, the last changed first. The second value counts the projects beyond the limit.
pub fn list_all(c: &Connection) -> Result<(Vec<ProjectEntry>, i64), TransactionFailure> {
    let mut statement = c.prepare_cached(
        "SELECT p.id, p.name, count(r.id), p.created_at, max(coalesce(max(r.updated_at), ''), p.updated_at) AS updated
         FROM project p LEFT JOIN record r ON r.project_id = p.id GROUP BY p.id ORDER BY updated DESC, p.id LIMIT ?1",
    )?;
    let rows = statement.query_map([MAX_PROJECTS], |row| {
        Ok(ProjectEntry {
            id: row.get(0)?,
            name: row.get(1)?,
            records: row.get(2)?,
            created_at: row.get(3)?,
            updated_at: row.get(4)?,
        })
    })?;
    let projects: Vec<_> = rows.collect::<Result<_, _>>()?;
    let count: i64 = c.query_row("SELECT count(*) FROM project", [], |row| row.get(0))?;
    let more = count - to_column(projects.len());
    Ok((projects, more))
}

/// Finds names of projects that are similar to a misspelt name.
pub fn find_similar_names(c: &Connection, name: &str) -> Result<Vec<String>, TransactionFailure> {
    let mut statement = c.prepare_cached("SELECT name FROM project ORDER BY id DESC LIMIT ?1")?;
    let names = statement.query_map([MAX_PROJECTS], |row| row.get::<_, String>(0))?;
    let names: Vec<_> = names.collect::<Result<_, _>>()?;
    let base = |name: &str| after_mark(name, &['/']).to_lowercase();
    let near = find_nearest(name, names.iter().map(String::as_str));
    let own = base(near.unwrap_or(name));
    let mut like: Vec<_> = near.map(str::to_owned).into_iter().collect();
    like.extend(
        names.iter().filter(|other| base(other) == own && !like.contains(other)).take(4).cloned().collect::<Vec<_>>(),
    );
    Ok(like)
}

/// Returns the number of the project with this name. Also finds a project by a name that it had before it was joined to
/// another.
pub fn by_name(c: &Connection, name: &str) -> Result<Option<i64>, TransactionFailure> {
    let mut statement = c.prepare_cached("SELECT id FROM project WHERE name = ?1")?;
    let id = statement.query_row([name], |row| row.get(0)).optional()?;
    if id.is_some() { Ok(id) } else { by_alias(c, &to_former_alias(name)) }
}

/// Returns the alias that stands for a former name of a project. No repository has an alias of this form.
fn to_former_alias(name: &str) -> String {
    format!("name:{name}")
}

/// Returns the alias that stands for the name of a project that had no repository when it was joined to another. No
/// repository has an alias of this form.
fn to_unmet_alias(name: &str) -> String {
    format!("unmet:{name}")
}

/// Joins two projects: `into` keeps its name, and gets the records, the repositories and the names of `from`. Returns
/// the number of moved records.
pub fn join_projects(c: &Connection, from: i64, into: i64) -> Result<usize, TransactionFailure> {
    let own = name(c, from)?;
    for id in [from, into] {
        if !has_alias(c, id)? {
            set_alias(c, &to_unmet_alias(&name(c, id)?), into)?;
        }
    }
    let moved = rows::move_all(c, from, into)?;
    c.execute("UPDATE project_alias SET project_id = ?2 WHERE project_id = ?1", [from, into])?;
    c.execute("DELETE FROM project WHERE id = ?1", [from])?;
    set_alias(c, &to_former_alias(&own), into)?;
    Ok(moved)
}

fn by_alias(c: &Connection, repo: &str) -> Result<Option<i64>, TransactionFailure> {
    let mut statement = c.prepare_cached("SELECT project_id FROM project_alias WHERE repo = ?1")?;
    Ok(statement.query_row([repo], |row| row.get(0)).optional()?)
}

fn has_alias(c: &Connection, id: i64) -> Result<bool, TransactionFailure> {
    let sql =
        "SELECT 1 FROM project_alias WHERE project_id = ?1 AND repo NOT LIKE 'name:%' AND repo NOT LIKE 'unmet:%'";
    Ok(c.prepare_cached(sql)?.exists([id])?)
}

pub fn name(c: &Connection, id: i64) -> Result<String, TransactionFailure> {
    Ok(c.prepare_cached("SELECT name FROM project WHERE id = ?1")?.query_row([id], |row| row.get(0))?)
}

/// Creates a project and returns its number.
pub fn insert_project(c: &Connection, name: &str, now: &str) -> Result<i64, TransactionFailure> {
    let mut statement = c.prepare_cached("INSERT INTO project(name, created_at, updated_at) VALUES (?1, ?2, ?2)")?;
    Ok(statement.insert(params![name, now])?)
}

fn set_alias(c: &Connection, repo: &str, id: i64) -> Result<(), TransactionFailure> {
    let mut statement = c.prepare_cached("INSERT OR REPLACE INTO project_alias(repo, project_id) VALUES (?1, ?2)")?;
    statement.execute(params![repo, id])?;
    Ok(())
}
