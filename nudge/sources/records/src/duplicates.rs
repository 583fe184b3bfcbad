//! Finds records that may say the same: pairs with similar meanings. A person looks at the pairs and merges them.

use std::time::Duration;

use nudge_core::context::ContextSpec;
use nudge_core::embed::{ModelState, TextEmbedder, cosine};
use nudge_core::error::{Error, Result};
use nudge_core::explain::round_number;
use nudge_core::limit::Limit;
use nudge_core::number::{from_count, to_column};
use nudge_core::wire;
use nudge_storage::TransactionFailure;
use nudge_storage::rusqlite::{Connection, params};
use nudge_storage::vectors::{VectorIndex, decode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meaning;
use crate::project::{self, ProjectChoice, ProjectLocation};
use crate::record::{Kind, Record};
use crate::rows;
use crate::source::RecordSource;
use crate::write::ALIKE;

/// The most records that are compared; the newest are taken. Each record is compared with all others of its project and
/// kind.
const MAX_COMPARED: usize = 10_000;
/// The longest time that a call waits until the model is loaded.
const MODEL_WAIT: Duration = Duration::from_secs(10);

/// Params of `nudge.records.duplicates`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordDuplicatesParams {
    /// Absent: that of the context; `*`: every one.
    #[serde(default, deserialize_with = "wire::given")]
    pub project: Option<String>,
    /// The most that two may be apart, 0 to 1; 0.3 when absent.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(range(min = 0, max = 1))]
    pub max_distance: Option<f64>,
    /// Most pairs.
    #[serde(default)]
    pub limit: Limit<20, 100>,
    /// Your context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.records.duplicates`.
#[derive(Debug, Default, Serialize)]
pub struct RecordDuplicates {
    /// The pairs, the nearest first. A pair is left out if the model understands too little of a text, for example a
    /// text in another script.
    pub duplicates: Vec<DuplicatePair>,
    /// The number of further pairs within `max_distance`.
    pub omitted: usize,
    /// The number of records that were not compared: a record without a vector yet, or a record with 10,000 newer ones.
    pub uncompared: usize,
    /// Names of projects similar to the requested project, if that project has no record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects_like: Vec<String>,
}

/// Two records of the same project and kind that may say the same.
#[derive(Debug, Serialize)]
pub struct DuplicatePair {
    /// The numbers of the two records, the older first.
    pub ids: [i64; 2],
    /// 1 minus the cosine of the two vectors; 0 for texts with the same meaning.
    pub distance: f64,
    /// The title of the older record.
    pub title: String,
    /// The title of the newer record.
    pub other_title: String,
    /// The kind of both records.
    pub kind: Kind,
    /// The name of the project of both records.
    pub project: String,
}

/// A record with the vector of the first part of its text. The record is compared only with records of equal project
/// and kind (`of`).
struct ComparedRecord {
    id: i64,
    of: (i64, Kind),
    vector: Vec<f32>,
}

/// The nearest of all pairs so far, at most `limit`.
struct NearestPairs {
    limit: usize,
    all: usize,
    pairs: Vec<(f32, [i64; 2])>,
}

impl NearestPairs {
    fn add_pair(&mut self, distance: f32, ids: [i64; 2]) {
        self.all += 1;
        self.pairs.push((distance, ids));
        if self.pairs.len() > 16 * self.limit {
            self.keep_nearest();
        }
    }

    fn keep_nearest(&mut self) {
        self.pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        self.pairs.truncate(self.limit);
    }
}

impl RecordSource {
    /// Finds the pairs of records with the least distance.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` without a model; `E_INVALID` for a distance out of range.
    pub(crate) fn find_duplicates(&self, params: RecordDuplicatesParams) -> Result<RecordDuplicates> {
        let RecordDuplicatesParams { project, max_distance, limit, context } = params;
        let limit = limit.get();
        let most = max_distance.unwrap_or(ALIKE);
        if !(0.0..=1.0).contains(&most) {
            return Err(Error::invalid("`max_distance` must be a number from 0 to 1.").about("max_distance"));
        }
        let here = ProjectLocation::from_context(&context.build()?);
        let model = match self.models().get(MODEL_WAIT) {
            ModelState::Ready(model) => model,
            ModelState::Failed(error) => return Err(error),
            ModelState::Loading => {
                return Err(Error::unavailable("The embedding model is being loaded; try again in a moment."));
            }
            ModelState::Absent => {
                let message = "Records are compared by their meaning, and there is no embedding model; `nudge model add` gets one.";
                return Err(Error::unavailable(message));
            }
        };
        let Some(db) = self.find_db()? else { return Ok(RecordDuplicates::default()) };
        let asked = db.read(|c| project::choose_project(c, project.as_deref(), here.as_ref()))?;
        let project = match asked {
            ProjectChoice::One(id) => Some(id),
            ProjectChoice::All => None,
            ProjectChoice::None(Some(name)) => {
                return Ok(RecordDuplicates {
                    projects_like: db.read(|c| project::find_similar_names(c, &name))?,
                    ..RecordDuplicates::default()
                });
            }
            ProjectChoice::None(None) => return Ok(RecordDuplicates::default()),
        };
        self.make_up_alone(db, &*model)?;
        let (mut ones, all) = db.read(|c| read(c, project, &*model))?;
        // Puts the records of the same project and kind next to each other.
        ones.sort_by_key(|record| (record.of.0, record.of.1.as_str(), record.id));
        let mut compared = 0;
        let mut nearest = NearestPairs { limit, all: 0, pairs: Vec::new() };
        for group in ones.chunk_by(|a, b| a.of == b.of) {
            let mut vectors = VectorIndex::new(model.id(), model.dims());
            for (key, record) in (0..).zip(group) {
                vectors.upsert(key, 0, &record.vector);
            }
            compared += vectors.len();
            let record_at = |key| usize::try_from(key).ok().and_then(|index| group.get(index));
            // `pairs` keeps a margin that is larger than this rounding. The exact distance is computed below.
            #[allow(clippy::cast_possible_truncation)]
            let least = (1.0 - most) as f32;
            vectors.pairs(least, |first, second| {
                let (Some(first), Some(second)) = (record_at(first), record_at(second)) else { return };
                let distance = (1.0 - cosine(&first.vector, &second.vector)).max(0.0);
                if f64::from(distance) <= most {
                    nearest.add_pair(distance, [first.id, second.id]);
                }
            });
        }
        let uncompared = from_count(all).saturating_sub(compared);
        if uncompared > 0 {
            self.work_on();
        }
        nearest.keep_nearest();
        let omitted = nearest.all - nearest.pairs.len();
        let duplicates = db.read(|c| {
            let pair = |(distance, ids): &(f32, [i64; 2])| {
                // Another call may have deleted one of the two records in the meantime.
                let (Some(first), Some(second)) = (rows::find_record(c, ids[0])?, rows::find_record(c, ids[1])?) else {
                    return Ok(None);
                };
                let is_understood = |record: &Record| meaning::is_understood(&record.title, &record.body, &*model);
                if !is_understood(&first) || !is_understood(&second) {
                    return Ok(None);
                }
                let Record { title: other_title, kind, project, .. } = second;
                let title = first.title;
                let distance = round_number(f64::from(*distance));
                Ok(Some(DuplicatePair { ids: *ids, distance, title, other_title, kind, project }))
            };
            nearest
                .pairs
                .iter()
                .filter_map(|candidate| pair(candidate).transpose())
                .collect::<Result<_, TransactionFailure>>()
        })?;
        Ok(RecordDuplicates { duplicates, omitted, uncompared, projects_like: Vec::new() })
    }
}

/// Reads the newest records that have a vector of this model, and counts all records.
///
/// The vectors come from the database, not from the memory that searches share. To compare thousands of records takes
/// seconds, and a prompt must not wait so long for the memory.
fn read(
    c: &Connection,
    project: Option<i64>,
    model: &dyn TextEmbedder,
) -> Result<(Vec<ComparedRecord>, i64), TransactionFailure> {
    let from_clause = "FROM record WHERE (?1 IS NULL OR project_id = ?1)";
    let all = c.prepare_cached(&format!("SELECT count(*) {from_clause}"))?.query_row([project], |row| row.get(0))?;
    // The inner query selects the newest records without their vectors, because a sort of whole rows would also move
    // the vectors.
    let mut statement = c.prepare_cached(&format!(
        "SELECT r.id, r.project_id, r.kind, e.vector
           FROM (SELECT id, project_id, kind {from_clause} ORDER BY id DESC LIMIT ?3) r
           JOIN embedding e ON e.record_id = r.id AND e.part = 0 AND e.model = ?2"
    ))?;
    let mut rows = statement.query(params![project, model.id(), to_column(MAX_COMPARED)])?;
    let mut ones = Vec::new();
    while let Some(row) = rows.next()? {
        let vector = decode(&row.get::<_, Vec<u8>>(3)?);
        ones.extend(vector.map_or(Ok(None), |vector| {
            Ok::<_, TransactionFailure>(Some(ComparedRecord {
                id: row.get(0)?,
                of: (row.get(1)?, row.get(2)?),
                vector,
            }))
        })?);
    }
    Ok((ones, all))
}
