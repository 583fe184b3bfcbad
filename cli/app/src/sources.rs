//! The only list of the binary's sources.

use std::sync::{Arc, OnceLock};

use nudge::MethodSpec;
use nudge_core::clock::Clock;
use nudge_core::embed::ModelProvider;
use nudge_core::settings::SettingValues;
use nudge_core::source::{DataDir, SourceResources, SourceSpec};

/// The work of hooks at the end of a session.
pub use nudge_brain::capture;

/// The sources of this binary. Every surface lists them in this order, and in a tie an earlier source wins. The first
/// source is the oldest one, so its records, methods, settings and commands have no prefix. A server does not start
/// without the first source.
static SOURCES: &[&SourceSpec] = &[
    &nudge::SOURCE,
    &nudge_signals::SOURCE,
    &nudge_records::SOURCE,
    #[cfg(feature = "code")]
    &nudge_code::SOURCE,
    &nudge_brain::SOURCE,
];

/// Returns the folder of added models, inside the sources' data folder.
#[cfg(feature = "model")]
pub fn model_folder(data: &DataDir) -> nudge_embed::ModelFolder {
    nudge_embed::ModelFolder::new(data.path().join("models"))
}

/// Opens the model for the sources, if the user has added one. The folder in the setting `model_dir` has priority over
/// the added model that the setting `model` names.
#[cfg(feature = "model")]
pub fn open_models(values: &SettingValues, data: &DataDir, clock: Arc<dyn Clock>) -> Arc<dyn ModelProvider> {
    Arc::new(nudge_embed::ModelLender::new(choose_model(values, data), clock))
}

/// Computes the id of the model from its files, without loading it. Returns `None` if there is no model.
#[cfg(feature = "model")]
pub fn model_id(values: &SettingValues, data: &DataDir) -> nudge::Result<Option<String>> {
    choose_model(values, data).find_id()
}

#[cfg(feature = "model")]
fn choose_model(values: &SettingValues, data: &DataDir) -> nudge_embed::ModelChoice {
    use nudge_embed::ModelChoice;
    match (values.get_text("model_dir"), values.get_text("model")) {
        ("", "") => ModelChoice::Added(model_folder(data), None),
        ("", name) => ModelChoice::Added(model_folder(data), Some(name.to_owned())),
        (folder, _) => ModelChoice::Folder(folder.into()),
    }
}

/// Returns a provider without a model, because this binary cannot run one.
#[cfg(not(feature = "model"))]
pub fn open_models(_: &SettingValues, _: &DataDir, _: Arc<dyn Clock>) -> Arc<dyn ModelProvider> {
    Arc::new(nudge_core::embed::NoModels)
}

/// Returns `None`, because this binary cannot run a model.
#[cfg(not(feature = "model"))]
pub fn model_id(_: &SettingValues, _: &DataDir) -> nudge::Result<Option<String>> {
    Ok(None)
}

static LIST: OnceLock<&'static [&'static SourceSpec]> = OnceLock::new();

/// Lists every source. A PROXY also lists all sources, although it opens none.
pub fn list_sources() -> &'static [&'static SourceSpec] {
    LIST.get_or_init(|| SOURCES)
}

/// Replaces the list in a test binary that has one more source. Has no effect after the first read of the list.
pub fn replace_sources(list: &'static [&'static SourceSpec]) {
    let _ = LIST.set(list);
}

/// Finds the source with this name.
pub fn find_source(name: &str) -> Option<&'static SourceSpec> {
    list_sources().iter().copied().find(|source| source.name == name)
}

/// Lists the sources that have resources.
pub fn with_resources() -> impl Iterator<Item = (&'static SourceSpec, &'static SourceResources)> {
    list_sources().iter().filter_map(|source| Some((*source, source.resources?)))
}

/// Lists the caller's environment variables on which some source's answers depend.
pub fn list_env_names() -> impl Iterator<Item = &'static str> {
    list_sources().iter().flat_map(|source| source.env).copied()
}

/// Lists the methods of every source.
pub fn list_methods() -> Vec<&'static MethodSpec> {
    list_sources().iter().flat_map(|source| (source.methods)()).collect()
}

/// Finds the method with this name.
pub fn find_method(name: &str) -> Option<&'static MethodSpec> {
    list_methods().into_iter().find(|row| row.name == name)
}

/// Returns the command that calls a method of a named source: `nudge records search` for `nudge.records.search`.
pub fn name_command(method: &str) -> Option<String> {
    let (source, own) = method.strip_prefix("nudge.")?.split_once('.')?;
    Some(format!("nudge {source} {}", own.replace(['.', '_'], "-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the rules of [`SourceSpec`] for names and lengths.
    ///
    /// Promise (sources): The specs of sources keep to their names and lengths.
    #[test]
    fn specs_keep_to_the_rules() {
        for (index, source) in list_sources().iter().enumerate() {
            let name = source.name;
            assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name}");
            assert!(source.guide.len() <= 160, "{name}: {} bytes", source.guide.len());
            // Hooks tell models the name of this method.
            assert!(find_method(source.list).is_some_and(|row| row.tool), "{name}");
            // The first source holds the hints; its methods have no prefix.
            if index > 0 {
                assert!((source.methods)().iter().all(|row| row.name.starts_with(&format!("nudge.{name}."))), "{name}");
                assert!(source.settings.iter().all(|own| own.name.starts_with(&format!("{name}."))), "{name}");
            }
        }
    }
}
