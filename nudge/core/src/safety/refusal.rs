//! The refusal of the secret guard, for every source that stores texts.

use serde_json::Value;

use super::secrets::{Finding, SecretGuard};
use crate::error::{Error, ErrorKind, Result};

/// Refuses a text that looks like a credential. `name` is the variable that the text belongs to, if there is one;
/// `path` is the place of the text, such as `value.cmd`.
///
/// # Errors
/// `E_SECRET_REJECTED` with `data.rule` and `data.path`, never the text.
pub fn check_text(name: Option<&str>, text: &str, path: &str) -> Result<()> {
    match SecretGuard::new().check(name, text) {
        None => Ok(()),
        Some(rule) => Err(make_rejection(&Finding { rule, path: path.to_owned() })),
    }
}

/// As [`check_text`], for every string and every key of a JSON value.
///
/// # Errors
/// As [`check_text`].
pub fn check_json(path: &str, value: &Value) -> Result<()> {
    SecretGuard::new().check_json(path, value).map_or(Ok(()), |finding| Err(make_rejection(&finding)))
}

fn make_rejection(finding: &Finding) -> Error {
    let Finding { rule, path } = finding;
    let what = if *rule == "hex-32-64" {
        "holds 32-64 hex digits, which look like a credential".into()
    } else {
        format!("looks like a credential ({rule})")
    };
    Error::new(
        ErrorKind::SecretRejected,
        format!("`{path}` {what}; store where to find it instead, pass `allow_secret` if this is a false alarm, or mark a real secret with `meta.sensitivity`."),
    ).about(path).about("allow_secret").about("meta.sensitivity")
    .with_data("rule", *rule)
    .with_data("path", path.as_str())
}
