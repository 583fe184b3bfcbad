//! Applies the secret guard to every write: selects the texts of a hint and scans them.

use nudge_core::error::{Error, Result};
use nudge_core::safety::refusal::{check_json, check_text as scan};
use nudge_core::scope::Scope;

use crate::hint::{HintMeta, HintValue, Sensitivity};

/// Scans every text of a hint (semantics section 7).
pub(crate) fn check_hint(component: &str, key: &str, value: &HintValue, meta: &HintMeta, scope: &Scope) -> Result<()> {
    scan(None, component, "component")?;
    scan(None, key, "key")?;
    if meta.sensitivity != Some(Sensitivity::Secret) {
        match value {
            HintValue::Text(text) => {
                // In a key such as `env.DB_PASSWORD`, the last part is the name of the variable that has the value.
                scan(Some(key).filter(|key| is_variable(key)), text, "value")?;
                scan_named(component, key, text, "value")?;
            }
            HintValue::Command(command) => {
                scan(None, &command.cmd, "value.cmd")?;
                scan_named(component, key, &command.cmd, "value.cmd")?;
            }
            HintValue::Path(path) => scan(None, &path.abs, "value.abs")?,
            HintValue::Template(template) => {
                scan(None, &template.body, "value.body")?;
                scan_named(component, key, &template.body, "value.body")?;
                let defaults =
                    template.defaults.iter().map(|(name, text)| (name.clone(), text.clone().into())).collect();
                check_json("value.defaults", &serde_json::Value::Object(defaults))?;
            }
            HintValue::Json(json) => {
                let data = serde_json::from_str(json.get()).map_err(|_| Error::invalid("value.data must be JSON."))?;
                check_json("value.data", &data)?;
                if let Some(text) = data.as_str() {
                    scan_named(component, key, text, "value.data")?;
                }
            }
        }
    }
    for (text, path) in [(&meta.reason, "meta.reason"), (&meta.added_by, "meta.added_by")] {
        if let Some(text) = text {
            scan(None, text, path)?;
        }
    }
    meta.tags.iter().try_for_each(|tag| scan(None, tag, "meta.tags"))?;
    if scope.is_empty() {
        return Ok(());
    }
    let scope = serde_json::from_str(scope.canonical_json()).map_err(|_| Error::invalid("meta.scope must be JSON."))?;
    check_json("meta.scope", &scope)
}

/// Scans a value of one word as the value of a variable with the name of the key, and with the name of the component,
/// because of calls such as `nudge set db password X`. A key that names a task (`reset-password`) has a command of
/// several words or a harmless word as its value.
fn scan_named(component: &str, key: &str, text: &str, path: &str) -> Result<()> {
    let word = text.trim();
    if word.is_empty() || word.contains(char::is_whitespace) {
        return Ok(());
    }
    scan(Some(key), word, path)?;
    scan(Some(component), word, path)
}

fn is_variable(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or(key);
    name.contains(|c: char| c.is_ascii_uppercase()) && !name.contains(|c: char| c.is_lowercase())
}
