//! Answers calls that only read, while no server runs: from the hints of `kept.json`, and from the sources that have
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

use crate::days::DayLog;
use crate::kept::{KeptDocument, KeptFolder};
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
/// `E_UNAVAILABLE` for a file of kept hints that cannot be parsed; the errors of the settings.
pub fn open_kept(wanted: ReadSources) -> Result<Option<Arc<dyn Service>>> {
    let values = settings::read()?;
    let mut all = Vec::new();
    let text = read_kept()?;
    let has_hints = text.is_some();
    if has_hints || wanted == ReadSources::All {
        all.push((&SOURCE, open_hints(text.as_deref())?));
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
        let (name, value) = match DayLog::read() {
            Ok(days) => ("days", json!(days.into_last_days(&SystemClock))),
            Err(error) => ("days_note", json!(error.message())),
        };
        std::iter::once((name.to_owned(), value)).collect()
    }));
    let joined = std::iter::once(Arc::new(suggest) as Arc<dyn Service>).chain(services).collect();
    Ok(Some(Arc::new(JoinedServices::new(joined))))
}

/// Returns the number of kept hints and the path of their file. Returns `None` when there is no file.
///
/// # Errors
/// The errors of [`open_kept`].
pub fn count_kept() -> Result<Option<(usize, String)>> {
    let Some(text) = read_kept()? else { return Ok(None) };
    let count = KeptDocument::read(&text).map_err(|error| unreadable(&error))?.len();
    Ok(Some((count, KeptFolder::from_state_dir()?.file_path().display().to_string())))
}

fn read_kept() -> Result<Option<String>> {
    KeptFolder::from_state_dir()?.read().map_err(|error| unreadable(&error))
}

fn unreadable(why: &dyn std::fmt::Display) -> Error {
    let file = KeptFolder::from_state_dir().map(|folder| folder.file_path().display().to_string()).unwrap_or_default();
    Error::unavailable(format!(
        "The kept hints in {file} cannot be read ({why}); `nudge serve --detach` starts a session, which sets the file aside."
    ))
}

/// Opens the source of hints with the hints of the kept file, or without hints if there is no file.
fn open_hints(text: Option<&str>) -> Result<Arc<dyn Source>> {
    // The hints are in memory, so the source needs no folder.
    let hints = (SOURCE.open)(SourceHost::new_alone(std::path::Path::new(""), &SOURCE, NO_LIMITS)?)?;
    if let Some(text) = text {
        let document = KeptDocument::read(text).map_err(|error| unreadable(&error))?;
        let payload = RawValue::from_string(document.to_payload()).map_err(|error| unreadable(&error))?;
        let params = raw_json(&json!({"payload": payload, "mode": "merge", "allow_secret": true}));
        hints.call("nudge.import", &params).map_err(|error| unreadable(&error.message().trim_end_matches('.')))?;
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
