//! Names that a caller misspelt: what is refused says what was probably meant.

use crate::error::Error;
use crate::safety::secrets::SecretGuard;
use crate::wire::shorten;

/// The refusal of a name that is none of those `known`. `what` is the kind of name, such as `context field`.
///
/// A name that looks like a credential is not repeated.
///
/// ```
/// let known = ["cwd", "branch", "files_open"];
/// let message = |name| nudge_core::names::unknown("context field", name, &known).message().to_owned();
/// assert_eq!(message("barnch"), "There is no context field `barnch`; did you mean `branch`?");
/// assert_eq!(message("filesOpen"), "There is no context field `filesOpen`; did you mean `files_open`?");
/// assert_eq!(message("colour"), "There is no context field `colour`; there are `cwd`, `branch` and `files_open`.");
/// ```
pub fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let advice = match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{}.", list(known)),
    };
    let told = format!("There is no {what} `{}`; {advice}", shorten(name));
    match SecretGuard::new().check(None, &told) {
        None => Error::invalid(told),
        Some(_) => Error::invalid(format!("There is no such {what}; {advice}")),
    }
}

/// The name that was probably meant: the same in another case or with other separators, or with few wrong letters.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let folded = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(64).collect()
    };
    let given = folded(name);
    let distance = |known: &&'a str| (strsim::osa_distance(&given, &folded(known)), *known);
    let (wrong, near) = known.iter().map(distance).min_by_key(|(wrong, _)| *wrong)?;
    // One wrong letter of three is a slip, two of four are another word.
    (wrong * 3 <= given.chars().count().max(2)).then_some(near)
}

/// The names there are, in words.
fn list(known: &[&str]) -> String {
    let quoted: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "there are none".into(),
        Some((only, [])) => format!("the only one is {only}"),
        Some((last, others)) => format!("there are {} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_probably_meant_is_named() {
        const KNOWN: [&str; 6] = ["cwd", "repo", "branch", "os", "env", "files_open"];
        for (given, meant) in [
            ("barnch", Some("branch")),
            ("Branch", Some("branch")),
            ("brnch", Some("branch")),
            ("filesOpen", Some("files_open")),
            ("files-open", Some("files_open")),
            ("cdw", Some("cwd")),
            ("repos", Some("repo")),
            ("path", None),
            ("x", None),
            ("", None),
            ("directory", None),
        ] {
            assert_eq!(nearest(given, &KNOWN), meant, "{given}");
        }
        assert_eq!(
            unknown("option", "all_of_it", &["all"]).message(),
            "There is no option `all_of_it`; the only one is `all`."
        );
        assert_eq!(unknown("option", "x", &[]).message(), "There is no option `x`; there are none.");
    }

    #[test]
    fn a_name_that_may_be_a_secret_is_not_repeated() {
        let key = ["gh", "p_", &"x7Kq9ZtR2mWv".repeat(3)].concat();
        let refused = unknown("context field", &key, &["cwd"]);
        assert_eq!(refused.message(), "There is no such context field; the only one is `cwd`.");
        assert!(unknown("context field", "a\nb", &["cwd"]).message().starts_with("There is no context field `ab`;"));
        assert!(unknown("context field", &"x".repeat(1 << 20), &["cwd"]).message().len() < 500);
    }
}
