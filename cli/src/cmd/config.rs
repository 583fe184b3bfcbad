//! `nudge config`

use nudge::Result;
use nudge_core::settings::Origin;
use serde_json::{Value, json};

use super::{CommandOutput, Form};
use crate::args::Global;
use crate::{output, settings};

pub fn run(global: &Global) -> Result<CommandOutput> {
    let values = settings::read()?;
    let rows = settings::table().map(|setting| {
        let origin = values.origin(setting.name);
        json!({
            "name": setting.name,
            "value": values.shown(setting.name),
            "from": settings::origin(setting, origin),
            "default": origin == Origin::Default,
            "variable": setting.variable(),
            "flag": setting.long().map(|long| format!("--{long}")),
            "about": setting.about,
        })
    });
    let file = settings::file().map(|path| path.display().to_string());
    let result = json!({"file": file, "settings": Value::Array(rows.collect())});
    Ok(if global.json {
        CommandOutput { form: Form::Json, ..format!("{result}\n").into() }
    } else {
        output::settings(&result).into()
    })
}
