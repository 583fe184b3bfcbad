//! Defines the methods of the records, with their params and results.

use std::time::Duration;

use nudge_core::context::ContextSpec;
use nudge_core::embed::QuestionVector;
use nudge_core::error::{Error, Result};
use nudge_core::limit::Limit;
use nudge_core::service::{EditSpec, MethodSpec};
use nudge_core::table::{MethodTable, NoParams, TableRow, answer_typed, build_schema};
use nudge_core::wire;
use nudge_storage::search::QuestionWords;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::duplicates::RecordDuplicatesParams;
use crate::join::ProjectJoinParams;
use crate::project::{self, ProjectChoice, ProjectEntry, ProjectLocation};
use crate::record::{Kind, Record, RecordRevision, Status};
use crate::report;
use crate::rows::{self, RecordEntry, RecordFilter};
use crate::search::{self, QuestionMeaning, RecordQuery, RecordSearch};
use crate::source::RecordSource;
use crate::transfer::{
    self, BackedUp, RecordBackupParams, RecordExport, RecordExportParams, RecordImportParams, RecordRecoverParams,
};
use crate::write::{RecordDeleteParams, RecordMergeParams, RecordRestoreParams, RecordUpsertParams};

/// The method that hooks recommend to the agent's model.
pub const SEARCH: &str = "nudge.records.search";
/// The method that saves a record.
pub const UPSERT: &str = "nudge.records.upsert";
/// The method that lists records.
pub const LIST: &str = "nudge.records.list";
/// The method that returns one whole record.
pub const GET: &str = "nudge.records.get";

/// The method that deletes a record.
pub const DELETE: &str = "nudge.records.delete";
/// The method that replaces the database with a backup.
pub const RECOVER: &str = "nudge.records.recover";

/// The highest `limit` of a search.
pub const MAX_LIMIT: usize = 50;
/// The highest `limit` of a list.
pub const MAX_LISTED: usize = 1_000;
/// The most bytes of a body in a search result, because five whole bodies would fill an agent's context. A weak result
/// rarely answers the question, so `MAX_WEAK_BYTES` is its limit.
const MAX_FOUND_BYTES: usize = 2_000;
const MAX_WEAK_BYTES: usize = 200;
/// The longest time that a search waits until the model is loaded. After that time the search uses words only.
const MODEL_WAIT: Duration = Duration::from_secs(2);
/// The share of a question, from 0 to 1, that the model should understand. If the model understands less, an answer
/// without results says so.
const LITTLE_UNDERSTOOD: f64 = 0.5;
/// The most bytes of a question.
const MAX_QUERY_BYTES: usize = 64 << 10;

