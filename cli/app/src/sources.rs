//! The one list of sources.

use std::sync::{Arc, OnceLock};

use nudge::MethodSpec;
use nudge_core::clock::Clock;
use nudge_core::embed::ModelProvider;
use nudge_core::settings::SettingValues;
use nudge_core::source::{DataDir, SourceResources, SourceSpec};

/// The work of hooks at the ends of sessions.
pub use nudge_brain::capture;

/// The sources of this binary, in the order in which surfaces list them and in which ties are broken. The first was
/// there before there were others: its records, methods, settings and words on the command line bear no name, and a
/// server does not start without it.
static SOURCES: &[&SourceSpec] = &[
    &nudge::SOURCE,
    &nudge_signals::SOURCE,
    &nudge_records::SOURCE,
    #[cfg(feature = "code")]
    &nudge_code::SOURCE,
    &nudge_brain::SOURCE,
];

/// The folder of the models that were added, in that of the sources' files.
#[cfg(feature = "model")]
pub fn model_folder(data: &DataDir) -> nudge_embed::ModelFolder {
    nudge_embed::ModelFolder::new(data.path().join("models"))
}

/// The model that sources may ask, if its user has added one: in the folder named by `model_dir`, else that of the name
/// `model` among those that were added.
#[cfg(feature = "model")]
pub fn open_models(values: &SettingValues, data: &DataDir, clock: Arc<dyn Clock>) -> Arc<dyn ModelProvider> {
    Arc::new(nudge_embed::ModelLender::new(choose_model(values, data), clock))
}

/// The id of that model by its files, of which none is loaded.
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

/// This binary can run none.
#[cfg(not(feature = "model"))]
pub fn open_models(_: &SettingValues, _: &DataDir, _: Arc<dyn Clock>) -> Arc<dyn ModelProvider> {
    Arc::new(nudge_core::embed::NoModels)
}

/// There is none.
#[cfg(not(feature = "model"))]
pub fn model_id(_: &SettingValues, _: &DataDir) -> nudge::Result<Option<String>> {
    Ok(None)
}

static LIST: OnceLock<&'static [&'static SourceSpec]> = OnceLock::new();

/// Every source. A PROXY opens none of them, but lists them all.
pub fn list_sources() -> &'static [&'static SourceSpec] {
    LIST.get_or_init(|| SOURCES)
}

/// Replaces the list, for a binary of the tests that has one source more. Without effect once the list was read.
pub fn replace_sources(list: &'static [&'static SourceSpec]) {
    let _ = LIST.set(list);
}

/// The source of this name, if there is one.
pub fn find_source(name: &str) -> Option<&'static SourceSpec> {
    list_sources().iter().copied().find(|source| source.name == name)
}

/// The sources that have resources.
pub fn with_resources() -> impl Iterator<Item = (&'static SourceSpec, &'static SourceResources)> {
    list_sources().iter().filter_map(|source| Some((*source, source.resources?)))
}

/// The environment variables of a caller that some source's answers depend on.
pub fn list_env_names() -> impl Iterator<Item = &'static str> {
    list_sources().iter().flat_map(|source| source.env).copied()
}

/// The methods of every source.
pub fn list_methods() -> Vec<&'static MethodSpec> {
    list_sources().iter().flat_map(|source| (source.methods)()).collect()
}

/// The method of this name, if a source has it.
pub fn find_method(name: &str) -> Option<&'static MethodSpec> {
    list_methods().into_iter().find(|row| row.name == name)
}

/// The command that calls a method of a source with a name of its own: `nudge.records.search` is `nudge records search`.
pub fn name_command(method: &str) -> Option<String> {
    let (source, own) = method.strip_prefix("nudge.")?.split_once('.')?;
    Some(format!("nudge {source} {}", own.replace(['.', '_'], "-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`SourceSpec`] says of names and lengths.
    ///
    /// Promise (sources): The specs of sources keep to their names and lengths.
    #[test]
    fn specs_keep_to_the_rules() {
        for (index, source) in list_sources().iter().enumerate() {
            let name = source.name;
            assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name}");
            assert!(source.guide.len() <= 160, "{name}: {} bytes", source.guide.len());
            // Hooks name it to models.
            assert!(find_method(source.list).is_some_and(|row| row.tool), "{name}");
            // The hints were there first, and have no prefix.
            if index > 0 {
                assert!((source.methods)().iter().all(|row| row.name.starts_with(&format!("nudge.{name}."))), "{name}");
                assert!(source.settings.iter().all(|own| own.name.starts_with(&format!("{name}."))), "{name}");
            }
        }
    }
}
