//! `nudge model`

use std::path::Path;

use nudge::Result;
use nudge_app::{settings, sources};
use nudge_embed::{KNOWN, ModelDownload, ModelFolder, StoredModel};
use serde_json::{Value, json};

use super::{CommandOutput, ask_consent};
use crate::args::{GlobalFlags, ModelArgs, ModelVerb};
use crate::output;

/// Adds, lists or removes a model.
pub fn run(args: &ModelArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let values = settings::read()?;
    let models = sources::model_folder(&settings::data_dir(&values));
    match &args.verb {
        ModelVerb::Add { from: Some(from), name, .. } => Ok(report_added(global, &models.add(from, name.as_deref())?)),
        ModelVerb::Add { from: None, yes, .. } => fetch_usual(&models, *yes, global),
        ModelVerb::List => list_models(&models, global),
        ModelVerb::Remove { name } => {
            let bytes = models.remove(name)?;
            let text = format!("removed {name}, {}\n", show_size(bytes));
            Ok(build_output(global, text, &json!({"removed": name, "bytes": bytes})))
        }
    }
}

/// Downloads the default model after the user has agreed.
fn fetch_usual(models: &ModelFolder, yes: bool, global: &GlobalFlags) -> Result<CommandOutput> {
    let known = &KNOWN[0];
    let download = ModelDownload { progress: !global.json, ..ModelDownload::from(known) };
    let question = format!(
        "{} ({}), {} from {}, into {}. Fetch it?",
        known.name,
        known.licence,
        show_size(known.bytes()),
        download.address,
        output::make_visible(&models.path().display().to_string())
    );
    ask_consent(yes, &question)?;
    Ok(report_added(global, &models.fetch(known, &download)?))
}

fn report_added(global: &GlobalFlags, model: &StoredModel) -> CommandOutput {
    let text = format!(
        "added {}, {}, in {}\nrecords and hints are found by meaning from now on; a running server takes it by itself\n",
        output::make_visible(&model.name),
        show_size(model.bytes),
        output::make_visible(&model.folder.display().to_string())
    );
    build_output(global, text, &to_row(model))
}

fn list_models(models: &ModelFolder, global: &GlobalFlags) -> Result<CommandOutput> {
    let stored = models.list()?;
    let line = |model: &StoredModel| {
        let rest = if model.complete { "" } else { "; only a part has come: `nudge model add` goes on" };
        format!("{}  {}{rest}\n", output::make_visible(&model.name), show_size(model.bytes))
    };
    let text = match &stored[..] {
        [] => "no model; `nudge model add` fetches the usual one, after it has asked\n".to_owned(),
        all => all.iter().map(line).collect(),
    };
    let rows: Vec<_> = stored.iter().map(to_row).collect();
    Ok(build_output(global, text, &json!({"models": rows})))
}

fn to_row(model: &StoredModel) -> Value {
    let StoredModel { name, folder, bytes, complete } = model;
    json!({"name": name, "folder": show_path(folder), "bytes": bytes, "complete": complete})
}

fn show_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Formats a size in MB (1,000,000 bytes).
fn show_size(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

fn build_output(global: &GlobalFlags, text: String, value: &Value) -> CommandOutput {
    if global.json { format!("{value}\n").into() } else { text.into() }
}