pub static TABLE: MethodTable<RecordSource> = MethodTable(&[
    &TableRow {
        method: MethodSpec::new(
            SEARCH,
            "Search records",
            "What was fixed, decided or planned before, here and in other projects, by words or meaning.",
            build_schema::<RecordSearchParams>,
        )
        .tool()
        .read_only()
        .inferred()
        .with_report(report::report_found),
        run: |records, _, params| answer_typed(params, |params: RecordSearchParams| records.search_records(params)),
    },
    &TableRow {
        method: MethodSpec::new(
            UPSERT,
            "Save a record",
            "Keep what was fixed, decided, planned or built, with the reason, for later sessions; or change a record.",
            build_schema::<RecordUpsertParams>,
        )
        .tool()
        .verb("add")
        .example("--kind issue --title 'Login loops' --body 'SameSite=Strict dropped the cookie; Lax keeps it.'")
        .with_edit(&EditSpec {
            read: GET,
            id: "id",
            fields: &["title", "kind", "status", "body"],
            version: ("version", "if_match_version"),
        })
        .inferred()
        .with_report(report::report_saved),
        run: |records, caller, params| records.upsert_record(caller, wire::parse_params(params)?),
    },
    &TableRow {
        method: MethodSpec::new(GET, "Get a record", "One record, whole.", build_schema::<RecordGetParams>).tool().read_only().verb("show"),
        run: |records, _, params| answer_typed(params, |params: RecordGetParams| records.get_record(&params)),
    },
    &TableRow {
        method: MethodSpec::new(LIST, "List records", "Records without their bodies, newest first.", build_schema::<RecordListParams>)
            .read_only()
            .inferred()
            .with_report(report::report_list),
        run: |records, _, params| answer_typed(params, |params: RecordListParams| records.list_records(params)),
    },
    &TableRow {
        method: MethodSpec::new(
            DELETE,
            "Delete a record",
            "Delete a record; it can be restored for 30 days.",
            build_schema::<RecordDeleteParams>,
        )
        .destructive()
        .verb("rm")
        .with_report(report::report_deleted),
        run: |records, caller, params| records.delete_record(caller, &wire::parse_params(params)?),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.records.restore",
            "Restore a record",
            "Bring back what was deleted, or what a record said before.",
            build_schema::<RecordRestoreParams>,
        )
        .with_report(report::report_changed),
        run: |records, caller, params| records.restore_record(caller, &wire::parse_params(params)?),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.records.merge",
            "Merge records",
            "Make several records one; the bodies are joined under their titles.",
            build_schema::<RecordMergeParams>,
        )
        .destructive()
        .with_report(report::report_changed),
        run: |records, caller, params| records.merge_records(caller, &wire::parse_params(params)?),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.records.duplicates",
            "Find duplicate records",
            "Pairs of records of a project and kind that nearly mean the same, nearest first, to look at and merge.",
            build_schema::<RecordDuplicatesParams>,
        )
        .read_only()
        .verb("dups")
        .inferred(),
        run: |records, _, params| answer_typed(params, |params: RecordDuplicatesParams| records.find_duplicates(params)),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.records.projects",
            "List projects",
            "Every project with records.",
            build_schema::<NoParams>,
        )
        .read_only(),
        run: |records, _, params| answer_typed(params, |NoParams {}| records.list_projects()),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.records.join_projects",
            "Join two projects",
            "Make two projects one, as after a rename: records, repositories and the name of the first are the second's.",
            build_schema::<ProjectJoinParams>,
        )
        .destructive()
        .inferred()
        .verb("join")
        .with_question("The two are one project from then on; only a backup from before (`nudge records backup`) has them apart. Go on?")
        .with_report(report::report_joined),
        run: |records, caller, params| records.join_projects(caller, wire::parse_params(params)?),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.records.export",
            "Export records",
            "Every record of a project, or of all, for an import elsewhere.",
            build_schema::<RecordExportParams>,
        )
        .read_only()
        .document(&transfer::PAGES),
        run: |records, _, params| answer_typed(params, |params: RecordExportParams| records.export_records(&params)),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.records.import",
            "Import records",
            "Take in an export, or the upstream plugin's dude.db; what is there already is left alone.",
            build_schema::<RecordImportParams>,
        )
        .inferred()
        .long()
        .with_report(report::report_imported),
        run: |records, caller, params| records.import_records(caller, wire::parse_params(params)?),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.records.backup",
            "Back records up",
            "Copy the database into a new file, while it is in use.",
            build_schema::<RecordBackupParams>,
        )
        .read_only()
        .inferred(),
        run: |records, _, params| answer_typed(params, |params: RecordBackupParams| records.back_up(params)),
    },
    &TableRow {
        method: MethodSpec::new(
            RECOVER,
            "Recover records",
            "Put a backup in the place of the database, whatever that holds; a copy of it is kept.",
            build_schema::<RecordRecoverParams>,
        )
        .destructive()
        .inferred()
        .with_question("Every record that is here now is replaced by those of the backup; a copy is kept. Go on?")
        .with_report(report::report_recovered),
        run: |records, caller, params| answer_typed(params, |params: RecordRecoverParams| records.recover_db(caller, params)),
    },
]);

/// The filters of kind and status, for the schemas.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "a schema alone")]
enum RecordKindFilter {
    All,
    Issue,
    Spec,
    Arch,
    Update,
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "a schema alone")]
enum RecordStatusFilter {
    All,
    Open,
    Resolved,
    Archived,
}

/// Reads a filter of a search. An absent filter, null, "" and `all` mean no filter.
fn read_filter<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let given: Option<String> = Option::deserialize(deserializer)?;
    match given.as_deref() {
        None | Some("" | "all") => Ok(None),
        Some(word) => {
            let unknown = |_| serde::de::Error::custom("this word is not one of those that there are");
            serde_json::from_value(word.into()).map(Some).map_err(unknown)
        }
    }
}

