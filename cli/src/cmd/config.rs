//! `nudge config`

use nudge::Result;
use nudge_app::settings;
use nudge_core::settings::ValueOrigin;
use serde_json::{Value, json};

use super::{CommandOutput, TextForm};
use crate::args::GlobalFlags;
use crate::output;

pub fn run(global: &GlobalFlags) -> Result<CommandOutput> {
    let values = settings::read()?;
    let rows = settings::list_settings().map(|setting| {
        let origin = values.get_origin(setting.name);
        json!({
            "name": setting.name,
            "value": values.get_shown(setting.name),
            "from": settings::describe_origin(setting, origin),
            "default": origin == ValueOrigin::Default,
            "variable": setting.env_variable(),
            "flag": setting.long_flag().map(|long| format!("--{long}")),
            "about": setting.about,
        })
    });
    let file = settings::file_path().map(|path| path.display().to_string());
    let result = json!({"file": file, "settings": Value::Array(rows.collect())});
    Ok(if global.json {
        CommandOutput { form: TextForm::Json, ..format!("{result}\n").into() }
    } else {
        output::render_settings(&result).into()
    })
}
