//! `nudge config`

use nudge::{Error, Result};
use nudge_agents::running::connect_session;
use nudge_app::settings;
use nudge_core::settings::{Setting, SettingKind, SettingValues, ValueOrigin};
use serde_json::{Value, json};

use super::{CommandOutput, TextForm, print_note};
use crate::args::{ConfigArgs, ConfigVerb, GlobalFlags};
use crate::output;

pub fn run(args: &ConfigArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    match (&args.verb, &args.name) {
        (Some(ConfigVerb::Set { name, value }), _) => change_setting(name, Some(value), global),
        (Some(ConfigVerb::Unset { name }), _) => change_setting(name, None, global),
        (Some(ConfigVerb::Get { name }), _) | (None, Some(name)) => {
            let row = to_row(settings::find_setting(name)?, &settings::read()?);
            Ok(build_output(global, &row, output::render_setting))
        }
        (None, None) => {
            let values = settings::read()?;
            let rows = settings::list_settings().map(|setting| to_row(setting, &values));
            let file = settings::file_path().map(|path| path.display().to_string());
            let result = json!({"file": file, "settings": Value::Array(rows.collect())});
            Ok(build_output(global, &result, output::render_settings))
        }
    }
}

/// Writes or removes a setting in the file, and shows it.
fn change_setting(name: &str, value: Option<&str>, global: &GlobalFlags) -> Result<CommandOutput> {
    let setting = settings::find_setting(name)?;
    if setting.kind == SettingKind::Secret {
        let message =
            format!("A file may not hold `{}`; set the variable {} instead.", setting.name, setting.env_variable());
        return Err(Error::invalid(message));
    }
    write_setting(setting, value, global)?;
    Ok(build_output(global, &to_row(setting, &settings::read()?), output::render_setting))
}

/// Writes or removes a setting in the file. Prints a note if that does not take effect at once.
pub(super) fn write_setting(setting: &Setting, value: Option<&str>, global: &GlobalFlags) -> Result<()> {
    settings::write_setting(setting, value)?;
    if global.json {
        return Ok(());
    }
    if settings::read()?.get_origin(setting.name) == ValueOrigin::Variable {
        let variable = settings::describe_origin(setting, ValueOrigin::Variable);
        print_note(&format!("{variable} is set here and counts more; unset it"));
    }
    if connect_session(global).is_ok() {
        print_note("the session that runs goes by the settings of its start; `nudge stop`, then restart your agents");
    }
    Ok(())
}

fn to_row(setting: &Setting, values: &SettingValues) -> Value {
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
}

fn build_output(global: &GlobalFlags, result: &Value, pretty: impl FnOnce(&Value) -> String) -> CommandOutput {
    if global.json {
        CommandOutput { form: TextForm::Json, ..format!("{result}\n").into() }
    } else {
        pretty(result).into()
    }
}