/// Params of `nudge.records.search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordSearchParams {
    /// Your question.
    pub query: String,
    /// Absent or `all`: every kind.
    #[serde(default, deserialize_with = "read_filter")]
    #[schemars(with = "Option<RecordKindFilter>")]
    pub kind: Option<Kind>,
    /// Absent or `all`: wherever it stands; archived ones behind those as relevant.
    #[serde(default, deserialize_with = "read_filter")]
    #[schemars(with = "Option<RecordStatusFilter>")]
    pub status: Option<Status>,
    /// The project that counts more. Absent: that of the context; `*`: none.
    #[serde(default, deserialize_with = "wire::given")]
    pub project: Option<String>,
    /// Only records of this project; else those of others come behind.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub only: bool,
    /// Most results.
    #[serde(default)]
    pub limit: Limit<5, MAX_LIMIT>,
    /// Say why each was found.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    #[schemars(extend("x-not-for-models" = true))]
    pub explain: bool,
    /// Bodies as long as they are; else the first 2,000 bytes of each, and 200 of a weak result.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub whole: bool,
    /// Your context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Params of `nudge.records.get`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordGetParams {
    /// The record.
    pub id: i64,
    /// Earlier texts, too.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub revisions: bool,
}

/// Result of `nudge.records.get`.
#[derive(Debug, Serialize)]
pub struct RecordDetails {
    /// The record.
    #[serde(flatten)]
    pub record: Record,
    /// Earlier texts, the newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revisions: Option<Vec<RecordRevision>>,
}

/// Params of `nudge.records.list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordListParams {
    /// Absent or `all`: every kind.
    #[serde(default, deserialize_with = "read_filter")]
    #[schemars(with = "Option<RecordKindFilter>")]
    pub kind: Option<Kind>,
    /// Absent or `all`: wherever it stands.
    #[serde(default, deserialize_with = "read_filter")]
    #[schemars(with = "Option<RecordStatusFilter>")]
    pub status: Option<Status>,
    /// Absent: that of the context; `*`: every one.
    #[serde(default, deserialize_with = "wire::given")]
    pub project: Option<String>,
    /// Most records.
    #[serde(default)]
    pub limit: Limit<100, MAX_LISTED>,
    /// The `next` of the last answer, to go on after it.
    #[serde(default, deserialize_with = "wire::given")]
    pub before: Option<String>,
    /// Your context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.records.list`.
#[derive(Debug, Serialize)]
pub struct RecordList {
    /// The records, the newest first.
    pub records: Vec<RecordEntry>,
    /// The number of all matching records.
    pub total: i64,
    /// The value of `before` for the next call; absent after the last record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Names of projects similar to the requested project, if that project has no record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects_like: Vec<String>,
}

/// Result of `nudge.records.projects`.
#[derive(Debug, Serialize)]
pub struct ProjectList {
    /// The projects, sorted by their last change, the newest first.
    pub projects: Vec<ProjectEntry>,
    /// The number of projects that are left out.
    pub omitted: i64,
}

