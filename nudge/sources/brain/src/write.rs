//! Offers the three methods that write a file: make a brain, add a unit, set a field.

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::error::{Error, Result};
use nudge_core::number::from_count;
use nudge_core::safety::refusal;
use nudge_core::service::Caller;
use nudge_core::text::to_hex;
use nudge_os::dir::advise_on_disk;
use nudge_storage::search::{QuestionWords, search};
use nudge_storage::{TransactionFailure, rusqlite};
use rusqlite::{Connection, OptionalExtension as _};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::{NoContext, Timestamp, Uuid};

use crate::choose::resolve_folder;
use crate::config::FILE;
use crate::context::open_refreshed;
use crate::folder::BrainFolder;
use crate::git;
use crate::method::{BrainInitParams, SetField, UnitAddParams};
use crate::read::unit_of;
use crate::schema::FULL_TEXT;
use crate::source::BrainSource;
use crate::splice;
use crate::unit::KINDS;

/// The limits of a new unit's title, in characters. `MAX_BODY_BYTES` limits the body.
const TITLE_CHARS: std::ops::RangeInclusive<usize> = 1..=200;
const MAX_BODY_BYTES: usize = 256 << 10;
/// The most characters of a new file's name, without its ending.
const MAX_SLUG_CHARS: usize = 80;
/// The most similar units that an answer lists. A similar unit must contain the share `SIMILAR` of the new title's
/// words.
const MAX_SIMILAR: usize = 5;
const SIMILAR: f64 = 0.7;

/// Result of `nudge.brain.init`.
#[derive(Debug, Serialize)]
pub struct NewBrain {
    pub root: String,
    /// The parts that were made; empty if all parts existed before.
    pub made: Vec<&'static str>,
    pub units: usize,
    /// Is true when the caller has named this folder as the brain.
    pub is_yours: bool,
}

/// Result of `nudge.brain.add`.
#[derive(Debug, Serialize)]
pub struct AddedUnit {
    pub id: String,
    pub path: String,
    /// Is true if the file is new.
    pub created: bool,
    /// The units that contain most words of the new title.
    pub similar: Vec<SimilarUnit>,
}

/// A unit that may say the same as the new unit.
#[derive(Debug, Serialize)]
pub struct SimilarUnit {
    pub id: String,
    pub title: String,
}

impl BrainSource {
    pub(crate) fn init_brain(&self, params: BrainInitParams) -> Result<NewBrain> {
        let context = params.context.build()?;
        let dir = resolve_folder(params.dir.as_deref(), &context)?;
        let failed = |error: std::io::Error| {
            let advice = advise_on_disk(&error).unwrap_or("make the folder above it writable, or name another");
            Error::unavailable(format!("The brain {} cannot be made ({error}); {advice}.", dir.display()))
        };
        std::fs::create_dir_all(&dir).map_err(failed)?;
        let folder = BrainFolder::open(&dir)?;
        let root = folder.path();
        let mut made = Vec::new();
        // Git runs first: if it fails, nothing is half done.
        if params.git && git::init_repository(root)? {
            made.push(".git");
        }
        if root.join(FILE).symlink_metadata().is_err() {
            let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let text = format!(
                "# What this folder is to nudge; all of it may be left out.\nbrain: 1\nname: {}\n",
                json!(name)
            );
            let mut file = std::fs::File::create_new(root.join(FILE)).map_err(failed)?;
            std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?;
            made.push(FILE);
        }
        let has_notes = folder
            .list_files(&crate::config::BrainConfig::load(root), None)
            .is_some_and(|walked| !walked.files.is_empty());
        // A user who already has notes has folders for them too, so `domains` is not made.
        if !has_notes && !root.join("domains").exists() {
            std::fs::create_dir(root.join("domains")).map_err(failed)?;
            made.push("domains");
        }
        let root_text = root.to_string_lossy().into_owned();
        let is_yours =
            self.find_named(&context).and_then(|named| BrainFolder::open(&named).ok()).is_some_and(|own| own == folder);
        let index = self.index(root)?;
        index.scan(None)?;
        self.work_on();
        let units = index.db.read(|c| Ok(c.query_row("SELECT count(*) FROM unit", [], |row| row.get::<_, i64>(0))?))?;
        Ok(NewBrain { root: root_text, made, units: from_count(units), is_yours })
    }

    pub(crate) fn add_unit(&self, caller: Caller<'_>, params: &UnitAddParams) -> Result<Box<RawValue>> {
        params.check_params()?;
        let now = self.clock().now();
        let index = open_refreshed(self, params.context.clone())?;
        let (id, text) = params.render_file(now)?;
        let path = params.choose_path(index.folder.path().join("domains").is_dir());
        let answer = index.db.write_once(caller, |tx| {
            let similar = find_similar(tx, &index.known, &params.title)?;
            let known: Option<String> = tx
                .prepare_cached("SELECT uid FROM unit WHERE path = ?1")?
                .query_row([&path], |row| row.get(0))
                .optional()?;
            if let Some(id) = known.filter(|_| params.if_absent) {
                return Ok(AddedUnit { id, path: path.clone(), created: false, similar });
            }
            index.folder.create_file(&path, &text)?;
            index.put_written(tx, &path)?;
            Ok(AddedUnit { id: id.clone(), path: path.clone(), created: true, similar })
        })?;
        if !answer.again {
            self.tell_change(caller, "add", &id);
        }
        Ok(answer.result)
    }

