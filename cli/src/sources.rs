//! The one list of sources.

use std::sync::{Arc, OnceLock};

use nudge::Method;
use nudge_core::clock::Clock;
use nudge_core::embed::Models;
use nudge_core::settings::Values;
use nudge_core::source::{DataDir, Resources, SourceSpec};

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
pub fn models(values: &Values, data: &DataDir, clock: Arc<dyn Clock>) -> Arc<dyn Models> {
    Arc::new(nudge_embed::Models::new(choice(values, data), clock))
}

/// The id of that model by its files, of which none is loaded.
#[cfg(feature = "model")]
pub fn model_id(values: &Values, data: &DataDir) -> nudge::Result<Option<String>> {
    choice(values, data).id()
}

#[cfg(feature = "model")]
fn choice(values: &Values, data: &DataDir) -> nudge_embed::Choice {
    use nudge_embed::Choice;
    match (values.text("model_dir"), values.text("model")) {
        ("", "") => Choice::Added(model_folder(data), None),
        ("", name) => Choice::Added(model_folder(data), Some(name.to_owned())),
        (folder, _) => Choice::Folder(folder.into()),
    }
}

/// This binary can run none.
#[cfg(not(feature = "model"))]
pub fn models(_: &Values, _: &DataDir, _: Arc<dyn Clock>) -> Arc<dyn Models> {
    Arc::new(nudge_core::embed::NoModels)
}

/// There is none.
#[cfg(not(feature = "model"))]
pub fn model_id(_: &Values, _: &DataDir) -> nudge::Result<Option<String>> {
    Ok(None)
}

static LIST: OnceLock<&'static [&'static SourceSpec]> = OnceLock::new();

/// Every source. A PROXY opens none of them, but lists them all.
pub fn all() -> &'static [&'static SourceSpec] {
    LIST.get_or_init(|| SOURCES)
}

/// Replaces the list, for a binary of the tests that has one source more. Without effect once the list was read.
pub fn set(list: &'static [&'static SourceSpec]) {
    let _ = LIST.set(list);
}

/// The source of this name, if there is one.
pub fn named(name: &str) -> Option<&'static SourceSpec> {
    all().iter().copied().find(|source| source.name == name)
}

/// The sources that have resources.
pub fn with_resources() -> impl Iterator<Item = (&'static SourceSpec, &'static Resources)> {
    all().iter().filter_map(|source| Some((*source, source.resources?)))
}

/// The environment variables of a caller that some source's answers depend on.
pub fn env() -> impl Iterator<Item = &'static str> {
    all().iter().flat_map(|source| source.env).copied()
}

/// The methods of every source.
pub fn methods() -> Vec<&'static Method> {
    all().iter().flat_map(|source| (source.methods)()).collect()
}

/// The method of this name, if a source has it.
pub fn method(name: &str) -> Option<&'static Method> {
    methods().into_iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`SourceSpec`] says of names and lengths.
    ///
    /// Promise (sources): The specs of sources keep to their names and lengths.
    #[test]
    fn specs_keep_to_the_rules() {
        for (at, source) in all().iter().enumerate() {
            let name = source.name;
            assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name}");
            assert!(source.guide.len() <= 160, "{name}: {} bytes", source.guide.len());
            // Hooks name it to models.
            assert!(method(source.list).is_some_and(|row| row.tool), "{name}");
            // The hints were there first, and have no prefix.
            if at > 0 {
                assert!((source.methods)().iter().all(|row| row.name.starts_with(&format!("nudge.{name}."))), "{name}");
                assert!(source.settings.iter().all(|own| own.name.starts_with(&format!("{name}."))), "{name}");
            }
        }
    }
}