impl RecordSource {
    fn search_records(&self, params: RecordSearchParams) -> Result<RecordSearch> {
        let RecordSearchParams { query, kind, status, project, only, limit, explain, whole, context } = params;
        if query.len() > MAX_QUERY_BYTES {
            return Err(Error::invalid("`query` may have 64 KiB; ask in fewer words.").about("query"));
        }
        if query.trim().is_empty() {
            return Err(Error::invalid("`query` is empty; say in a few words what you want to know.").about("query"));
        }
        if only && project.as_deref() == Some("*") {
            return Err(
                Error::invalid("`only` needs a project, and `*` names all; leave one of them out.").about("only")
            );
        }
        let here = ProjectLocation::from_context(&context.build()?);
        let words = QuestionWords::of_query(&query);
        let Some(db) = self.find_db()? else { return Ok(RecordSearch::new_empty()) };
        let look = |meaning: Option<QuestionMeaning<'_>>| {
            db.read(|c| {
                let asked = project::choose_project(c, project.as_deref(), here.as_ref())?;
                if let ProjectChoice::None(Some(name)) = &asked {
                    return Ok(RecordSearch {
                        projects_like: project::find_similar_names(c, name)?,
                        ..RecordSearch::new_empty()
                    });
                }
                let query = RecordQuery {
                    words: &words,
                    known: self.known_indexes(),
                    project: asked,
                    is_only_project: only,
                    kind,
                    status,
                    limit: limit.get(),
                    cut: 0.0,
                };
                let (mut results, omitted) = search::find_records(c, &query, meaning)?;
                for hit in &mut results {
                    hit.explain = hit.explain.take().filter(|_| explain);
                    if !whole {
                        hit.cut =
                            hit.record.cut_body(if hit.weak.is_some() { MAX_WEAK_BYTES } else { MAX_FOUND_BYTES });
                    }
                }
                Ok(RecordSearch { results, omitted, ..RecordSearch::new_empty() })
            })
        };
        let (model, asked) = match QuestionVector::embed_text(&query, self.models(), MODEL_WAIT) {
            Ok(found) => found,
            Err(why) => return Ok(RecordSearch { degraded: vec![why], ..look(None)? }),
        };
        self.make_up_alone(db, &*model)?;
        let (searched, is_partial) = self.meanings().with_memory(db, &*model, |memory| {
            (look(Some(QuestionMeaning { asked: &asked, memory })), memory.is_partial())
        })?;
        let mut searched = searched?;
        searched.mode = match (asked.understood > 0.0, is_partial) {
            (false, _) => "lexical",
            (true, true) => "mixed",
            (true, false) => "semantic",
        };
        if is_partial {
            self.work_on();
            searched.degraded.push("some records have no vector yet; they are found by words".to_owned());
        }
        if searched.results.iter().all(|hit| hit.weak.is_some()) && asked.understood < LITTLE_UNDERSTOOD {
            let why = "the embedding model understands little of this question; ask in the words of the records";
            searched.degraded.push(why.to_owned());
        }
        Ok(searched)
    }

    fn get_record(&self, params: &RecordGetParams) -> Result<RecordDetails> {
        self.with_a_record()?.read(|c| {
            let record = rows::get_record(c, params.id)?;
            let revisions = params.revisions.then(|| rows::read_revisions(c, params.id)).transpose()?;
            Ok(RecordDetails { record, revisions })
        })
    }

    fn list_records(&self, params: RecordListParams) -> Result<RecordList> {
        let RecordListParams { kind, status, project, limit, before, context } = params;
        let limit = limit.get();
        let before = before.as_deref().map(parse_next).transpose()?;
        let here = ProjectLocation::from_context(&context.build()?);
        let none = |projects_like| RecordList { records: Vec::new(), total: 0, next: None, projects_like };
        let Some(db) = self.find_db()? else { return Ok(none(Vec::new())) };
        db.read(|c| {
            let project = match project::choose_project(c, project.as_deref(), here.as_ref())? {
                ProjectChoice::One(id) => Some(id),
                ProjectChoice::All => None,
                ProjectChoice::None(Some(name)) => return Ok(none(project::find_similar_names(c, &name)?)),
                ProjectChoice::None(None) => return Ok(none(Vec::new())),
            };
            let (records, total) = rows::list_records(c, RecordFilter { project, kind, status }, limit, before)?;
            let next = records.last().filter(|_| records.len() == limit);
            let next = next.map(|last| format!("{} {}", last.updated_at, last.id));
            Ok(RecordList { records, total, next, projects_like: Vec::new() })
        })
    }

    fn export_records(&self, params: &RecordExportParams) -> Result<RecordExport> {
        let none = || Error::not_found("There is no record yet, so there is nothing to export.");
        let db = self.find_db()?.ok_or_else(none)?;
        db.read(|c| {
            let project = match params.project.as_deref().filter(|name| *name != "*") {
                None => None,
                Some(name) => {
                    let Some(id) = project::by_name(c, name)? else {
                        let message = "No project has this name; `nudge records projects` lists them.";
                        return Err(Error::not_found(message)
                            .with_data("projects_like", project::find_similar_names(c, name)?)
                            .into());
                    };
                    Some(id)
                }
            };
            transfer::export_records(c, project, params.after)
        })
    }

    fn back_up(&self, params: RecordBackupParams) -> Result<BackedUp> {
        let to = transfer::resolve_path(&params.file, params.context)?;
        let none = || Error::not_found("There is no record yet, so there is nothing to back up.");
        transfer::write_backup(self.find_db()?.ok_or_else(none)?, &to)
    }

    fn list_projects(&self) -> Result<ProjectList> {
        let Some(db) = self.find_db()? else { return Ok(ProjectList { projects: Vec::new(), omitted: 0 }) };
        let (projects, omitted) = db.read(project::list_all)?;
        Ok(ProjectList { projects, omitted })
    }
}

/// Splits the `next` of a list into its time and its number.
fn parse_next(next: &str) -> Result<(&str, i64)> {
    let read = next.rsplit_once(' ').and_then(|(time, id)| Some((time, id.parse().ok()?)));
    read.ok_or_else(|| Error::invalid("`before` must be the `next` of an earlier answer.").about("before"))
}