    pub(crate) fn set_field(&self, caller: Caller<'_>, params: SetField) -> Result<Box<RawValue>> {
        let SetField { id, field, value, if_hash, context } = params;
        refusal::check_json("value", &value)?;
        refusal::check_text(Some(&field), &value.to_string(), "value")?;
        let index = open_refreshed(self, context)?;
        // The command line passes only texts. A text that reads as a number, a truth value or a list is converted.
        let value = match &value {
            Value::String(text) => serde_json::from_str(text)
                .ok()
                .filter(|read: &Value| !read.is_object() && !read.is_null())
                .unwrap_or(value),
            _ => value,
        };
        let answer = index.db.write_once(caller, |tx| {
            let (_, path) = unit_of(tx, &id)?;
            let gone = |error: std::io::Error| Error::not_found(format!("{path} cannot be read: {error}."));
            let read = index.folder.read(&path).map_err(gone)?;
            if if_hash.as_ref().is_some_and(|wanted| *wanted != to_hex(&read.hash)) {
                let message = format!("{path} was changed meanwhile; read it again.");
                return Err(Error::conflict(message).with_data("hash", to_hex(&read.hash)).into());
            }
            let set = splice::set_field(&read.text, &field, &value)?;
            index.folder.replace_file(&path, &read.hash, &set.text)?;
            index.put_written(tx, &path)?;
            let id: String =
                tx.prepare_cached("SELECT uid FROM unit WHERE path = ?1")?.query_row([&path], |row| row.get(0))?;
            Ok(json!({"id": id, "path": path, "diff": set.diff}))
        })?;
        if !answer.again {
            self.tell_change(caller, "set_field", &id);
        }
        Ok(answer.result)
    }
}

impl UnitAddParams {
    fn check_params(&self) -> Result<()> {
        let title = self.title.trim();
        if !TITLE_CHARS.contains(&title.chars().count()) || title.chars().any(nudge_core::text::is_hidden) {
            return Err(Error::invalid("`title` must be one line of at most 200 characters.").about("title"));
        }
        if self.body.trim().is_empty() || self.body.len() > MAX_BODY_BYTES {
            return Err(Error::invalid("`body` must have some text, of 256 KiB at most.").about("body"));
        }
        if let Some(kind) = self.kind.as_deref().filter(|kind| !KINDS.contains(kind)) {
            return Err(nudge_core::near::refuse_unknown("type", kind, &KINDS));
        }
        refusal::check_text(None, title, "title")?;
        refusal::check_text(None, &self.body, "body")?;
        refusal::check_json("tags", &json!([self.tags, self.related, self.domain]))
    }

    /// Returns the path of the new file.
    fn choose_path(&self, has_domains: bool) -> String {
        path_of(self.domain.as_deref().unwrap_or("general"), &self.title, has_domains)
    }

    /// Returns the id and the text of the new file.
    fn render_file(&self, now: Millis) -> Result<(String, String)> {
        let id = new_id(now);
        let now_text = rfc3339::format_time(now);
        let mut fields = vec![("id", json!(id)), ("title", json!(self.title.trim()))];
        let some = |name, text: &Option<String>| text.as_ref().map(|text| (name, json!(text)));
        fields.extend(some("type", &self.kind));
        fields.extend(some("domain", &self.domain));
        let list = |name, list: &[String]| (!list.is_empty()).then(|| (name, json!(list)));
        fields.extend(list("tags", &self.tags));
        fields.extend(list("related", &self.related));
        fields.extend([("created", json!(now_text)), ("last_modified", json!(now_text))]);
        Ok((id, file_of(&self.body, fields)?))
    }
}

/// Makes a new id, which is unique.
pub fn new_id(now: Millis) -> String {
    let millis = now.max(0).unsigned_abs();
    let nanos = u32::try_from(millis % 1_000 * 1_000_000).expect("less than a second");
    Uuid::new_v7(Timestamp::from_unix(NoContext, millis / 1_000, nanos)).to_string()
}

/// Returns the path for the file of a new unit.
pub fn path_of(domain: &str, title: &str, has_domains: bool) -> String {
    let domain = to_slug(domain);
    let folder = if has_domains { format!("domains/{domain}") } else { domain };
    format!("{folder}/{}.md", to_slug(title))
}

/// Returns the text of a new unit's file: the fields as frontmatter, and the body.
pub fn file_of(body: &str, fields: Vec<(&str, Value)>) -> Result<String> {
    let mut text = format!("---\n---\n{}\n", body.trim_end());
    for (name, value) in fields {
        text = splice::set_field(&text, name, &value)?.text;
    }
    Ok(text)
}

/// Makes the name of a file from a text: letters and digits of any script, with `-` between words.
fn to_slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let slug: String = words.collect::<Vec<_>>().join("-").to_lowercase().chars().take(MAX_SLUG_CHARS).collect();
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "unit".to_owned() } else { slug.to_owned() }
}

/// Finds the units that contain most words of a title.
fn find_similar(
    c: &Connection,
    known: &nudge_storage::search::TextIndexCache,
    title: &str,
) -> Result<Vec<SimilarUnit>, TransactionFailure> {
    let found = search(c, &FULL_TEXT, &QuestionWords::from_text(title), known)?;
    let mut chunks: Vec<_> = found.rows.iter().filter(|(_, held)| held.coverage >= SIMILAR).collect();
    chunks.sort_by(|(a, held), (b, other)| other.coverage.total_cmp(&held.coverage).then(a.cmp(b)));
    let mut similar: Vec<SimilarUnit> = Vec::new();
    let mut unit =
        c.prepare_cached("SELECT u.uid, u.title FROM chunk c JOIN unit u ON u.id = c.unit WHERE c.id = ?1")?;
    for (chunk, _) in chunks {
        let neighbour = unit.query_row([chunk], |row| Ok(SimilarUnit { id: row.get(0)?, title: row.get(1)? }))?;
        if similar.len() < MAX_SIMILAR && similar.iter().all(|known| known.id != neighbour.id) {
            similar.push(neighbour);
        }
    }
    Ok(similar)
}
