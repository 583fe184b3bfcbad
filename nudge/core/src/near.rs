//! Makes "did you mean" suggestions: finds the known name that is nearest to an unknown name.

use crate::error::Error;
use crate::wire::shorten_text;
use nudge_secrets::SecretGuard;

/// The most names that are compared, so that the time has a limit in every store.
const MAX_NAMES: usize = 2000;
/// The longest name that is compared, in bytes; users do not mistype longer names.
const MAX_NAME_BYTES: usize = 64;
/// The fewest characters that a name must have to match as a part of another name (`proxy` in `http-proxy`).
const MIN_PART_CHARS: usize = 3;

/// Returns the name that is nearest to `word`. A near name is equal except for case and signs, has few wrong or swapped
/// letters, or has `word` as a part. The word itself does not count. Among equally near names, the first by bytes wins.
/// Only the first 2,000 names are compared.
///
/// ```
/// use nudge_core::near::find_nearest;
///
/// assert_eq!(find_nearest("http-porxy", ["api", "http-proxy"]), Some("http-proxy"));
/// assert_eq!(find_nearest("proxy", ["api", "http-proxy"]), Some("http-proxy"));
/// assert_eq!(find_nearest("web", ["api", "http-proxy"]), None);
/// ```
pub fn find_nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() || word.len() > MAX_NAME_BYTES {
        return None;
    }
    let folded = fold_name(word);
    let ranked = names.into_iter().take(MAX_NAMES).filter(|name| *name != word && name.len() <= MAX_NAME_BYTES);
    let ranked = ranked.filter_map(|name| Some((measure_distance(&folded, &fold_name(name))?, name)));
    ranked.min().map(|(_, name)| name)
}

/// Makes the error for a name that is not among `known`. `what` is the kind of name, such as `context field`.
///
/// The message does not repeat a name that looks like a credential.
///
/// ```
/// let known = ["cwd", "branch", "files_open"];
/// let message = |name| nudge_core::near::refuse_unknown("context field", name, &known).message().to_owned();
/// assert_eq!(message("barnch"), "There is no context field `barnch`; did you mean `branch`?");
/// assert_eq!(message("filesOpen"), "There is no context field `filesOpen`; did you mean `files_open`?");
/// assert_eq!(message("colour"), "There is no context field `colour`; there are `cwd`, `branch` and `files_open`.");
/// ```
pub fn refuse_unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let advice = match find_nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{}.", list_names(known)),
    };
    let told = format!("There is no {what} `{}`; {advice}", shorten_text(name));
    match SecretGuard::new().check(None, &told) {
        None => Error::invalid(told),
        Some(_) => Error::invalid(format!("There is no such {what}; {advice}")),
    }
}

/// Returns a name in lower case, with `-` in place of `_`, `.` and spaces.
fn fold_name(name: &str) -> String {
    name.to_lowercase().replace(['_', '.', ' '], "-")
}

/// Returns the distance between `name` and the given `word`; `None` when it is too large.
fn measure_distance(word: &str, name: &str) -> Option<usize> {
    let (chars, others) = (word.chars().count(), name.chars().count());
    // At most a third of the letters may be wrong, and never more than three.
    let most = (chars.min(others) / 3).clamp(usize::from(chars > 1), 3);
    let wrong = (chars.abs_diff(others) <= most).then(|| strsim::osa_distance(word, name));
    let is_part = chars.min(others) >= MIN_PART_CHARS && (name.contains(word) || word.contains(name));
    // A short name is more likely than a long one when the user omitted a part.
    wrong.filter(|wrong| *wrong <= most).or_else(|| is_part.then(|| most + chars.abs_diff(others)))
}

/// Lists the known names as a phrase.
fn list_names(known: &[&str]) -> String {
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
    fn what_is_meant() {
        let names = ["api", "auth", "http-proxy", "HTTP_Cache", "k2", "k10", "set_hint", "get_hint", "日本語"];
        for (word, meant) in [
            ("http-prox", Some("http-proxy")),
            ("htpt-proxy", Some("http-proxy")),
            ("http_proxy", Some("http-proxy")),
            ("Http-Proxy", Some("http-proxy")),
            ("http.cache", Some("HTTP_Cache")),
            ("proxy", Some("http-proxy")),
            ("my-http-proxy", Some("http-proxy")),
            ("ap", Some("api")),
            ("apii", Some("api")),
            ("aut", Some("auth")),
            ("get", Some("get_hint")),
            ("get-hnt", Some("get_hint")),
            ("k1", Some("k10")),
            ("日本", Some("日本語")),
            ("web", None),
            ("billing", None),
            ("a", None),
            ("", None),
            ("api", None),
        ] {
            assert_eq!(find_nearest(word, names), meant, "{word}");
        }
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        assert_eq!(find_nearest(&long, [&long[1..]]), None);
        assert_eq!(find_nearest("bb", ["ab", "cb"]), Some("ab"));
    }

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
            assert_eq!(find_nearest(given, KNOWN), meant, "{given}");
        }
        assert_eq!(
            refuse_unknown("option", "limit", &["all"]).message(),
            "There is no option `limit`; the only one is `all`."
        );
        assert_eq!(refuse_unknown("option", "x", &[]).message(), "There is no option `x`; there are none.");
    }

    #[test]
    fn a_name_that_may_be_a_secret_is_not_repeated() {
        let key = ["gh", "p_", &"x7Kq9ZtR2mWv".repeat(3)].concat();
        let refused = refuse_unknown("context field", &key, &["cwd"]);
        assert_eq!(refused.message(), "There is no such context field; the only one is `cwd`.");
        assert!(
            refuse_unknown("context field", "a\nb", &["cwd"]).message().starts_with("There is no context field `ab`;")
        );
        assert!(refuse_unknown("context field", &"x".repeat(1 << 20), &["cwd"]).message().len() < 500);
    }
}
