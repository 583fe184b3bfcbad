//! `nudge model`

use std::path::Path;

use nudge::Result;
use nudge_embed::{Download, KNOWN, ModelFolder, Stored};
use serde_json::{Value, json};

use super::{CommandOutput, agree};
use crate::args::{Global, Model, ModelVerb};
use crate::{output, settings, sources};

/// Adds, lists or removes.
pub fn run(args: &Model, global: &Global) -> Result<CommandOutput> {
    let values = settings::read()?;
    let models = sources::model_folder(&settings::data_dir(&values));
    match &args.verb {
        ModelVerb::Add { from: Some(from), name, .. } => Ok(added(global, &models.add(from, name.as_deref())?)),
        ModelVerb::Add { from: None, yes, .. } => fetch(&models, *yes, global),
        ModelVerb::List => list(&models, global),
        ModelVerb::Remove { name } => {
            let bytes = models.remove(name)?;
            let text = format!("removed {name}, {}\n", size(bytes));
            Ok(told(global, text, &json!({"removed": name, "bytes": bytes})))
        }
    }
}

/// Fetches the usual model, once its user has agreed.
fn fetch(models: &ModelFolder, yes: bool, global: &Global) -> Result<CommandOutput> {
    let known = &KNOWN[0];
    let download = Download { progress: !global.json, ..Download::from(known) };
    let question = format!(
        "{} ({}), {} from {}, into {}. Fetch it?",
        known.name,
        known.licence,
        size(known.bytes()),
        download.address,
        output::visible(&models.path().display().to_string())
    );
    agree(yes, &question)?;
    Ok(added(global, &models.fetch(known, &download)?))
}

fn added(global: &Global, model: &Stored) -> CommandOutput {
    let text = format!(
        "added {}, {}, in {}\nrecords and hints are found by meaning from now on; a running server takes it by itself\n",
        output::visible(&model.name),
        size(model.bytes),
        output::visible(&model.folder.display().to_string())
    );
    told(global, text, &row(model))
}

fn list(models: &ModelFolder, global: &Global) -> Result<CommandOutput> {
    let stored = models.list()?;
    let line = |model: &Stored| {
        let rest = if model.complete { "" } else { "; only a part has come: `nudge model add` goes on" };
        format!("{}  {}{rest}\n", output::visible(&model.name), size(model.bytes))
    };
    let text = match &stored[..] {
        [] => "no model; `nudge model add` fetches the usual one, after it has asked\n".to_owned(),
        all => all.iter().map(line).collect(),
    };
    let rows: Vec<_> = stored.iter().map(row).collect();
    Ok(told(global, text, &json!({"models": rows})))
}

fn row(model: &Stored) -> Value {
    let Stored { name, folder, bytes, complete } = model;
    json!({"name": name, "folder": path(folder), "bytes": bytes, "complete": complete})
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A size in the unit of downloads.
fn size(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

fn told(global: &Global, text: String, value: &Value) -> CommandOutput {
    if global.json { format!("{value}\n").into() } else { text.into() }
}
