//! Refuses texts that look like secrets, for every source that stores texts.

use nudge_secrets::{Finding, SecretGuard};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};

/// Refuses a text that looks like a credential. If the text is the value of a variable, `name` is the name of this
/// variable. `path` is the position of the text in the params, such as `value.cmd`.
///
/// # Errors
/// `E_SECRET_REJECTED` with `data.rule` and `data.path`, but never with the text.
pub fn check_text(name: Option<&str>, text: &str, path: &str) -> Result<()> {
    match SecretGuard::new().check(name, text) {
        None => Ok(()),
        Some(rule) => Err(make_rejection(&Finding { rule, path: path.to_owned() })),
    }
}

/// Works like [`check_text`], but with the given message. It is for methods without the params `allow_secret` and
/// `meta.sensitivity`, which the usual message recommends.
///
/// # Errors
/// The errors of [`check_text`], with `message`.
pub fn check_text_with(text: &str, path: &str, message: impl FnOnce() -> String) -> Result<()> {
    match SecretGuard::new().check(None, text) {
        None => Ok(()),
        Some(rule) => Err(describe_finding(&Finding { rule, path: path.to_owned() }, message())),
    }
}

/// Refuses a JSON value like [`check_text`]: checks every string and every key.
///
/// # Errors
/// The errors of [`check_text`].
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
    describe_finding(
        finding,
        format!(
            "`{path}` {what}; store where to find it instead, pass `allow_secret` if this is a false alarm, or mark a real secret with `meta.sensitivity`."
        ),
    )
    .about("allow_secret")
    .about("meta.sensitivity")
}

fn describe_finding(finding: &Finding, message: String) -> Error {
    Error::new(ErrorKind::SecretRejected, message)
        .about(&finding.path)
        .with_data("rule", finding.rule)
        .with_data("path", finding.path.as_str())
}
