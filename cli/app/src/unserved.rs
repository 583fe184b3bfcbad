//! Answers calls that only read, while no server runs: from the hints of `hints.db`, and from the sources that have
//! files of their own. Writes nothing.

use std::sync::Arc;

use nudge::{Error, JoinedServices, Result, SOURCE, Service};
use nudge_core::clock::SystemClock;
use nudge_core::settings::SettingValues;
use nudge_core::source::{Source, SourceHost, SourceSpec};
use nudge_core::suggest_service::SuggestService;
use nudge_core::wire::raw_json;
use serde_json::json;
use serde_json::value::RawValue;

use crate::evidence::EvidenceStore;
use crate::kept::KeptDocument;
use crate::kept::database::{StoredHint, read_alone};
use crate::kept::folder::KeptFolder;
use crate::kept::state_folder::StateDirectory;
use crate::{settings, sources};

/// Limits that are larger than any session's, because the file was written within the limits of an unknown session.
const NO_LIMITS: &[(&str, &str)] = &[
    ("max_components", "10000000"),
    ("max_hints_per_component", "10000000"),
    ("max_hints", "10000000"),
    ("max_bytes", "2147483648"),
    ("secret_guard", "0"),
];

/// Selects the sources to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadSources {
    /// The kept hints.
    Hints,
    /// The kept hints, and every source that can answer without a server.
    All,
}

/// Opens the kept data of the wanted sources. Returns `None` when there is no such data.
///
/// # Errors
/// `E_UNAVAILABLE` when the kept hints cannot be read; the errors of the settings.
pub fn open_kept(wanted: ReadSources) -> Result<Option<Arc<dyn Service>>> {
    let values = settings::read()?;
    let mut all = Vec::new();
    let kept = KeptHints::read()?;
    let has_hints = kept.is_some();
    if has_hints || wanted == ReadSources::All {
        all.push((&SOURCE, open_hints(&kept.unwrap_or_default())?));
    }
    if wanted == ReadSources::All {
        let alone = sources::list_sources().iter().filter(|spec| spec.alone);
        let opened = alone.filter_map(|spec| Some((*spec, open_alone(spec, &values).ok()?)));
        all.extend(opened.filter(|(_, source)| source.in_use()));
    }
    if !has_hints && all.len() < 2 {
        return Ok(None);
    }
    let services: Vec<_> = all.iter().map(|(_, source)| Arc::clone(source) as Arc<dyn Service>).collect();
    let models = sources::open_models(&values, &settings::data_dir(&values), Arc::new(SystemClock));
    let suggest = SuggestService::new(values.get_count("suggest_max"), Arc::new(SystemClock), models, all);
    let suggest = suggest.with_more_stats(Arc::new(|_| {
        let (name, value) = match EvidenceStore::from_settings().and_then(|store| store.read_days()) {
            Ok(days) => ("days", json!(days.into_last_days(&SystemClock))),
            Err(error) => ("days_note", json!(error.message())),
        };
        std::iter::once((name.to_owned(), value)).collect()
    }));
    let joined = std::iter::once(Arc::new(suggest) as Arc<dyn Service>).chain(services).collect();
    Ok(Some(Arc::new(JoinedServices::new(joined))))
}

/// Returns the number of kept hints and the path of their database. Returns `None` when nothing is kept.
///
/// # Errors
/// The errors of [`open_kept`].
pub fn count_kept() -> Result<Option<(usize, String)>> {
    let Some(kept) = KeptHints::read()? else { return Ok(None) };
    Ok(Some((kept.count_hints()?, KeptFolder::from_settings()?.database_path().display().to_string())))
}

/// The kept hints as the files have them.
#[derive(Default)]
struct KeptHints {
    /// The hints of the database.
    stored: Vec<StoredHint>,
    /// The kept file of an earlier version, which the next session adds to the database.
    earlier: Option<String>,
}

impl KeptHints {
    /// Reads the files. Returns `None` when there are none.
    fn read() -> Result<Option<Self>> {
        let stored = read_alone(&KeptFolder::from_settings()?.database_path())?;
        // Without a home folder there is no file of an earlier version.
        let earlier = StateDirectory::from_user().ok().map_or(Ok(None), |folder| folder.read_kept());
        let earlier = earlier.map_err(|error| describe_unreadable(&error))?;
        let is_there = stored.is_some() || earlier.is_some();
        Ok(is_there.then(|| Self { stored: stored.into_iter().flatten().collect(), earlier }))
    }

    fn parse_earlier(&self) -> Result<Option<KeptDocument<'_>>> {
        self.earlier.as_deref().map(KeptDocument::read).transpose().map_err(|error| describe_unreadable(&error))
    }

    /// Counts the hints that the next session reads.
    fn count_hints(&self) -> Result<usize> {
        let stored = self.stored.iter().filter(|hint| !hint.waits).count();
        Ok(stored + self.parse_earlier()?.map_or(0, |document| document.count_hints()))
    }
}

/// Makes the error for a file of an earlier version. A damaged database is another error, of [`read_alone`].
fn describe_unreadable(why: &dyn std::fmt::Display) -> Error {
    let folder = StateDirectory::from_user();
    let file = folder.map_or_else(|_| "kept.json".to_owned(), |folder| folder.kept_path().display().to_string());
    Error::unavailable(format!(
        "The kept hints in {file} cannot be read ({why}); `nudge serve --detach --keep` starts a session, which sets the file aside."
    ))
}

/// Opens the source of hints with the kept hints. Hints that make no sense to this version are left out.
fn open_hints(kept: &KeptHints) -> Result<Arc<dyn Source>> {
    // The hints are in memory, so the source needs no folder.
    let hints = (SOURCE.open)(SourceHost::new_alone(std::path::Path::new(""), &SOURCE, NO_LIMITS)?)?;
    let stored =
        KeptDocument::from_hints(kept.stored.iter().filter(|hint| !hint.waits).filter_map(StoredHint::to_hint));
    for document in std::iter::once(stored).chain(kept.parse_earlier()?) {
        let payload = RawValue::from_string(document.to_payload()).map_err(|error| describe_unreadable(&error))?;
        let params = raw_json(&json!({"payload": payload, "mode": "merge", "allow_secret": true}));
        hints
            .call("nudge.import", &params)
            .map_err(|error| describe_unreadable(&error.message().trim_end_matches('.')))?;
    }
    Ok(hints)
}

/// Opens a source in this process.
///
/// # Errors
/// The error of the source.
pub fn open_alone(source: &SourceSpec, values: &SettingValues) -> Result<Arc<dyn Source>> {
    (source.open)(host_alone(source, values)?)
}

/// Returns a host that can open a source in this process.
///
/// # Errors
/// `E_INVALID` for a setting that the source does not have.
pub fn host_alone(source: &SourceSpec, values: &SettingValues) -> Result<SourceHost<'static>> {
    let data = settings::data_dir(values);
    Ok(SourceHost {
        cache: settings::cache_dir(values),
        models: sources::open_models(values, &data, Arc::new(SystemClock)),
        settings: Arc::new(values.select(source.settings)),
        data: data.clone(),
        ..SourceHost::new_alone(data.path(), source, &[])?
    })
}
