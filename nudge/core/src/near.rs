//! Did you mean: which of some names is nearest to one that there is not.

/// Most names that are looked at, so that no store makes it take long.
const MAX_NAMES: usize = 2000;
/// Longest name that is compared, in bytes; nobody mistypes a longer one.
const MAX_NAME_BYTES: usize = 64;
/// Letters from which a name may be a part of the one that is meant (`proxy` of `http-proxy`).
const MIN_PART_CHARS: usize = 3;

/// Returns the name that is nearest to `word`: the same but for case and signs, with few wrong or swapped letters, or
/// one that has it as a part. The word itself does not count. Of equally near names the first by bytes is returned. The
/// first 2,000 names are looked at.
///
/// ```
/// use nudge_core::near::nearest;
///
/// assert_eq!(nearest("http-porxy", ["api", "http-proxy"]), Some("http-proxy"));
/// assert_eq!(nearest("proxy", ["api", "http-proxy"]), Some("http-proxy"));
/// assert_eq!(nearest("web", ["api", "http-proxy"]), None);
/// ```
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() || word.len() > MAX_NAME_BYTES {
        return None;
    }
    let folded = fold(word);
    let ranked = names.into_iter().take(MAX_NAMES).filter(|name| *name != word && name.len() <= MAX_NAME_BYTES);
    let ranked = ranked.filter_map(|name| Some((distance(&folded, &fold(name))?, name)));
    ranked.min().map(|(_, name)| name)
}

/// A name without case, its words parted by one sign.
fn fold(name: &str) -> String {
    name.to_lowercase().replace(['_', '.', ' '], "-")
}

/// How far a name is from the one that was given; `None` when that is too far.
fn distance(word: &str, name: &str) -> Option<usize> {
    let (chars, others) = (word.chars().count(), name.chars().count());
    // A third of the letters may be wrong, and at most three.
    let most = (chars.min(others) / 3).clamp(usize::from(chars > 1), 3);
    let wrong = (chars.abs_diff(others) <= most).then(|| strsim::osa_distance(word, name));
    let is_part = chars.min(others) >= MIN_PART_CHARS && (name.contains(word) || word.contains(name));
    // Whoever leaves out a part means a short name sooner than a long one.
    wrong.filter(|wrong| *wrong <= most).or_else(|| is_part.then(|| most + chars.abs_diff(others)))
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
            assert_eq!(nearest(word, names), meant, "{word}");
        }
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        assert_eq!(nearest(&long, [&long[1..]]), None);
        assert_eq!(nearest("bb", ["ab", "cb"]), Some("ab"));
    }
}
